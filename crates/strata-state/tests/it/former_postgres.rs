//! Tables as earlier versions made them: turned into those of today when nobody writes to them.

use std::path::PathBuf;
use std::time::Duration;

use strata_net::TlsTrust;
use strata_state::{Codec, PostgresStore, PostgresStoreOptions, Store, StoreError};
use strata_storage::postgres::{Connections, DatabaseOptions};

use crate::conformance::{begin, owner};
use crate::postgres::options;
use crate::s3::document;

const TABLES: &str = "
create table states (
    key text primary key,
    serial bigint not null,
    document bytea not null,
    written timestamptz not null default clock_timestamp()
);
create table versions (
    key text not null,
    serial bigint not null,
    document bytea not null,
    written timestamptz not null default clock_timestamp(),
    primary key (key, serial)
);
create table journal (
    id bigserial primary key,
    key text not null,
    lines bytea not null
);
create index journal_of_key on journal (key, id);
create table locks (
    key text primary key,
    id text not null,
    owner text not null,
    expires timestamptz not null
);
";

fn encoded(serial: u64) -> Vec<u8> {
    Codec::plain().encode(&document(serial)).unwrap()
}

/// The tables with one state, whose lease ends so many seconds from now.
async fn former(options: &PostgresStoreOptions, lease: f64) -> Connections {
    let connections = Connections::new(&DatabaseOptions {
        connection: options.connection.clone(),
        password: None,
        schema: options.schema.clone(),
        tls: TlsTrust::System,
        folder: PathBuf::new(),
        timeout: Duration::from_secs(30),
        application: "strata test",
    })
    .unwrap();
    let schema = options.schema.clone();
    let holder = serde_json::to_string(&owner("former")).unwrap();
    let mut connection = connections.get().await.unwrap();
    let made = connection.run(async |db| {
        db.batch_execute(&format!("create schema {schema}; {TABLES}")).await?;
        for serial in [1_i64, 2] {
            let bytes = encoded(serial.cast_unsigned());
            let sql = "insert into versions (key, serial, document) values ('dev/web', $1, $2)";
            db.execute(sql, &[&serial, &bytes]).await?;
        }
        let sql = "insert into states (key, serial, document) values ('dev/web', 2, $1), ('dev/large', 7, $2)";
        db.execute(sql, &[&encoded(2), &vec![b'x'; 600_000]]).await?;
        for record in [begin(1), begin(2)] {
            let lines = Codec::plain().encode_journal("dev/web", &[record]).unwrap();
            db.execute("insert into journal (key, lines) values ('dev/web', $1)", &[&lines]).await?;
        }
        let sql = "insert into locks values ('dev/web', 'former', $1, clock_timestamp() + make_interval(secs => $2))";
        db.execute(sql, &[&holder, &lease]).await
    });
    made.await.unwrap();
    drop(connection);
    connections
}

#[tokio::test]
#[ignore = "needs PostgreSQL: just stores postgres"]
async fn former_tables_are_turned() {
    let options = options("former");
    let _former = former(&options, -5.0).await;
    let store = PostgresStore::new(options).unwrap();
    assert_eq!(store.keys().await.unwrap(), ["dev/large", "dev/web"]);
    assert_eq!(store.read("dev/web").await.unwrap(), Some(document(2)));
    assert_eq!(store.read_journal("dev/web").await.unwrap(), [begin(1), begin(2)]);
    let large = store.history("dev/large").await.unwrap();
    assert_eq!((large.len(), large[0].serial, large[0].bytes), (1, 7, 600_000));
    // It is no document, but whole.
    assert!(matches!(store.read("dev/large").await, Err(StoreError::Damaged { .. })));
    let holder = store.holder("dev/web").await.unwrap().unwrap();
    assert_eq!(holder.owner, owner("former"));
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    assert!(!lock.late_request_window().is_zero(), "a9: requests of the former holder may still arrive");
    lock.write(&document(3)).await.unwrap();
    lock.clear_journal().await.unwrap();
    lock.release().await.unwrap();
    let serials: Vec<u64> = store.history("dev/web").await.unwrap().iter().map(|kept| kept.serial).collect();
    assert_eq!(serials, [3, 2, 1]);
    assert_eq!(store.read_version("dev/web", 1).await.unwrap(), document(1));
    assert_eq!(store.read("dev/web").await.unwrap(), Some(document(3)));
}

#[tokio::test]
#[ignore = "needs PostgreSQL: just stores postgres"]
async fn tables_that_somebody_writes_to_are_left() {
    let options = options("written");
    let connections = former(&options, 600.0).await;
    let store = PostgresStore::new(options).unwrap();
    let error = store.read("dev/web").await.unwrap_err().to_string();
    assert!(error.contains("me@here"), "{error}");
    let free =
        connections.get().await.unwrap().run(async |db| db.execute("delete from locks", &[]).await).await;
    assert_eq!(free.unwrap(), 1, "nothing was changed");
    assert_eq!(store.read("dev/web").await.unwrap(), Some(document(2)));
    store.lock("dev/web", owner("1")).await.unwrap().release().await.unwrap();
}
