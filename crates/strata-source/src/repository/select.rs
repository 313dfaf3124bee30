//! Which stacks a command is about: names, paths, layers.

use strata_diagnostics::nearest;

use super::{EffectiveStack, Repository, StackEntry};
use crate::stack::Layer;

/// A STACK argument that selects nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectError {
    pub message: String,
    pub hint: Option<String>,
}

impl std::fmt::Display for SelectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SelectError {}

impl Repository {
    /// The stacks that the arguments name, in the order they are applied; all of them without an argument.
    pub fn select(
        &self,
        arguments: &[String],
        environment: Option<&str>,
    ) -> Result<Vec<&EffectiveStack>, SelectError> {
        if let Some(environment) = environment
            && !self.environments().contains(&environment)
        {
            return Err(self.unknown_environment(environment));
        }
        let mut wanted = vec![arguments.is_empty(); self.stacks.len()];
        for argument in arguments {
            let mut found = false;
            for (index, entry) in self.stacks.iter().enumerate() {
                if matches(argument, entry)? {
                    found = true;
                    wanted[index] = true;
                }
            }
            if !found {
                return Err(self.unknown_stack(argument));
            }
        }
        let mut selected = Vec::new();
        for (entry, _) in self.stacks.iter().zip(&wanted).filter(|(_, wanted)| **wanted) {
            match self.stack(&entry.name, environment) {
                Some(stack) => selected.push(stack),
                // Without an argument, an environment is what its stacks are.
                None if arguments.is_empty()
                    || arguments.iter().all(|argument| argument.starts_with("layer:")) => {}
                None => return Err(not_in_environment(entry, environment.unwrap_or_default())),
            }
        }
        Ok(selected)
    }

    fn unknown_environment(&self, environment: &str) -> SelectError {
        let known = self.environments();
        let hint = match nearest(environment, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the environments are {}", known.join(", ")),
        };
        SelectError { message: format!("there is no environment `{environment}`"), hint: Some(hint) }
    }

    fn unknown_stack(&self, argument: &str) -> SelectError {
        let known: Vec<&str> = self.stacks.iter().map(|entry| entry.name.value.as_str()).collect();
        let hint = match nearest(argument, known.iter().copied()) {
            Some(meant) => Some(format!("did you mean `{meant}`?")),
            None if known.is_empty() => None,
            None => Some(format!("the stacks are {}", known.join(", "))),
        };
        SelectError { message: format!("there is no stack `{argument}`"), hint }
    }
}

fn matches(argument: &str, entry: &StackEntry) -> Result<bool, SelectError> {
    if let Some(layer) = argument.strip_prefix("layer:") {
        return match Layer::of_word(layer) {
            Some(layer) => Ok(entry.layer == layer),
            None => Err(SelectError {
                message: format!("there is no layer `{layer}`"),
                hint: Some("the layers are hypervisors, platforms and workloads".to_owned()),
            }),
        };
    }
    let path = argument.strip_prefix("./").unwrap_or(argument).trim_end_matches('/');
    let below = |folder: &str| entry.folder == folder || entry.folder.starts_with(&format!("{folder}/"));
    Ok(entry.name.value == argument || path == entry.path || (path.contains('/') && below(path)))
}

fn not_in_environment(entry: &StackEntry, environment: &str) -> SelectError {
    SelectError {
        message: format!("the stack `{}` is not part of the environment `{environment}`", entry.name),
        hint: Some(format!(
            "name it in environments/{environment}.yaml; it is part of {}",
            entry.environments.join(", ")
        )),
    }
}
