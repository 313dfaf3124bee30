//! States in one SQLite file: write-ahead log, synced before an answer, one writer that commits what came together together.

mod reader;
mod schema;
mod tables;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::ErrorCode;

use crate::head::{Head, Version};
use crate::name::StateName;
use crate::rules::{Command, Content, Outcome, Refusal};
use crate::{ContentStream, Failure, Retention, Staging, Storage, StorageError, Which};
use reader::{Pin, Readers};
use writer::{Job, Writer};

pub use writer::CommitStats;

/// The file within the folder of the server's data.
pub const FILE: &str = "states.db";

pub struct EmbeddedStorage {
    path: PathBuf,
    /// Freed with the process, however that ends.
    _only: Option<std::fs::File>,
    writer: Writer,
    readers: Arc<Readers>,
}

#[derive(Debug, Clone, Default)]
pub struct EmbeddedOptions {
    pub retention: Retention,
    /// The file is never larger than this many bytes.
    pub max_bytes: Option<u64>,
}

impl EmbeddedStorage {
    /// Opens or makes the database. Only one process may have it open.
    pub fn open(path: &Path, options: &EmbeddedOptions) -> Result<Self, StorageError> {
        let only = schema::only_one(path)?;
        let writing = schema::open_for_writing(path, options.max_bytes)?;
        let readers = Arc::new(Readers::new(path)?);
        let writer = Writer::start(writing, options.retention, readers.pins())?;
        Ok(Self { path: path.to_owned(), _only: Some(only), writer, readers })
    }

    /// Beside a server that runs, to look and not to touch.
    pub fn open_for_reading(path: &Path) -> Result<Self, StorageError> {
        let readers = Arc::new(Readers::new(path)?);
        Ok(Self { path: path.to_owned(), _only: None, writer: Writer::none(), readers })
    }

    pub fn stats(&self) -> Arc<CommitStats> {
        self.writer.stats()
    }
}

/// What to do about a file that is not whole.
const RESTORE: &str = "restore it from a backup with `strata serve restore`";

/// What went wrong, by kind.
pub(super) fn failed(error: rusqlite::Error) -> StorageError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StorageError::Full(Failure::from_error(error)),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StorageError::Busy,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StorageError::Damaged(Failure::of(RESTORE, error))
        }
        _ => StorageError::Failed(Failure::from_error(error)),
    }
}

#[async_trait]
impl Storage for EmbeddedStorage {
    fn describe(&self) -> String {
        format!("`{}`", self.path.display())
    }

    async fn ready(&self) -> Result<(), StorageError> {
        self.writer.ask(|done| Job::Nothing { done }).await
    }

    async fn heads(&self) -> Result<Vec<(StateName, Head)>, StorageError> {
        self.readers.run(tables::heads).await
    }

    async fn head(&self, name: &StateName) -> Result<Head, StorageError> {
        let name = name.clone();
        self.readers
            .run(move |db| Ok(tables::find(db, &name)?.map(|found| found.head).unwrap_or_default()))
            .await
    }

    async fn execute(
        &self,
        name: &StateName,
        command: Command,
    ) -> Result<Result<Outcome, Refusal>, StorageError> {
        let name = name.clone();
        self.writer.ask(|done| Job::Execute { name, command, done }).await
    }

    async fn stage(&self, _: &StateName) -> Result<Box<dyn Staging>, StorageError> {
        let content = self.writer.ask(|done| Job::Stage { done }).await?;
        let pin = self.readers.pins().pin(content);
        Ok(Box::new(Staged { writer: self.writer.clone(), content, part: 0, finished: false, _pin: pin }))
    }

    async fn read(
        &self,
        name: &StateName,
        which: Which,
    ) -> Result<Option<(Version, ContentStream)>, StorageError> {
        Arc::clone(&self.readers).content(name, which).await
    }

    async fn versions(&self, name: &StateName) -> Result<Vec<Version>, StorageError> {
        let name = name.clone();
        self.readers.run(move |db| tables::versions(db, &name)).await
    }

    async fn journal(&self, name: &StateName) -> Result<Bytes, StorageError> {
        let name = name.clone();
        self.readers.run(move |db| tables::journal(db, &name)).await
    }

    async fn sweep(&self, now: Option<i64>) -> Result<(), StorageError> {
        self.writer.ask(|done| Job::Sweep { now, done }).await
    }

    async fn import_version(
        &self,
        name: &StateName,
        version: Version,
        content: Content,
        current: bool,
    ) -> Result<(), StorageError> {
        let name = name.clone();
        self.writer.ask(|done| Job::ImportVersion { name, version, content, current, done }).await
    }

    async fn import_head(&self, name: &StateName, head: Head, journal: Bytes) -> Result<(), StorageError> {
        let name = name.clone();
        self.writer.ask(|done| Job::ImportHead { name, head, journal, done }).await
    }
}

struct Staged {
    writer: Writer,
    content: i64,
    part: i64,
    finished: bool,
    _pin: Pin,
}

#[async_trait]
impl Staging for Staged {
    async fn push(&mut self, piece: Bytes) -> Result<(), StorageError> {
        let (content, part) = (self.content, self.part);
        self.part += 1;
        self.writer.ask(|done| Job::Piece { content, part, piece, done }).await
    }

    async fn finish(&mut self) -> Result<String, StorageError> {
        self.finished = true;
        Ok(self.content.to_string())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.finished {
            self.writer.send(Job::Discard { content: self.content });
        }
    }
}
