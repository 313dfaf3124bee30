//! From names of stacks to stacks that can be planned: what is wrong without asking anybody, states, targets, then each stack by itself.

use std::collections::BTreeSet;

use strata_source::{EffectiveStack, Model};

use super::{Workspace, plannable, removed};
use crate::connections::Connections;
use crate::error::SessionError;
use crate::stack_session::{OpenStack, Purpose, StackSession, StateAccess};

/// A stack that can be planned, whoever makes it.
pub enum Opened<'w> {
    Native(Box<StackSession>),
    /// [`Workspace::open_driven`] opens its code: it may need what is applied before it.
    Driven(Box<OpenStack<'w>>),
}

impl Opened<'_> {
    pub async fn release(self) -> Result<(), SessionError> {
        match self {
            Self::Native(session) => session.release().await,
            Self::Driven(stack) => stack.release().await,
        }
    }
}

impl Workspace {
    /// The stacks that the arguments select, in the order in which they are applied or destroyed: each with its state, and ready to be
    /// planned where Strata makes it itself. All states are read, and locked, before anything else is asked.
    pub async fn open(
        &self,
        stacks: &[String],
        purpose: &Purpose,
        access: StateAccess<'_>,
    ) -> Result<Vec<Opened<'_>>, SessionError> {
        let selected = removed::in_order(self.select(stacks)?, purpose.destroy);
        self.open_selected(selected, purpose, access).await
    }

    /// The same without those that OpenTofu makes.
    pub async fn open_native(
        &self,
        stacks: &[String],
        purpose: &Purpose,
        access: StateAccess<'_>,
    ) -> Result<Vec<StackSession>, SessionError> {
        let mut selected = self.select(stacks)?;
        selected.retain(|stack| plannable(stack));
        let opened = self.open_selected(selected, purpose, access).await?;
        let native = |opened| match opened {
            Opened::Native(session) => Some(*session),
            Opened::Driven(_) => None,
        };
        Ok(opened.into_iter().filter_map(native).collect())
    }

    async fn open_selected<'w>(
        &'w self,
        selected: Vec<&'w EffectiveStack>,
        purpose: &Purpose,
        access: StateAccess<'_>,
    ) -> Result<Vec<Opened<'w>>, SessionError> {
        let is_driven = |stack: &EffectiveStack| matches!(stack.model, Model::Tofu(_));
        let selected: Vec<&EffectiveStack> =
            selected.into_iter().filter(|stack| plannable(stack) || is_driven(stack)).collect();
        self.refuse_removed_code(&selected)?;
        let native: Vec<&EffectiveStack> =
            selected.iter().copied().filter(|stack| !is_driven(stack)).collect();
        self.surroundings.providers.check(self, &native)?;
        let mut open = Vec::new();
        for stack in &selected {
            match OpenStack::open(self, stack, purpose.clone(), access).await {
                Ok(one) => open.push(one),
                Err(error) => {
                    release(open).await;
                    return Err(error);
                }
            }
        }
        if let Err(error) = self.connections(&native).await {
            release(open).await;
            return Err(error);
        }
        let mut rest = open.into_iter();
        let mut opened = Vec::new();
        while let Some(one) = rest.next() {
            if is_driven(one.stack()) {
                opened.push(Opened::Driven(Box::new(one)));
                continue;
            }
            match one.prepare().await {
                Ok(session) => opened.push(Opened::Native(Box::new(session))),
                Err(error) => {
                    release(rest.collect()).await;
                    for one in opened {
                        let _ = one.release().await;
                    }
                    return Err(error);
                }
            }
        }
        Ok(opened)
    }

    /// The states of stacks, each by itself: what is wrong with one says nothing of the others.
    pub async fn look(
        &self,
        stacks: &[String],
    ) -> Result<Vec<(String, Result<OpenStack<'_>, SessionError>)>, SessionError> {
        let mut found = Vec::new();
        for stack in self.select(stacks)?.into_iter().filter(|stack| plannable(stack)) {
            let open = OpenStack::open(self, stack, Purpose::LOOK, StateAccess::Look).await;
            found.push((stack.name.clone(), open));
        }
        Ok(found)
    }

    /// Connects the targets of these stacks, as far as this run has not, and gives everything that it has connected.
    pub async fn connections(&self, stacks: &[&EffectiveStack]) -> Result<Connections, SessionError> {
        let mut connections = self.connections.lock().await;
        for stack in stacks {
            self.surroundings.providers.connect(self, stack, &mut connections).await?;
        }
        let mut all = connections.clone();
        all.expect_shared(self.repository.shared_storages());
        Ok(all)
    }

    /// Connects every target of the environments at hand, whatever stacks there are.
    pub async fn connect_everything(&self) -> Result<(), SessionError> {
        let environments: BTreeSet<String> = match &self.surroundings.environment {
            Some(environment) => [environment.clone()].into(),
            None => {
                let entries = self.repository.stacks().iter().map(|entry| entry.default_environment.clone());
                entries.chain([strata_source::DEFAULT_ENVIRONMENT.to_owned()]).collect()
            }
        };
        for environment in environments {
            let nobody = strata_source::stack::Layer::Standalone;
            let stack = self.repository.removed("", &environment, false, nobody);
            self.connections(&[&stack]).await?;
        }
        Ok(())
    }
}

/// Gives locks back after an error; that is the one to tell.
async fn release(open: Vec<OpenStack<'_>>) {
    for one in open {
        let _ = one.release().await;
    }
}
