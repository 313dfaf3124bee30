//! States in PostgreSQL: tables for documents, versions, journal and locks. Every write is one transaction that checks the lock, by
//! the clock of the database, and the serial it replaces.

mod locked;
mod schema;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use strata_net::TlsTrust;
use strata_secret::SecretString;
use strata_storage::postgres::{Connection, Connections, DatabaseError, DatabaseOptions};
use tokio::sync::OnceCell;
use tokio_postgres::{Client, Row};

use crate::store::KEPT_VERSIONS;
use crate::{
    Codec, Holder, JournalRecord, Lease, LeaseTerms, LockOwner, LockedState, StateDocument, Store,
    StoreError, Version,
};
use locked::PostgresLock;

pub struct PostgresStoreOptions {
    /// As [`DatabaseOptions`] has it.
    pub connection: String,
    pub password: Option<SecretString>,
    /// Where the tables are; made if it is not there.
    pub schema: String,
    pub tls: TlsTrust,
    /// Where the files are found from that the connection names.
    pub folder: PathBuf,
    pub codec: Codec,
    pub lease: LeaseTerms,
    pub kept: usize,
}

impl PostgresStoreOptions {
    pub fn new(connection: impl Into<String>) -> Self {
        Self {
            connection: connection.into(),
            password: None,
            schema: "strata".to_owned(),
            tls: TlsTrust::System,
            folder: PathBuf::new(),
            codec: Codec::plain(),
            lease: LeaseTerms::default(),
            kept: KEPT_VERSIONS,
        }
    }
}

pub struct PostgresStore {
    shared: Arc<Shared>,
}

struct Shared {
    connections: Connections,
    /// The tables are there.
    ready: OnceCell<()>,
    codec: Codec,
    lease: LeaseTerms,
    kept: usize,
}

impl PostgresStore {
    /// Connects at the first question.
    pub fn new(options: PostgresStoreOptions) -> Result<Self, StoreError> {
        let connections = Connections::new(&DatabaseOptions {
            connection: options.connection,
            password: options.password,
            schema: options.schema,
            tls: options.tls,
            folder: options.folder,
            timeout: options.lease.request_timeout(),
            application: "strata",
        })
        .map_err(|error| failed("be used", error))?;
        let shared = Shared {
            connections,
            ready: OnceCell::new(),
            codec: options.codec,
            lease: options.lease,
            kept: options.kept.max(1),
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl Shared {
    /// Does one piece of work on a connection whose tables are there.
    async fn run<T>(
        &self,
        what: &str,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connections.get().await.map_err(|error| failed(what, error))?;
        self.ready.get_or_try_init(|| self.make_tables(&mut connection)).await?;
        connection.run(work).await.map_err(|error| failed(what, error))
    }

    async fn make_tables(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let schema = self.connections.schema();
        connection
            .run(async |client| schema::make_tables(client, schema).await)
            .await
            .map_err(|error| failed("make the tables", error))
    }

    async fn rows(&self, what: &str, sql: &str, key: &str) -> Result<Vec<Row>, StoreError> {
        self.run(what, async |client| client.query(sql, &[&key]).await).await
    }

    fn seconds(&self) -> f64 {
        self.lease.length.as_secs_f64()
    }

    async fn holder(&self, key: &str) -> Result<Option<Holder>, StoreError> {
        let sql = "select id, owner, extract(epoch from expires - clock_timestamp())::float8 from locks where key = $1";
        let rows = self.rows("look at the lock", sql, key).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (id, owner, left): (String, String, f64) = (row.get(0), row.get(1), row.get(2));
        let mut owner: LockOwner = serde_json::from_str(&owner).unwrap_or_else(|_| LockOwner::unknown());
        owner.id = id;
        let lease = match Duration::try_from_secs_f64(left) {
            Ok(left) if !left.is_zero() => Lease::Running(left),
            _ => Lease::Lapsed,
        };
        Ok(Some(Holder { owner, lease }))
    }

    /// Takes the lock if it is free, has lapsed, is ours already, or is still the one with the id of a holder that is gone. Gives how long
    /// requests of a holder may still arrive whose lease lapsed.
    async fn acquire(
        &self,
        key: &str,
        owner: &LockOwner,
        gone: &str,
    ) -> Result<Option<Duration>, StoreError> {
        let text = serde_json::to_string(owner).map_err(|error| StoreError::Io {
            what: "cannot write the lock".to_owned(),
            source: error.into(),
        })?;
        let sql = "with former as (select extract(epoch from clock_timestamp() - expires)::float8 as late from locks \
                   where key = $1 and id not in ($2, $5) and expires <= clock_timestamp()) \
                   insert into locks (key, id, owner, expires) \
                   values ($1, $2, $3, clock_timestamp() + make_interval(secs => $4)) \
                   on conflict (key) do update \
                   set id = excluded.id, owner = excluded.owner, expires = excluded.expires \
                   where locks.expires <= clock_timestamp() or locks.id in ($2, $5) \
                   returning (select late from former)";
        let seconds = self.seconds();
        let taken = self
            .run("take the lock", async |client| {
                client.query_opt(sql, &[&key, &owner.id, &text, &seconds, &gone]).await
            })
            .await?;
        let Some(row) = taken else { return Ok(None) };
        let late = row.get::<_, Option<f64>>(0);
        let late = late.map(|late| Duration::try_from_secs_f64(late).unwrap_or_default());
        Ok(Some(late.map_or(Duration::ZERO, |late| LeaseTerms::unsettled(self.lease.length, late))))
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn describe(&self) -> String {
        format!("postgres, {}", self.shared.connections.place())
    }

    fn kept(&self) -> Option<usize> {
        Some(self.shared.kept)
    }

    async fn keys(&self) -> Result<Vec<String>, StoreError> {
        let sql = "select key from (select key from states union select key from journal) as known \
                   where key <> $1 order by key collate \"C\"";
        let rows = self.shared.rows("list the states", sql, "").await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn read(&self, key: &str) -> Result<Option<StateDocument>, StoreError> {
        let rows =
            self.shared.rows("read the state", "select document from states where key = $1", key).await?;
        let decoded = rows.first().map(|row| self.shared.codec.decode(key, row.get(0))).transpose();
        match decoded {
            Err(StoreError::Damaged { key, reason, .. }) => {
                let newest_good = self.newest_good(&key).await;
                Err(StoreError::Damaged { key, reason, newest_good })
            }
            other => other,
        }
    }

    async fn read_journal(&self, key: &str) -> Result<Vec<JournalRecord>, StoreError> {
        let sql = "select lines from journal where key = $1 order by id";
        let rows = self.shared.rows("read the journal", sql, key).await?;
        let mut text = Vec::new();
        for row in &rows {
            text.extend_from_slice(row.get(0));
        }
        self.shared.codec.decode_journal(key, &text)
    }

    async fn lock(&self, key: &str, owner: LockOwner) -> Result<Box<dyn LockedState>, StoreError> {
        let sent = (self.shared.lease.clock)();
        if let Some(unsettled) = self.shared.acquire(key, &owner, "").await? {
            return Ok(Box::new(PostgresLock::start(self.shared.clone(), key, owner, sent, unsettled)));
        }
        let holder = self.shared.holder(key).await?;
        let gone = match &holder {
            // It ended just now.
            None => String::new(),
            // One that has lapsed is taken without being named: then it is known for how long.
            Some(holder) if holder.owner.is_dead_here() => holder.owner.id.clone(),
            Some(holder) if holder.is_gone() => String::new(),
            Some(holder) => {
                return Err(StoreError::Locked { key: key.to_owned(), holder: Box::new(holder.clone()) });
            }
        };
        let sent = (self.shared.lease.clock)();
        if let Some(unsettled) = self.shared.acquire(key, &owner, &gone).await? {
            return Ok(Box::new(PostgresLock::start(self.shared.clone(), key, owner, sent, unsettled)));
        }
        let holder = self.shared.holder(key).await?;
        let holder = holder.unwrap_or_else(|| Holder::endless(LockOwner::unknown()));
        Err(StoreError::Locked { key: key.to_owned(), holder: Box::new(holder) })
    }

    async fn holder(&self, key: &str) -> Result<Option<Holder>, StoreError> {
        self.shared.holder(key).await
    }

    async fn break_lock(&self, key: &str, id: &str) -> Result<(), StoreError> {
        let sql = "delete from locks where key = $1 and id = $2";
        let broken = self
            .shared
            .run("take the lock away", async |client| client.execute(sql, &[&key, &id]).await)
            .await?;
        if broken == 1 {
            Ok(())
        } else {
            Err(StoreError::OtherLock { key: key.to_owned(), id: id.to_owned() })
        }
    }

    async fn history(&self, key: &str) -> Result<Vec<Version>, StoreError> {
        let sql = "select serial, to_char(written at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), \
                   octet_length(document)::bigint from versions where key = $1 order by serial desc";
        let rows = self.shared.rows("list the versions", sql, key).await?;
        let version = |row: &Row| Version {
            serial: serial_of(row.get(0)),
            written: row.get(1),
            bytes: u64::try_from(row.get::<_, i64>(2)).unwrap_or(0),
        };
        Ok(rows.iter().map(version).collect())
    }

    async fn read_version(&self, key: &str, serial: u64) -> Result<StateDocument, StoreError> {
        let missing = || StoreError::NoVersion { key: key.to_owned(), serial };
        let number = i64::try_from(serial).map_err(|_| missing())?;
        let sql = "select document from versions where key = $1 and serial = $2";
        let rows = self
            .shared
            .run("read the version", async |client| client.query(sql, &[&key, &number]).await)
            .await?;
        self.shared.codec.decode(key, rows.first().ok_or_else(missing)?.get(0))
    }
}

impl PostgresStore {
    async fn newest_good(&self, key: &str) -> Option<u64> {
        for version in self.history(key).await.ok()? {
            if self.read_version(key, version.serial).await.is_ok() {
                return Some(version.serial);
            }
        }
        None
    }
}

fn failed(what: &str, error: DatabaseError) -> StoreError {
    let hint = match &error {
        DatabaseError::Unusable(_) => Some("`state.connection` is `postgres://user@host:5432/database`"),
        DatabaseError::Unreachable { .. } => {
            Some("check `state.connection`, `state.password` and `state.tls` in strata.yaml")
        }
        DatabaseError::Failed(_) | DatabaseError::Silent(_) => None,
    };
    let what = match error {
        DatabaseError::Unusable(_) => "the connection to PostgreSQL cannot be used".to_owned(),
        _ => format!("cannot {what} in PostgreSQL"),
    };
    StoreError::remote_error(what, error).with_hint(hint.map(str::to_owned))
}

/// The database counts in signed numbers.
fn serial_of(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
