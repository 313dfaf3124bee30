//! A real PostgreSQL, where STRATA_TEST_POSTGRES names one (`postgres://user:password@host/database`).

use std::time::Duration;

use strata_state::{LeaseTerms, PostgresStore, PostgresStoreOptions, Store, StoreError};

use crate::conformance;

/// A schema that no other run has.
fn options(name: &str) -> Option<PostgresStoreOptions> {
    let Ok(connection) = std::env::var("STRATA_TEST_POSTGRES") else {
        eprintln!("left out: STRATA_TEST_POSTGRES is not set");
        return None;
    };
    let schema = format!("strata_test_{name}_{}", std::process::id());
    Some(PostgresStoreOptions { schema, ..PostgresStoreOptions::new(connection) })
}

#[tokio::test]
async fn postgres_keeps_the_promises() {
    let Some(options) = options("all") else { return };
    conformance::run(&PostgresStore::new(options).unwrap()).await;
}

#[tokio::test]
async fn its_leases_lapse() {
    let Some(options) = options("lease") else { return };
    let lease = LeaseTerms::of(Duration::from_secs(2));
    conformance::run_leases(&PostgresStore::new(PostgresStoreOptions { lease, ..options }).unwrap()).await;
}

#[tokio::test]
async fn many_can_make_the_tables_at_once() {
    if options("many").is_none() {
        return;
    }
    let stores: Vec<PostgresStore> =
        (0..8).map(|_| PostgresStore::new(options("many").unwrap()).unwrap()).collect();
    for keys in futures::future::join_all(stores.iter().map(Store::keys)).await {
        assert_eq!(keys.unwrap(), [] as [String; 0]);
    }
}

#[tokio::test]
async fn a_wrong_connection_is_told_at_once() {
    for connection in ["", "postgres://", "nonsense"] {
        let store = PostgresStore::new(PostgresStoreOptions::new(connection));
        let error = match store {
            Ok(store) => store.keys().await.map(|_| ()).err(),
            Err(error) => Some(error),
        };
        assert!(matches!(error, Some(StoreError::Remote { .. })), "{connection}");
    }
    let schema = "a; drop table".to_owned();
    let wrong = PostgresStoreOptions { schema, ..PostgresStoreOptions::new("postgres://a@127.0.0.1/b") };
    assert!(PostgresStore::new(wrong).is_err());
}
