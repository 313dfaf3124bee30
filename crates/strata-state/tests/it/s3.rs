//! A real S3 server, where STRATA_TEST_S3_ENDPOINT names one; STRATA_TEST_S3_BUCKET is there, AWS_ACCESS_KEY_ID and
//! AWS_SECRET_ACCESS_KEY open it. STRATA_TEST_DYNAMODB_ENDPOINT adds a lock table, STRATA_TEST_DYNAMODB_TABLE.

use std::time::Duration;

use strata_state::{LeaseTerms, LockTable, S3Store, S3StoreOptions, Store, StoreError};

use crate::conformance::{self, begin, owner};

/// A prefix that no other run has.
fn options(name: &str) -> Option<S3StoreOptions> {
    let Ok(endpoint) = std::env::var("STRATA_TEST_S3_ENDPOINT") else {
        eprintln!("left out: STRATA_TEST_S3_ENDPOINT is not set");
        return None;
    };
    let environment = std::env::vars()
        .filter(|(name, _)| name.starts_with("AWS_"))
        .map(|(name, value)| (name, value.into()));
    Some(S3StoreOptions {
        endpoint: Some(endpoint),
        prefix: format!("test-{name}-{}", std::process::id()),
        environment: environment.collect(),
        ..S3StoreOptions::new(std::env::var("STRATA_TEST_S3_BUCKET").unwrap_or_else(|_| "strata".into()))
    })
}

#[tokio::test]
async fn s3_keeps_the_promises() {
    let Some(options) = options("all") else { return };
    conformance::run(&S3Store::new(options).unwrap()).await;
}

#[tokio::test]
async fn its_leases_lapse() {
    let Some(options) = options("lease") else { return };
    let lease = LeaseTerms::of(Duration::from_secs(3));
    conformance::run_leases(&S3Store::new(S3StoreOptions { lease, ..options }).unwrap()).await;
}

#[tokio::test]
async fn a_former_holder_that_wakes_up_late_writes_nothing() {
    let Some(options) = options("late") else { return };
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
async fn a_lock_table_is_honoured() {
    let (Some(options), Ok(endpoint)) = (options("table"), std::env::var("STRATA_TEST_DYNAMODB_ENDPOINT"))
    else {
        return;
    };
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
