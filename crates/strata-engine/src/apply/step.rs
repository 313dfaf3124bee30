//! One step: the operation at the provider, and what it means for the state.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use strata_resource::{Address, FieldPath, Spec, Value, stored_spec};
use strata_state::{Action, Effect, JournalRecord, LockedState, OpenEntry, StateDocument, StoreError};

use super::{GivenUp, StepEffect, effect};
use crate::events::Event;
use crate::journal::{Batch, JournalWriter};
use crate::plan::Step;
use crate::recovery::{decide, sight};
use crate::run::{EngineError, Run};
use crate::{ErrorClass, Operation, OperationContext, Outcome, ProviderError, StopSignal};

/// What came of a step.
pub(super) struct Finished {
    pub(super) index: usize,
    pub(super) id: u64,
    pub(super) effect: StepEffect,
    pub(super) error: Option<ProviderError>,
    /// It did not fail: the user said stop while it waited.
    pub(super) given_up: bool,
}

/// The writes of one operation that were answered with anything but a refusal, or not answered at all. The one place that knows
/// whether an operation that failed has done something.
#[derive(Default)]
pub(super) struct Writes(AtomicUsize);

impl Writes {
    pub(super) fn allowed(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn refused(&self) {
        // A refusal that nobody asked for must not hide a write.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |writes| writes.checked_sub(1));
    }

    pub(super) fn undone(&self) {
        self.0.store(0, Ordering::SeqCst);
    }

    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

pub(super) struct Worker<'a> {
    pub(super) index: usize,
    pub(super) step: &'a Step,
    pub(super) entry: OpenEntry,
    /// The write that holds the entry; none for a step that writes nothing remote.
    pub(super) begun: Option<Batch>,
    pub(super) run: Run,
    pub(super) lock: Arc<dyn LockedState>,
    pub(super) journal: &'a JournalWriter,
    pub(super) stop: StopSignal,
    pub(super) operation: Operation,
    pub(super) writes: Writes,
    /// The slots that these have added.
    pub(super) added: Mutex<BTreeSet<FieldPath>>,
    pub(super) given_up: GivenUp,
    /// The state of this address alone, as it was when the step began. Steps of one address never run side by side.
    pub(super) document: StateDocument,
}

impl Worker<'_> {
    pub(super) async fn work(self) -> Result<Finished, EngineError> {
        if let Some(batch) = self.begun {
            self.journal.durable(batch).await?;
        }
        let (address, action) = (self.step.address.clone(), self.step.action);
        self.run.events.emit(Event::StepStarted {
            step: self.index,
            address: address.clone(),
            action,
            stage: self.step.stage,
        });
        let mut given_up = false;
        let (effect, error) = if action.is_remote() {
            match self.operate().await {
                Ok(outcome) => {
                    let sent = &self.operation.spec;
                    (Some(effect::done(self.step, &self.entry, sent, outcome, &self.document)), None)
                }
                Err(mut error) => {
                    // What failed speaks of its last call; calls before it may have written.
                    error.nothing_done &= !self.writes.any();
                    given_up = error.class == ErrorClass::Stopped && self.stop.stopping();
                    // Looking what came of it takes time that the user does not want to give: the entry stays open.
                    let looks = !given_up || error.nothing_done;
                    (if looks { self.after_failure(&error).await } else { None }, Some(error))
                }
            }
        } else {
            (Some(effect::recorded(self.step, &self.entry, &self.document)), None)
        };
        if let Some(effect) = effect.clone() {
            self.journal.append(JournalRecord::End { id: self.entry.id, address, effect }).await?;
        }
        Ok(Finished { index: self.index, id: self.entry.id, effect, error, given_up })
    }

    async fn operate(&self) -> Result<Outcome, ProviderError> {
        let refuse = |class, message: String| {
            Err(ProviderError { nothing_done: true, ..ProviderError::new(class, message) })
        };
        if let Some((from, output)) = self.operation.spec.values().find_map(Value::unfilled) {
            return refuse(ErrorClass::Missing, format!("it needs `{output}` of `{from}`, which has none"));
        }
        // Between the entry and now the user may have said stop, or the lock may be gone.
        if let Err(error) = self.may_go_on() {
            return refuse(error.class, error.message);
        }
        match self.run.providers.get(&self.step.target) {
            Ok(provider) => provider.execute(&self.operation, self).await,
            Err(error) => refuse(ErrorClass::Missing, error.to_string()),
        }
    }

    /// Looks at what a failed operation left, so that the state tells the truth. If that fails too the entry stays open.
    async fn after_failure(&self, error: &ProviderError) -> StepEffect {
        // An answer that was lost: what is staged tells who staged it, to whoever can look.
        let in_doubt = self.entry.address.kind().table().staged && error.class == ErrorClass::Unreachable;
        if self.entry.action == Action::Update && (error.nothing_done || !in_doubt) {
            let added = self.added.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let (step, entry) = (self.step, &self.entry);
            return Some(effect::failed_update(step, entry, error.nothing_done, &added, &self.document));
        }
        if error.nothing_done {
            return Some(Effect::Unchanged);
        }
        let provider = self.run.providers.get(&self.step.target).ok()?;
        provider.wait_for_tasks(&self.entry, self).await.ok()?;
        let sighting = sight(provider.as_ref(), &self.entry, &self.document).await.ok()?;
        decide(&self.entry, sighting, &self.document).ok().map(|(effect, _)| effect)
    }
}

#[async_trait]
impl OperationContext for Worker<'_> {
    fn before_write(&self) -> Result<(), ProviderError> {
        self.may_go_on()?;
        self.writes.allowed();
        Ok(())
    }

    fn write_refused(&self) {
        self.writes.refused();
    }

    fn writes_undone(&self) {
        self.writes.undone();
    }

    fn adds(&self, slot: &FieldPath) {
        self.added.lock().unwrap_or_else(PoisonError::into_inner).insert(slot.clone());
    }

    fn may_go_on(&self) -> Result<(), ProviderError> {
        if self.stop.now() {
            return Err(ProviderError::new(ErrorClass::Stopped, "stopped by the user"));
        }
        self.lock.still_held().map_err(|error| ProviderError::new(ErrorClass::Stopped, error.to_string()))
    }

    fn write_timeout(&self) -> Option<std::time::Duration> {
        self.lock.write_timeout()
    }

    fn warning(&self, what: &str) {
        let (step, address, warning) = (self.index, self.step.address.clone(), what.to_owned());
        self.run.events.emit(Event::StepWarning { step, address, warning });
    }

    async fn task_started(&self, task: &str) -> Result<(), ProviderError> {
        let record = JournalRecord::Task { id: self.entry.id, task: task.to_owned() };
        self.journal.append(record).await.map_err(journal_failed)
    }

    fn given_up(&self, address: &Address) -> bool {
        self.given_up.contains(address)
    }

    fn stopping(&self) -> bool {
        self.stop.stopping()
    }

    async fn stopped(&self) {
        self.stop.called(1).await;
    }

    fn progress(&self, doing: &str) {
        let (step, address, doing) = (self.index, self.step.address.clone(), doing.to_owned());
        self.run.events.emit(Event::StepProgress { step, address, doing });
    }
}

pub(super) fn journal_failed(error: StoreError) -> ProviderError {
    ProviderError::new(ErrorClass::Internal, format!("the journal cannot be written: {error}"))
        .hint("free space or repair the state's store, then apply again: what was begun is found by its ownership mark")
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
