//! The tables of stores as earlier versions made them, turned into ours: all of it in the transaction that makes the tables, or nothing.

use tokio_postgres::{Error, Transaction};

/// A lease that was there when the tables were turned; it lapses when it would have.
const LEASE: &str = "60";

/// Whether the schema has them.
pub(super) async fn is_there(work: &Transaction<'_>, schema: &str) -> Result<bool, Error> {
    let sql = "SELECT count(*) FROM information_schema.columns \
               WHERE table_schema = $1 AND table_name = 'states' AND column_name = 'document'";
    Ok(work.query_one(sql, &[&schema]).await?.get::<_, i64>(0) == 1)
}

/// Who writes to them now; while somebody does they stay as they are.
pub(super) async fn writer(work: &Transaction<'_>) -> Result<Option<String>, Error> {
    work.batch_execute("LOCK TABLE locks, states, versions, journal IN ACCESS EXCLUSIVE MODE").await?;
    let sql = "SELECT owner::json->>'who' FROM locks WHERE expires > clock_timestamp() LIMIT 1";
    Ok(work.query_opt(sql, &[]).await?.map(|row| row.get::<_, Option<String>>(0).unwrap_or_default()))
}

const SET_ASIDE: &str = "
ALTER TABLE states RENAME TO former_states;
ALTER TABLE versions RENAME TO former_versions;
ALTER TABLE journal RENAME TO former_journal;
ALTER TABLE locks RENAME TO former_locks;
";

/// Before our tables are made.
pub(super) async fn set_aside(work: &Transaction<'_>) -> Result<(), Error> {
    work.batch_execute(SET_ASIDE).await
}

/// Fills our tables. A piece has 262144 bytes.
const TURN: &str = "
INSERT INTO states (name)
    SELECT key FROM former_states UNION SELECT key FROM former_versions
    UNION SELECT key FROM former_journal UNION SELECT key FROM former_locks;
WITH everything AS (
    SELECT key, serial, document, written FROM former_versions
    UNION ALL
    SELECT key, serial, document, written FROM former_states f
    WHERE NOT EXISTS (SELECT 1 FROM former_versions v WHERE v.key = f.key AND v.serial = f.serial)
), numbered AS MATERIALIZED (
    SELECT s.id AS state, row_number() OVER (PARTITION BY e.key ORDER BY e.serial) AS version, e.serial, e.document, e.written,
           nextval('contents') AS content
    FROM everything e JOIN states s ON s.name = e.key
), added AS (
    INSERT INTO versions (state, version, serial, lineage, size, md5, written, by, forced, content)
    SELECT state, version, serial, NULL, octet_length(document), md5(document), floor(extract(epoch FROM written))::bigint, '', false,
           content
    FROM numbered
)
INSERT INTO pieces (content, part, bytes)
    SELECT content, part, substring(document FROM part * 262144 + 1 FOR 262144)
    FROM numbered, generate_series(0, greatest(octet_length(document) - 1, 0) / 262144) AS part;
UPDATE states s SET
    current = (SELECT v.version FROM former_states f JOIN versions v ON v.state = s.id AND v.serial = f.serial WHERE f.key = s.name),
    last_version = coalesce((SELECT max(version) FROM versions WHERE state = s.id), 0);
INSERT INTO journal (state, lines)
    SELECT s.id, f.lines FROM former_journal f JOIN states s ON s.name = f.key ORDER BY f.id;
";

pub(super) async fn turn(work: &Transaction<'_>) -> Result<(), Error> {
    work.batch_execute(TURN).await?;
    let locks = format!(
        "UPDATE states s SET lock = (SELECT json_build_object('id', f.id, 'kind', 'lease', 'user', '', 'owner', f.owner::json, \
         'ttl', {LEASE}, 'beat', 0, 'at', extract(epoch FROM f.expires) - {LEASE})::text FROM former_locks f WHERE f.key = s.name)"
    );
    work.execute(&locks, &[]).await?;
    work.batch_execute("DROP TABLE former_states, former_versions, former_journal, former_locks").await
}
