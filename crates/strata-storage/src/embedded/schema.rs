//! The tables, and how a database is opened. An administrator can look at it with any SQLite client.

use std::fs::File;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, flock};

use super::{RESTORE, failed};
use crate::{Failure, StorageError};

/// The newest layout that this program understands.
const LAYOUT: i64 = 1;

/// A content has its number in the upper bits and the piece in the lower ones, so that its pieces lie together.
pub(super) const PIECE_BITS: u32 = 20;

const TABLES: &str = "
CREATE TABLE states (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    lock TEXT,
    current INTEGER,
    last_version INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE versions (
    state INTEGER NOT NULL REFERENCES states (id),
    version INTEGER NOT NULL,
    serial INTEGER,
    lineage TEXT,
    size INTEGER NOT NULL,
    md5 TEXT NOT NULL,
    written INTEGER NOT NULL,
    by TEXT NOT NULL,
    forced INTEGER NOT NULL,
    content INTEGER NOT NULL,
    PRIMARY KEY (state, version)
) WITHOUT ROWID;
CREATE TABLE pieces (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE unused (content INTEGER PRIMARY KEY);
CREATE TABLE journal (id INTEGER PRIMARY KEY, state INTEGER NOT NULL REFERENCES states (id), lines BLOB NOT NULL);
CREATE INDEX journal_state ON journal (state, id);
";

/// Keeps a second server from the same file.
pub(super) fn only_one(path: &Path) -> Result<File, StorageError> {
    if let Some(folder) = path.parent() {
        make_private(folder)?;
    }
    let lock = path.with_extension("lock");
    let said = |error: std::io::Error| Failure::of(format!("cannot lock `{}`", lock.display()), error);
    let file = File::options().create(true).truncate(false).write(true).open(&lock).map_err(said)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            Err(Failure::new(format!("`{}` is in use by another server", path.display())).into())
        }
        Err(error) => Err(said(error.into()).into()),
    }
}

pub(super) fn open_for_writing(path: &Path, max_bytes: Option<u64>) -> Result<Connection, StorageError> {
    // States hold secrets; what SQLite makes beside the file takes over its mode.
    let private = File::options().create(true).append(true).mode(0o600).open(path);
    let what = || format!("cannot open `{}`", path.display());
    private.map_err(|error| Failure::of(what(), error))?;
    let db = Connection::open(path).map_err(|error| Failure::of(what(), error))?;
    prepare(&db, max_bytes).map_err(failed)?;
    check(&db, path)?;
    Ok(db)
}

fn make_private(folder: &Path) -> Result<(), StorageError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| Failure::of(format!("cannot make `{}`", folder.display()), error).into())
}

fn prepare(db: &Connection, max_bytes: Option<u64>) -> rusqlite::Result<()> {
    db.busy_timeout(Duration::from_millis(500))?;
    db.set_prepared_statement_cache_capacity(64);
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", "full")?;
    // The log is folded back when it has this many pages; a longer one makes syncing it up the rarer event.
    db.pragma_update(None, "wal_autocheckpoint", 8192)?;
    db.pragma_update(None, "cache_size", -16_384)?;
    if let Some(bytes) = max_bytes {
        let page: i64 = db.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page.max(1);
        db.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    Ok(())
}

fn check(db: &Connection, path: &Path) -> Result<(), StorageError> {
    let layout: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    match layout {
        0 => {
            let make = format!("BEGIN IMMEDIATE;{TABLES}PRAGMA user_version = {LAYOUT};COMMIT;");
            db.execute_batch(&make).map_err(failed)
        }
        LAYOUT => verify(db),
        other => Err(Failure::new(format!(
            "`{}` was written by a newer Strata: its layout is {other}, this one knows up to {LAYOUT}",
            path.display()
        ))
        .into()),
    }
}

/// Whether the file is whole: pages that are missing or wrong would otherwise be found when they are needed most.
fn verify(db: &Connection) -> Result<(), StorageError> {
    let pages: i64 = db.pragma_query_value(None, "page_count", |row| row.get(0)).map_err(failed)?;
    let page: i64 = db.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(failed)?;
    // A whole check reads everything; beyond this size the first step of it has to do.
    let small = pages.saturating_mul(page) < 256 * 1024 * 1024;
    let check = if small { "PRAGMA quick_check(1)" } else { "SELECT count(*) || '' FROM states" };
    let found: String = db.query_row(check, [], |row| row.get(0)).map_err(failed)?;
    if small && found != "ok" {
        return Err(StorageError::damaged(format!("{found}; {RESTORE}")));
    }
    Ok(())
}

pub(super) fn open_for_reading(path: &Path) -> Result<Connection, StorageError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(failed)?;
    db.busy_timeout(Duration::from_secs(5)).map_err(failed)?;
    db.set_prepared_statement_cache_capacity(32);
    db.pragma_update(None, "query_only", true).map_err(failed)?;
    db.pragma_update(None, "cache_size", -4096).map_err(failed)?;
    Ok(db)
}
