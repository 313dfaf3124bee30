//! `moved:` entries: each names something that is not in the source any more, and where it is now.

use std::collections::{BTreeMap, HashSet};

use strata_diagnostics::{Diagnostic, Diagnostics, Span};
use strata_yaml::Spanned;

use super::suggestion;
use crate::repository::{EffectiveStack, Model, Repository};
use crate::stack::Moved;

pub(super) fn check(repository: &Repository, diagnostics: &mut Diagnostics) {
    let mut told: HashSet<(&'static str, Span)> = HashSet::new();
    for environment in repository.environments() {
        let entries: Vec<&Moved> = repository
            .effective()
            .filter(|stack| stack.environment == environment)
            .flat_map(EffectiveStack::moved)
            .collect();
        let place = Place { repository, environment };
        for problem in entries.iter().filter_map(|entry| place.wrong(entry)).chain(between(&entries)) {
            // One file can be read for many environments.
            let at = problem.primary.as_ref().map(|label| label.span);
            if at.is_none_or(|at| told.insert((problem.code, at))) {
                diagnostics.push(problem);
            }
        }
    }
}

/// `web/vm/db` in its parts; a whole stack has one.
fn parts(subject: &str) -> (&str, Option<(&str, &str)>) {
    let mut parts = subject.splitn(3, '/');
    let stack = parts.next().unwrap_or_default();
    (stack, parts.next().zip(parts.next()))
}

struct Place<'a> {
    repository: &'a Repository,
    environment: &'a str,
}

impl Place<'_> {
    fn stack(&self, name: &str) -> Option<&EffectiveStack> {
        self.repository.stack(name, Some(self.environment))
    }

    /// What is wrong with one entry by itself.
    fn wrong(&self, entry: &Moved) -> Option<Diagnostic> {
        let (from, to) = (&entry.from, &entry.to);
        let refuse = |message: String, span: Span| Diagnostic::error("moved", message).at(span);
        let ((old, object), (new, other)) = (parts(from), parts(to));
        match (object, other) {
            (Some((kind, _)), Some((other, _))) if kind != other => {
                let message = format!("`{from}` cannot become `{to}`: a {kind} is no {other}");
                return Some(refuse(message, to.span).hint("both have the same kind"));
            }
            (Some(_), None) | (None, Some(_)) => {
                let message = "a whole stack moves to a stack, and an object to an object".to_owned();
                return Some(
                    refuse(message, to.span).hint("write both as `stack`, or both as `stack/kind/name`"),
                );
            }
            _ => {}
        }
        let Some(home) = self.stack(new) else {
            let names: Vec<&str> =
                self.repository.stacks().iter().map(|entry| entry.name.value.as_str()).collect();
            let message = format!("there is no stack `{new}` in the environment `{}`", self.environment);
            return Some(refuse(message, to.span).maybe_hint(suggestion(new, &names)));
        };
        if let Some(fixed) = [Some(home), self.stack(old)].into_iter().flatten().find_map(fixed) {
            return Some(
                refuse(fixed, from.span)
                    .hint("only objects of stacks that Strata makes itself move, and none of a cluster"),
            );
        }
        let former = self.stack(old)?;
        match object {
            None => Some(
                refuse(format!("the stack `{old}` is still in the source"), from.span)
                    .hint("remove it, or name the objects that move: `from: web/vm/db`"),
            ),
            Some((kind, name)) => {
                let span = guest(former, kind, name)?;
                Some(
                    refuse(format!("`{from}` is still in the source"), from.span)
                        .also(span, "here")
                        .hint("what is moved has only its new address: remove the old one, or this entry"),
                )
            }
        }
    }
}

/// Why nothing of a stack can move.
fn fixed(stack: &EffectiveStack) -> Option<String> {
    let name = &stack.name;
    match &stack.model {
        Model::Cluster(_) => {
            Some(format!("`{name}` is a cluster: its keys and the names of its nodes belong to its address"))
        }
        Model::Tofu(_) => Some(format!("OpenTofu makes `{name}`, and keeps its own addresses")),
        Model::Machines(_) | Model::Hypervisor(_) | Model::Broken | Model::Removed => None,
    }
}

/// Where a guest of the source is written.
fn guest(stack: &EffectiveStack, kind: &str, name: &str) -> Option<Span> {
    let machines = stack.machines()?;
    let found: Option<&Spanned<String>> = match kind {
        "vm" => machines.vm_instances().iter().find(|one| one.name == name).map(|one| one.key),
        "container" => machines.container_instances().iter().find(|one| one.name == name).map(|one| one.key),
        "template" => machines.template_instances().iter().find(|one| one.name == name).map(|one| one.key),
        _ => None,
    };
    found.map(|key| key.span)
}

/// What is wrong with entries beside each other.
fn between(entries: &[&Moved]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut sources: BTreeMap<&str, &Moved> = BTreeMap::new();
    let mut targets: BTreeMap<&str, &Moved> = BTreeMap::new();
    for entry in entries {
        if let Some(other) = sources.insert(&entry.from, entry) {
            let message = format!("`{}` moves to two places", entry.from);
            found.push(
                Diagnostic::error("moved-twice", message)
                    .at(entry.from.span)
                    .also(other.from.span, "here too")
                    .hint("remove one of the entries"),
            );
        }
        if let Some(other) = targets.insert(&entry.to, entry) {
            let message = format!("two objects cannot both become `{}`", entry.to);
            found.push(
                Diagnostic::error("moved-onto-another", message)
                    .at(entry.to.span)
                    .also(other.to.span, "the other one")
                    .hint("give each its own address"),
            );
        }
    }
    for entry in entries {
        let Some(next) = sources.get(entry.to.as_str()) else { continue };
        found.push(chain(entry, next, &sources));
    }
    found
}

/// An entry that another one goes on from.
fn chain(entry: &Moved, next: &Moved, sources: &BTreeMap<&str, &Moved>) -> Diagnostic {
    let mut seen = HashSet::from([entry.from.as_str()]);
    let mut last = next;
    while seen.insert(&last.from) {
        match sources.get(last.to.as_str()) {
            Some(next) => last = next,
            None => {
                let message = format!("`{}` moves on to `{}`: each move is written once", entry.to, next.to);
                return Diagnostic::error("moved-chain", message)
                    .at(entry.to.span)
                    .also(next.from.span, "from here")
                    .hint(format!("write `{{from: {}, to: {}}}` instead of these", entry.from, last.to));
            }
        }
    }
    let message = format!("`{}` moves in a circle", entry.from);
    Diagnostic::error("moved-cycle", message)
        .at(entry.from.span)
        .hint("two objects change places in two applies: move one of them out of the way first")
}
