//! The tables, in a schema of their own.

use tokio_postgres::{Client, Error};

use super::former;

/// Two servers that start at once make the tables one after the other.
const MAKING: i64 = 0x7374_7261_7461;

const TABLES: &str = r#"
CREATE TABLE IF NOT EXISTS states (
    id BIGSERIAL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    lock TEXT,
    current BIGINT,
    last_version BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS versions (
    state BIGINT NOT NULL REFERENCES states (id),
    version BIGINT NOT NULL,
    serial BIGINT,
    lineage TEXT,
    size BIGINT NOT NULL,
    md5 TEXT NOT NULL,
    written BIGINT NOT NULL,
    by TEXT NOT NULL,
    forced BOOLEAN NOT NULL,
    content BIGINT NOT NULL,
    PRIMARY KEY (state, version)
);
CREATE SEQUENCE IF NOT EXISTS contents;
CREATE TABLE IF NOT EXISTS pieces (
    content BIGINT NOT NULL,
    part INTEGER NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (content, part)
);
CREATE TABLE IF NOT EXISTS unused (
    content BIGINT PRIMARY KEY,
    since TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS journal (
    id BIGSERIAL PRIMARY KEY,
    state BIGINT NOT NULL REFERENCES states (id),
    lines BYTEA NOT NULL
);
CREATE INDEX IF NOT EXISTS journal_state ON journal (state, id);
"#;

/// In the schema that the connection looks at. Gives who keeps tables of the former layout from being turned into these.
pub(super) async fn make_tables(db: &mut Client, schema: &str) -> Result<Option<String>, Error> {
    // Who may only use the tables need not be able to make them.
    let sql = "SELECT count(*) FROM pg_tables WHERE schemaname = $1 \
               AND tablename IN ('states', 'versions', 'pieces', 'unused', 'journal')";
    if db.query_one(sql, &[&schema]).await?.get::<_, i64>(0) == 5 {
        return Ok(None);
    }
    let work = db.transaction().await?;
    work.execute("SELECT pg_advisory_xact_lock($1)", &[&MAKING]).await?;
    work.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS {schema}")).await?;
    let is_former = former::is_there(&work, schema).await?;
    if is_former {
        if let Some(writer) = former::writer(&work).await? {
            return Ok(Some(writer));
        }
        former::set_aside(&work).await?;
    }
    work.batch_execute(TABLES).await?;
    if is_former {
        former::turn(&work).await?;
    }
    work.commit().await?;
    Ok(None)
}
