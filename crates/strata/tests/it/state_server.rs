//! `strata serve` inside of a test, with a clock that the test turns.

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
    server: Server,
    _runtime: Runtime,
    _data: TempDir,
    clock: Arc<HandClock>,
}

impl StateServer {
    pub(crate) fn start() -> Self {
        let data = TempDir::new().unwrap();
        let mut users = AccessFile::default();
        let everything = Rule { prefix: String::new(), actions: vec![Action::Admin] };
        users.add_user("ci", None, vec![everything]).unwrap();
        users
            .add_token("ci", Token { name: "t".into(), sha256: token_digest(TOKEN), expires: None })
            .unwrap();
        users.save(&AccessFile::path(data.path())).unwrap();
        let clock = Arc::new(HandClock::default());
        let options = EmbeddedOptions { retention: Retention::default(), max_bytes: None };
        let storage = EmbeddedStorage::open(&data.path().join(FILE), &options).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let server = runtime.block_on(Server::start(ServerOptions {
            listen: ([127, 0, 0, 1], 0).into(),
            tls: None,
            allow_plain: false,
            storage: Arc::new(storage),
            commits: None,
            access: AccessKeeper::load(AccessFile::path(data.path()), Vec::new(), clock.clone()).unwrap(),
            audit: None,
            max_state: 1 << 24,
            open_metrics: false,
            clock: clock.clone(),
            notes: Arc::new(|_| {}),
        }));
        Self { server: server.unwrap(), _runtime: runtime, _data: data, clock }
    }

    /// What stands in strata.yaml; the token is in a file of the repository.
    pub(crate) fn settings(&self) -> String {
        format!("{{backend: http, url: \"http://{}\", token: {{file: state-token}}}}", self.server.address())
    }

    /// Lets the time pass in which a lease lapses.
    pub(crate) fn outlast_leases(&self) {
        self.clock.0.fetch_add(61, Ordering::SeqCst);
    }
}
