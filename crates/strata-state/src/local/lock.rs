//! The local lock: one that the operating system holds and frees with the process, and a file that names the owner.

use std::fs;
use std::io::{Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rustix::fs::{FlockOperation, flock};

use super::{Folder, blocking, durable, io, read_if_there};
use crate::journal::whole_lines;
use crate::store::Replaces;
use crate::{Holder, JournalRecord, LockOwner, LockedState, StateDocument, StoreError};

/// Somebody who only asks who holds the lock takes it for a moment: one refusal is not yet an answer.
const ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_millis(20);

pub(super) fn acquire(folder: &Folder, owner: &LockOwner) -> Result<fs::File, StoreError> {
    durable::make_folder(&folder.path)?;
    for attempt in 1.. {
        let file = open(&folder.path.join("lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // The file may have been taken away between opening and locking it.
            Ok(()) if is_in_place(folder, &file) => {
                let json = serde_json::to_vec(owner)
                    .map_err(|error| io("cannot write", &folder.path, error.into()))?;
                durable::replace(&folder.path.join("owner.json"), &json)?;
                return Ok(file);
            }
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) if attempt < ATTEMPTS => std::thread::sleep(PAUSE),
            Err(rustix::io::Errno::WOULDBLOCK) => break,
            Err(error) => return Err(io("cannot lock", &folder.path, error.into())),
        }
    }
    let owner = read_owner(folder)?.unwrap_or_else(LockOwner::unknown);
    Err(StoreError::Locked { key: folder.key.clone(), holder: Box::new(Holder::endless(owner)) })
}

fn open(path: &Path) -> Result<fs::File, StoreError> {
    durable::open_private(path).map_err(|source| io("cannot open", path, source))
}

/// Whether the lock file in the folder is the one that is open here.
fn is_in_place(folder: &Folder, file: &fs::File) -> bool {
    match (file.metadata(), fs::metadata(folder.path.join("lock"))) {
        (Ok(ours), Ok(there)) => ours.ino() == there.ino() && ours.dev() == there.dev(),
        _ => false,
    }
}

fn read_owner(folder: &Folder) -> Result<Option<LockOwner>, StoreError> {
    let bytes = read_if_there(&folder.path.join("owner.json"))?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

pub(super) fn holder(folder: &Folder) -> Result<Option<LockOwner>, StoreError> {
    if !folder.path.join("lock").exists() {
        return Ok(None);
    }
    let file = open(&folder.path.join("lock"))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(None),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            Ok(Some(read_owner(folder)?.unwrap_or_else(LockOwner::unknown)))
        }
        Err(error) => Err(io("cannot look at the lock in", &folder.path, error.into())),
    }
}

/// A living process keeps its lock file; by putting a new one in its place the next run gets a lock of its own, and the old
/// holder sees at its next write that the file is not its own any more.
pub(super) fn take_away(folder: &Folder, id: &str) -> Result<(), StoreError> {
    match holder(folder)? {
        Some(holder) if holder.id == id => {
            let path = folder.path.join("lock");
            fs::remove_file(&path).map_err(|source| io("cannot remove", &path, source))
        }
        _ => Err(StoreError::OtherLock { key: folder.key.clone(), id: id.to_owned() }),
    }
}

pub(super) struct LocalLock {
    held: Arc<Held>,
    owner: LockOwner,
}

/// Shared with the file work under way, so that a run that is dropped in the middle of it keeps the lock until it is done.
struct Held {
    folder: Folder,
    lock: fs::File,
    files: Mutex<Files>,
}

#[derive(Default)]
struct Files {
    /// The open journal; opened with the first append.
    journal: Option<fs::File>,
    released: bool,
}

impl LocalLock {
    pub(super) fn new(folder: Folder, lock: fs::File, owner: LockOwner) -> Self {
        Self { held: Arc::new(Held { folder, lock, files: Mutex::default() }), owner }
    }

    /// One piece of file work at a time, and none once the lock is lost or released.
    async fn work(
        &self,
        work: impl FnOnce(&Folder, &mut Files) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let held = self.held.clone();
        blocking(move || {
            let mut files = held.files.lock().unwrap_or_else(PoisonError::into_inner);
            if files.released || !is_in_place(&held.folder, &held.lock) {
                return Err(StoreError::LockLost { key: held.folder.key.clone() });
            }
            work(&held.folder, &mut files)
        })
        .await
    }
}

fn append(folder: &Folder, files: &mut Files, bytes: &[u8]) -> Result<(), StoreError> {
    let path = folder.journal();
    let failed = |source| io("cannot write", &path, source);
    if files.journal.is_none() {
        // A torn last line must not be glued to what comes now.
        let text = read_if_there(&path)?.unwrap_or_default();
        let (_, whole) =
            whole_lines(&text).map_err(|damage| StoreError::Journal { key: folder.key.clone(), damage })?;
        let mut file = durable::open_private(&path).map_err(failed)?;
        file.set_len(whole as u64).map_err(failed)?;
        file.seek(std::io::SeekFrom::End(0)).map_err(failed)?;
        durable::sync_folder(&path).map_err(failed)?;
        files.journal = Some(file);
    }
    let file = files.journal.as_mut().expect("the journal was opened above");
    let written = file.write_all(bytes).and_then(|()| file.sync_data());
    if written.is_err() {
        // What is there now is unknown: the next append looks again.
        files.journal = None;
    }
    written.map_err(failed)
}

fn clear(folder: &Folder, files: &mut Files) -> Result<(), StoreError> {
    files.journal = None;
    let path = folder.journal();
    match fs::remove_file(&path) {
        Ok(()) => durable::sync_folder(&path).map_err(|source| io("cannot clear", &path, source)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io("cannot clear", &path, error)),
    }
}

#[async_trait]
impl LockedState for LocalLock {
    fn owner(&self) -> &LockOwner {
        &self.owner
    }

    fn still_held(&self) -> Result<(), StoreError> {
        let Held { folder, lock, .. } = &*self.held;
        if is_in_place(folder, lock) { Ok(()) } else { Err(StoreError::LockLost { key: folder.key.clone() }) }
    }

    async fn write(&self, document: &StateDocument) -> Result<(), StoreError> {
        let document = document.clone();
        self.work(move |folder, _| folder.write(&document, Replaces::Former)).await
    }

    async fn adopt(&self, document: &StateDocument) -> Result<(), StoreError> {
        let document = document.clone();
        self.work(move |folder, _| folder.write(&document, Replaces::Nothing)).await
    }

    async fn adopt_version(&self, document: &StateDocument) -> Result<(), StoreError> {
        let document = document.clone();
        self.work(move |folder, _| folder.write_version(&document)).await
    }

    async fn append_journal(&self, records: &[JournalRecord]) -> Result<(), StoreError> {
        let Held { folder, .. } = &*self.held;
        let bytes = folder.codec.encode_journal(&folder.key, records)?;
        self.work(move |folder, files| append(folder, files, &bytes)).await
    }

    async fn clear_journal(&self) -> Result<(), StoreError> {
        self.work(clear).await
    }

    async fn release(&self) -> Result<(), StoreError> {
        let held = self.held.clone();
        blocking(move || {
            let mut files = held.files.lock().unwrap_or_else(PoisonError::into_inner);
            files.released = true;
            // The owner file goes first: while it is there the lock is held by the one it names. A lock that was taken away has
            // another owner by now.
            if is_in_place(&held.folder, &held.lock) {
                let _ = fs::remove_file(held.folder.path.join("owner.json"));
            }
            flock(&held.lock, FlockOperation::Unlock)
                .map_err(|error| io("cannot unlock", &held.folder.path, error.into()))
        })
        .await
    }
}
