//! Stacks that OpenTofu makes, beside those that Strata makes itself, in one order.

use std::collections::BTreeMap;

use strata_engine::LockedRun;
use strata_resource::Value;
use strata_source::{EffectiveStack, Model};
use strata_state::LockOwner;
use strata_tofu::Found;

use super::targets::Targets;
use super::{Opening, StackSession, Workspace, plannable};
use crate::command_error::CommandError;
use crate::tofu::{Driven, Inputs, Session, refuse_resources};
use crate::views::graph::TofuStack;

/// Outputs that are known before Strata's states have them, by stack.
pub(crate) type KnownOutputs = BTreeMap<String, BTreeMap<String, Value>>;

/// A stack that can be planned.
pub(crate) enum Opened<'w> {
    Native(Box<StackSession>),
    /// [`Workspace::open_driven`] opens it: it may need what is applied before it.
    Driven(&'w EffectiveStack),
}

impl Workspace<'_> {
    /// The stacks that the arguments select, ready to be planned, in the order in which they are applied or destroyed.
    pub(crate) async fn open_all(
        &self,
        stacks: &[String],
        opening: Opening,
    ) -> Result<Vec<Opened<'_>>, CommandError> {
        let selected = super::removed::in_order(self.select(stacks)?, opening.destroy);
        let mut native = self.open_native(&selected, &opening).await?.into_iter();
        let mut opened = Vec::new();
        for stack in selected {
            if plannable(stack) {
                let session = native.next().expect("each of them was opened, in this order");
                opened.push(Opened::Native(Box::new(session)));
            } else if matches!(stack.model, Model::Tofu(_)) {
                opened.push(Opened::Driven(stack));
            }
        }
        Ok(opened)
    }

    /// A stack that OpenTofu makes, ready to be planned.
    pub(crate) async fn open_driven<'w>(
        &'w self,
        stack: &'w EffectiveStack,
        inputs: Inputs<'_>,
    ) -> Result<Box<Driven<'w>>, CommandError> {
        if self.is_left_over(stack) {
            let message =
                format!("`{}` has no `stack.yaml`, and everything in it was generated", stack.folder);
            return Err(CommandError::refused(message).hint(
                "put `stack.yaml` back, or let `strata sync` remove the files; without their first lines they are yours",
            ));
        }
        let default = stack.is_default_environment;
        let environment = if default { String::new() } else { format!("{}:", stack.environment) };
        Ok(Box::new(Driven {
            name: stack.name.clone(),
            view: self.empty_view(stack)?,
            run: self.run(Targets::default(), None)?,
            prefix: format!("{environment}{}/tofu/", stack.name),
            session: Session::open(self, stack, inputs).await?,
            stack,
        }))
    }

    /// The lock of a stack that OpenTofu makes, for a run that plans it later.
    pub(crate) async fn lock_driven(
        &self,
        stack: &EffectiveStack,
        owner: LockOwner,
    ) -> Result<LockedRun, CommandError> {
        let locked = self.run(Targets::default(), None)?.lock(&self.empty_view(stack)?, owner).await?;
        match refuse_resources(&stack.name, locked.state()) {
            Ok(()) => Ok(locked),
            Err(error) => {
                locked.release().await?;
                Err(error)
            }
        }
    }

    /// The stack of that name, if OpenTofu makes it.
    pub(crate) fn driven(&self, stack: &str) -> Result<Option<&EffectiveStack>, CommandError> {
        let stack = self.one(stack)?;
        Ok(matches!(stack.model, Model::Tofu(_)).then_some(stack))
    }

    pub(crate) fn stack(&self, name: &str) -> Result<&EffectiveStack, CommandError> {
        self.one(name)
    }

    /// Rendered once from a source that is gone: nobody wrote it to be driven.
    fn is_left_over(&self, stack: &EffectiveStack) -> bool {
        let entries = std::fs::read_dir(self.root.join(&stack.folder)).into_iter().flatten().flatten();
        let mut code = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "tf"))
            .filter_map(|path| std::fs::read_to_string(path).ok())
            .peekable();
        stack.path == stack.folder
            && code.peek().is_some()
            && code.all(|text| strata_tofu::found(&text) != Found::HandWritten)
    }

    /// The digest of OpenTofu's code in a folder of the repository.
    pub(crate) fn code_digest(&self, folder: &str) -> String {
        strata_source::code_digest(folder, &self.disk)
    }

    /// The digest of everything that a plan of the stack is made from.
    pub(crate) fn source_digest(&self, stack: &EffectiveStack) -> String {
        self.repository.source_digest(stack, &self.disk)
    }

    /// Whether the arguments select a stack that OpenTofu makes.
    pub(crate) fn needs_tofu(&self, stacks: &[String]) -> Result<bool, CommandError> {
        Ok(self.select(stacks)?.iter().any(|stack| matches!(stack.model, Model::Tofu(_))))
    }

    /// The folders of those stacks, by their names, for drawings.
    pub(crate) fn tofu_folders(&self, stacks: &[String]) -> Result<Vec<TofuStack>, CommandError> {
        let selected = self.select(stacks)?;
        let driven = selected.iter().filter(|stack| matches!(stack.model, Model::Tofu(_)));
        let drawn = |stack: &&EffectiveStack| TofuStack {
            stack: stack.name.clone(),
            description: stack.description().map(str::to_owned),
            folder: stack.folder.clone(),
        };
        Ok(driven.map(drawn).collect())
    }
}
