//! A store in memory that keeps bytes as the local one does, and checks what the engine asks of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use strata_state::{
    Holder, JournalRecord, Lease, LockOwner, LockedState, OpenEntry, ReplayedState, StateDocument, Store,
    StoreError, Version, parse_journal, replay,
};

use super::process::Process;
use super::script::{Call, Fault, Script};
use super::source::{KEY, lineage};

#[derive(Default)]
pub(crate) struct MemoryStore {
    disk: Arc<Mutex<Disk>>,
    process: Option<Arc<Process>>,
}

#[derive(Default)]
struct Disk {
    document: Option<Vec<u8>>,
    journal: Vec<u8>,
    history: BTreeMap<u64, Vec<u8>>,
    owner: Option<LockOwner>,
    /// Whose lock it is; a lock that was taken away has another number.
    holder: u64,
    stolen: bool,
    script: Script,
    newest_id: u64,
    /// What is durable and open, kept beside the bytes because it is asked for at every remote write.
    open: BTreeMap<u64, OpenEntry>,
    violations: Vec<String>,
}

impl Disk {
    fn note(&mut self, record: &JournalRecord) {
        match record {
            JournalRecord::Begin(entry) => {
                if entry.id <= self.newest_id {
                    self.violations.push(format!("entry {} comes after entry {}", entry.id, self.newest_id));
                }
                self.newest_id = self.newest_id.max(entry.id);
                self.open.insert(entry.id, entry.clone());
            }
            JournalRecord::Task { .. } => {}
            JournalRecord::End { id, .. } => {
                self.open.remove(id);
            }
        }
    }
}

impl MemoryStore {
    /// The same disk, as one process sees it.
    pub(crate) fn used_by(&self, process: &Arc<Process>) -> Self {
        Self { disk: self.disk.clone(), process: Some(process.clone()) }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap()
    }

    pub(crate) fn script(&self, decide: impl FnMut(&Call) -> Fault + Send + 'static) {
        self.disk().script.set(decide);
    }

    pub(crate) fn clear_script(&self) {
        self.disk().script.clear();
    }

    pub(crate) fn writes(&self) -> usize {
        self.disk().script.writes
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.disk().violations.clone()
    }

    pub(crate) fn journal_is_empty(&self) -> bool {
        self.disk().journal.is_empty()
    }

    /// How many appends it took, and how many records they held.
    pub(crate) fn appends(&self) -> Vec<String> {
        self.disk().script.log.iter().filter(|what| what.starts_with("append")).cloned().collect()
    }

    /// The document alone, without the journal.
    pub(crate) fn document(&self) -> Option<StateDocument> {
        self.disk().document.as_deref().map(|bytes| serde_json::from_slice(bytes).unwrap())
    }

    /// Somebody deletes the state file; with it goes the memory of which entries there were.
    pub(crate) fn lose_document(&self) {
        let mut disk = self.disk();
        disk.document = None;
        disk.newest_id = 0;
    }

    pub(crate) fn replayed(&self) -> ReplayedState {
        let document = self.document().unwrap_or_else(|| StateDocument::new(lineage(), KEY));
        replay(document, parse_journal(&self.disk().journal).unwrap())
    }

    /// Whether something durable and open is like this.
    pub(crate) fn has_open(&self, is_it: impl Fn(&OpenEntry) -> bool) -> bool {
        self.disk().open.values().any(is_it)
    }

    /// Another disk with the same content.
    pub(crate) fn fork(&self) -> Self {
        let disk = self.disk();
        let copy = Disk {
            document: disk.document.clone(),
            journal: disk.journal.clone(),
            history: disk.history.clone(),
            newest_id: disk.newest_id,
            open: disk.open.clone(),
            ..Disk::default()
        };
        Self { disk: Arc::new(Mutex::new(copy)), process: None }
    }

    /// Takes the lock away, as `strata unlock` does.
    pub(crate) fn steal_lock(&self) {
        let mut disk = self.disk();
        disk.owner = None;
        disk.holder += 1;
        disk.stolen = true;
    }

    /// Whether the last one who had the lock lost it, and nobody has taken it since.
    pub(crate) fn is_stolen(&self) -> bool {
        self.disk().stolen
    }

    async fn breathe(&self) {
        if let Some(process) = &self.process {
            process.breathe().await;
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    async fn keys(&self) -> Result<Vec<String>, StoreError> {
        Ok(vec![KEY.to_owned()])
    }

    async fn read(&self, _key: &str) -> Result<Option<StateDocument>, StoreError> {
        self.breathe().await;
        Ok(self.document())
    }

    async fn read_journal(&self, key: &str) -> Result<Vec<JournalRecord>, StoreError> {
        self.breathe().await;
        parse_journal(&self.disk().journal)
            .map_err(|damage| StoreError::Journal { key: key.to_owned(), damage })
    }

    async fn lock(&self, key: &str, owner: LockOwner) -> Result<Box<dyn LockedState>, StoreError> {
        self.breathe().await;
        let mut disk = self.disk();
        if let Some(owner) = disk.owner.clone() {
            let holder = Box::new(Holder { owner, lease: Lease::Endless });
            return Err(StoreError::Locked { key: key.to_owned(), holder });
        }
        disk.owner = Some(owner.clone());
        disk.holder += 1;
        disk.stolen = false;
        let process = self.process.clone();
        Ok(Box::new(MemoryLock {
            store: MemoryStore { disk: self.disk.clone(), process },
            owner,
            number: disk.holder,
        }))
    }

    async fn holder(&self, _key: &str) -> Result<Option<Holder>, StoreError> {
        Ok(self.disk().owner.clone().map(|owner| Holder { owner, lease: Lease::Endless }))
    }

    async fn break_lock(&self, _key: &str, _id: &str) -> Result<(), StoreError> {
        self.steal_lock();
        Ok(())
    }

    async fn history(&self, _key: &str) -> Result<Vec<Version>, StoreError> {
        let version = |(serial, bytes): (&u64, &Vec<u8>)| Version {
            serial: *serial,
            written: String::new(),
            bytes: bytes.len() as u64,
        };
        Ok(self.disk().history.iter().rev().map(version).collect())
    }

    async fn read_version(&self, key: &str, serial: u64) -> Result<StateDocument, StoreError> {
        let disk = self.disk();
        let bytes =
            disk.history.get(&serial).ok_or_else(|| StoreError::NoVersion { key: key.to_owned(), serial })?;
        Ok(serde_json::from_slice(bytes).unwrap())
    }
}

struct MemoryLock {
    store: MemoryStore,
    owner: LockOwner,
    number: u64,
}

/// As an OS lock, it ends with the process.
impl Drop for MemoryLock {
    fn drop(&mut self) {
        let mut disk = self.store.disk();
        if disk.holder == self.number {
            disk.owner = None;
        }
    }
}

impl MemoryLock {
    /// One write to the disk, which the script may spoil. Takes a while: others run before and after it.
    async fn write_bytes(&self, what: &str, write: impl FnOnce(&mut Disk, bool)) -> Result<(), StoreError> {
        let process = self.store.process.as_ref().expect("a lock belongs to a process");
        process.breathe().await;
        self.still_held()?;
        let failed = || {
            let source = std::io::Error::other("no space left");
            Err(StoreError::Io { what: format!("cannot {what}"), source })
        };
        let fault = {
            let mut disk = self.store.disk();
            let fault = disk.script.next(what, true);
            match fault {
                Fault::Before | Fault::KillBefore => {}
                Fault::KillTorn => write(&mut disk, true),
                Fault::None | Fault::After | Fault::KillAfter => write(&mut disk, false),
            }
            fault
        };
        match fault {
            Fault::KillBefore | Fault::KillAfter | Fault::KillTorn => process.kill().await,
            Fault::Before | Fault::After => return failed(),
            Fault::None => {}
        }
        process.breathe().await;
        Ok(())
    }
}

#[async_trait]
impl LockedState for MemoryLock {
    fn owner(&self) -> &LockOwner {
        &self.owner
    }

    fn still_held(&self) -> Result<(), StoreError> {
        let held = self.store.disk().holder == self.number;
        if held { Ok(()) } else { Err(StoreError::LockLost { key: KEY.to_owned() }) }
    }

    async fn write(&self, document: &StateDocument) -> Result<(), StoreError> {
        let found = self.store.document().map_or(0, |document| document.serial);
        if document.serial != found + 1 {
            let expected = document.serial.saturating_sub(1);
            return Err(StoreError::Moved { key: KEY.to_owned(), expected, found });
        }
        let bytes = serde_json::to_vec(document).unwrap();
        // Replaced as a whole: a torn document is the old one.
        self.write_bytes("write the document", |disk, torn| {
            if !torn {
                disk.history.insert(document.serial, bytes.clone());
                disk.document = Some(bytes);
            }
        })
        .await
    }

    async fn adopt(&self, document: &StateDocument) -> Result<(), StoreError> {
        self.write(document).await
    }

    async fn adopt_version(&self, document: &StateDocument) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(document).unwrap();
        self.write_bytes("keep the version", |disk, torn| {
            if !torn {
                disk.history.insert(document.serial, bytes);
            }
        })
        .await
    }

    async fn append_journal(&self, records: &[JournalRecord]) -> Result<(), StoreError> {
        let lines: String = records.iter().map(|record| record.to_line().unwrap()).collect();
        self.write_bytes(&format!("append {}", records.len()), |disk, torn| {
            // A torn last line is cut off first, as the local store does.
            let whole = disk.journal.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            disk.journal.truncate(whole);
            let end = if torn { lines.len() * 2 / 3 } else { lines.len() };
            disk.journal.extend_from_slice(&lines.as_bytes()[..end]);
            // Of what is torn nothing counts but the lines that are whole.
            let whole = lines[..end].lines().count() - usize::from(torn);
            for record in &records[..whole] {
                disk.note(record);
            }
        })
        .await
    }

    async fn clear_journal(&self) -> Result<(), StoreError> {
        self.write_bytes("clear the journal", |disk, torn| {
            if !torn {
                if !disk.open.is_empty() {
                    disk.violations.push("the journal was cleared while entries were open".to_owned());
                }
                disk.journal.clear();
            }
        })
        .await
    }

    async fn release(&self) -> Result<(), StoreError> {
        self.store.breathe().await;
        let mut disk = self.store.disk();
        if disk.holder == self.number {
            disk.owner = None;
        }
        Ok(())
    }
}
