//! From the arguments of a command to stacks, and to the parts of them that it is about.

use std::collections::BTreeSet;

use strata_source::EffectiveStack;

use super::opening::is_driven;
use super::{Workspace, key};
use crate::error::SessionError;
use crate::selection::Pattern;

/// What a command is about.
pub(crate) struct Selected<'w> {
    pub(crate) stacks: Vec<&'w EffectiveStack>,
    /// What it is about in those that are not meant as a whole.
    pub(crate) patterns: Vec<Pattern>,
    /// The keys of stacks that were asked for as a whole.
    pub(crate) whole: BTreeSet<String>,
}

impl<'w> Selected<'w> {
    pub(crate) fn whole(stacks: Vec<&'w EffectiveStack>) -> Self {
        let whole = stacks.iter().map(|stack| key(stack)).collect();
        Self { stacks, patterns: Vec::new(), whole }
    }
}

impl Workspace {
    /// Stacks by name, path or layer, addresses, patterns.
    pub(super) fn select_parts(&self, arguments: &[String]) -> Result<Selected<'_>, SessionError> {
        let (mut names, mut patterns) = (Vec::new(), Vec::new());
        for argument in arguments {
            match self.pattern(argument) {
                Some(pattern) => patterns.push(pattern),
                None => names.push(argument.clone()),
            }
        }
        if patterns.is_empty() {
            return Ok(Selected::whole(self.select(arguments)?));
        }
        let mut wanted: BTreeSet<String> = BTreeSet::new();
        let mut whole = BTreeSet::new();
        if !names.is_empty() {
            whole = self.select(&names)?.into_iter().map(key).collect();
            wanted.extend(whole.iter().cloned());
        }
        // What left the source is not meant by a pattern, only by its own name.
        let all = self.select(&[])?;
        for pattern in &patterns {
            let can = |stack: &&&EffectiveStack| match super::is_removed(stack) {
                true => pattern.as_str().starts_with(&format!("{}/", stack.name)),
                false => pattern.can_match_in(&stack.name),
            };
            let mut stacks: Vec<&EffectiveStack> = all.iter().filter(can).copied().collect();
            if let [one] = stacks.as_slice()
                && is_driven(one)
            {
                let message = format!("OpenTofu makes `{}`: it is planned as a whole", one.name);
                return Err(SessionError::refused(message).hint(format!("name the stack: `{}`", one.name)));
            }
            stacks.retain(|stack| !is_driven(stack));
            if stacks.is_empty() {
                let name = pattern.as_str().split('/').next().unwrap_or_default().to_owned();
                self.select(&[name])?;
                return Err(pattern.unmatched(std::iter::empty()));
            }
            wanted.extend(stacks.into_iter().map(key));
        }
        let stacks = all.into_iter().filter(|stack| wanted.contains(&key(stack))).collect();
        Ok(Selected { stacks, patterns, whole })
    }

    /// An argument that means a part of a stack. What begins with the name of a stack is meant so, even where nothing is called like that.
    pub(super) fn pattern(&self, argument: &str) -> Option<Pattern> {
        let environment = self.surroundings().environment.as_deref();
        let is_stack = self.repository().select(&[argument.to_owned()], environment).is_ok()
            || self.means_removed(argument)
            || argument.starts_with("layer:");
        let mut names = self.repository().stacks().iter().map(|entry| entry.name.value.as_str());
        let below = names.any(|name| argument.starts_with(&format!("{name}/")));
        if is_stack { None } else { Pattern::parse(argument, below) }
    }
}
