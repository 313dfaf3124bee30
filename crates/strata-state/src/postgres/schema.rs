//! The tables, in a schema of their own.

use tokio_postgres::{Client, Error};

/// Made once, whoever comes first; changes to come are further steps after this one.
const TABLES: &str = "
create table if not exists states (
    key text primary key,
    serial bigint not null,
    document bytea not null,
    written timestamptz not null default clock_timestamp()
);
create table if not exists versions (
    key text not null,
    serial bigint not null,
    document bytea not null,
    written timestamptz not null default clock_timestamp(),
    primary key (key, serial)
);
create table if not exists journal (
    id bigserial primary key,
    key text not null,
    lines bytea not null
);
create index if not exists journal_of_key on journal (key, id);
create table if not exists locks (
    key text primary key,
    id text not null,
    owner text not null,
    expires timestamptz not null
);
";

/// Two that begin at the same time would both make the tables: this lock keeps the second one waiting.
const MAKING: i64 = 0x7374_7261_7461;

pub(super) async fn make_tables(client: &mut Client, schema: &str) -> Result<(), Error> {
    // Who may only write to the tables need not be able to make them.
    let sql = "select count(*) from pg_tables where schemaname = $1 and tablename in ('states', 'versions', 'journal', 'locks')";
    if client.query_one(sql, &[&schema]).await?.get::<_, i64>(0) == 4 {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    transaction.execute("select pg_advisory_xact_lock($1)", &[&MAKING]).await?;
    transaction.batch_execute(&format!("create schema if not exists {schema}")).await?;
    transaction.batch_execute(TABLES).await?;
    transaction.commit().await
}
