//! Reading and changing the tables. Nothing here begins or ends a transaction.

use bytes::{Bytes, BytesMut};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::schema::PIECE_BITS;
use crate::Which;
use crate::head::{Head, Version};
use crate::lock::Lock;
use crate::name::StateName;

/// A state with its row.
pub(super) struct StateRow {
    pub(super) id: i64,
    pub(super) head: Head,
}

const HEAD: &str = "SELECT s.id, s.lock, s.last_version, v.version, v.serial, v.lineage, v.size, v.md5, v.written, v.by, \
    v.forced, s.name FROM states s LEFT JOIN versions v ON v.state = s.id AND v.version = s.current";

pub(super) fn find(db: &Connection, name: &StateName) -> rusqlite::Result<Option<StateRow>> {
    let mut query = db.prepare_cached(&format!("{HEAD} WHERE s.name = ?1"))?;
    query.query_row([name.as_str()], read_head).optional()
}

pub(super) fn heads(db: &Connection) -> rusqlite::Result<Vec<(StateName, Head)>> {
    let mut query = db.prepare_cached(&format!("{HEAD} ORDER BY s.name"))?;
    let rows = query.query_map([], |row| Ok((row.get::<_, String>(11)?, read_head(row)?.head)))?;
    let mut heads = Vec::new();
    for row in rows {
        let (name, head) = row?;
        if let Ok(name) = StateName::parse(&name) {
            heads.push((name, head));
        }
    }
    Ok(heads)
}

fn read_head(row: &Row<'_>) -> rusqlite::Result<StateRow> {
    let lock: Option<String> = row.get(1)?;
    let lock: Option<Lock> = match lock {
        Some(json) => Some(serde_json::from_str(&json).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, error.into())
        })?),
        None => None,
    };
    let current = match row.get::<_, Option<i64>>(3)? {
        Some(_) => Some(read_version(row, 3)?),
        None => None,
    };
    Ok(StateRow {
        id: row.get(0)?,
        head: Head { lock, current, last_version: row.get::<_, i64>(2)?.cast_unsigned() },
    })
}

const VERSION: &str = "version, serial, lineage, size, md5, written, by, forced, content";

fn read_version(row: &Row<'_>, at: usize) -> rusqlite::Result<Version> {
    Ok(Version {
        version: row.get::<_, i64>(at)?.cast_unsigned(),
        serial: row.get::<_, Option<i64>>(at + 1)?.map(i64::cast_unsigned),
        lineage: row.get(at + 2)?,
        size: row.get::<_, i64>(at + 3)?.cast_unsigned(),
        md5: row.get(at + 4)?,
        written: row.get(at + 5)?,
        by: row.get(at + 6)?,
        forced: row.get(at + 7)?,
    })
}

pub(super) fn versions(db: &Connection, name: &StateName) -> rusqlite::Result<Vec<Version>> {
    let mut query = db.prepare_cached(&format!(
        "SELECT {VERSION} FROM versions WHERE state = (SELECT id FROM states WHERE name = ?1) ORDER BY version DESC"
    ))?;
    query.query_map([name.as_str()], |row| read_version(row, 0))?.collect()
}

/// A version and the number of its content.
pub(super) fn version(
    db: &Connection,
    name: &StateName,
    which: Which,
) -> rusqlite::Result<Option<(Version, i64)>> {
    let (condition, number) = match which {
        Which::Current => ("version = (SELECT current FROM states WHERE name = ?1) AND ?2 = 0", 0),
        Which::Version(version) => ("version = ?2", version),
        Which::Serial(serial) => ("serial = ?2", serial),
    };
    let mut query = db.prepare_cached(&format!(
        "SELECT {VERSION} FROM versions WHERE state = (SELECT id FROM states WHERE name = ?1) AND {condition} \
         ORDER BY version DESC LIMIT 1"
    ))?;
    query
        .query_row(params![name.as_str(), number.cast_signed()], |row| {
            Ok((read_version(row, 0)?, row.get(8)?))
        })
        .optional()
}

pub(super) fn piece(db: &Connection, content: i64, part: i64) -> rusqlite::Result<Option<Bytes>> {
    let mut query = db.prepare_cached("SELECT bytes FROM pieces WHERE id = ?1")?;
    let bytes = query.query_row([content << PIECE_BITS | part], |row| row.get::<_, Vec<u8>>(0)).optional()?;
    Ok(bytes.map(Bytes::from))
}

pub(super) fn journal(db: &Connection, name: &StateName) -> rusqlite::Result<Bytes> {
    let mut query = db.prepare_cached(
        "SELECT lines FROM journal WHERE state = (SELECT id FROM states WHERE name = ?1) ORDER BY id",
    )?;
    let mut rows = query.query([name.as_str()])?;
    let mut lines = BytesMut::new();
    while let Some(row) = rows.next()? {
        lines.extend_from_slice(row.get_ref(0)?.as_blob()?);
    }
    Ok(lines.freeze())
}

pub(super) fn add_state(db: &Connection, name: &StateName) -> rusqlite::Result<i64> {
    db.prepare_cached("INSERT INTO states (name) VALUES (?1)")?.execute([name.as_str()])?;
    Ok(db.last_insert_rowid())
}

pub(super) fn set_lock(db: &Connection, state: i64, lock: Option<&Lock>) -> rusqlite::Result<()> {
    let json = match lock {
        Some(lock) => Some(
            serde_json::to_string(lock)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?,
        ),
        None => None,
    };
    db.prepare_cached("UPDATE states SET lock = ?2 WHERE id = ?1")?.execute(params![state, json])?;
    Ok(())
}

pub(super) fn add_piece(db: &Connection, content: i64, part: i64, bytes: &[u8]) -> rusqlite::Result<()> {
    let id = content << PIECE_BITS | part;
    db.prepare_cached("INSERT INTO pieces (id, bytes) VALUES (?1, ?2)")?.execute(params![id, bytes])?;
    Ok(())
}

/// A content that no version names; it goes with the next sweep.
pub(super) fn mark_unused(db: &Connection, content: i64) -> rusqlite::Result<()> {
    db.prepare_cached("INSERT OR IGNORE INTO unused (content) VALUES (?1)")?.execute([content])?;
    Ok(())
}

pub(super) fn mark_used(db: &Connection, content: i64) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM unused WHERE content = ?1")?.execute([content])?;
    Ok(())
}

pub(super) fn unused(db: &Connection) -> rusqlite::Result<Vec<i64>> {
    db.prepare_cached("SELECT content FROM unused")?.query_map([], |row| row.get(0))?.collect()
}

pub(super) fn drop_content(db: &Connection, content: i64) -> rusqlite::Result<()> {
    let (first, end) = (content << PIECE_BITS, (content + 1) << PIECE_BITS);
    db.prepare_cached("DELETE FROM pieces WHERE id >= ?1 AND id < ?2")?.execute([first, end])?;
    mark_used(db, content)
}

pub(super) fn newest_content(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row(
        "SELECT max(coalesce((SELECT max(id) FROM pieces), 0) >> ?1, coalesce((SELECT max(content) FROM unused), 0))",
        [PIECE_BITS],
        |row| row.get(0),
    )
}

pub(super) fn add_version(
    db: &Connection,
    state: i64,
    version: &Version,
    content: i64,
) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(&format!(
        "INSERT INTO versions (state, {VERSION}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
    ))?;
    insert.execute(params![
        state,
        version.version.cast_signed(),
        version.serial.map(u64::cast_signed),
        version.lineage,
        version.size.cast_signed(),
        version.md5,
        version.written,
        version.by,
        version.forced,
        content,
    ])?;
    Ok(())
}

pub(super) fn set_current(
    db: &Connection,
    state: i64,
    current: Option<u64>,
    last_version: u64,
) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE states SET current = ?2, last_version = ?3 WHERE id = ?1")?
        .execute(params![state, current.map(u64::cast_signed), last_version.cast_signed()])?;
    Ok(())
}

/// Contents and sizes of the versions of a state that are numbered up to `last` and, if said, were written before `before`. The current
/// one is never among them.
pub(super) fn expired(
    db: &Connection,
    state: i64,
    last: u64,
    before: Option<i64>,
) -> rusqlite::Result<Vec<(i64, i64, i64)>> {
    let mut query = db.prepare_cached(
        "SELECT version, content, size FROM versions WHERE state = ?1 AND version <= ?2 AND written < ?3 \
         AND version IS NOT (SELECT current FROM states WHERE id = ?1)",
    )?;
    query
        .query_map(params![state, last.cast_signed(), before.unwrap_or(i64::MAX)], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?
        .collect()
}

pub(super) fn drop_version(db: &Connection, state: i64, version: i64) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM versions WHERE state = ?1 AND version = ?2")?.execute([state, version])?;
    Ok(())
}

pub(super) fn states(db: &Connection) -> rusqlite::Result<Vec<(i64, u64)>> {
    db.prepare_cached("SELECT id, last_version FROM states")?
        .query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())))?
        .collect()
}

pub(super) fn append_journal(db: &Connection, state: i64, lines: &[u8]) -> rusqlite::Result<()> {
    db.prepare_cached("INSERT INTO journal (state, lines) VALUES (?1, ?2)")?
        .execute(params![state, lines])?;
    Ok(())
}

pub(super) fn clear_journal(db: &Connection, state: i64) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM journal WHERE state = ?1")?.execute([state])?;
    Ok(())
}
