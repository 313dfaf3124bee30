//! What every store of states can do. One conformance suite runs over all of them.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{DamagedJournal, JournalRecord, StateDocument};

/// Who holds a lock, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockOwner {
    pub id: String,
    /// `user@host`.
    pub who: String,
    pub pid: u32,
    /// `apply`, `destroy`, …
    pub operation: String,
    /// RFC 3339.
    pub since: String,
}

impl fmt::Display for LockOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {}) for `{}` since {}", self.who, self.pid, self.operation, self.since)
    }
}

/// One kept version of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub serial: u64,
    /// RFC 3339, or empty where the store does not know.
    pub written: String,
    pub bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the state `{key}` is locked by {owner}")]
    Locked { key: String, owner: Box<LockOwner> },
    #[error("the state `{key}` has serial {found}, not {expected}: somebody else wrote it")]
    Moved { key: String, expected: u64, found: u64 },
    #[error("the state `{key}` cannot be read: {reason}")]
    Damaged { key: String, reason: String, newest_good: Option<u64> },
    #[error(
        "the state `{key}` was written by a newer Strata: its format is {format}, this one knows up to {known}"
    )]
    Newer { key: String, format: u32, known: u32 },
    #[error("the journal of `{key}` cannot be read: {damage}")]
    Journal { key: String, damage: DamagedJournal },
    #[error("the state `{key}` has no version with serial {serial}")]
    NoVersion { key: String, serial: u64 },
    #[error("the lock on `{key}` is not ours any more")]
    LockLost { key: String },
    #[error("{what}: {source}")]
    Io {
        what: String,
        #[source]
        source: std::io::Error,
    },
}

/// A place where states are kept.
#[async_trait]
pub trait Store: Send + Sync {
    /// Where it is, for people.
    fn describe(&self) -> String;
    async fn keys(&self) -> Result<Vec<String>, StoreError>;
    async fn read(&self, key: &str) -> Result<Option<StateDocument>, StoreError>;
    async fn read_journal(&self, key: &str) -> Result<Vec<JournalRecord>, StoreError>;
    async fn lock(&self, key: &str, owner: LockOwner) -> Result<Box<dyn LockedState>, StoreError>;
    /// Who holds the lock now.
    async fn holder(&self, key: &str) -> Result<Option<LockOwner>, StoreError>;
    /// Takes a lock away from its holder. Gives the holder it was taken from; none if there was none.
    async fn break_lock(&self, key: &str) -> Result<Option<LockOwner>, StoreError>;
    /// Kept versions, newest first.
    async fn history(&self, key: &str) -> Result<Vec<Version>, StoreError>;
    async fn read_version(&self, key: &str, serial: u64) -> Result<StateDocument, StoreError>;
}

/// A state under our lock: only through this can it be written, so nothing is written without the lock.
#[async_trait]
pub trait LockedState: Send + Sync {
    fn owner(&self) -> &LockOwner;
    /// Fails if the lock may have lapsed or was taken away; asked before each remote write.
    fn still_held(&self) -> Result<(), StoreError>;
    /// Replaces the document; `document.serial` must be one more than the serial that is stored (0 if none).
    async fn write(&self, document: &StateDocument) -> Result<(), StoreError>;
    /// Appends and makes durable before it returns.
    async fn append_journal(&self, records: &[JournalRecord]) -> Result<(), StoreError>;
    /// Empties the journal; the document holds all of it.
    async fn clear_journal(&self) -> Result<(), StoreError>;
    async fn release(&self) -> Result<(), StoreError>;
}
