//! Writes the journal for many steps at once: what waits while one write is under way goes into the next one together.
//!
//! Records are queued without waiting, so that steps which begin together are in one write; each then waits for itself. Nobody
//! may hold up a step that is in the middle of a write: it is what all others wait for.

use std::sync::{Arc, Mutex, PoisonError};

use strata_state::{JournalRecord, JournalTally, LockedState, StoreError};
use tokio::sync::Mutex as AsyncMutex;

pub(crate) struct JournalWriter {
    lock: Arc<dyn LockedState>,
    tally: SharedTally,
    waiting: Mutex<Queue>,
    /// Held while a batch is written.
    written: AsyncMutex<Written>,
}

/// What is in the journal, for all that write to it under one lock.
#[derive(Clone, Default)]
pub(crate) struct SharedTally(Arc<Mutex<JournalTally>>);

impl SharedTally {
    pub(crate) fn new(tally: JournalTally) -> Self {
        Self(Arc::new(Mutex::new(tally)))
    }

    fn tally(&self) -> std::sync::MutexGuard<'_, JournalTally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seal(&self, records: &mut Vec<JournalRecord>) {
        self.tally().seal(records);
    }

    pub(crate) fn doubt(&self) {
        self.tally().doubt();
    }

    /// The journal is empty again.
    pub(crate) fn clear(&self) {
        *self.tally() = JournalTally::new();
    }
}

/// Records that are written together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Batch(u64);

struct Queue {
    records: Vec<JournalRecord>,
    batch: Batch,
}

struct Written {
    /// Up to this batch everything is durable.
    batch: Batch,
    /// A write failed or was cut off: what is on disk is unknown, so nothing more may be said to be durable.
    broken: Option<String>,
}

impl JournalWriter {
    pub(crate) fn new(lock: Arc<dyn LockedState>, tally: SharedTally) -> Self {
        Self {
            lock,
            tally,
            waiting: Mutex::new(Queue { records: Vec::new(), batch: Batch(1) }),
            written: AsyncMutex::new(Written { batch: Batch(0), broken: None }),
        }
    }

    /// Puts a record into the next write; [`Self::durable`] waits for it.
    pub(crate) fn enqueue(&self, record: JournalRecord) -> Batch {
        let mut queue = self.queue();
        queue.records.push(record);
        queue.batch
    }

    /// Returns when the batch is durable.
    pub(crate) async fn durable(&self, batch: Batch) -> Result<(), StoreError> {
        let mut written = self.written.lock().await;
        if written.batch >= batch {
            return Ok(());
        }
        if let Some(reason) = &written.broken {
            let source = std::io::Error::other(reason.clone());
            return Err(StoreError::Io { what: "an earlier write to the journal failed".to_owned(), source });
        }
        let (mut records, taken) = {
            let mut queue = self.queue();
            let taken = queue.batch;
            queue.batch = Batch(taken.0 + 1);
            (std::mem::take(&mut queue.records), taken)
        };
        // Stands if this future is dropped before the write has ended.
        written.broken = Some("it was cut off".to_owned());
        self.tally.seal(&mut records);
        let result = self.lock.append_journal(&records).await;
        if result.is_err() {
            self.tally.doubt();
        }
        written.broken = result.as_ref().err().map(ToString::to_string);
        if result.is_ok() {
            written.batch = taken;
        }
        result
    }

    pub(crate) async fn append(&self, record: JournalRecord) -> Result<(), StoreError> {
        self.durable(self.enqueue(record)).await
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
