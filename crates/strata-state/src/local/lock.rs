//! The local lock: one that the operating system holds and frees with the process, and a file that names the owner.

use std::fs;
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rustix::fs::{FlockOperation, flock};

use super::{Folder, SharedFile, blocking, durable, io, read_if_there};
use crate::{JournalRecord, LockOwner, LockedState, StateDocument, StoreError};

pub(super) fn acquire(folder: &Folder, owner: &LockOwner) -> Result<fs::File, StoreError> {
    fs::create_dir_all(&folder.path).map_err(|source| io("cannot make", &folder.path, source))?;
    let file = open(&folder.path.join("lock"))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let owner = read_owner(folder)?.unwrap_or_else(unknown);
            return Err(StoreError::Locked { key: folder.key.clone(), owner: Box::new(owner) });
        }
        Err(error) => return Err(io("cannot lock", &folder.path, error.into())),
    }
    let json = serde_json::to_vec(owner).map_err(|error| io("cannot write", &folder.path, error.into()))?;
    durable::replace(&folder.path.join("owner.json"), &json)?;
    Ok(file)
}

fn open(path: &Path) -> Result<fs::File, StoreError> {
    fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(|source| io("cannot open", path, source))
}

fn read_owner(folder: &Folder) -> Result<Option<LockOwner>, StoreError> {
    let bytes = read_if_there(&folder.path.join("owner.json"))?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

fn unknown() -> LockOwner {
    LockOwner {
        id: String::new(),
        who: "somebody".to_owned(),
        pid: 0,
        operation: "?".to_owned(),
        since: "?".to_owned(),
    }
}

pub(super) fn holder(folder: &Folder) -> Result<Option<LockOwner>, StoreError> {
    if !folder.path.join("lock").exists() {
        return Ok(None);
    }
    let file = open(&folder.path.join("lock"))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(None),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(Some(read_owner(folder)?.unwrap_or_else(unknown))),
        Err(error) => Err(io("cannot look at the lock in", &folder.path, error.into())),
    }
}

/// A living process keeps its lock file; by putting a new one in its place the next run gets a lock of its own, and the old
/// holder notices at its next write that the file is not its own any more.
pub(super) fn take_away(folder: &Folder) -> Result<Option<LockOwner>, StoreError> {
    let holder = holder(folder)?;
    if holder.is_some() {
        let path = folder.path.join("lock");
        fs::remove_file(&path).map_err(|source| io("cannot remove", &path, source))?;
    }
    Ok(holder)
}

pub(super) struct LocalLock {
    folder: Folder,
    lock: fs::File,
    owner: LockOwner,
    /// The open journal; opened with the first append.
    journal: SharedFile,
}

impl LocalLock {
    pub(super) fn new(folder: Folder, lock: fs::File, owner: LockOwner) -> Self {
        Self { folder, lock, owner, journal: Arc::new(Mutex::new(None)) }
    }
}

fn append(folder: &Folder, journal: &SharedFile, bytes: &[u8]) -> Result<(), StoreError> {
    let path = folder.journal();
    let failed = |source| io("cannot write", &path, source);
    let mut journal = journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if journal.is_none() {
        // A torn last line must not be glued to what comes now.
        let text = read_if_there(&path)?.unwrap_or_default();
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut file =
            fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
        file.set_len(whole as u64).map_err(failed)?;
        file.seek(std::io::SeekFrom::End(0)).map_err(failed)?;
        durable::sync_folder(&path).map_err(failed)?;
        *journal = Some(file);
    }
    let file = journal.as_mut().expect("the journal was opened above");
    file.write_all(bytes).map_err(failed)?;
    file.sync_data().map_err(failed)
}

#[async_trait]
impl LockedState for LocalLock {
    fn owner(&self) -> &LockOwner {
        &self.owner
    }

    fn still_held(&self) -> Result<(), StoreError> {
        use std::os::unix::fs::MetadataExt;
        let same = match (self.lock.metadata(), fs::metadata(self.folder.path.join("lock"))) {
            (Ok(ours), Ok(there)) => ours.ino() == there.ino() && ours.dev() == there.dev(),
            _ => false,
        };
        if same { Ok(()) } else { Err(StoreError::LockLost { key: self.folder.key.clone() }) }
    }

    async fn write(&self, document: &StateDocument) -> Result<(), StoreError> {
        self.still_held()?;
        let (folder, document) = (self.folder.clone(), document.clone());
        blocking(move || folder.write(&document)).await
    }

    async fn append_journal(&self, records: &[JournalRecord]) -> Result<(), StoreError> {
        self.still_held()?;
        let mut bytes = Vec::new();
        for record in records {
            let line =
                record.to_line().map_err(|error| io("cannot write", &self.folder.journal(), error.into()))?;
            bytes.extend_from_slice(line.as_bytes());
        }
        let (folder, journal) = (self.folder.clone(), self.journal.clone());
        blocking(move || append(&folder, &journal, &bytes)).await
    }

    async fn clear_journal(&self) -> Result<(), StoreError> {
        self.still_held()?;
        let (folder, journal) = (self.folder.clone(), self.journal.clone());
        blocking(move || {
            *journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
            let path = folder.journal();
            match fs::remove_file(&path) {
                Ok(()) => durable::sync_folder(&path).map_err(|source| io("cannot clear", &path, source)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(io("cannot clear", &path, error)),
            }
        })
        .await
    }

    async fn release(&self) -> Result<(), StoreError> {
        // The owner file goes first: while it is there the lock is held by the one it names.
        let _ = fs::remove_file(self.folder.path.join("owner.json"));
        flock(&self.lock, FlockOperation::Unlock)
            .map_err(|error| io("cannot unlock", &self.folder.path, error.into()))
    }
}
