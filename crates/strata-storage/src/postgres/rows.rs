//! Reading and changing the rows. Nothing here begins or ends a transaction, apart from the sweep.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio_postgres::{Client, Error, GenericClient, Row, Transaction};

use crate::head::{Head, Version};
use crate::lock::Lock;
use crate::name::StateName;
use crate::rules::Content;
use crate::{CHUNK, Retention, Which};

const VERSION: &str = "version, serial, lineage, size, md5, written, by, forced, content";

const HEAD: &str = "SELECT s.lock, s.last_version, v.version, v.serial, v.lineage, v.size, v.md5, v.written, v.by, v.forced, s.name \
    FROM states s LEFT JOIN versions v ON v.state = s.id AND v.version = s.current";

const LOOK: &str = "SELECT s.lock, s.last_version, v.version, v.serial, v.lineage, v.size, v.md5, v.written, v.by, v.forced, s.name, \
    extract(epoch FROM clock_timestamp())::float8 FROM states s LEFT JOIN versions v ON v.state = s.id AND v.version = s.current";

fn read_version(row: &Row, at: usize) -> Version {
    Version {
        version: row.get::<_, i64>(at).cast_unsigned(),
        serial: row.get::<_, Option<i64>>(at + 1).map(i64::cast_unsigned),
        lineage: row.get(at + 2),
        size: row.get::<_, i64>(at + 3).cast_unsigned(),
        md5: row.get(at + 4),
        written: row.get(at + 5),
        by: row.get(at + 6),
        forced: row.get(at + 7),
    }
}

/// A lock that cannot be read is held by somebody whom nobody knows: it must be broken by hand.
fn read_lock(json: &str) -> Lock {
    serde_json::from_str(json).unwrap_or_else(|_| Lock {
        id: "unreadable".to_owned(),
        kind: crate::lock::LockKind::Tofu,
        user: String::new(),
        owner: None,
        info: None,
        ttl: None,
        beat: 0,
    })
}

fn read_head(row: &Row) -> Head {
    Head {
        lock: row.get::<_, Option<&str>>(0).map(read_lock),
        current: row.get::<_, Option<i64>>(2).map(|_| read_version(row, 2)),
        last_version: row.get::<_, i64>(1).cast_unsigned(),
    }
}

pub(super) async fn heads(db: &Client) -> Result<Vec<(String, Head)>, Error> {
    let rows = db.query(&format!("{HEAD} ORDER BY s.name"), &[]).await?;
    Ok(rows.iter().map(|row| (row.get(10), read_head(row))).collect())
}

pub(super) async fn head(db: &impl GenericClient, name: &StateName) -> Result<Option<Head>, Error> {
    let row = db.query_opt(&format!("{HEAD} WHERE s.name = $1"), &[&name.as_str()]).await?;
    Ok(row.as_ref().map(read_head))
}

/// The head, and how long ago its lock was taken or renewed.
pub(super) async fn look(db: &Client, name: &StateName) -> Result<(Head, Option<Duration>), Error> {
    #[derive(serde::Deserialize)]
    struct Renewed {
        at: f64,
    }
    let sql = format!("{LOOK} WHERE s.name = $1");
    let Some(row) = db.query_opt(&sql, &[&name.as_str()]).await? else { return Ok((Head::default(), None)) };
    let at: Option<Renewed> = row.get::<_, Option<&str>>(0).and_then(|lock| serde_json::from_str(lock).ok());
    let idle =
        at.map(|Renewed { at }| Duration::try_from_secs_f64(row.get::<_, f64>(11) - at).unwrap_or_default());
    Ok((read_head(&row), idle))
}

/// The state's row, made if need be, and ours until the transaction ends.
pub(super) async fn lock_state(work: &Transaction<'_>, name: &StateName) -> Result<(i64, Head), Error> {
    let lock = "SELECT id FROM states WHERE name = $1 FOR UPDATE";
    let id = match work.query_opt(lock, &[&name.as_str()]).await? {
        Some(row) => row.get(0),
        None => {
            let make = "INSERT INTO states (name) VALUES ($1) ON CONFLICT DO NOTHING";
            work.execute(make, &[&name.as_str()]).await?;
            work.query_one(lock, &[&name.as_str()]).await?.get(0)
        }
    };
    // Read after the row is ours: what it said before may be of another transaction's past.
    Ok((id, head(work, name).await?.unwrap_or_default()))
}

pub(super) async fn versions(db: &Client, name: &StateName) -> Result<Vec<Version>, Error> {
    let sql = format!(
        "SELECT {VERSION} FROM versions WHERE state = (SELECT id FROM states WHERE name = $1) ORDER BY version DESC"
    );
    Ok(db.query(&sql, &[&name.as_str()]).await?.iter().map(|row| read_version(row, 0)).collect())
}

pub(super) async fn version(
    db: &Client,
    name: &StateName,
    which: Which,
) -> Result<Option<(Version, i64)>, Error> {
    let (condition, number) = match which {
        Which::Current => ("version = (SELECT current FROM states WHERE name = $1) AND $2 = 0::bigint", 0),
        Which::Version(version) => ("version = $2", version),
        Which::Serial(serial) => ("serial = $2", serial),
    };
    let sql = format!(
        "SELECT {VERSION} FROM versions WHERE state = (SELECT id FROM states WHERE name = $1) AND {condition} \
         ORDER BY version DESC LIMIT 1"
    );
    let row = db.query_opt(&sql, &[&name.as_str(), &number.cast_signed()]).await?;
    Ok(row.map(|row| (read_version(&row, 0), row.get(8))))
}

pub(super) async fn piece(db: &Client, content: i64, part: i32) -> Result<Option<Bytes>, Error> {
    let row =
        db.query_opt("SELECT bytes FROM pieces WHERE content = $1 AND part = $2", &[&content, &part]).await?;
    Ok(row.map(|row| Bytes::from(row.get::<_, Vec<u8>>(0))))
}

pub(super) async fn journal(db: &Client, name: &StateName) -> Result<Bytes, Error> {
    let sql = "SELECT lines FROM journal WHERE state = (SELECT id FROM states WHERE name = $1) ORDER BY id";
    let mut lines = BytesMut::new();
    for row in db.query(sql, &[&name.as_str()]).await? {
        lines.extend_from_slice(row.get(0));
    }
    Ok(lines.freeze())
}

pub(super) async fn set_lock(work: &Transaction<'_>, state: i64, lock: Option<&Lock>) -> Result<(), Error> {
    let json = lock.map(|lock| serde_json::to_string(lock).expect("a lock has nothing that JSON cannot say"));
    // With the time, by the clock of the database: whoever looks at the lock sees how long nothing was heard of its holder.
    let sql = "UPDATE states SET lock = left($2, -1) || ',\"at\":' || extract(epoch FROM clock_timestamp())::text || '}' WHERE id = $1";
    work.execute(sql, &[&state, &json]).await?;
    Ok(())
}

/// A content that is being staged; it counts as unused until a version names it.
pub(super) async fn new_content(db: &Client) -> Result<i64, Error> {
    let sql = "INSERT INTO unused (content) VALUES (nextval('contents')) RETURNING content";
    Ok(db.query_one(sql, &[]).await?.get(0))
}

pub(super) async fn add_piece(
    db: &impl GenericClient,
    content: i64,
    part: i32,
    bytes: &[u8],
) -> Result<(), Error> {
    // What takes long to come in is not swept in the meantime.
    db.execute("UPDATE unused SET since = now() WHERE content = $1", &[&content]).await?;
    let sql = "INSERT INTO pieces (content, part, bytes) VALUES ($1, $2, $3)";
    db.execute(sql, &[&content, &part, &bytes]).await?;
    Ok(())
}

/// Puts a content in its place; from here on a version names it.
pub(super) async fn take_content(work: &Transaction<'_>, content: &Content) -> Result<i64, Error> {
    match content {
        Content::Inline(bytes) => {
            let content: i64 = work.query_one("SELECT nextval('contents')", &[]).await?.get(0);
            for (part, piece) in (0..).zip(bytes.chunks(CHUNK)) {
                let sql = "INSERT INTO pieces (content, part, bytes) VALUES ($1, $2, $3)";
                work.execute(sql, &[&content, &part, &piece]).await?;
            }
            Ok(content)
        }
        Content::Staged(staged) => {
            let content: i64 = staged.parse().unwrap_or(-1);
            work.execute("DELETE FROM unused WHERE content = $1", &[&content]).await?;
            Ok(content)
        }
    }
}

pub(super) async fn add_version(
    work: &Transaction<'_>,
    state: i64,
    version: &Version,
    content: i64,
) -> Result<(), Error> {
    let sql =
        format!("INSERT INTO versions (state, {VERSION}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");
    work.execute(
        &sql,
        &[
            &state,
            &version.version.cast_signed(),
            &version.serial.map(u64::cast_signed),
            &version.lineage,
            &version.size.cast_signed(),
            &version.md5,
            &version.written,
            &version.by,
            &version.forced,
            &content,
        ],
    )
    .await?;
    Ok(())
}

pub(super) async fn set_current(
    work: &Transaction<'_>,
    state: i64,
    current: Option<u64>,
    last_version: u64,
) -> Result<(), Error> {
    let sql = "UPDATE states SET current = $2, last_version = $3 WHERE id = $1";
    work.execute(sql, &[&state, &current.map(u64::cast_signed), &last_version.cast_signed()]).await?;
    Ok(())
}

/// Drops versions numbered up to `last` and, if said, written before `before`; never the current one. Their contents go with a sweep.
pub(super) async fn forget(
    work: &impl GenericClient,
    state: i64,
    last: u64,
    before: Option<i64>,
) -> Result<(), Error> {
    let sql = "WITH gone AS (DELETE FROM versions WHERE state = $1 AND version <= $2 AND written < $3 \
               AND version IS DISTINCT FROM (SELECT current FROM states WHERE id = $1) RETURNING content) \
               INSERT INTO unused (content) SELECT content FROM gone ON CONFLICT DO NOTHING";
    work.execute(sql, &[&state, &last.cast_signed(), &before.unwrap_or(i64::MAX)]).await?;
    Ok(())
}

/// What was unused for ten minutes has no reader any more.
pub(super) async fn sweep(db: &Client, before: Option<i64>) -> Result<(), Error> {
    if before.is_some() {
        for row in db.query("SELECT id, last_version FROM states", &[]).await? {
            let last = row.get::<_, i64>(1).cast_unsigned().saturating_sub(Retention::SPARED);
            forget(db, row.get(0), last, before).await?;
        }
    }
    let sql = "WITH gone AS (DELETE FROM unused WHERE since < now() - interval '10 minutes' RETURNING content) \
               DELETE FROM pieces WHERE content IN (SELECT content FROM gone)";
    db.execute(sql, &[]).await?;
    Ok(())
}

pub(super) async fn append_journal(work: &Transaction<'_>, state: i64, lines: &[u8]) -> Result<(), Error> {
    work.execute("INSERT INTO journal (state, lines) VALUES ($1, $2)", &[&state, &lines]).await?;
    Ok(())
}

pub(super) async fn clear_journal(work: &Transaction<'_>, state: i64) -> Result<(), Error> {
    work.execute("DELETE FROM journal WHERE state = $1", &[&state]).await?;
    Ok(())
}
