//! A real PostgreSQL with TLS. STRATA_TEST_POSTGRES_TLS is a folder with certificates (`ca.pem` signed the server's for `localhost`,
//! `stranger.pem` did not; `certified.pem` and `certified.key` are a user's) and STRATA_TEST_POSTGRES_PORT its port. The user `guarded`
//! may come only under TLS, `certified` only with the certificate.

use std::path::PathBuf;
use std::time::Duration;

use strata_net::TlsTrust;
use strata_state::{PostgresStore, PostgresStoreOptions};
use strata_storage::postgres::{Connections as DatabaseConnections, DatabaseError, DatabaseOptions};

use crate::conformance;

struct Server {
    folder: PathBuf,
    port: String,
}

fn server() -> Server {
    let folder = std::env::var_os("STRATA_TEST_POSTGRES_TLS").expect("STRATA_TEST_POSTGRES_TLS is set");
    let port = std::env::var("STRATA_TEST_POSTGRES_PORT").expect("STRATA_TEST_POSTGRES_PORT is set");
    Server { folder: folder.into(), port }
}

impl Server {
    fn address(&self, user: &str, host: &str, words: &str) -> String {
        format!("postgres://{user}@{host}:{}/postgres?{words}", self.port)
    }

    /// Whether the connection is under TLS.
    async fn comes(&self, connection: String, tls: TlsTrust) -> Result<bool, String> {
        let options = DatabaseOptions {
            connection,
            password: None,
            schema: "public".to_owned(),
            tls,
            folder: self.folder.clone(),
            timeout: Duration::from_secs(20),
            application: "strata",
        };
        let connections = DatabaseConnections::new(&options).map_err(|error| error.to_string())?;
        let mut connection = connections.get().await.map_err(|error| {
            assert!(matches!(error, DatabaseError::Unreachable { .. }), "{error}");
            error.to_string()
        })?;
        let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
        let row = connection.run(async |client| client.query_one(sql, &[]).await).await;
        Ok(row.unwrap().get(0))
    }

    async fn try_it(&self, user: &str, host: &str, words: &str) -> Result<bool, String> {
        self.comes(self.address(user, host, words), TlsTrust::System).await
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: just stores postgres"]
async fn each_mode_asks_for_what_it_says() {
    let server = server();
    assert_eq!(server.try_it("strata", "127.0.0.1", "sslmode=disable").await, Ok(false));
    let refused = server.try_it("guarded", "127.0.0.1", "sslmode=disable").await.unwrap_err();
    assert!(refused.contains("no encryption"), "{refused}");
    for words in ["", "sslmode=prefer", "sslmode=allow"] {
        assert_eq!(server.try_it("guarded", "127.0.0.1", words).await, Ok(true), "{words}");
    }
    // Nobody on this machine vouches for the certificate.
    for words in [
        "sslmode=require",
        "sslmode=verify-ca",
        "sslmode=verify-full",
        "sslmode=verify-full&sslrootcert=system",
    ] {
        let refused = server.try_it("guarded", "localhost", words).await.unwrap_err();
        assert!(refused.contains("UnknownIssuer"), "{words}: {refused}");
    }
    let with = |mode: &str, root: &str| format!("sslmode={mode}&sslrootcert={root}");
    for mode in ["prefer", "require", "verify-ca", "verify-full"] {
        assert_eq!(server.try_it("guarded", "localhost", &with(mode, "ca.pem")).await, Ok(true), "{mode}");
        let refused = server.try_it("guarded", "localhost", &with(mode, "stranger.pem")).await.unwrap_err();
        assert!(refused.contains("invalid peer certificate"), "{mode}: {refused}");
    }
    // The certificate is for a name that is not dialled.
    assert_eq!(server.try_it("guarded", "127.0.0.1", &with("verify-ca", "ca.pem")).await, Ok(true));
    for mode in ["require", "verify-full"] {
        let refused = server.try_it("guarded", "127.0.0.1", &with(mode, "ca.pem")).await.unwrap_err();
        assert!(refused.contains("not valid for"), "{mode}: {refused}");
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: just stores postgres"]
async fn settings_may_say_whom_to_trust_too() {
    let server = server();
    let ca = TlsTrust::Ca(std::fs::read(server.folder.join("ca.pem")).unwrap());
    let stranger = TlsTrust::Ca(std::fs::read(server.folder.join("stranger.pem")).unwrap());
    let address = |words: &str| server.address("guarded", "localhost", words);
    assert_eq!(server.comes(address(""), ca.clone()).await, Ok(true));
    assert_eq!(server.comes(address("sslmode=verify-full"), ca).await, Ok(true));
    assert!(server.comes(address(""), stranger).await.is_err());
    assert_eq!(server.comes(address("sslmode=require"), TlsTrust::Insecure).await, Ok(true));
}

#[tokio::test]
#[ignore = "needs PostgreSQL: just stores postgres"]
async fn a_user_may_come_by_certificate() {
    let server = server();
    let words = "sslmode=verify-full&sslrootcert=ca.pem";
    let refused = server.try_it("certified", "localhost", words).await.unwrap_err();
    assert!(refused.contains("certificate"), "{refused}");
    let with = format!("{words}&sslcert=certified.pem&sslkey=certified.key");
    assert_eq!(server.try_it("certified", "localhost", &with).await, Ok(true));
    // It is the certificate of one user.
    assert!(server.try_it("certified", "localhost", &with.replace("certified.", "server.")).await.is_err());
}

#[tokio::test]
#[ignore = "needs PostgreSQL: just stores postgres"]
async fn the_store_keeps_its_promises_under_tls() {
    let server = server();
    let options = PostgresStoreOptions {
        schema: format!("strata_test_tls_{}", std::process::id()),
        folder: server.folder.clone(),
        ..PostgresStoreOptions::new(server.address(
            "guarded",
            "localhost",
            "sslmode=verify-full&sslrootcert=ca.pem",
        ))
    };
    conformance::run(&PostgresStore::new(options).unwrap()).await;
}
