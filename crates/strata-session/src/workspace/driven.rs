//! Stacks that OpenTofu makes, beside those that Strata makes itself, in one order.

use std::collections::BTreeMap;

use strata_diagnostics::{LARGEST_FILE, read_text_file};
use strata_resource::Value;
use strata_source::{EffectiveStack, Model};
use strata_tofu::FileOrigin;

use super::Workspace;
use crate::error::SessionError;
use crate::tofu::{Driven, Inputs, TofuSession};

/// Outputs that are known before Strata's states have them, by stack.
pub type KnownOutputs = BTreeMap<String, BTreeMap<String, Value>>;

impl Workspace {
    /// A stack that OpenTofu makes, ready to be planned.
    pub async fn open_driven<'w>(
        &'w self,
        stack: &'w EffectiveStack,
        inputs: Inputs<'_>,
    ) -> Result<Box<Driven<'w>>, SessionError> {
        if self.is_left_over(stack) {
            let message =
                format!("`{}` has no `stack.yaml`, and everything in it was generated", stack.folder);
            return Err(SessionError::refused(message).hint(
                "put `stack.yaml` back, or let `strata sync` remove the files; without their first lines they are yours",
            ));
        }
        let default = stack.is_default_environment;
        let environment = if default { String::new() } else { format!("{}:", stack.environment) };
        Ok(Box::new(Driven {
            name: stack.name.clone(),
            key: super::key(stack),
            prefix: format!("{environment}{}/tofu/", stack.name),
            session: TofuSession::open(self, stack, inputs).await?,
            stack,
        }))
    }

    /// The stack of that name, if OpenTofu makes it.
    pub fn driven(&self, stack: &str) -> Result<Option<&EffectiveStack>, SessionError> {
        let stack = self.one(stack)?;
        Ok(matches!(stack.model, Model::Tofu(_)).then_some(stack))
    }

    /// Rendered once from a source that is gone: nobody wrote it to be driven.
    fn is_left_over(&self, stack: &EffectiveStack) -> bool {
        let entries = std::fs::read_dir(self.root.join(&stack.folder)).into_iter().flatten().flatten();
        let mut code = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "tf"))
            .filter_map(|path| read_text_file(&path, LARGEST_FILE).ok())
            .peekable();
        stack.path == stack.folder
            && code.peek().is_some()
            && code.all(|text| strata_tofu::file_origin(&text) != FileOrigin::HandWritten)
    }

    /// The digest of OpenTofu's code in a folder of the repository.
    pub fn code_digest(&self, folder: &str) -> String {
        strata_source::code_digest(folder, &self.disk)
    }

    /// The digest of everything that a plan of the stack is made from.
    pub fn source_digest(&self, stack: &EffectiveStack) -> String {
        self.repository.source_digest(stack, &self.disk)
    }

    /// Whether the arguments select a stack that OpenTofu makes.
    pub fn needs_tofu(&self, stacks: &[String]) -> Result<bool, SessionError> {
        Ok(self.select(stacks)?.iter().any(|stack| matches!(stack.model, Model::Tofu(_))))
    }
}
