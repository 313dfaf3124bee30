//! A state under a lease in a storage that this program opened itself.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use md5::{Digest as _, Md5};
use strata_storage::{Command, Content, Outcome, Refusal, Replaces, Which, Write};

use super::{Direct, USER, unlock};
use crate::lease::{Heartbeat, Held, Renewal};
use crate::{JournalRecord, LockOwner, LockedState, StateDocument, StoreError};

pub(super) struct DirectLock {
    direct: Arc<Direct>,
    key: String,
    owner: LockOwner,
    held: Arc<Held>,
    heart: Heartbeat,
    late_request_window: Duration,
}

impl DirectLock {
    pub(super) fn start(
        direct: Arc<Direct>,
        key: &str,
        owner: LockOwner,
        sent: Duration,
        late_request_window: Duration,
    ) -> Self {
        let held = Held::since(key, &direct.lease, sent);
        let (asked, name, id) = (direct.clone(), key.to_owned(), owner.id.clone());
        let heart = Heartbeat::start(held.clone(), move || {
            let (direct, key) = (asked.clone(), name.clone());
            let beat = Command::Heartbeat { id: id.clone(), user: USER.to_owned() };
            async move {
                match direct.execute(&key, beat).await {
                    Ok(Ok(_)) => Renewal::Renewed,
                    Ok(Err(_)) => Renewal::Lost,
                    Err(_) => Renewal::Unknown,
                }
            }
        });
        Self { direct, key: key.to_owned(), owner, held, heart, late_request_window }
    }

    /// Has a command done that needs the lock. What is refused for another reason is for the caller to tell.
    async fn execute(&self, command: Command) -> Result<Result<Outcome, Refusal>, StoreError> {
        self.held.check()?;
        match self.direct.execute(&self.key, command).await? {
            Ok(outcome) => Ok(Ok(outcome)),
            Err(Refusal::Held(_) | Refusal::LockLost { .. } | Refusal::NotYours(_)) => Err(self.held.lose()),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    fn write_of(&self, document: &StateDocument, bytes: &[u8], replaces: Replaces) -> Write {
        Write {
            content: Content::Inline(bytes.to_vec().into()),
            serial: Some(document.serial),
            lineage: None,
            size: bytes.len() as u64,
            md5: md5_of(bytes),
            lock: Some(self.owner.id.clone()),
            replaces,
            force: false,
            by: USER.to_owned(),
            written: Direct::now(),
        }
    }

    /// Writes; the answer to it can be lost: then what is stored says what became of it.
    async fn put(
        &self,
        document: &StateDocument,
        bytes: &[u8],
        replaces: Replaces,
    ) -> Result<Result<Outcome, Refusal>, StoreError> {
        let command = Command::Write(self.write_of(document, bytes, replaces));
        match self.execute(command).await {
            Err(error @ StoreError::Remote { .. }) if replaces != Replaces::Nothing => {
                let look = self.direct.look(&self.key).await?;
                let ours = look.head.current.filter(|current| current.md5 == md5_of(bytes));
                ours.map(|current| Ok(Outcome::Unchanged(current))).ok_or(error)
            }
            other => other,
        }
    }

    /// The number of the current version, if nobody can read it and this document goes on from the last good one.
    async fn unreadable(&self, document: &StateDocument) -> Result<Option<u64>, StoreError> {
        let current = self.direct.look(&self.key).await?.head.current;
        let read = self.direct.document(&self.key, Which::Current).await;
        let (Some(current), Err(StoreError::Damaged { .. })) = (current, read) else { return Ok(None) };
        let good = self.direct.newest_good(&self.key).await.unwrap_or(0);
        Ok((document.serial == good + 1).then_some(current.version))
    }

    /// What went out of use is forgotten; what fails here costs space and nothing else.
    async fn tidy(&self) {
        let _ = self.direct.storage.sweep(None).await;
    }
}

fn md5_of(bytes: &[u8]) -> String {
    hex::encode(Md5::digest(bytes))
}

#[async_trait]
impl LockedState for DirectLock {
    fn owner(&self) -> &LockOwner {
        &self.owner
    }

    fn still_held(&self) -> Result<(), StoreError> {
        self.held.check()
    }

    fn late_request_window(&self) -> Duration {
        self.late_request_window
    }

    fn write_timeout(&self) -> Option<Duration> {
        Some(self.held.write_timeout())
    }

    async fn write(&self, document: &StateDocument) -> Result<(), StoreError> {
        let bytes = self.direct.codec.encode(document)?;
        let expected = document.serial.saturating_sub(1);
        let mut written = self.put(document, &bytes, Replaces::Serial(expected)).await?;
        // What is refused, or is there already, may be something that nobody can read any more.
        if !matches!(written, Ok(Outcome::Written(_)))
            && let Some(version) = self.unreadable(document).await?
        {
            written = self.put(document, &bytes, Replaces::Unreadable(version)).await?;
        }
        let moved = |found| StoreError::Moved { key: self.key.clone(), expected, found };
        written.map_err(|refusal| moved(serial_in(&refusal)))?;
        self.tidy().await;
        Ok(())
    }

    async fn adopt(&self, document: &StateDocument) -> Result<(), StoreError> {
        let bytes = self.direct.codec.encode(document)?;
        let written = self.put(document, &bytes, Replaces::Serial(0)).await?;
        written.map(|_| ()).map_err(|refusal| self.exists(&refusal))
    }

    async fn adopt_version(&self, document: &StateDocument) -> Result<(), StoreError> {
        let bytes = self.direct.codec.encode(document)?;
        let written = self.put(document, &bytes, Replaces::Nothing).await?;
        written.map(|_| ()).map_err(|refusal| self.exists(&refusal))
    }

    async fn append_journal(&self, records: &[JournalRecord]) -> Result<(), StoreError> {
        let lines = self.direct.codec.encode_journal(&self.key, records)?.into();
        let (lock, user) = (self.owner.id.clone(), USER.to_owned());
        self.execute(Command::AppendJournal { lock, user, lines }).await.map(|_| ())
    }

    async fn clear_journal(&self) -> Result<(), StoreError> {
        let (lock, user) = (self.owner.id.clone(), USER.to_owned());
        self.execute(Command::ClearJournal { lock, user }).await.map(|_| ())
    }

    async fn release(&self) -> Result<(), StoreError> {
        self.heart.stop();
        self.held.lose();
        if let Some(table) = &self.direct.table {
            table.free(&self.key, &self.owner.id).await?;
        }
        // One that was taken away is another's by now, and stays.
        self.direct.execute(&self.key, unlock(&self.owner.id)).await.map(|_| ())
    }
}

impl DirectLock {
    fn exists(&self, refusal: &Refusal) -> StoreError {
        StoreError::Exists { key: self.key.clone(), serial: serial_in(refusal) }
    }
}

/// The serial that is stored, as a refusal says it.
fn serial_in(refusal: &Refusal) -> u64 {
    match refusal {
        Refusal::Moved { found, .. } | Refusal::Older { found, .. } => *found,
        _ => 0,
    }
}
