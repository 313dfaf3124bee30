//! What an operation is given while it works: leave to write, a place for what it says, and word of a stop.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use strata_resource::{Address, FieldPath};
use strata_state::{JournalRecord, LockedState, OpenEntry, StateDocument, StoreError};

use super::{GivenUp, StepEffect};
use crate::events::Event;
use crate::journal::JournalWriter;
use crate::recovery::{decide, sight};
use crate::run::Run;
use crate::{ErrorClass, OperationContext, ProviderError, StopSignal};

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

/// One operation at work, a step or an act, under its entry in the journal.
pub(super) struct Acting<'a> {
    /// The number of the step in what is said of it; zero for an act.
    pub(super) step: usize,
    pub(super) entry: OpenEntry,
    pub(super) run: Run,
    pub(super) lock: Arc<dyn LockedState>,
    pub(super) journal: &'a JournalWriter,
    pub(super) stop: StopSignal,
    pub(super) given_up: GivenUp,
    pub(super) writes: Writes,
    /// The slots that these have added.
    pub(super) added: Mutex<BTreeSet<FieldPath>>,
}

impl Acting<'_> {
    pub(super) fn added(&self) -> BTreeSet<FieldPath> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it left after it failed, once its tasks have ended; nothing where nobody can see that. The document is the state of its address.
    pub(super) async fn seen_after(&self, document: &StateDocument) -> StepEffect {
        let provider = self.run.providers.get(&self.entry.target).ok()?;
        provider.wait_for_tasks(&self.entry, self).await.ok()?;
        let sighting = sight(provider.as_ref(), &self.entry, document).await.ok()?;
        decide(&self.entry, sighting, document).ok().map(|(effect, _)| effect)
    }
}

#[async_trait]
impl OperationContext for Acting<'_> {
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
        let (step, address, warning) = (self.step, self.entry.address.clone(), what.to_owned());
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
        let (step, address, doing) = (self.step, self.entry.address.clone(), doing.to_owned());
        self.run.events.emit(Event::StepProgress { step, address, doing });
    }
}

fn journal_failed(error: StoreError) -> ProviderError {
    ProviderError::new(ErrorClass::Internal, format!("the journal cannot be written: {error}"))
        .hint("free space or repair the state's store, then apply again: what was begun is found by its ownership mark")
}

#[cfg(test)]
mod tests;
