//! Connections to a database: opened when needed, kept while they work, thrown away when they fail.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::Client;

use super::database::{Database, DatabaseOptions};
use crate::error::chain;
use crate::{Failure, FailureKind, StorageError};

/// At once; who wants one more waits.
const MAX_CONNECTIONS: usize = 16;

#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error("the connection to PostgreSQL cannot be used: {0}")]
    Unusable(#[source] Failure),
    #[error("cannot connect to PostgreSQL at {place}: {source}")]
    Unreachable { place: String, source: Failure },
    /// The database said no, or the connection broke.
    #[error("PostgreSQL: {}", chain(.0))]
    Failed(#[source] tokio_postgres::Error),
    #[error("PostgreSQL did not answer within {0} s")]
    NoAnswer(u64),
}

impl From<DatabaseError> for StorageError {
    fn from(error: DatabaseError) -> Self {
        let (code, kind) = match &error {
            DatabaseError::Failed(error) => {
                (error.code().map(|code| code.code().to_owned()), FailureKind::Other)
            }
            DatabaseError::Unusable(_) => (None, FailureKind::Settings),
            DatabaseError::Unreachable { .. } | DatabaseError::NoAnswer(_) => {
                (None, FailureKind::Unreachable)
            }
        };
        let failure = Failure::from_error(error).kind(kind);
        match code.as_deref() {
            Some("53100") => Self::Full(failure),
            // Another transaction was in the way.
            Some("40001" | "40P01" | "55P03") => Self::Busy,
            // A page or an index is not what was written.
            Some("XX001" | "XX002") => Self::Damaged(failure),
            _ => Self::Failed(failure),
        }
    }
}

pub struct Connections {
    database: Database,
    idle: Arc<Mutex<Vec<Client>>>,
    free: Arc<Semaphore>,
}

/// One connection, given back when it is dropped unless it failed.
pub struct Connection {
    client: Option<Client>,
    idle: Arc<Mutex<Vec<Client>>>,
    timeout: Duration,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    /// Connects at the first question.
    pub fn new(options: &DatabaseOptions) -> Result<Self, DatabaseError> {
        let database = Database::new(options).map_err(DatabaseError::Unusable)?;
        Ok(Self { database, idle: Arc::default(), free: Arc::new(Semaphore::new(MAX_CONNECTIONS)) })
    }

    /// Where the database is, without the password.
    pub fn place(&self) -> String {
        self.database.place()
    }

    pub fn schema(&self) -> &str {
        self.database.schema()
    }

    pub async fn get(&self) -> Result<Connection, DatabaseError> {
        let permit = Arc::clone(&self.free).acquire_owned().await.expect("it is never closed");
        let kept = loop {
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match kept {
                Some(client) if client.is_closed() => {}
                other => break other,
            }
        };
        let client = match kept {
            Some(client) => client,
            None => self
                .database
                .open()
                .await
                .map_err(|source| DatabaseError::Unreachable { place: self.place(), source })?,
        };
        Ok(Connection {
            client: Some(client),
            idle: Arc::clone(&self.idle),
            timeout: self.database.timeout(),
            _permit: permit,
        })
    }
}

impl Connection {
    /// Does one piece of work. After a failure the connection is not used again: what it is in the middle of is not known. Whether what
    /// failed was done is for the caller to find out.
    pub async fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, DatabaseError> {
        let Some(mut client) = self.client.take() else {
            return Err(DatabaseError::Unusable(Failure::new("it failed before")));
        };
        match tokio::time::timeout(self.timeout, work(&mut client)).await {
            Ok(Ok(value)) => {
                self.client = Some(client);
                Ok(value)
            }
            Ok(Err(error)) => Err(DatabaseError::Failed(error)),
            Err(_) => Err(DatabaseError::NoAnswer(self.timeout.as_secs())),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        }
    }
}
