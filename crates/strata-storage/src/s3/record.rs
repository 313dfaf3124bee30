//! The object that says everything of a state but its contents.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::head::{Head, Version};
use crate::name::StateName;
use crate::rules::Outcome;
use crate::{Failure, StorageError, Which};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) name: String,
    pub(super) head: Head,
    /// Oldest first.
    pub(super) versions: Vec<Kept>,
    /// The objects of the journal, in order.
    pub(super) journal: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) version: Version,
    pub(super) content: String,
}

fn damaged(path: &str, error: impl std::error::Error + Send + Sync + 'static) -> StorageError {
    StorageError::Damaged(Failure::of(format!("`{path}` cannot be read"), error))
}

impl Record {
    pub(super) fn new(name: &StateName) -> Self {
        Self {
            name: name.as_str().to_owned(),
            head: Head::default(),
            versions: Vec::new(),
            journal: Vec::new(),
        }
    }

    pub(super) fn read(path: &str, bytes: &[u8]) -> Result<Self, StorageError> {
        serde_json::from_slice(bytes).map_err(|error| damaged(path, error))
    }

    /// One whose name is not known yet.
    pub(super) fn named(path: &str, bytes: &[u8]) -> Result<(StateName, Self), StorageError> {
        let record = Self::read(path, bytes)?;
        let name = StateName::parse(&record.name).map_err(|error| damaged(path, error))?;
        Ok((name, record))
    }

    pub(super) fn to_bytes(&self) -> Result<Bytes, StorageError> {
        serde_json::to_vec(self).map(Bytes::from).map_err(|error| Failure::from_error(error).into())
    }

    /// As the newest version; as the current one, or the state has none.
    pub(super) fn put(&mut self, version: Version, content: String, current: bool) {
        self.head.last_version = version.version;
        self.head.current = current.then(|| version.clone());
        self.versions.push(Kept { version, content });
    }

    /// What was to be added is there: it was done, and the answer to it lost, before somebody else changed the record.
    pub(super) fn is_done(&self, content: Option<&str>, journal: Option<&str>) -> Option<Outcome> {
        let written = |content| self.versions.iter().find(|kept| kept.content == content);
        if let Some(kept) = content.and_then(written) {
            return Some(Outcome::Written(kept.version.clone()));
        }
        let journaled = journal.is_some_and(|added| self.journal.iter().any(|part| part == added));
        journaled.then_some(Outcome::Journaled)
    }

    pub(super) fn find(&self, which: Which) -> Option<&Kept> {
        let current = self.head.current.as_ref().map(|current| current.version);
        self.versions.iter().rev().find(|kept| match which {
            Which::Current => Some(kept.version.version) == current,
            Which::Version(version) => kept.version.version == version,
            Which::Serial(serial) => kept.version.serial == Some(serial),
        })
    }

    /// Removes versions numbered up to `last` and written before `before`; never the current one.
    pub(super) fn forget(&mut self, last: u64, before: i64) -> Vec<Kept> {
        let current = self.head.current.as_ref().map(|current| current.version);
        let old = |kept: &Kept| {
            kept.version.version <= last
                && kept.version.written < before
                && Some(kept.version.version) != current
        };
        let (gone, kept) = std::mem::take(&mut self.versions).into_iter().partition(old);
        self.versions = kept;
        gone
    }
}
