//! Servers that are not ours and speak OpenTofu's protocol.

use strata_state::{HttpStore, HttpStoreOptions, Store, StoreError};

use crate::conformance::{self, KEYS, begin, owner};
use crate::tofu_server::TofuServer;

fn store(url: String) -> HttpStore {
    let known = KEYS.map(str::to_owned).to_vec();
    HttpStore::new(HttpStoreOptions { known, ..HttpStoreOptions::new(url) }.basic("me", &"secret".into()))
        .unwrap()
}

#[tokio::test]
async fn a_server_with_lock_and_unlock_keeps_the_promises() {
    let url = TofuServer::default().start().await;
    conformance::run(&store(url)).await;
}

#[tokio::test]
async fn an_unknown_user_is_told_so() {
    let url = TofuServer::default().start().await;
    let store = HttpStore::new(HttpStoreOptions::new(url)).unwrap();
    let error = store.read("dev/web").await.unwrap_err();
    assert!(error.to_string().contains("401"), "{error}");
    let StoreError::Remote { hint, .. } = error else { panic!("{error}") };
    assert!(hint.unwrap().contains("password"));
}

#[tokio::test]
async fn what_somebody_else_wrote_under_our_lock_is_never_overwritten() {
    let server = TofuServer::default();
    let store = store(server.start().await);
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    lock.append_journal(&[begin(1)]).await.unwrap();
    server.tamper("/dev/web", |mut state| {
        state["serial"] = 99.into();
        state
    });
    let error = lock.append_journal(&[begin(2)]).await.unwrap_err();
    assert!(matches!(error, StoreError::LockLost { .. }), "{error}");
    assert!(lock.still_held().is_err());
    assert_eq!(store.read_journal("dev/web").await.unwrap(), [begin(1)]);
}

#[tokio::test]
async fn a_state_of_opentofu_is_not_taken_for_ours() {
    let server = TofuServer::default();
    let store = store(server.start().await);
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    lock.append_journal(&[begin(1)]).await.unwrap();
    lock.release().await.unwrap();
    server.tamper(
        "/dev/web",
        |_| serde_json::json!({"version": 4, "serial": 1, "lineage": "x", "resources": []}),
    );
    assert!(matches!(store.read("dev/web").await, Err(StoreError::Damaged { .. })));
    assert!(store.lock("dev/web", owner("2")).await.is_err());
    assert_eq!(store.holder("dev/web").await.unwrap(), None, "the lock is given back");
}

#[tokio::test]
async fn nobody_there_is_told_with_the_address() {
    let store = HttpStore::new(HttpStoreOptions::new("http://127.0.0.1:9")).unwrap();
    let error = store.read("dev/web").await.unwrap_err().to_string();
    assert!(error.contains("127.0.0.1:9"), "{error}");
}
