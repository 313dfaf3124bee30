//! Connections: opened when needed, kept while they work, thrown away when they fail.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::PostgresOptions;
use crate::storage::StorageError;

const MAX_CONNECTIONS: usize = 16;

pub(super) struct Connections {
    config: Config,
    schema: String,
    tls: MakeRustlsConnect,
    idle: Arc<Mutex<Vec<Client>>>,
    free: Arc<Semaphore>,
    timeout: Duration,
}

/// One connection, given back when it is dropped unless it failed.
pub(super) struct Connection {
    client: Option<Client>,
    idle: Arc<Mutex<Vec<Client>>>,
    timeout: Duration,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, StorageError> {
        let wrong = |reason: String| {
            StorageError::Failed(format!("the connection to PostgreSQL cannot be used: {reason}"))
        };
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if options.schema.is_empty() || options.schema.len() > 63 || !options.schema.bytes().all(plain) {
            return Err(wrong(format!(
                "`{}` is no schema of lower-case letters, digits and `_`",
                options.schema
            )));
        }
        let mut config: Config = options.connection.parse().map_err(|error| wrong(chain(&error)))?;
        if let Some(password) = &options.password {
            config.password(password.expose());
        }
        config.connect_timeout(options.timeout).application_name("strata serve");
        let tls = strata_net::client_config(&options.tls, None).map_err(|error| wrong(error.to_string()))?;
        Ok(Self {
            config,
            schema: options.schema.clone(),
            tls: MakeRustlsConnect::new(tls),
            idle: Arc::default(),
            free: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            timeout: options.timeout,
        })
    }

    /// Where it is, without the password.
    pub(super) fn place(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        format!("{host}/{}", self.config.get_dbname().unwrap_or("?"))
    }

    pub(super) async fn get(&self) -> Result<Connection, StorageError> {
        let permit = Arc::clone(&self.free).acquire_owned().await.map_err(|_| StorageError::Busy)?;
        let kept = loop {
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match kept {
                Some(client) if client.is_closed() => {}
                other => break other,
            }
        };
        let client = match kept {
            Some(client) => client,
            None => self.open().await.map_err(|error| {
                StorageError::Failed(format!(
                    "cannot connect to PostgreSQL at {}: {}",
                    self.place(),
                    chain(&error)
                ))
            })?,
        };
        Ok(Connection {
            client: Some(client),
            idle: Arc::clone(&self.idle),
            timeout: self.timeout,
            _permit: permit,
        })
    }

    async fn open(&self) -> Result<Client, tokio_postgres::Error> {
        let local = self.config.get_hosts().iter().all(|host| !matches!(host, Host::Tcp(_)));
        let client = if local {
            let (client, connection) = self.config.connect(NoTls).await?;
            tokio::spawn(connection);
            client
        } else {
            let (client, connection) = self.config.connect(self.tls.clone()).await?;
            tokio::spawn(connection);
            client
        };
        // What is committed is on the disk, and nobody waits for ever for somebody else's transaction.
        let timeout = self.timeout.as_millis().max(1000);
        let settings = format!(
            "SET synchronous_commit = on; SET lock_timeout = {timeout}; SET statement_timeout = {timeout}; \
             SET search_path = {}",
            self.schema
        );
        client.batch_execute(&settings).await?;
        Ok(client)
    }
}

impl Connection {
    /// Does one piece of work. After a failure the connection is not used again: what it is in the middle of is not known. Whoever asked
    /// may ask again: a write that is there already is answered like the first time.
    pub(super) async fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StorageError> {
        let Some(mut client) = self.client.take() else {
            return Err(StorageError::Failed("the connection is closed".to_owned()));
        };
        match tokio::time::timeout(self.timeout, work(&mut client)).await {
            Ok(Ok(value)) => {
                self.client = Some(client);
                Ok(value)
            }
            Ok(Err(error)) => Err(match error.code().map(tokio_postgres::error::SqlState::code) {
                Some("53100" | "53200") => StorageError::Full,
                Some("40001" | "40P01" | "55P03") => StorageError::Busy,
                _ => StorageError::Failed(format!("PostgreSQL: {}", chain(&error))),
            }),
            Err(_) => Err(StorageError::Failed(format!(
                "PostgreSQL did not answer within {} s",
                self.timeout.as_secs()
            ))),
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

/// The library's own text says only that the database said no; what it said is behind it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}
