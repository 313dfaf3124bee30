//! One step: the operation at the provider, and what it means for the state.

use std::sync::Arc;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use strata_resource::{Address, Lineage, Spec, stored_spec};
use strata_state::{
    Action, Effect, JournalRecord, LockedState, OpenEntry, StateDocument, StateResource, StoreError,
};

use super::{StepEffect, StopSignal};
use crate::events::Event;
use crate::journal::JournalWriter;
use crate::plan::{Step, StepAction};
use crate::recovery::{decide, removed, sight};
use crate::run::{EngineError, Run, StackView};
use crate::{ErrorClass, OperationContext, Outcome, ProviderError};

/// What came of a step.
pub(super) struct Finished {
    pub(super) index: usize,
    pub(super) id: u64,
    pub(super) effect: StepEffect,
    pub(super) error: Option<ProviderError>,
}

pub(super) struct Worker<'a> {
    pub(super) index: usize,
    pub(super) step: &'a Step,
    pub(super) entry: OpenEntry,
    pub(super) run: Run,
    pub(super) lock: Arc<dyn LockedState>,
    pub(super) journal: &'a JournalWriter,
    pub(super) lineage: Lineage,
    pub(super) stop: StopSignal,
    pub(super) spec: Spec,
    pub(super) stack: &'a StackView,
    /// The state of this address alone, as it was when the step began.
    pub(super) document: StateDocument,
}

impl Worker<'_> {
    pub(super) async fn work(self) -> Result<Finished, EngineError> {
        let (effect, error) = if self.step.action.is_remote() {
            match self.operate().await {
                Ok(outcome) => (Some(self.success(outcome)), None),
                Err(error) => (self.after_failure(&error).await, Some(error)),
            }
        } else {
            (Some(self.recorded_only()), None)
        };
        if let Some(effect) = &effect {
            let (id, address) = (self.entry.id, self.step.address.clone());
            self.journal.append(vec![JournalRecord::End { id, address, effect: effect.clone() }]).await?;
        }
        Ok(Finished { index: self.index, id: self.entry.id, effect, error })
    }

    async fn operate(&self) -> Result<Outcome, ProviderError> {
        let provider = self
            .run
            .providers
            .get(&self.step.target)
            .map_err(|error| ProviderError::new(ErrorClass::Missing, error.to_string()))?;
        let operation = self.step.operation(self.entry.action, self.spec.clone(), &self.lineage);
        provider.execute(&operation, self).await
    }

    fn success(&self, outcome: Outcome) -> Effect {
        match self.step.action {
            StepAction::Delete | StepAction::DeleteFormer => removed(&self.entry, &self.document),
            _ => match &self.step.becomes {
                Some(becomes) => Effect::Put(Box::new(StateResource {
                    facts: outcome.facts,
                    spec: stored_spec(&self.spec),
                    ..becomes.clone()
                })),
                None => Effect::Unchanged,
            },
        }
    }

    fn recorded_only(&self) -> Effect {
        match (self.step.action, &self.step.becomes) {
            (StepAction::Forget, _) => Effect::Remove,
            (_, Some(becomes)) => Effect::Put(Box::new(becomes.clone())),
            (_, None) => Effect::Unchanged,
        }
    }

    /// Looks at what a failed operation left, so that the state tells the truth. If that fails too the entry stays open.
    async fn after_failure(&self, error: &ProviderError) -> StepEffect {
        if error.nothing_done || self.entry.action == Action::Update {
            return Some(Effect::Unchanged);
        }
        let provider = self.run.providers.get(&self.step.target).ok()?;
        provider.settle(&self.entry, self).await.ok()?;
        let sighting = sight(provider.as_ref(), &self.entry, &self.document).await.ok()?;
        decide(&self.entry, sighting, &self.document, self.stack).ok().map(|(effect, _)| effect)
    }
}

#[async_trait]
impl OperationContext for Worker<'_> {
    fn before_write(&self) -> Result<(), ProviderError> {
        if self.stop.now() {
            return Err(ProviderError::new(ErrorClass::Stopped, "stopped by the user"));
        }
        self.lock.still_held().map_err(|error| ProviderError::new(ErrorClass::Stopped, error.to_string()))
    }

    async fn task_started(&self, task: &str) -> Result<(), ProviderError> {
        let record = JournalRecord::Task { id: self.entry.id, task: task.to_owned() };
        self.journal.append(vec![record]).await.map_err(journal_failed)
    }

    fn progress(&self, doing: &str) {
        let (step, address, doing) = (self.index, self.step.address.clone(), doing.to_owned());
        self.run.events.emit(Event::StepProgress { step, address, doing });
    }
}

fn journal_failed(error: StoreError) -> ProviderError {
    ProviderError::new(ErrorClass::Internal, format!("the journal cannot be written: {error}"))
        .hint("free space or mend the state's store, then apply again: what was begun is found by its mark")
}

/// SHA-256 over the stored form of a spec, as hex.
pub(super) fn spec_digest(spec: &Spec) -> String {
    hex::encode(Sha256::digest(serde_json::to_vec(&stored_spec(spec)).unwrap_or_default()))
}

/// The part of a document that is about one address.
pub(super) fn document_of(document: &StateDocument, address: &Address) -> StateDocument {
    let mut part = StateDocument::new(document.lineage.clone(), &document.key);
    if let Some(resource) = document.resources.get(address) {
        part.resources.insert(address.clone(), resource.clone());
    }
    part
}
