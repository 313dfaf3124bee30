//! States of stores as earlier versions wrote them, read as records. The first change of such a state replaces its lock by its record, in
//! one step: nothing is copied, and who knows only the former layout finds a lock that is held for ever.
//!
//! ```text
//! <name>/state.json             the document
//!        lock                   who holds it; freed by overwriting it
//!        journal/00000001       lines of the journal; empty once it was cleared
//!        history/00000001.json  the versions, by serial
//! ```

use bytes::Bytes;
use md5::{Digest as _, Md5};
use serde::Deserialize;
use serde_json::{Value, json};

use super::objects::{Listed, Objects};
use super::record::{Kept, Record};
use crate::StorageError;
use crate::head::Version;
use crate::lock::{Lock, LockKind};
use crate::name::StateName;

/// What a lock said.
#[derive(Deserialize)]
pub(super) struct FormerLock {
    owner: Value,
    lease: u64,
    beat: u64,
    released: bool,
}

impl FormerLock {
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    fn held(self) -> Option<Lock> {
        (!self.released).then(|| Lock {
            id: self.owner.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(),
            kind: LockKind::Lease,
            user: String::new(),
            owner: Some(self.owner),
            info: None,
            ttl: Some(u32::try_from(self.lease).unwrap_or(u32::MAX)),
            beat: self.beat,
        })
    }
}

fn document_at(name: &StateName) -> String {
    format!("{name}/state.json")
}

/// The state as a record that is not there yet.
pub(super) async fn read(
    objects: &Objects,
    name: &StateName,
    lock: Option<FormerLock>,
) -> Result<Record, StorageError> {
    let mut record = Record::new(name);
    record.head.lock = lock.and_then(FormerLock::held);
    record.journal = journal(objects, name).await?;
    for (serial, object) in numbered(objects, name, "history", ".json").await? {
        record.put(version(&record, serial, &object), object.path, false);
    }
    if let Some(document) = objects.get(&document_at(name)).await? {
        make_current(&mut record, name, &document.bytes);
    }
    Ok(record)
}

/// Pieces are numbered; those that were cleared are empty.
async fn journal(objects: &Objects, name: &StateName) -> Result<Vec<String>, StorageError> {
    let mut pieces = numbered(objects, name, "journal", "").await?;
    pieces.retain(|(_, piece)| piece.bytes > 0);
    Ok(pieces.into_iter().map(|(_, piece)| piece.path).collect())
}

/// The objects of a folder that are numbers, lowest first. One that only a record can name is there without it: then nobody knows what the
/// state is, and it is not taken for one that was never there.
async fn numbered(
    objects: &Objects,
    name: &StateName,
    folder: &str,
    ending: &str,
) -> Result<Vec<(u64, Listed)>, StorageError> {
    let folder = format!("{name}/{folder}");
    let mut found = Vec::new();
    for object in objects.list(&folder).await? {
        match object.path.strip_prefix(&folder).and_then(|rest| rest.strip_prefix('/')) {
            Some(own) if !own.contains('/') => match number(own, ending) {
                Some(number) => found.push((number, object)),
                None => return Err(StorageError::damaged(format!("the record `{name}/lock` is missing"))),
            },
            // Of a state below this one.
            _ => {}
        }
    }
    found.sort_by_key(|(number, _)| *number);
    Ok(found)
}

fn number(name: &str, ending: &str) -> Option<u64> {
    let digits = name.strip_suffix(ending)?;
    let plain = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

fn version(record: &Record, serial: u64, object: &Listed) -> Version {
    let written = object.written.parse().map_or(0, jiff::Timestamp::as_second);
    Version {
        version: record.head.last_version + 1,
        serial: Some(serial),
        lineage: None,
        size: object.bytes,
        md5: String::new(),
        written,
        by: String::new(),
        forced: false,
    }
}

/// The document counts, whatever the history says: a run could die between the two.
fn make_current(record: &mut Record, name: &StateName, bytes: &Bytes) {
    #[derive(Deserialize)]
    struct Header {
        serial: u64,
    }
    let newest = record.versions.last().and_then(|kept| kept.version.serial);
    // One that cannot be read has the newest serial: what replaces it goes on counting from there.
    let serial = serde_json::from_slice(bytes).map_or(newest, |header: Header| Some(header.serial));
    let md5 = hex::encode(Md5::digest(bytes));
    let size = bytes.len() as u64;
    let in_history =
        record.versions.iter().position(|kept| kept.version.serial == serial && kept.version.size == size);
    if let Some(at) = in_history.filter(|at| at + 1 == record.versions.len()) {
        let kept = &mut record.versions[at];
        kept.version.md5 = md5;
        record.head.current = Some(kept.version.clone());
        return;
    }
    record.versions.retain(|kept| kept.version.serial != serial);
    let version = Version {
        version: record.head.last_version + 1,
        serial,
        lineage: None,
        size,
        md5,
        written: record.versions.last().map_or(0, |kept| kept.version.written),
        by: String::new(),
        forced: false,
    };
    record.put(version, document_at(name), true);
}

/// Tells programs of the former layout that the document has gone elsewhere; where the record names it itself, it stays.
pub(super) async fn leave_word(
    objects: &Objects,
    name: &StateName,
    record: &Record,
) -> Result<(), StorageError> {
    let path = document_at(name);
    let named = |kept: &Kept| kept.content == path;
    if record.versions.iter().any(named) || objects.get(&path).await?.is_none() {
        return Ok(());
    }
    let word = json!({
        "format": 3, "key": name.as_str(), "serial": 0, "lineage": "",
        "moved": "the state is in the history; `lock` says which version counts",
    });
    objects.put(&path, Bytes::from(word.to_string())).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_are_a_number() {
        assert_eq!(number("00000012.json", ".json"), Some(12));
        assert_eq!(number("00000012-ab.json", ".json"), None);
        assert_eq!(number("00000001", ""), Some(1));
        assert_eq!(number("12345678901234567890123456789012", ""), None);
    }
}
