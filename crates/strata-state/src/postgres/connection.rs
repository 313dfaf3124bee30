//! Connections to the database: opened when needed, kept while they work, thrown away when they fail.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use strata_net::TlsTrust;
use strata_secret::SecretString;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::schema;
use crate::StoreError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEPT_CONNECTIONS: usize = 4;

pub(super) struct Connections {
    config: Config,
    schema: String,
    tls: MakeRustlsConnect,
    idle: Arc<Mutex<Vec<Client>>>,
    ready: tokio::sync::OnceCell<()>,
    timeout: Duration,
}

/// One connection, given back when it is dropped unless it failed.
pub(super) struct Connection {
    client: Option<Client>,
    idle: Arc<Mutex<Vec<Client>>>,
    timeout: Duration,
}

impl Connections {
    pub(super) fn new(
        connection: &str,
        password: Option<&SecretString>,
        schema: &str,
        trust: &TlsTrust,
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        let wrong = |reason: String| StoreError::Remote {
            what: "the connection to PostgreSQL cannot be used".to_owned(),
            reason,
            hint: Some("`state.connection` is `postgres://user@host:5432/database`".to_owned()),
        };
        // A certificate is always verified as `tls` says, so these ask for nothing more than `require` does here.
        let connection = connection
            .replace("sslmode=verify-full", "sslmode=require")
            .replace("sslmode=verify-ca", "sslmode=require");
        let mut config: Config = connection.parse().map_err(|error| wrong(chain(&error)))?;
        if let Some(password) = password {
            config.password(password.expose());
        }
        config.connect_timeout(CONNECT_TIMEOUT).application_name("strata");
        let well_formed =
            schema.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !well_formed || schema.is_empty() || schema.len() > 63 {
            return Err(wrong(format!("`{schema}` is not a schema of lower-case letters, digits and `_`")));
        }
        let tls = strata_net::client_config(trust, None).map_err(|error| wrong(error.to_string()))?;
        Ok(Self {
            config,
            schema: schema.to_owned(),
            tls: MakeRustlsConnect::new(tls),
            idle: Arc::default(),
            ready: tokio::sync::OnceCell::new(),
            timeout,
        })
    }

    /// Where it is, without the password.
    pub(super) fn place(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        format!("{host}/{} ({})", self.config.get_dbname().unwrap_or("?"), self.schema)
    }

    pub(super) async fn get(&self) -> Result<Connection, StoreError> {
        let kept = loop {
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match kept {
                Some(client) if client.is_closed() => {}
                other => break other,
            }
        };
        let client = match kept {
            Some(client) => client,
            None => self.open().await?,
        };
        let mut connection =
            Connection { client: Some(client), idle: self.idle.clone(), timeout: self.timeout };
        self.ready.get_or_try_init(|| self.make_tables(&mut connection)).await?;
        Ok(connection)
    }

    async fn open(&self) -> Result<Client, StoreError> {
        let local = self.config.get_hosts().iter().all(|host| !matches!(host, Host::Tcp(_)));
        let connected = async {
            let client = if local {
                let (client, connection) = self.config.connect(NoTls).await?;
                tokio::spawn(connection);
                client
            } else {
                let (client, connection) = self.config.connect(self.tls.clone()).await?;
                tokio::spawn(connection);
                client
            };
            // What is committed is on disk, and nothing waits for ever for somebody else's transaction.
            let timeout = self.timeout.as_millis().max(1000);
            client
                .batch_execute(&format!(
                    "set synchronous_commit = on; set lock_timeout = {timeout}; set statement_timeout = {timeout}; \
                     set search_path = {}",
                    self.schema
                ))
                .await?;
            Ok::<Client, tokio_postgres::Error>(client)
        };
        connected.await.map_err(|error| StoreError::Remote {
            what: format!("cannot connect to PostgreSQL at {}", self.place()),
            reason: chain(&error),
            hint: Some("check `state.connection` and `state.password` in strata.yaml".to_owned()),
        })
    }

    async fn make_tables(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let sql = "select count(*) from pg_tables where schemaname = $1 and tablename in ('states', 'versions', 'journal', 'locks')";
        let known =
            connection.run("look for the tables", async |client| client.query(sql, &[&self.schema]).await);
        // Somebody who may only write to the tables need not be able to make them.
        if known.await?.first().is_some_and(|row| row.get::<_, i64>(0) == 4) {
            return Ok(());
        }
        let schema = &self.schema;
        connection
            .run("make the tables", async |client| {
                let transaction = client.transaction().await?;
                transaction.execute("select pg_advisory_xact_lock($1)", &[&schema::MAKING]).await?;
                transaction.batch_execute(&format!("create schema if not exists {schema}")).await?;
                transaction.batch_execute(schema::TABLES).await?;
                transaction.commit().await
            })
            .await
    }
}

impl Connection {
    /// Does one piece of work. After a failure the connection is not used again: what it is in the middle of is not known.
    pub(super) async fn run<T>(
        &mut self,
        what: &str,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        let failed = |reason: String| StoreError::Remote {
            what: format!("cannot {what} in PostgreSQL"),
            reason,
            hint: None,
        };
        let Some(client) = self.client.as_mut() else {
            return Err(failed("the connection is closed".to_owned()));
        };
        let done = tokio::time::timeout(self.timeout, work(client)).await;
        match done {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                self.client = None;
                Err(failed(chain(&error)))
            }
            Err(_) => {
                self.client = None;
                Err(failed(format!("no answer within {} s", self.timeout.as_secs())))
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = self.client.take().filter(|_| idle.len() < KEPT_CONNECTIONS) {
            idle.push(client);
        }
    }
}

/// The library's own text says only that the database said no; what it said is behind it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        source = inner.source();
    }
    text
}
