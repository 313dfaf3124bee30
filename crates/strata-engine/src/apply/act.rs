//! One act on one object, outside any plan: a backup, a snapshot, a restore. Under the lock and written ahead, as a step is.

use strata_state::{Effect, JournalRecord, StateResource};

use super::acting::Acting;
use super::step::document_of;
use crate::journal::JournalWriter;
use crate::run::{EngineError, LockedRun};
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
        let context = Acting {
            step: 0,
            entry: entry.clone(),
            run: self.run.clone(),
            lock: self.lock.clone(),
            journal: &journal,
            stop: stop.clone(),
            given_up: Default::default(),
            writes: Default::default(),
            added: Default::default(),
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
                    (false, false) => {
                        let document = document_of(&self.state.document, &entry.address);
                        context.seen_after(&document).await
                    }
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
}
