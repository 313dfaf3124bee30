//! One step: the operation at the provider, and what it means for the state.

use sha2::{Digest, Sha256};
use strata_resource::{Address, Spec, Value, stored_spec};
use strata_state::{Action, Effect, JournalRecord, StateDocument};

use super::acting::Acting;
use super::{StepEffect, effect};
use crate::events::Event;
use crate::journal::Batch;
use crate::plan::Step;
use crate::run::EngineError;
use crate::{ErrorClass, Operation, OperationContext, Outcome, ProviderError};

/// What came of a step.
pub(super) struct Finished {
    pub(super) index: usize,
    pub(super) id: u64,
    pub(super) effect: StepEffect,
    pub(super) error: Option<ProviderError>,
    /// It did not fail: the user said stop while it waited.
    pub(super) given_up: bool,
}

pub(super) struct Worker<'a> {
    pub(super) step: &'a Step,
    /// The write that holds the entry; none for a step that writes nothing remote.
    pub(super) begun: Option<Batch>,
    pub(super) operation: Operation,
    /// What the operation is given.
    pub(super) acting: Acting<'a>,
    /// The state of this address alone, as it was when the step began. Steps of one address never run side by side.
    pub(super) document: StateDocument,
}

impl Worker<'_> {
    pub(super) async fn work(self) -> Result<Finished, EngineError> {
        if let Some(batch) = self.begun {
            self.acting.journal.durable(batch).await?;
        }
        let (address, action) = (self.step.address.clone(), self.step.action);
        self.acting.run.events.emit(Event::StepStarted {
            step: self.acting.step,
            address: address.clone(),
            action,
            stage: self.step.stage,
        });
        let mut given_up = false;
        let (effect, error) = if action.is_remote() {
            match self.operate().await {
                Ok(outcome) => {
                    let sent = &self.operation.spec;
                    (Some(effect::done(self.step, &self.acting.entry, sent, outcome, &self.document)), None)
                }
                Err(mut error) => {
                    // What failed speaks of its last call; calls before it may have written.
                    error.nothing_done &= !self.acting.writes.any();
                    given_up = error.class == ErrorClass::Stopped && self.acting.stop.stopping();
                    // Looking what came of it takes time that the user does not want to give: the entry stays open.
                    let looks = !given_up || error.nothing_done;
                    (if looks { self.after_failure(&error).await } else { None }, Some(error))
                }
            }
        } else {
            (Some(effect::recorded(self.step, &self.acting.entry, &self.document)), None)
        };
        if let Some(effect) = effect.clone() {
            self.acting
                .journal
                .append(JournalRecord::End { id: self.acting.entry.id, address, effect })
                .await?;
        }
        Ok(Finished { index: self.acting.step, id: self.acting.entry.id, effect, error, given_up })
    }

    async fn operate(&self) -> Result<Outcome, ProviderError> {
        let refuse = |class, message: String| {
            Err(ProviderError { nothing_done: true, ..ProviderError::new(class, message) })
        };
        if let Some((from, output)) = self.operation.spec.values().find_map(Value::unfilled) {
            return refuse(ErrorClass::Missing, format!("it needs `{output}` of `{from}`, which has none"));
        }
        // Between the entry and now the user may have said stop, or the lock may be gone.
        if let Err(error) = self.acting.may_go_on() {
            return refuse(error.class, error.message);
        }
        match self.acting.run.providers.get(&self.step.target) {
            Ok(provider) => provider.execute(&self.operation, &self.acting).await,
            Err(error) => refuse(ErrorClass::Missing, error.to_string()),
        }
    }

    /// Looks at what a failed operation left, so that the state tells the truth. If that fails too the entry stays open.
    async fn after_failure(&self, error: &ProviderError) -> StepEffect {
        // An answer that was lost: what is staged tells who staged it, to whoever can look.
        let in_doubt =
            self.acting.entry.address.kind().table().staged && error.class == ErrorClass::Unreachable;
        if self.acting.entry.action == Action::Update && (error.nothing_done || !in_doubt) {
            let (step, entry, added) = (self.step, &self.acting.entry, self.acting.added());
            return Some(effect::failed_update(step, entry, error.nothing_done, &added, &self.document));
        }
        if error.nothing_done {
            return Some(Effect::Unchanged);
        }
        self.acting.seen_after(&self.document).await
    }
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

#[cfg(test)]
mod tests;
