//! A PostgreSQL database and how it is reached: the one place in which connections are opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use strata_diagnostics::{LARGEST_FILE, read_file};
use strata_net::{ClientIdentity, ServerNames, TlsTrust};
use strata_secret::SecretString;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::words::{TlsMode, TlsWords};
use crate::{Failure, FailureKind};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub struct DatabaseOptions {
    /// `postgres://user@host:port/database`, or `host=… dbname=…`; with `sslmode`, `sslrootcert`, `sslcert` and `sslkey` as
    /// PostgreSQL's own clients take them.
    pub connection: String,
    pub password: Option<SecretString>,
    /// Where the tables are.
    pub schema: String,
    /// Whom to trust, where that is not the system's business and the connection does not say.
    pub tls: TlsTrust,
    /// Where the files are found from that the connection names.
    pub folder: PathBuf,
    /// How long one piece of work may take.
    pub timeout: Duration,
    /// What the database's administrator sees.
    pub application: &'static str,
}

/// Opens connections.
pub(super) struct Database {
    config: Config,
    schema: String,
    tls: Option<MakeRustlsConnect>,
    timeout: Duration,
}

impl Database {
    pub(super) fn new(options: &DatabaseOptions) -> Result<Self, Failure> {
        let schema = &options.schema;
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if schema.is_empty() || schema.len() > 63 || !schema.bytes().all(plain) {
            return Err(wrong(format!("`{schema}` is not a schema of lower-case letters, digits and `_`")));
        }
        let (words, rest) = TlsWords::split(&options.connection).map_err(wrong)?;
        let mut config: Config = rest.parse().map_err(Failure::from_error)?;
        if let Some(password) = &options.password {
            config.password(password.expose());
        }
        config.connect_timeout(CONNECT_TIMEOUT).application_name(options.application);
        let trust = trust(&words, &options.tls, &options.folder)?;
        let mode = words.mode.unwrap_or_else(|| usual_mode(&config, trust.as_ref()));
        let tls = match mode {
            TlsMode::Disable => None,
            _ => Some(tls(mode, trust, identity(&words, &options.folder)?.as_ref())?),
        };
        config.ssl_mode(match mode {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        });
        Ok(Self { config, schema: schema.clone(), tls, timeout: options.timeout })
    }

    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
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

    pub(super) async fn open(&self) -> Result<Client, Failure> {
        // A server that takes the connection and then says nothing is not waited for either.
        match tokio::time::timeout(CONNECT_TIMEOUT.min(self.timeout), self.connect()).await {
            Ok(connected) => connected.map_err(Failure::from_error),
            Err(_) => Err(Failure::new("it does not answer")),
        }
    }

    async fn connect(&self) -> Result<Client, tokio_postgres::Error> {
        let client = match &self.tls {
            Some(tls) if !is_on_this_machine(&self.config, Reach::Socket) => {
                let (client, connection) = self.config.connect(tls.clone()).await?;
                tokio::spawn(connection);
                client
            }
            _ => {
                let (client, connection) = self.config.connect(NoTls).await?;
                tokio::spawn(connection);
                client
            }
        };
        // What is committed is on the disk, and nobody waits for ever for somebody else's transaction.
        let timeout = self.timeout.as_millis().max(1000);
        let settings = format!(
            "set synchronous_commit = on; set lock_timeout = {timeout}; set statement_timeout = {timeout}; \
             set search_path = {}",
            self.schema
        );
        client.batch_execute(&settings).await?;
        Ok(client)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Only through a file.
    Socket,
    /// Also through the loopback.
    Loopback,
}

fn is_on_this_machine(config: &Config, reach: Reach) -> bool {
    let addresses = config.get_hostaddrs();
    let near = |host: &Host| match host {
        Host::Tcp(_) if reach == Reach::Socket => false,
        Host::Tcp(host) => {
            host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    config.get_hosts().iter().all(near)
        && (addresses.is_empty()
            || reach == Reach::Loopback && addresses.iter().all(std::net::IpAddr::is_loopback))
}

/// Beyond this machine a state is not sent in the clear, nor to anybody who is not known, unless somebody wrote so.
fn usual_mode(config: &Config, trust: Option<&TlsTrust>) -> TlsMode {
    if trust.is_none() && is_on_this_machine(config, Reach::Loopback) {
        TlsMode::Prefer
    } else {
        TlsMode::Require
    }
}

/// Whom to trust; none where nobody said.
fn trust(words: &TlsWords, given: &TlsTrust, folder: &Path) -> Result<Option<TlsTrust>, Failure> {
    let Some(root) = &words.root else {
        return Ok((!matches!(given, TlsTrust::System)).then(|| given.clone()));
    };
    if !matches!(given, TlsTrust::System) {
        return Err(wrong("`sslrootcert` and `tls` both say whom to trust"));
    }
    if root == "system" {
        return Ok(Some(TlsTrust::System));
    }
    Ok(Some(TlsTrust::Ca(read(folder, root)?)))
}

fn tls(
    mode: TlsMode,
    trust: Option<TlsTrust>,
    identity: Option<&ClientIdentity>,
) -> Result<MakeRustlsConnect, Failure> {
    let trust = match (trust, mode) {
        (Some(TlsTrust::Insecure), TlsMode::VerifyCa | TlsMode::VerifyFull) => {
            return Err(wrong("`sslmode` wants a certificate verified that `insecure` does not look at"));
        }
        (Some(trust), _) => trust,
        // Who would go on without TLS gains nothing from a certificate.
        (None, TlsMode::Prefer) => TlsTrust::Insecure,
        (None, _) => TlsTrust::System,
    };
    let names = if mode == TlsMode::VerifyCa { ServerNames::Any } else { ServerNames::Checked };
    let config = strata_net::client_config(&trust, names, identity).map_err(Failure::from_error)?;
    Ok(MakeRustlsConnect::new(config))
}

fn identity(words: &TlsWords, folder: &Path) -> Result<Option<ClientIdentity>, Failure> {
    match (&words.certificate, &words.key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            let key =
                String::from_utf8(read(folder, key)?).map_err(|_| wrong(format!("`{key}` is not PEM")))?;
            Ok(Some(ClientIdentity::new(read(folder, certificate)?, SecretString::new(key))))
        }
        _ => Err(wrong("`sslcert` and `sslkey` go together")),
    }
}

fn read(folder: &Path, name: &str) -> Result<Vec<u8>, Failure> {
    let path = folder.join(name);
    read_file(&path, LARGEST_FILE)
        .map_err(|error| Failure::of(format!("cannot read `{}`", path.display()), error))
}

/// Something about the connection that was set and cannot be.
fn wrong(reason: impl Into<String>) -> Failure {
    Failure::new(reason).kind(FailureKind::Settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(connection: &str) -> DatabaseOptions {
        DatabaseOptions {
            connection: connection.to_owned(),
            password: None,
            schema: "strata".to_owned(),
            tls: TlsTrust::System,
            folder: PathBuf::from("/nowhere"),
            timeout: Duration::from_secs(5),
            application: "strata",
        }
    }

    fn asks(options: &DatabaseOptions) -> (SslMode, bool) {
        let database = Database::new(options).unwrap();
        (database.config.get_ssl_mode(), database.tls.is_some())
    }

    #[test]
    fn states_leave_this_machine_only_under_tls() {
        assert_eq!(asks(&options("postgres://a@db.example/b")), (SslMode::Require, true));
        assert_eq!(asks(&options("host=192.0.2.1 user=a")), (SslMode::Require, true));
        for near in ["postgres://a@localhost/b", "postgres://a@127.0.0.1/b", "host=/run/postgresql user=a"] {
            assert_eq!(asks(&options(near)), (SslMode::Prefer, true), "{near}");
        }
        assert_eq!(asks(&options("postgres://a@db.example/b?sslmode=disable")), (SslMode::Disable, false));
        assert_eq!(asks(&options("postgres://a@db.example/b?sslmode=prefer")), (SslMode::Prefer, true));
        // Who says whom to trust wants it verified, here too.
        let pinned = DatabaseOptions { tls: TlsTrust::Insecure, ..options("postgres://a@localhost/b") };
        assert_eq!(asks(&pinned), (SslMode::Require, true));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let refused =
            |options: &DatabaseOptions| Database::new(options).err().expect("it was taken").to_string();
        let lax = |text: &str| DatabaseOptions { tls: TlsTrust::Insecure, ..options(text) };
        assert!(refused(&lax("postgres://a@b/c?sslmode=verify-ca")).contains("insecure"));
        assert!(refused(&lax("postgres://a@b/c?sslrootcert=x")).contains("both say"));
        assert!(refused(&options("postgres://a@b/c?sslrootcert=ca.pem")).contains("/nowhere/ca.pem"));
        assert!(refused(&options("postgres://a@b/c?sslcert=a.pem")).contains("go together"));
        let schema = "a; drop table".to_owned();
        assert!(refused(&DatabaseOptions { schema, ..options("postgres://a@b/c") }).contains("schema"));
    }
}
