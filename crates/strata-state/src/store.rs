//! What every store of states can do. One conformance suite runs over all of them.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use strata_storage::{Command, Content, Failure, Head, Source, Write, decide};

use crate::{DamagedJournal, Holder, JournalRecord, LockOwner, StateDocument, replay};

/// How many versions are kept unless something else is said.
pub(crate) const KEPT_VERSIONS: usize = 100;

/// Whether anything that the holder of a state began can be under way. A journal that cannot be read may say so.
pub async fn has_open_work(store: &dyn Store, key: &str) -> bool {
    let Ok(journal) = store.read_journal(key).await else { return true };
    match store.read(key).await {
        Ok(Some(document)) => !replay(document, journal).open.is_empty(),
        Ok(None) => !journal.is_empty(),
        Err(_) => true,
    }
}

/// What a write may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replaces {
    /// The document with the serial before its own.
    Former,
    Nothing,
}

impl Replaces {
    /// For a store whose lock is no record: asks the rules about the serial alone. `stored` is the serial that is stored; none if there is
    /// no state.
    pub(crate) fn check(
        self,
        key: &str,
        document: &StateDocument,
        stored: Option<u64>,
    ) -> Result<(), StoreError> {
        let expected = match self {
            Self::Former => document.serial.saturating_sub(1),
            Self::Nothing => 0,
        };
        let version = |serial| strata_storage::Version {
            version: 1,
            serial: Some(serial),
            lineage: None,
            size: 0,
            md5: "stored".to_owned(),
            written: 0,
            by: String::new(),
            forced: false,
        };
        let head = Head { current: stored.map(version), ..Head::default() };
        let write = Write {
            content: Content::Inline(Bytes::new()),
            serial: Some(document.serial),
            lineage: None,
            size: 0,
            md5: "sent".to_owned(),
            lock: None,
            replaces: strata_storage::Replaces::Serial(expected),
            force: false,
            by: String::new(),
            written: 0,
        };
        match (decide(&head, &Command::Write(write)), self) {
            (Ok(_), _) => Ok(()),
            (Err(_), Self::Nothing) => {
                Err(StoreError::Exists { key: key.to_owned(), serial: stored.unwrap_or(0) })
            }
            (Err(_), Self::Former) => {
                Err(StoreError::Moved { key: key.to_owned(), expected, found: stored.unwrap_or(0) })
            }
        }
    }
}

/// One kept version of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    pub serial: u64,
    /// RFC 3339, or empty where the store does not know.
    pub written: String,
    pub bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the state `{key}` is locked by {holder}")]
    Locked { key: String, holder: Box<Holder> },
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
    #[error("the lock on `{key}` was lost")]
    LockLost { key: String },
    #[error("the lock on `{key}` could not be renewed in time: another run may hold it by now")]
    Lapsed { key: String },
    #[error("the lock on `{key}` has changed hands: it is not the one with the id `{id}`")]
    OtherLock { key: String, id: String },
    #[error("there is a state `{key}` already, with serial {serial}")]
    Exists { key: String, serial: u64 },
    #[error("the state `{key}` cannot be decrypted: {reason}")]
    Sealed { key: String, reason: String },
    /// A server said no, or nothing.
    #[error("{what}: {reason}")]
    Remote { what: String, reason: String, hint: Option<String>, source: Option<Source> },
    #[error("{what}: {source}")]
    Io {
        what: String,
        #[source]
        source: std::io::Error,
    },
}

impl StoreError {
    pub fn remote(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Remote { what: what.into(), reason: reason.into(), hint: None, source: None }
    }

    /// Of an error, which stays behind it.
    pub fn remote_error(what: impl Into<String>, error: impl Error + Send + Sync + 'static) -> Self {
        Self::Remote {
            what: what.into(),
            reason: error.to_string(),
            hint: None,
            source: Some(std::sync::Arc::new(error)),
        }
    }

    /// Whether it is about what one state holds, and says nothing of the store that all of them are in.
    pub fn is_of_one_state(&self) -> bool {
        matches!(
            self,
            Self::Damaged { .. }
                | Self::Newer { .. }
                | Self::Journal { .. }
                | Self::NoVersion { .. }
                | Self::Sealed { .. }
        )
    }

    /// What a storage could not do.
    pub(crate) fn failure(failure: Failure) -> Self {
        let (what, reason) = match failure.reason() {
            Some(reason) if !failure.what().is_empty() => (failure.what().to_owned(), reason),
            _ => ("the states cannot be reached".to_owned(), failure.to_string()),
        };
        Self::Remote { what, reason, hint: None, source: Some(std::sync::Arc::new(failure)) }
    }

    /// Only what a server said no to takes one.
    #[must_use]
    pub(crate) fn with_hint(self, hint: Option<String>) -> Self {
        match self {
            Self::Remote { what, reason, source, .. } => Self::Remote { what, reason, hint, source },
            other => other,
        }
    }
}

/// A place where states are kept.
#[async_trait]
pub trait Store: Send + Sync {
    /// Where it is, for people.
    fn describe(&self) -> String;
    /// What this store cannot guarantee, for `strata doctor`.
    fn caveat(&self) -> Option<String> {
        None
    }
    /// How many versions it keeps; none where its server decides.
    fn kept(&self) -> Option<usize> {
        None
    }
    /// Every state that it has. A store that cannot list gives those it was told of: [`lists`](Self::lists) says so.
    async fn keys(&self) -> Result<Vec<String>, StoreError>;
    /// Whether `keys` finds states that nobody names, such as that of a stack that left the source.
    async fn lists(&self) -> Result<bool, StoreError> {
        Ok(true)
    }
    async fn read(&self, key: &str) -> Result<Option<StateDocument>, StoreError>;
    async fn read_journal(&self, key: &str) -> Result<Vec<JournalRecord>, StoreError>;
    /// Takes the lock. One whose lease has lapsed, or whose holder is known to be dead, is taken over.
    async fn lock(&self, key: &str, owner: LockOwner) -> Result<Box<dyn LockedState>, StoreError>;
    /// Who holds the lock now.
    async fn holder(&self, key: &str) -> Result<Option<Holder>, StoreError>;
    /// Takes the lock with this id away from its holder.
    async fn break_lock(&self, key: &str, id: &str) -> Result<(), StoreError>;
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
    /// How long requests of the former holder may still arrive, where its lease lapsed and nothing is known of it. Who holds the lock now
    /// decides nothing about the world before that.
    fn late_request_window(&self) -> Duration {
        Duration::ZERO
    }
    /// How long one remote write may take under this lock; none where it does not lapse.
    fn write_timeout(&self) -> Option<Duration> {
        None
    }
    /// Replaces the document; `document.serial` must be one more than the serial that is stored (0 if none).
    async fn write(&self, document: &StateDocument) -> Result<(), StoreError>;
    /// Takes a state over from another store, whatever its serial; refused if there is one already.
    async fn adopt(&self, document: &StateDocument) -> Result<(), StoreError>;
    /// Adds an older version to the history of a state that is not there yet: what [`adopt`](Self::adopt) takes over next is newer. A
    /// version with its serial that is there already is replaced.
    async fn adopt_version(&self, document: &StateDocument) -> Result<(), StoreError>;
    /// Appends and makes durable before it returns.
    async fn append_journal(&self, records: &[JournalRecord]) -> Result<(), StoreError>;
    /// Empties the journal; the document holds all of it.
    async fn clear_journal(&self) -> Result<(), StoreError>;
    async fn release(&self) -> Result<(), StoreError>;
}
