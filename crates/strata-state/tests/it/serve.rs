//! `strata serve`, inside of the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use strata_net::Clock;
use strata_server::access::{AccessFile, AccessKeeper, Action, Rule, Token, token_digest};
use strata_server::storage::Retention;
use strata_server::storage::embedded::{EmbeddedOptions, EmbeddedStorage, FILE};
use strata_server::{Server, ServerOptions};
use strata_state::{HttpStore, HttpStoreOptions, LockOwner, Store, StoreError};
use tempfile::TempDir;

use crate::conformance::{self, begin, owner};

/// Goes on only when it is told to.
#[derive(Default)]
struct HandClock(AtomicU64);

#[async_trait]
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

struct Serving {
    _server: Server,
    _data: TempDir,
    clock: Arc<HandClock>,
    url: String,
}

impl Serving {
    async fn start() -> Self {
        let data = TempDir::new().unwrap();
        let mut users = AccessFile::default();
        let everything = Rule { prefix: String::new(), actions: vec![Action::Admin] };
        users.add_user("root", None, vec![everything]).unwrap();
        let token = Token { name: "t".into(), sha256: token_digest("root-token"), expires: None };
        users.add_token("root", token).unwrap();
        users.save(&AccessFile::path(data.path())).unwrap();
        let clock = Arc::new(HandClock::default());
        let options = EmbeddedOptions { retention: Retention::default(), max_bytes: None };
        let storage = EmbeddedStorage::open(&data.path().join(FILE), &options).unwrap();
        let server = Server::start(ServerOptions {
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
        })
        .await
        .unwrap();
        let url = format!("http://{}", server.address());
        Self { _server: server, _data: data, clock, url }
    }

    fn store(&self) -> HttpStore {
        HttpStore::new(HttpStoreOptions::new(&self.url).bearer(&"root-token".into())).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strata_serve_keeps_the_promises() {
    let serving = Serving::start().await;
    conformance::run(&serving.store()).await;
    assert_eq!(serving.store().caveat(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn its_leases_lapse_by_its_own_clock() {
    let serving = Serving::start().await;
    let store = serving.store();
    let silent = store.lock("dev/web", owner("silent")).await.unwrap();
    silent.append_journal(&[begin(1)]).await.unwrap();
    serving.clock.0.fetch_add(59, Ordering::SeqCst);
    let error = store.lock("dev/web", owner("early")).await.err().expect("its lease runs");
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    serving.clock.0.fetch_add(2, Ordering::SeqCst);
    let next = store.lock("dev/web", owner("patient")).await.unwrap();
    assert!(silent.append_journal(&[begin(2)]).await.is_err());
    assert_eq!(store.read_journal("dev/web").await.unwrap(), [begin(1)]);
    next.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_opentofu_is_respected_and_named() {
    let serving = Serving::start().await;
    let client = strata_net::HttpClient::new(strata_net::HttpOptions::new(&serving.url)).unwrap();
    let mut lock = strata_net::Request::new(http::Method::from_bytes(b"LOCK").unwrap(), "/states/dev/web");
    lock.headers.push((http::header::AUTHORIZATION, "Bearer root-token".parse().unwrap()));
    let info = r#"{"ID":"abc","Operation":"OperationTypeApply","Info":"","Who":"ann@there","Version":"1.12.6","Created":"2026-01-01T00:00:00Z","Path":""}"#;
    lock.body = strata_net::Body::Bytes { content_type: "application/json".into(), bytes: info.into() };
    assert_eq!(client.send(&lock).await.unwrap().status, 200);
    let store = serving.store();
    serving.clock.0.fetch_add(100_000, Ordering::SeqCst);
    let error =
        store.lock("dev/web", owner("1")).await.err().expect("OpenTofu's locks never lapse").to_string();
    assert!(error.contains("ann@there for `OperationTypeApply`"), "{error}");
    let holder: LockOwner = store.holder("dev/web").await.unwrap().unwrap().owner;
    store.break_lock("dev/web", &holder.id).await.unwrap();
    store.lock("dev/web", owner("1")).await.unwrap().release().await.unwrap();
}
