//! States in PostgreSQL, for teams that outgrow one machine: several servers may share it. A state's row is locked while it is decided.

mod connections;
mod database;
mod former;
mod rows;
mod schema;
mod words;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use tokio::sync::OnceCell;
use tokio_postgres::Client;

use crate::head::{Head, Version};
use crate::name::StateName;
use crate::rules::{Command, Content, Effect, Outcome, Refusal, decide};
use crate::{CHUNK, ContentStream, Failure, Retention, Staging, Storage, StorageError, Which};

pub use connections::{Connection, Connections, DatabaseError};
pub use database::DatabaseOptions;

/// Where the tables are unless said otherwise.
pub const DEFAULT_SCHEMA: &str = "strata_server";

pub struct PostgresStorage {
    database: Arc<Database>,
    retention: Retention,
}

/// The database, with errors as storages have them.
struct Database {
    connections: Connections,
    /// The tables are there.
    ready: OnceCell<()>,
}

impl Database {
    /// Does one piece of work. Whoever asked may ask again if it fails: a write that is there already is answered like the first time.
    async fn run<T>(
        &self,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StorageError> {
        let mut connection = self.connections.get().await?;
        self.ready.get_or_try_init(|| self.make_tables(&mut connection)).await?;
        Ok(connection.run(work).await?)
    }

    async fn make_tables(&self, connection: &mut Connection) -> Result<(), StorageError> {
        let schema = self.connections.schema();
        match connection.run(async |db| schema::make_tables(db, schema).await).await? {
            None => Ok(()),
            Some(writer) => Err(Failure::new(format!(
                "the tables in `{schema}` are of an earlier Strata and a run is writing to them; they are converted once it has ended (`{writer}`)"
            ))
            .into()),
        }
    }
}

impl PostgresStorage {
    /// Connects at the first question, and makes the tables if need be.
    pub fn new(options: &DatabaseOptions, retention: Retention) -> Result<Self, StorageError> {
        let database = Database { connections: Connections::new(options)?, ready: OnceCell::new() };
        Ok(Self { database: Arc::new(database), retention })
    }

    /// Where the database is, without the password.
    pub fn place(&self) -> String {
        self.database.connections.place()
    }

    /// Connects at once.
    pub async fn open(options: &DatabaseOptions, retention: Retention) -> Result<Self, StorageError> {
        let storage = Self::new(options, retention)?;
        storage.ready().await?;
        Ok(storage)
    }
}

#[async_trait]
impl Storage for PostgresStorage {
    fn describe(&self) -> String {
        format!("PostgreSQL at {}", self.place())
    }

    async fn ready(&self) -> Result<(), StorageError> {
        self.database.run(async |db| db.execute("SELECT 1", &[]).await.map(|_| ())).await
    }

    async fn heads(&self) -> Result<Vec<(StateName, Head)>, StorageError> {
        let found = self.database.run(async |db| rows::heads(db).await).await?;
        Ok(found
            .into_iter()
            .filter_map(|(name, head)| Some((StateName::of_key(&name).ok()?, head)))
            .collect())
    }

    async fn head(&self, name: &StateName) -> Result<Head, StorageError> {
        self.database.run(async |db| Ok(rows::head(db, name).await?.unwrap_or_default())).await
    }

    async fn look(&self, name: &StateName) -> Result<(Head, Option<Duration>), StorageError> {
        self.database.run(async |db| rows::look(db, name).await).await
    }

    async fn execute(
        &self,
        name: &StateName,
        command: Command,
    ) -> Result<Result<Outcome, Refusal>, StorageError> {
        let count = self.retention.count.max(1);
        self.database
            .run(async |db| {
                let work = db.transaction().await?;
                let (state, head) = rows::lock_state(&work, name).await?;
                let decision = match decide(&head, &command) {
                    Ok(decision) => decision,
                    Err(refusal) => {
                        work.rollback().await?;
                        return Ok(Err(refusal));
                    }
                };
                match (&decision.effect, &command) {
                    (None, _) => {
                        work.rollback().await?;
                        return Ok(Ok(decision.outcome));
                    }
                    (Some(Effect::SetLock(lock)), _) => rows::set_lock(&work, state, lock.as_ref()).await?,
                    (Some(Effect::PutVersion { version, current }), Command::Write(write)) => {
                        let content = rows::take_content(&work, &write.content).await?;
                        rows::add_version(&work, state, version, content).await?;
                        let current = current.then_some(version.version);
                        rows::set_current(&work, state, current, version.version).await?;
                        rows::forget(&work, state, version.version.saturating_sub(count), None).await?;
                    }
                    (Some(Effect::PutVersion { .. }), _) => {}
                    (Some(Effect::RemoveCurrent), _) => {
                        rows::set_current(&work, state, None, head.last_version).await?;
                    }
                    (Some(Effect::AppendJournal(lines)), _) => {
                        rows::append_journal(&work, state, lines).await?;
                    }
                    (Some(Effect::ClearJournal), _) => rows::clear_journal(&work, state).await?,
                }
                work.commit().await?;
                Ok(Ok(decision.outcome))
            })
            .await
    }

    async fn stage(&self, _: &StateName) -> Result<Box<dyn Staging>, StorageError> {
        let content = self.database.run(async |db| rows::new_content(db).await).await?;
        Ok(Box::new(Staged { database: Arc::clone(&self.database), content, part: 0 }))
    }

    async fn read(
        &self,
        name: &StateName,
        which: Which,
    ) -> Result<Option<(Version, ContentStream)>, StorageError> {
        let found = self.database.run(async |db| rows::version(db, name, which).await).await?;
        let Some((version, content)) = found else { return Ok(None) };
        let pieces = i32::try_from(version.size.div_ceil(CHUNK as u64)).unwrap_or(i32::MAX);
        let database = Arc::clone(&self.database);
        let stream = futures::stream::unfold((database, 0), move |(database, part)| async move {
            if part >= pieces {
                return None;
            }
            let piece = piece(&database, content, part).await;
            let next = if piece.is_ok() { part + 1 } else { pieces };
            Some((piece, (database, next)))
        });
        Ok(Some((version, stream.boxed())))
    }

    async fn versions(&self, name: &StateName) -> Result<Vec<Version>, StorageError> {
        self.database.run(async |db| rows::versions(db, name).await).await
    }

    async fn journal(&self, name: &StateName) -> Result<Bytes, StorageError> {
        self.database.run(async |db| rows::journal(db, name).await).await
    }

    async fn sweep(&self, now: Option<i64>) -> Result<(), StorageError> {
        let before = match (self.retention.age, now) {
            (Some(age), Some(now)) => Some(now.saturating_sub(age.try_into().unwrap_or(i64::MAX))),
            _ => None,
        };
        self.database.run(async |db| rows::sweep(db, before).await).await
    }

    async fn import_version(
        &self,
        name: &StateName,
        version: Version,
        content: Content,
        current: bool,
    ) -> Result<(), StorageError> {
        self.database
            .run(async |db| {
                let work = db.transaction().await?;
                let (state, _) = rows::lock_state(&work, name).await?;
                let content = rows::take_content(&work, &content).await?;
                rows::add_version(&work, state, &version, content).await?;
                rows::set_current(&work, state, current.then_some(version.version), version.version).await?;
                work.commit().await
            })
            .await
    }

    async fn import_head(&self, name: &StateName, head: Head, journal: Bytes) -> Result<(), StorageError> {
        self.database
            .run(async |db| {
                let work = db.transaction().await?;
                let (state, _) = rows::lock_state(&work, name).await?;
                rows::set_lock(&work, state, head.lock.as_ref()).await?;
                let current = head.current.as_ref().map(|current| current.version);
                rows::set_current(&work, state, current, head.last_version).await?;
                if !journal.is_empty() {
                    rows::append_journal(&work, state, &journal).await?;
                }
                work.commit().await
            })
            .await
    }
}

async fn piece(database: &Database, content: i64, part: i32) -> Result<Bytes, StorageError> {
    let piece = database.run(async |db| rows::piece(db, content, part).await).await?;
    piece.ok_or_else(|| StorageError::damaged("a part of a state is missing"))
}

/// Pieces that no version names are swept after a while, so nothing need be done if this is dropped.
struct Staged {
    database: Arc<Database>,
    content: i64,
    part: i32,
}

#[async_trait]
impl Staging for Staged {
    async fn push(&mut self, piece: Bytes) -> Result<(), StorageError> {
        let (content, part) = (self.content, self.part);
        self.part += 1;
        self.database.run(async |db| rows::add_piece(db, content, part, &piece).await).await
    }

    async fn finish(&mut self) -> Result<String, StorageError> {
        Ok(self.content.to_string())
    }
}
