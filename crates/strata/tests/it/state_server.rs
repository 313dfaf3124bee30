//! `strata serve` inside of a test, with a clock that the test turns.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use strata_net::Clock;
use strata_server::access::{AccessFile, AccessKeeper, Action, Rule, Token, token_digest};
use strata_server::storage::Retention;
use strata_server::storage::embedded::{EmbeddedOptions, EmbeddedStorage, FILE};
use strata_server::{Server, ServerOptions};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) const TOKEN: &str = "state-token";

#[derive(Default)]
struct HandClock(AtomicU64);

#[async_trait::async_trait]
impl Clock for HandClock {
    fn monotonic(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }

    fn unix(&self) -> i64 {
        1_800_000_000 + self.0.load(Ordering::SeqCst).cast_signed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

pub(crate) struct StateServer {
    // Before the runtime that it runs on.
    server: Option<Server>,
    runtime: Runtime,
    data: TempDir,
    clock: Arc<HandClock>,
    address: SocketAddr,
}

impl StateServer {
    pub(crate) fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let (data, clock) = (TempDir::new().unwrap(), Arc::new(HandClock::default()));
        let mut server = Self { server: None, runtime, data, clock, address };
        server.let_in(TOKEN);
        server.start_again();
        server
    }

    /// At the address that it had before, with what it had on its disk.
    pub(crate) fn start_again(&mut self) {
        let options = EmbeddedOptions { retention: Retention::default(), max_bytes: None };
        let access =
            AccessKeeper::load(AccessFile::path(self.data.path()), Vec::new(), self.clock.clone()).unwrap();
        let server = self.runtime.block_on(async {
            // Who wrote before may still be at it.
            let storage = loop {
                match EmbeddedStorage::open(&self.data.path().join(FILE), &options) {
                    Ok(storage) => break storage,
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            };
            Server::start(ServerOptions {
                listen: self.address,
                tls: None,
                allow_plain: false,
                storage: Arc::new(storage),
                commits: None,
                access,
                audit: None,
                max_state: 1 << 24,
                open_metrics: false,
                clock: self.clock.clone(),
                notes: Arc::new(|_| {}),
            })
            .await
        });
        let server = server.unwrap();
        self.address = server.address();
        self.server = Some(server);
    }

    pub(crate) fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.shutdown());
        }
    }

    /// From now on, or from a moment later, this token is the only one.
    pub(crate) fn let_in(&self, token: &str) {
        let mut users = AccessFile::default();
        let everything = Rule { prefix: String::new(), actions: vec![Action::Admin] };
        users.add_user("ci", None, vec![everything]).unwrap();
        let token = Token { name: "t".into(), sha256: token_digest(token), expires: None };
        users.add_token("ci", token).unwrap();
        users.save(&AccessFile::path(self.data.path())).unwrap();
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What stands in strata.yaml; the token is in a file of the repository.
    pub(crate) fn settings(&self) -> String {
        settings_at(self.address)
    }

    /// Lets the time pass in which a lease lapses, and in which requests of its holder may still arrive.
    pub(crate) fn outlast_leases(&self) {
        self.pass(600);
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.clock.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

pub(crate) fn settings_at(address: SocketAddr) -> String {
    format!("{{backend: http, url: \"http://{address}\", token: {{file: state-token}}}}")
}
