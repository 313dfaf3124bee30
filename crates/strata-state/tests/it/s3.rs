//! A server in memory; and a real one, which STRATA_TEST_S3_ENDPOINT names; STRATA_TEST_S3_BUCKET is there, AWS_ACCESS_KEY_ID and
//! AWS_SECRET_ACCESS_KEY open it. STRATA_TEST_DYNAMODB_ENDPOINT adds a lock table, STRATA_TEST_DYNAMODB_TABLE.

use std::time::Duration;

use strata_resource::Lineage;
use strata_state::{
    AwsCredentials, LeaseTerms, LockTable, S3Store, S3StoreOptions, StateDocument, Store, StoreError,
};

use crate::conformance::{self, begin, owner};
use crate::s3_server::{Honesty, S3Server};

/// A prefix that no other run has.
fn options(name: &str) -> S3StoreOptions {
    let endpoint = std::env::var("STRATA_TEST_S3_ENDPOINT").expect("STRATA_TEST_S3_ENDPOINT is set");
    let environment = std::env::vars()
        .filter(|(name, _)| name.starts_with("AWS_"))
        .map(|(name, value)| (name, value.into()));
    S3StoreOptions {
        endpoint: Some(endpoint),
        prefix: format!("test-{name}-{}", std::process::id()),
        environment: environment.collect(),
        ..S3StoreOptions::new(std::env::var("STRATA_TEST_S3_BUCKET").unwrap_or_else(|_| "strata".into()))
    }
}

pub(crate) async fn in_memory(server: &S3Server) -> S3Store {
    let secret_access_key = "secret".into();
    S3Store::new(S3StoreOptions {
        endpoint: Some(server.start().await),
        credentials: Some(AwsCredentials { access_key_id: "me".into(), secret_access_key }),
        ..S3StoreOptions::new("strata")
    })
    .unwrap()
}

pub(crate) fn document(serial: u64) -> StateDocument {
    StateDocument { serial, ..StateDocument::new(Lineage::derive("r", "dev/web"), "dev/web") }
}

#[tokio::test]
async fn conditional_writes_are_enough_for_the_promises() {
    conformance::run(&in_memory(&S3Server::new(Honesty::Whole)).await).await;
}

#[tokio::test]
async fn a_server_that_ignores_conditions_is_refused() {
    for (honesty, told) in
        [(Honesty::IgnoresIfNoneMatch, "If-None-Match"), (Honesty::IgnoresIfMatch, "ignores `If-Match`")]
    {
        let store = in_memory(&S3Server::new(honesty)).await;
        let error = store.lock("dev/web", owner("1")).await.err().expect("it is not safe").to_string();
        assert!(error.contains(told), "{error}");
        assert_eq!(store.keys().await.unwrap(), [] as [String; 0], "the probe leaves nothing behind");
    }
}

#[tokio::test]
async fn half_an_object_is_told_with_the_last_good_version() {
    let server = S3Server::new(Honesty::Whole);
    let store = in_memory(&server).await;
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    lock.write(&document(1)).await.unwrap();
    lock.write(&document(2)).await.unwrap();
    lock.release().await.unwrap();
    server.cut(&server.path("/strata/dev/web/history/00000002-"));
    let error = store.read("dev/web").await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { newest_good: Some(1), .. }), "{error}");
    // A good version can be put in its place, and the serial goes on.
    let lock = store.lock("dev/web", owner("2")).await.unwrap();
    lock.write(&document(2)).await.unwrap();
    lock.release().await.unwrap();
    assert_eq!(store.read("dev/web").await.unwrap(), Some(document(2)));
    server.cut("/strata/dev/web/lock");
    assert!(matches!(store.lock("dev/web", owner("3")).await, Err(StoreError::Damaged { .. })));
}

#[tokio::test]
async fn a_lease_lapses_by_the_servers_clock() {
    let server = S3Server::new(Honesty::Whole);
    let store = in_memory(&server).await;
    let silent = store.lock("dev/web", owner("silent")).await.unwrap();
    silent.append_journal(&[begin(1)]).await.unwrap();
    server.age("/strata/dev/web/lock", 50);
    assert!(matches!(store.lock("dev/web", owner("early")).await, Err(StoreError::Locked { .. })));
    server.age("/strata/dev/web/lock", 20);
    let next = store.lock("dev/web", owner("patient")).await.unwrap();
    assert!(silent.append_journal(&[begin(2)]).await.is_err());
    assert!(silent.write(&document(1)).await.is_err());
    next.write(&document(1)).await.unwrap();
    next.release().await.unwrap();
}

/// Only the clock of the server counts, and only as far as it agrees with itself.
#[tokio::test]
async fn clocks_that_are_wrong_or_jump_make_no_two_writers() {
    for ahead in [86_400, -400 * 86_400] {
        let server = S3Server::new(Honesty::Whole);
        server.set_clock(ahead);
        let store = in_memory(&server).await;
        let silent = store.lock("dev/web", owner("silent")).await.unwrap();
        silent.append_journal(&[begin(1)]).await.unwrap();
        assert!(matches!(store.lock("dev/web", owner("early")).await, Err(StoreError::Locked { .. })));
        // It goes back: the lock is held for longer, and by the same one.
        server.set_clock(ahead - 1000);
        assert!(matches!(store.lock("dev/web", owner("early")).await, Err(StoreError::Locked { .. })));
        silent.append_journal(&[begin(2)]).await.unwrap();
        // It jumps: another may take the lock too soon, and then the former holder writes nothing more.
        server.set_clock(ahead + 1000);
        let next = store.lock("dev/web", owner("next")).await.unwrap();
        assert!(silent.append_journal(&[begin(3)]).await.is_err());
        assert!(silent.write(&document(1)).await.is_err());
        assert!(matches!(silent.still_held(), Err(StoreError::LockLost { .. })));
        assert_eq!(store.read_journal("dev/web").await.unwrap(), [begin(1), begin(2)]);
        next.write(&document(1)).await.unwrap();
        next.release().await.unwrap();
    }
}

/// The write arrives, its answer does not; asked again, the condition does not hold any more, by our own doing.
#[tokio::test]
async fn a_lost_answer_is_no_conflict() {
    let server = S3Server::new(Honesty::Whole);
    let store = in_memory(&server).await;
    store.lock("dev/web", owner("0")).await.unwrap().release().await.unwrap();
    server.lose_answers(1);
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    server.lose_answers(1);
    lock.append_journal(&[begin(1)]).await.unwrap();
    server.lose_answers(2);
    lock.append_journal(&[begin(2)]).await.unwrap();
    server.lose_answers(2);
    lock.write(&document(1)).await.unwrap();
    server.lose_answers(1);
    lock.release().await.unwrap();
    assert_eq!(store.read_journal("dev/web").await.unwrap(), [begin(1), begin(2)]);
    assert_eq!(store.read("dev/web").await.unwrap(), Some(document(1)));
    assert_eq!(store.holder("dev/web").await.unwrap(), None);
}

#[tokio::test]
#[ignore = "needs S3: just stores minio"]
async fn s3_keeps_the_promises() {
    let options = options("all");
    conformance::run(&S3Store::new(options).unwrap()).await;
}

#[tokio::test]
#[ignore = "needs S3: just stores minio"]
async fn its_leases_lapse() {
    let options = options("lease");
    let lease = LeaseTerms::of(Duration::from_secs(3));
    conformance::run_leases(&S3Store::new(S3StoreOptions { lease, ..options }).unwrap()).await;
}

#[tokio::test]
#[ignore = "needs S3: just stores minio"]
async fn a_former_holder_that_wakes_up_late_writes_nothing() {
    let options = options("late");
    let store = S3Store::new(options).unwrap();
    let asleep = store.lock("dev/web", owner("asleep")).await.unwrap();
    asleep.append_journal(&[begin(1)]).await.unwrap();
    store.break_lock("dev/web", "asleep").await.unwrap();
    let next = store.lock("dev/web", owner("next")).await.unwrap();
    next.append_journal(&[begin(2)]).await.unwrap();
    assert!(asleep.clear_journal().await.is_err());
    assert_eq!(store.read_journal("dev/web").await.unwrap(), [begin(1), begin(2)]);
    next.release().await.unwrap();
}

#[tokio::test]
#[ignore = "needs DynamoDB: just stores moto"]
async fn a_lock_table_is_honoured() {
    let options = options("table");
    let endpoint =
        std::env::var("STRATA_TEST_DYNAMODB_ENDPOINT").expect("STRATA_TEST_DYNAMODB_ENDPOINT is set");
    let name = std::env::var("STRATA_TEST_DYNAMODB_TABLE").unwrap_or_else(|_| "locks".into());
    let table = LockTable { name, endpoint: Some(endpoint) };
    let with_table = || S3StoreOptions { lock_table: Some(table.clone()), ..clone(&options) };
    let store = S3Store::new(with_table()).unwrap();
    conformance::run(&store).await;
    // An entry of somebody who is not the last one to have held the lock in the bucket is not touched.
    let lock = store.lock("dev/web", owner("first")).await.unwrap();
    let bare = S3Store::new(clone(&options)).unwrap();
    bare.break_lock("dev/web", "first").await.unwrap();
    bare.lock("dev/web", owner("between")).await.unwrap().release().await.unwrap();
    let error = store.lock("dev/web", owner("second")).await.err().expect("its entry is still in the table");
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    lock.release().await.unwrap();
    store.lock("dev/web", owner("third")).await.unwrap().release().await.unwrap();
}

fn clone(options: &S3StoreOptions) -> S3StoreOptions {
    S3StoreOptions {
        endpoint: options.endpoint.clone(),
        prefix: options.prefix.clone(),
        environment: options.environment.clone(),
        ..S3StoreOptions::new(options.bucket.clone())
    }
}

/// A holder whose lease was taken over wakes up and writes: neither the document nor the version of the one that came after it is touched.
#[tokio::test]
async fn a12_a_stale_holder_does_not_touch_the_history() {
    let server = S3Server::new(Honesty::Whole);
    let store = in_memory(&server).await;
    let first = store.lock("dev/web", owner("first")).await.unwrap();
    first.write(&document(1)).await.unwrap();
    let theirs = |note: &str| {
        let mut document = document(2);
        document.outputs.insert("by".into(), strata_resource::Value::Text(note.into()));
        document
    };
    // It has passed every look at the lock when it is stopped: what it does next is its first write.
    let stopped = server.stop_before_the_next_write();
    let late = tokio::spawn(async move { (first.write(&theirs("first")).await, first) });
    stopped.reached().await;
    store.break_lock("dev/web", "first").await.unwrap();
    let next = store.lock("dev/web", owner("next")).await.unwrap();
    let mut second = document(2);
    second.outputs.insert("by".into(), strata_resource::Value::Text("next".into()));
    next.write(&second).await.unwrap();
    stopped.go_on();
    let (refused, _first) = late.await.unwrap();
    assert!(refused.is_err());
    assert_eq!(store.read("dev/web").await.unwrap(), Some(second.clone()));
    assert_eq!(store.read_version("dev/web", 2).await.unwrap(), second);
    next.release().await.unwrap();
}
