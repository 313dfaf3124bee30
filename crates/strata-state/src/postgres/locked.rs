//! A state under a lease in the database.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_postgres::Transaction;

use super::{Shared, serial_of};
use crate::lease::{Heartbeat, Held, Renewal};
use crate::store::Replaces;
use crate::{JournalRecord, LockOwner, LockedState, StateDocument, StoreError};

/// Keeps a version.
const KEEP: &str = "insert into versions (key, serial, document) values ($1, $2, $3) \
                    on conflict (key, serial) do update set document = $3, written = clock_timestamp()";

pub(super) struct PostgresLock {
    shared: Arc<Shared>,
    key: String,
    owner: LockOwner,
    held: Arc<Held>,
    heart: Heartbeat,
    unsettled: Duration,
}

/// What a transaction under the lock came to.
enum Outcome {
    Done,
    /// The lock is another's, or its lease is over.
    NoLock,
    /// The serial that is stored.
    Stored(Option<u64>),
}

impl PostgresLock {
    pub(super) fn start(
        shared: Arc<Shared>,
        key: &str,
        owner: LockOwner,
        sent: Duration,
        unsettled: Duration,
    ) -> Self {
        let held = Held::since(key, &shared.lease, sent);
        let (asked, name, id) = (shared.clone(), key.to_owned(), owner.id.clone());
        let heart = Heartbeat::start(held.clone(), move || {
            let (shared, key, id) = (asked.clone(), name.clone(), id.clone());
            async move { renew(&shared, &key, &id).await }
        });
        Self { shared, key: key.to_owned(), owner, held, heart, unsettled }
    }

    /// Runs a transaction that begins by making sure that the lock is ours, and keeps it so until it ends.
    async fn under_lock(
        &self,
        what: &str,
        work: impl AsyncFnOnce(&Transaction<'_>) -> Result<Outcome, tokio_postgres::Error>,
    ) -> Result<Outcome, StoreError> {
        self.held.check()?;
        let sql = "select 1 from locks where key = $1 and id = $2 and expires > clock_timestamp() for share";
        let outcome = self
            .shared
            .run(what, async |client| {
                let transaction = client.transaction().await?;
                if transaction.query(sql, &[&self.key, &self.owner.id]).await?.is_empty() {
                    return Ok(Outcome::NoLock);
                }
                let outcome = work(&transaction).await?;
                if matches!(outcome, Outcome::Done) {
                    transaction.commit().await?;
                }
                Ok(outcome)
            })
            .await?;
        match outcome {
            Outcome::NoLock => Err(self.held.lose()),
            other => Ok(other),
        }
    }

    async fn put(&self, document: &StateDocument, replaces: Replaces) -> Result<(), StoreError> {
        let bytes = self.shared.codec.encode(document)?;
        let serial = self.number(document)?;
        let oldest = serial - i64::try_from(self.shared.kept).unwrap_or(i64::MAX);
        let outcome = self
            .under_lock("write the state", async |transaction| {
                let stored = stored(transaction, &self.key).await?;
                if replaces.check(&self.key, document, stored).is_err() {
                    return Ok(Outcome::Stored(stored));
                }
                let sql = "insert into states (key, serial, document) values ($1, $2, $3) \
                           on conflict (key) do update set serial = $2, document = $3, written = clock_timestamp()";
                transaction.execute(sql, &[&self.key, &serial, &bytes]).await?;
                transaction.execute(KEEP, &[&self.key, &serial, &bytes]).await?;
                let sql = "delete from versions where key = $1 and serial <= $2";
                transaction.execute(sql, &[&self.key, &oldest]).await?;
                Ok(Outcome::Done)
            })
            .await;
        match outcome {
            Ok(Outcome::Stored(stored)) => replaces.check(&self.key, document, stored),
            Ok(_) => Ok(()),
            // The answer to a commit can be lost: what is stored says what became of it.
            Err(StoreError::Remote { .. }) if self.is_stored(&bytes).await => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn number(&self, document: &StateDocument) -> Result<i64, StoreError> {
        i64::try_from(document.serial).map_err(|_| StoreError::Damaged {
            key: self.key.clone(),
            reason: "its serial is too large".to_owned(),
            newest_good: None,
        })
    }

    async fn is_stored(&self, bytes: &[u8]) -> bool {
        let sql = "select document from states where key = $1";
        let rows = self.shared.rows("read the state", sql, &self.key).await;
        rows.is_ok_and(|rows| rows.first().is_some_and(|row| row.get::<_, &[u8]>(0) == bytes))
    }
}

/// The serial that is stored, which stays so until the transaction ends.
async fn stored(transaction: &Transaction<'_>, key: &str) -> Result<Option<u64>, tokio_postgres::Error> {
    let sql = "select serial from states where key = $1 for update";
    Ok(transaction.query(sql, &[&key]).await?.first().map(|row| serial_of(row.get(0))))
}

async fn renew(shared: &Shared, key: &str, id: &str) -> Renewal {
    let sql =
        "update locks set expires = clock_timestamp() + make_interval(secs => $3) where key = $1 and id = $2";
    let seconds = shared.seconds();
    let renewed =
        shared.run("renew the lock", async |client| client.execute(sql, &[&key, &id, &seconds]).await);
    match renewed.await {
        Ok(1) => Renewal::Renewed,
        Ok(_) => Renewal::Lost,
        Err(_) => Renewal::Unknown,
    }
}

#[async_trait]
impl LockedState for PostgresLock {
    fn owner(&self) -> &LockOwner {
        &self.owner
    }

    fn still_held(&self) -> Result<(), StoreError> {
        self.held.check()
    }

    fn unsettled(&self) -> Duration {
        self.unsettled
    }

    async fn write(&self, document: &StateDocument) -> Result<(), StoreError> {
        self.put(document, Replaces::Former).await
    }

    async fn adopt(&self, document: &StateDocument) -> Result<(), StoreError> {
        self.put(document, Replaces::Nothing).await
    }

    async fn adopt_version(&self, document: &StateDocument) -> Result<(), StoreError> {
        let (bytes, serial) = (self.shared.codec.encode(document)?, self.number(document)?);
        let outcome = self
            .under_lock("keep the version", async |transaction| {
                if let Some(stored) = stored(transaction, &self.key).await? {
                    return Ok(Outcome::Stored(Some(stored)));
                }
                transaction.execute(KEEP, &[&self.key, &serial, &bytes]).await?;
                Ok(Outcome::Done)
            })
            .await?;
        match outcome {
            Outcome::Stored(stored) => Replaces::Nothing.check(&self.key, document, stored),
            _ => Ok(()),
        }
    }

    async fn append_journal(&self, records: &[JournalRecord]) -> Result<(), StoreError> {
        let lines = self.shared.codec.encode_journal(&self.key, records)?;
        self.under_lock("write the journal", async |transaction| {
            let sql = "insert into journal (key, lines) values ($1, $2)";
            transaction.execute(sql, &[&self.key, &lines]).await?;
            Ok(Outcome::Done)
        })
        .await
        .map(|_| ())
    }

    async fn clear_journal(&self) -> Result<(), StoreError> {
        self.under_lock("clear the journal", async |transaction| {
            transaction.execute("delete from journal where key = $1", &[&self.key]).await?;
            Ok(Outcome::Done)
        })
        .await
        .map(|_| ())
    }

    async fn release(&self) -> Result<(), StoreError> {
        self.heart.stop();
        self.held.lose();
        let sql = "delete from locks where key = $1 and id = $2";
        let (key, id) = (&self.key, &self.owner.id);
        self.shared
            .run("release the lock", async |client| client.execute(sql, &[key, id]).await)
            .await
            .map(|_| ())
    }
}
