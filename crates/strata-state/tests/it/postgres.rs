//! A real PostgreSQL, which STRATA_TEST_POSTGRES names (`postgres://user:password@host/database`).

use std::time::Duration;

use strata_state::{LeaseTerms, PostgresStore, PostgresStoreOptions, Store, StoreError};

use crate::conformance;

/// A schema that no other run has.
pub(crate) fn options(name: &str) -> PostgresStoreOptions {
    let connection = std::env::var("STRATA_TEST_POSTGRES").expect("STRATA_TEST_POSTGRES is set");
    let schema = format!("strata_test_{name}_{}", std::process::id());
    PostgresStoreOptions { schema, ..PostgresStoreOptions::new(connection) }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: just stores postgres"]
async fn postgres_keeps_the_promises() {
    conformance::run(&PostgresStore::new(options("all")).unwrap()).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: just stores postgres"]
async fn its_leases_lapse() {
    let options = options("lease");
    let lease = LeaseTerms::of(Duration::from_secs(2));
    conformance::run_leases(&PostgresStore::new(PostgresStoreOptions { lease, ..options }).unwrap()).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: just stores postgres"]
async fn many_can_make_the_tables_at_once() {
    let stores: Vec<PostgresStore> = (0..8).map(|_| PostgresStore::new(options("many")).unwrap()).collect();
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
