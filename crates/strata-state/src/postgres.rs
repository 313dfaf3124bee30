//! States in PostgreSQL. The tables and what is done to them are in `strata-storage/src/postgres`; here are the settings.

use std::path::PathBuf;

use strata_net::TlsTrust;
use strata_secret::SecretString;
use strata_storage::postgres::{DatabaseOptions, PostgresStorage};
use strata_storage::{FailureKind, Retention, StorageError};

use crate::direct::{Direct, DirectStore};
use crate::store::KEPT_VERSIONS;
use crate::{Codec, LeaseTerms, StoreError};

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

/// In a database.
pub enum Postgres {}

pub type PostgresStore = DirectStore<Postgres>;

impl PostgresStore {
    /// Connects at the first question.
    pub fn new(options: PostgresStoreOptions) -> Result<Self, StoreError> {
        let kept = options.kept.max(1);
        let database = DatabaseOptions {
            connection: options.connection,
            password: options.password,
            schema: options.schema,
            tls: options.tls,
            folder: options.folder,
            timeout: options.lease.request_timeout(),
            application: "strata",
        };
        let retention = Retention { count: kept as u64, age: None };
        let storage = PostgresStorage::new(&database, retention).map_err(|error| match error {
            StorageError::Failed(failure) => {
                let hint = hint(failure.kind).map(str::to_owned);
                StoreError::failure(failure).with_hint(hint)
            }
            other => StoreError::remote_error("the database cannot be used", other),
        })?;
        Ok(Self::over(Direct {
            place: format!("postgres, {}", storage.place()),
            storage: Box::new(storage),
            codec: options.codec,
            lease: options.lease,
            kept,
            table: None,
            hint,
        }))
    }
}

fn hint(kind: FailureKind) -> Option<&'static str> {
    match kind {
        FailureKind::Settings => Some("`state.connection` is `postgres://user@host:5432/database`"),
        FailureKind::Unreachable => {
            Some("check `state.connection`, `state.password` and `state.tls` in strata.yaml")
        }
        _ => None,
    }
}
