//! Buckets as earlier versions left them: read as they are, and taken over by the first change.

use bytes::Bytes;
use serde_json::{Value, json};
use strata_state::{Codec, JournalRecord, Lease, Store, StoreError};

use crate::conformance::{begin, owner};
use crate::s3::{document, in_memory};
use crate::s3_server::{Honesty, S3Server};

fn lock_of(id: &str, released: bool) -> Value {
    json!({"owner": owner(id), "lease": 60, "beat": 4, "released": released})
}

fn encoded(serial: u64) -> Vec<u8> {
    Codec::plain().encode(&document(serial)).unwrap()
}

/// A state of serial 2 with its history and a journal of two pieces, of which the second was cleared.
fn bucket(lock: &Value) -> S3Server {
    let server = S3Server::new(Honesty::Whole);
    let put = |path: &str, bytes: Vec<u8>| server.put(&format!("/strata/dev/web/{path}"), Bytes::from(bytes));
    put("state.json", encoded(2));
    put("lock", lock.to_string().into_bytes());
    put("journal/00000001", Codec::plain().encode_journal("dev/web", &[begin(1), begin(2)]).unwrap());
    put("journal/00000002", Vec::new());
    put("history/00000001.json", encoded(1));
    put("history/00000002.json", encoded(2));
    server.put("/strata/conditional-writes", Bytes::from_static(b"this server respects If-Match"));
    server
}

async fn serials(store: &dyn Store) -> Vec<u64> {
    store.history("dev/web").await.unwrap().iter().map(|version| version.serial).collect()
}

async fn is_as_it_was(store: &dyn Store) {
    assert_eq!(store.keys().await.unwrap(), ["dev/web"]);
    assert_eq!(store.read("dev/web").await.unwrap(), Some(document(2)));
    assert_eq!(store.read_journal("dev/web").await.unwrap(), [begin(1), begin(2)]);
    assert_eq!(serials(store).await, [2, 1]);
    assert_eq!(store.read_version("dev/web", 1).await.unwrap(), document(1));
}

#[tokio::test]
async fn a_former_state_is_read_and_written_on() {
    let server = bucket(&lock_of("former", true));
    let store = in_memory(&server).await;
    let before = server.paths();
    is_as_it_was(&store).await;
    assert_eq!(store.holder("dev/web").await.unwrap(), None);
    assert_eq!(server.paths(), before, "who only reads changes nothing");
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    is_as_it_was(&store).await;
    let task = JournalRecord::Task { id: 2, task: "UPID:x".into() };
    lock.append_journal(std::slice::from_ref(&task)).await.unwrap();
    assert_eq!(store.read_journal("dev/web").await.unwrap(), [begin(1), begin(2), task]);
    lock.write(&document(3)).await.unwrap();
    lock.clear_journal().await.unwrap();
    lock.release().await.unwrap();
    assert_eq!(store.read("dev/web").await.unwrap(), Some(document(3)));
    assert_eq!(store.read_journal("dev/web").await.unwrap(), []);
    assert_eq!(serials(&store).await, [3, 2, 1]);
    assert_eq!(store.read_version("dev/web", 2).await.unwrap(), document(2));
}

/// A former program takes a lock that it cannot read for one that is held, and a document of a format above its own for a newer one.
#[tokio::test]
async fn who_knows_only_the_former_layout_is_kept_out() {
    let server = bucket(&lock_of("former", true));
    let store = in_memory(&server).await;
    store.lock("dev/web", owner("1")).await.unwrap().release().await.unwrap();
    let there: Value = serde_json::from_slice(&server.get("/strata/dev/web/lock")).unwrap();
    assert!(there.get("owner").is_none() && there.get("released").is_none(), "{there}");
    let document: Value = serde_json::from_slice(&server.get("/strata/dev/web/state.json")).unwrap();
    assert_eq!(document["format"], 3);
    assert_eq!(store.read("dev/web").await.unwrap().unwrap().serial, 2);
}

#[tokio::test]
async fn a_former_lock_is_respected_until_it_lapses() {
    let server = bucket(&lock_of("former", false));
    let store = in_memory(&server).await;
    let holder = store.holder("dev/web").await.unwrap().unwrap();
    assert_eq!(holder.owner, owner("former"));
    assert!(matches!(holder.lease, Lease::Running(_)));
    assert!(matches!(store.lock("dev/web", owner("1")).await, Err(StoreError::Locked { .. })));
    is_as_it_was(&store).await;
    server.age("/strata/dev/web/lock", 65);
    let lock = store.lock("dev/web", owner("2")).await.unwrap();
    assert!(!lock.late_request_window().is_zero(), "a9: requests of the former holder may still arrive");
    is_as_it_was(&store).await;
    lock.release().await.unwrap();
    // One that is held can be taken away too.
    let server = bucket(&lock_of("former", false));
    let store = in_memory(&server).await;
    assert!(matches!(store.break_lock("dev/web", "other").await, Err(StoreError::OtherLock { .. })));
    store.break_lock("dev/web", "former").await.unwrap();
    assert_eq!(store.holder("dev/web").await.unwrap(), None);
    is_as_it_was(&store).await;
}

/// A run that died between the document and its version.
#[tokio::test]
async fn a12_a_version_that_was_not_kept_is_kept() {
    let server = bucket(&lock_of("former", true));
    server.remove("/strata/dev/web/history/00000002.json");
    let store = in_memory(&server).await;
    is_as_it_was(&store).await;
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    lock.write(&document(3)).await.unwrap();
    lock.release().await.unwrap();
    assert_eq!(serials(&store).await, [3, 2, 1]);
    assert_eq!(store.read_version("dev/web", 2).await.unwrap(), document(2));
}

#[tokio::test]
async fn half_a_former_document_is_told_with_the_last_good_version() {
    let server = bucket(&lock_of("former", true));
    server.cut("/strata/dev/web/state.json");
    let store = in_memory(&server).await;
    let error = store.read("dev/web").await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    let StoreError::Damaged { newest_good: Some(good), .. } = store.read("dev/web").await.unwrap_err() else {
        panic!("{error}");
    };
    lock.write(&document(good + 1)).await.unwrap();
    lock.release().await.unwrap();
    assert_eq!(store.read("dev/web").await.unwrap(), Some(document(good + 1)));
}

/// Without its record nobody knows what a state is: that is said, and not taken for a state that never was.
#[tokio::test]
async fn a_record_that_was_deleted_is_missed() {
    let server = S3Server::new(Honesty::Whole);
    let store = in_memory(&server).await;
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    lock.write(&document(1)).await.unwrap();
    lock.release().await.unwrap();
    server.remove("/strata/dev/web/lock");
    for error in [store.read("dev/web").await.err(), store.lock("dev/web", owner("2")).await.err()] {
        let error = error.expect("the state was there").to_string();
        assert!(error.contains("the record `dev/web/lock` is missing"), "{error}");
    }
}
