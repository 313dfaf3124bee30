//! Writes the journal for many steps at once: what waits while one write is under way goes into the next one together.

use std::sync::{Arc, Mutex, PoisonError};

use strata_state::{JournalRecord, LockedState, StoreError};
use tokio::sync::Mutex as AsyncMutex;

pub(crate) struct JournalWriter {
    lock: Arc<dyn LockedState>,
    waiting: Mutex<Queue>,
    /// Held while a batch is written.
    written: AsyncMutex<Written>,
}

#[derive(Default)]
struct Queue {
    records: Vec<JournalRecord>,
    batch: u64,
}

struct Written {
    /// Up to this batch everything is durable.
    batch: u64,
    /// A write failed: what is on disk is unknown, so nothing more may be said to be durable.
    broken: Option<String>,
}

impl JournalWriter {
    pub(crate) fn new(lock: Arc<dyn LockedState>) -> Self {
        Self {
            lock,
            waiting: Mutex::new(Queue { records: Vec::new(), batch: 1 }),
            written: AsyncMutex::new(Written { batch: 0, broken: None }),
        }
    }

    /// Returns when the records are durable.
    pub(crate) async fn append(&self, records: Vec<JournalRecord>) -> Result<(), StoreError> {
        let batch = {
            let mut queue = self.queue();
            queue.records.extend(records);
            queue.batch
        };
        let mut written = self.written.lock().await;
        if let Some(reason) = &written.broken {
            let source = std::io::Error::other(reason.clone());
            return Err(StoreError::Io { what: "an earlier write to the journal failed".to_owned(), source });
        }
        if written.batch >= batch {
            return Ok(());
        }
        let (records, taken) = {
            let mut queue = self.queue();
            queue.batch += 1;
            (std::mem::take(&mut queue.records), queue.batch - 1)
        };
        match self.lock.append_journal(&records).await {
            Ok(()) => {
                written.batch = taken;
                Ok(())
            }
            Err(error) => {
                written.broken = Some(error.to_string());
                Err(error)
            }
        }
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
