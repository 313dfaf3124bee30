//! A server inside of the test, with users and a clock that the test turns.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use strata_net::Clock;
use strata_server::access::{AccessFile, AccessKeeper, Action, Rule, Token, hash_password, token_digest};
use strata_server::storage::embedded::EmbeddedOptions;
use strata_server::storage::{Retention, Storage};
use strata_server::{Proxies, Server, ServerOptions, TlsFiles};
use tempfile::TempDir;

use crate::client::Client;
use crate::storages;

pub(crate) const ROOT: &str = "Bearer root-token";
pub(crate) const MAX_STATE: u64 = 24 * 1024 * 1024;

/// Goes where it is told to.
#[derive(Default)]
pub(crate) struct HandClock {
    pub(crate) monotonic: AtomicU64,
    pub(crate) unix: AtomicI64,
}

impl HandClock {
    pub(crate) fn pass(&self, seconds: u64) {
        self.monotonic.fetch_add(seconds, Ordering::SeqCst);
        self.unix.fetch_add(seconds.cast_signed(), Ordering::SeqCst);
    }

    pub(crate) fn set_back(&self, seconds: i64) {
        self.unix.fetch_sub(seconds, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for HandClock {
    fn monotonic(&self) -> Duration {
        Duration::from_secs(self.monotonic.load(Ordering::SeqCst))
    }

    fn unix(&self) -> i64 {
        self.unix.load(Ordering::SeqCst)
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

pub(crate) struct World {
    pub(crate) data: TempDir,
    pub(crate) clock: Arc<HandClock>,
    pub(crate) retention: Retention,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) proxies: Proxies,
    running: Option<Running>,
}

struct Running {
    server: Server,
    runtime: tokio::runtime::Runtime,
}

pub(crate) fn rule(prefix: &str, actions: &[Action]) -> Rule {
    Rule { prefix: prefix.to_owned(), actions: actions.to_vec() }
}

/// `root` may everything, `ci` works on `prod`, `eve` reads `prod`; `ann` has a password.
fn users() -> AccessFile {
    let mut file = AccessFile::default();
    let token = |text: &str| Token { name: "t".into(), sha256: token_digest(text), expires: None };
    file.add_user("root", None, vec![rule("", &[Action::Admin])]).unwrap();
    file.add_token("root", token("root-token")).unwrap();
    file.add_user("ci", None, vec![rule("prod", &[Action::Read, Action::Write, Action::Lock])]).unwrap();
    file.add_token("ci", token("ci-token")).unwrap();
    file.add_user("eve", None, vec![rule("prod", &[Action::Read])]).unwrap();
    file.add_token("eve", token("eve-token")).unwrap();
    let password = hash_password("swordfish").unwrap();
    file.add_user("ann", Some(password), vec![rule("prod", &[Action::Read, Action::Write])]).unwrap();
    file
}

impl World {
    pub(crate) fn new() -> Self {
        let data = TempDir::new().unwrap();
        users().save(&AccessFile::path(data.path())).unwrap();
        let clock = Arc::new(HandClock { monotonic: 0.into(), unix: 1_800_000_000.into() });
        Self {
            data,
            clock,
            retention: Retention::default(),
            max_bytes: None,
            tls: None,
            proxies: Proxies::default(),
            running: None,
        }
    }

    pub(crate) fn started() -> Self {
        let mut world = Self::new();
        world.start();
        world
    }

    pub(crate) fn start(&mut self) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let clock: Arc<dyn Clock> = self.clock.clone();
        let kept = EmbeddedOptions { retention: self.retention, max_bytes: self.max_bytes };
        let server = runtime.block_on(async {
            let storage = storages::open(self.data.path(), &kept).await;
            let mut options = options(self.data.path(), storage, clock, self.tls.clone());
            options.access = options.access.behind(self.proxies.clone());
            Server::start(options).await
        });
        self.running = Some(Running { server: server.unwrap(), runtime });
    }

    pub(crate) fn stop(&mut self) {
        if let Some(Running { server, runtime }) = self.running.take() {
            runtime.block_on(server.shutdown());
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.as_ref().unwrap().server.address()
    }

    pub(crate) fn client(&self, authorization: &str) -> Client {
        Client::new(self.address(), Some(authorization))
    }

    pub(crate) fn root(&self) -> Client {
        self.client(ROOT)
    }

    /// What was counted of requests of nobody; complete once the server has stopped.
    pub(crate) fn denied(&self) -> String {
        std::fs::read_to_string(self.data.path().join("denied.log")).unwrap_or_default()
    }

    pub(crate) fn audit(&self) -> String {
        std::fs::read_to_string(self.data.path().join("audit.log")).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn options(
    data: &Path,
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    tls: Option<TlsFiles>,
) -> ServerOptions {
    ServerOptions {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        tls,
        allow_plain: false,
        storage,
        commits: None,
        access: AccessKeeper::load(AccessFile::path(data), Vec::new(), Arc::clone(&clock)).unwrap(),
        audit: Some(data.join("audit.log")),
        max_state: MAX_STATE,
        open_metrics: false,
        clock,
        notes: Arc::new(|_| {}),
    }
}

/// A state of OpenTofu with a text of this size in it.
pub(crate) fn state(serial: u64, lineage: &str, size: usize) -> Vec<u8> {
    let padding = "x".repeat(size);
    format!(
        r#"{{"version": 4, "serial": {serial}, "lineage": "{lineage}", "outputs": {{}}, "resources": [
        {{"mode": "managed", "type": "terraform_data", "name": "a", "provider": "p",
        "instances": [{{"attributes": {{"secret": "hunter2", "serial": {serial}, "padding": "{padding}"}}}}]}}]}}"#
    )
    .into_bytes()
}

pub(crate) fn lock_info(id: &str) -> Vec<u8> {
    format!(r#"{{"ID":"{id}","Operation":"OperationTypeApply","Info":"","Who":"me@here","Version":"1.12.6","Created":"2026-11-15T00:00:00Z","Path":""}}"#).into_bytes()
}
