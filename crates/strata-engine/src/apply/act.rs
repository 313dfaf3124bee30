//! One act on one object, outside any plan: a backup, a snapshot, a restore. Under the lock and written ahead, as a step is.

use std::sync::Arc;

use async_trait::async_trait;
use strata_state::{Effect, JournalRecord, LockedState, OpenEntry, StateResource};

use super::step::{Writes, document_of, journal_failed};
use crate::events::Event;
use crate::journal::JournalWriter;
use crate::recovery::{decide, sight};
use crate::run::{EngineError, LockedRun, Run};
use crate::{ErrorClass, Operation, OperationContext, ProviderError, StopSignal};

impl LockedRun {
    /// Does one act on an object. Its entry says first what the state is to have if the run dies in the middle: `becomes`. What the act
    /// gives beside its result is recorded; without that the state stays as it is.
    ///
    /// An act that fails after its first write is looked at, as a step is; where nobody can see what came of it the entry stays open.
    pub async fn act<T>(
        &mut self,
        operation: &Operation,
        becomes: StateResource,
        stop: &StopSignal,
        act: impl AsyncFnOnce(&dyn OperationContext) -> Result<(T, Option<StateResource>), ProviderError>,
    ) -> Result<Result<T, ProviderError>, EngineError> {
        let address = operation.address.clone();
        if self.state.open.iter().any(|open| open.address == address || !self.deferred.contains_key(&open.id))
        {
            return Err(EngineError::Open { address: address.to_string() });
        }
        let entry = self.entry(operation, Some(Box::new(becomes)));
        self.state.open.push(entry.clone());
        let journal = JournalWriter::new(self.lock.clone(), self.tally.clone());
        journal.append(JournalRecord::Begin(entry.clone())).await?;
        let (run, lock) = (self.run.clone(), self.lock.clone());
        let context = Acting {
            run,
            lock,
            journal: &journal,
            entry: &entry,
            stop: stop.clone(),
            writes: Writes::default(),
        };
        let (effect, outcome) = match act(&context).await {
            Ok((result, None)) => (Some(Effect::Unchanged), Ok(result)),
            Ok((result, Some(record))) => (Some(Effect::Put(Box::new(record))), Ok(result)),
            Err(mut error) => {
                error.nothing_done |= !context.writes.any();
                let stopped = error.class == ErrorClass::Stopped;
                let effect = match (error.nothing_done && !context.writes.any(), stopped) {
                    (true, _) => Some(Effect::Unchanged),
                    (false, true) => None,
                    (false, false) => self.seen_after(&entry, &context).await,
                };
                (effect, Err(error))
            }
        };
        if let Some(effect) = effect {
            let record =
                JournalRecord::End { id: entry.id, address: address.clone(), effect: effect.clone() };
            journal.append(record).await?;
            effect.apply_to(&mut self.state.document, address);
            self.state.open.retain(|open| open.id != entry.id);
        }
        self.save().await?;
        Ok(outcome)
    }

    /// What a failed act left, once its tasks have ended.
    async fn seen_after(&self, entry: &OpenEntry, context: &Acting<'_>) -> Option<Effect> {
        let provider = self.run.providers.get(&entry.target).ok()?;
        let document = document_of(&self.state.document, &entry.address);
        provider.wait_for_tasks(entry, context).await.ok()?;
        let sighting = sight(provider.as_ref(), entry, &document).await.ok()?;
        decide(entry, sighting, &document).ok().map(|(effect, _)| effect)
    }
}

struct Acting<'a> {
    run: Run,
    lock: Arc<dyn LockedState>,
    journal: &'a JournalWriter,
    entry: &'a OpenEntry,
    stop: StopSignal,
    writes: Writes,
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
        let (address, warning) = (self.entry.address.clone(), what.to_owned());
        self.run.events.emit(Event::StepWarning { step: 0, address, warning });
    }

    async fn task_started(&self, task: &str) -> Result<(), ProviderError> {
        let record = JournalRecord::Task { id: self.entry.id, task: task.to_owned() };
        self.journal.append(record).await.map_err(journal_failed)
    }

    fn progress(&self, doing: &str) {
        let (address, doing) = (self.entry.address.clone(), doing.to_owned());
        self.run.events.emit(Event::StepProgress { step: 0, address, doing });
    }

    fn stopping(&self) -> bool {
        self.stop.stopping()
    }

    async fn stopped(&self) {
        self.stop.called(1).await;
    }
}
