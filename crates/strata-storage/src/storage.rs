//! What every storage can do. All of them run one conformance suite.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use crate::error::StorageError;
use crate::head::{Head, Version};
use crate::name::StateName;
use crate::rules::{Command, Outcome, Refusal};

/// A content up to this size goes with its command; a larger one is staged in pieces of this size, so memory stays flat.
pub const CHUNK: usize = 256 * 1024;

/// Which version of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Current,
    Version(u64),
    /// The newest with this serial.
    Serial(u64),
}

/// The bytes of a version, piece by piece.
pub type ContentStream = BoxStream<'static, Result<Bytes, StorageError>>;

/// How long versions are kept. The current one always is.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    pub count: u64,
    /// Seconds; the newest [`Retention::SPARED`] stay however old they seem: a clock may be wrong.
    pub age: Option<u64>,
}

impl Retention {
    pub const SPARED: u64 = 10;
}

impl Default for Retention {
    fn default() -> Self {
        Self { count: 100, age: Some(90 * 24 * 3600) }
    }
}

#[async_trait]
pub trait Storage: Send + Sync {
    /// For people.
    fn describe(&self) -> String;
    /// Fails if it could not take a write now.
    async fn ready(&self) -> Result<(), StorageError>;
    /// All states with their heads, by name.
    async fn heads(&self) -> Result<Vec<(StateName, Head)>, StorageError>;
    async fn head(&self, name: &StateName) -> Result<Head, StorageError>;
    /// The head, and for how long nothing was heard of its lock, by the storage's own clock; none where it does not tell.
    async fn look(&self, name: &StateName) -> Result<(Head, Option<Duration>), StorageError> {
        Ok((self.head(name).await?, None))
    }
    /// Every state that has a current version, or lines in its journal.
    async fn names(&self) -> Result<Vec<StateName>, StorageError> {
        let mut names = Vec::new();
        for (name, head) in self.heads().await? {
            if head.current.is_some() || !self.journal(&name).await?.is_empty() {
                names.push(name);
            }
        }
        Ok(names)
    }
    /// Decides and does it in one step; durable when it returns. A staged content is used up, whatever the outcome.
    async fn execute(
        &self,
        name: &StateName,
        command: Command,
    ) -> Result<Result<Outcome, Refusal>, StorageError>;
    /// Begins a content that is too large for one piece.
    async fn stage(&self, name: &StateName) -> Result<Box<dyn Staging>, StorageError>;
    async fn read(
        &self,
        name: &StateName,
        which: Which,
    ) -> Result<Option<(Version, ContentStream)>, StorageError>;
    /// Newest first.
    async fn versions(&self, name: &StateName) -> Result<Vec<Version>, StorageError>;
    async fn journal(&self, name: &StateName) -> Result<Bytes, StorageError>;
    /// Forgets contents that nothing names and, if told the time, versions that are too old.
    async fn sweep(&self, now: Option<i64>) -> Result<(), StorageError>;
    /// Adds a version of a backup, in the order of versions; no rule is asked. The last one becomes current if `current`.
    async fn import_version(
        &self,
        name: &StateName,
        version: Version,
        content: ImportContent,
        current: bool,
    ) -> Result<(), StorageError>;
    /// Adds lock and journal of a backup.
    async fn import_head(&self, name: &StateName, head: Head, journal: Bytes) -> Result<(), StorageError>;
}

/// The bytes of a version from a backup.
pub type ImportContent = crate::rules::Content;

/// A content on its way in. Dropped before `finish`, it is forgotten; after it, it is kept at least until it is dropped.
#[async_trait]
pub trait Staging: Send {
    /// All pieces but the last have the size [`CHUNK`].
    async fn push(&mut self, piece: Bytes) -> Result<(), StorageError>;
    /// The name that a command may use it by.
    async fn finish(&mut self) -> Result<String, StorageError>;
}
