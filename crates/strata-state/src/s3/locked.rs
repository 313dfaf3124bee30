//! A state under a lease in a bucket.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::journal::{self, Journal};
use super::lock::{Content, LockObject, lock_at};
use super::{Shared, document_at, version_at};
use crate::lease::{Heartbeat, Held, Renewal};
use crate::store::Replaces;
use crate::{Holder, JournalRecord, LockOwner, LockedState, StateDocument, StoreError};

pub(super) struct S3Lock {
    shared: Arc<Shared>,
    key: String,
    owner: LockOwner,
    held: Arc<Held>,
    heart: Heartbeat,
    lock: Arc<Mutex<OwnLock>>,
    unsettled: Duration,
    written: Mutex<Written>,
}

/// Our lock object as we last wrote it.
struct OwnLock {
    content: Content,
    tag: String,
}

/// What was there when the lock was taken, or was written since: the condition of every write.
struct Written {
    /// The tag of the document, and its serial.
    document: Option<(String, u64)>,
    /// The history is known to have a version of it.
    is_kept: bool,
    journal: Journal,
}

/// The lock object is ours; what it was before says whose entry may be left in the lock table.
struct Taken {
    tag: String,
    former: Option<LockOwner>,
    unsettled: Duration,
    sent: Duration,
}

impl S3Lock {
    pub(super) async fn acquire(
        shared: Arc<Shared>,
        key: &str,
        owner: LockOwner,
    ) -> Result<Self, StoreError> {
        let content = Content {
            owner: owner.clone(),
            lease: shared.lease.length.as_secs().max(1),
            beat: 0,
            released: false,
        };
        let taken = take(&shared, key, &content).await?;
        let ready = async {
            if let Some(table) = &shared.table {
                table.take(key, &owner, taken.former.as_ref()).await?;
            }
            let document = document(&shared, key).await?;
            let journal = journal::read(&shared.objects, key).await?;
            Ok(Written { document, is_kept: false, journal })
        };
        let written = match ready.await {
            Ok(written) => written,
            Err(error) => {
                // The first error is the one to tell; the lease ends by itself.
                let freed = Content { released: true, ..content };
                let _ = shared.objects.replace(&lock_at(key), freed.bytes(), &taken.tag).await;
                return Err(error);
            }
        };
        let (held, unsettled) = (Held::since(key, &shared.lease, taken.sent), taken.unsettled);
        let lock = Arc::new(Mutex::new(OwnLock { content, tag: taken.tag }));
        let (asked, name, own) = (shared.clone(), key.to_owned(), lock.clone());
        let heart = Heartbeat::start(held.clone(), move || {
            let (shared, key, own) = (asked.clone(), name.clone(), own.clone());
            async move { renew(&shared, &key, &own).await.unwrap_or(Renewal::Unknown) }
        });
        let written = Mutex::new(written);
        Ok(Self { shared, key: key.to_owned(), owner, held, heart, lock, unsettled, written })
    }

    /// A lock that was taken away is noticed before a write, not only at the next beat.
    async fn still_ours(&self) -> Result<(), StoreError> {
        self.held.check()?;
        match LockObject::read(&self.shared.objects, &self.key).await? {
            Some(seen) if seen.content.owner.id == self.owner.id && !seen.content.released => {
                self.held.check()
            }
            _ => Err(self.held.lose()),
        }
    }

    async fn put(&self, document: &StateDocument, replaces: Replaces) -> Result<(), StoreError> {
        let bytes: bytes::Bytes = self.shared.codec.encode(document)?.into();
        let mut written = self.written.lock().await;
        self.still_ours().await?;
        replaces.check(&self.key, document, written.document.as_ref().map(|(_, serial)| *serial))?;
        let objects = &self.shared.objects;
        let path = document_at(&self.key);
        self.keep_former(&mut written).await?;
        // The document first: whose write of it is taken is the only one who ever writes the version with its serial.
        let tag = match &written.document {
            Some((tag, _)) => objects.replace(&path, bytes.clone(), tag).await?,
            None => objects.create(&path, bytes.clone()).await?,
        };
        match tag {
            Some(tag) => {
                (written.document, written.is_kept) = (Some((tag, document.serial)), false);
                self.keep(document.serial, bytes).await?;
                written.is_kept = true;
            }
            None => {
                let there = objects.get(&path).await?;
                let found = there.and_then(|there| self.shared.codec.serial(&self.key, &there.bytes).ok());
                self.held.lose();
                let expected = document.serial.saturating_sub(1);
                return Err(StoreError::Moved { key: self.key.clone(), expected, found: found.unwrap_or(0) });
            }
        }
        drop(written);
        self.forget_old_versions().await;
        Ok(())
    }

    /// A run that died between the document and its version left the one without the other.
    async fn keep_former(&self, written: &mut Written) -> Result<(), StoreError> {
        let Some((tag, serial)) = written.document.as_ref().filter(|_| !written.is_kept) else {
            return Ok(());
        };
        let objects = &self.shared.objects;
        if objects.get(&version_at(&self.key, *serial)).await?.is_none()
            && let Some(there) = objects.get(&document_at(&self.key)).await?
            && there.tag == *tag
            && self.shared.codec.decode(&self.key, &there.bytes).is_ok()
        {
            self.keep(*serial, there.bytes).await?;
        }
        written.is_kept = true;
        Ok(())
    }

    /// Puts a version into the history, in place of what an interrupted write may have left there; never of what somebody else wrote since.
    async fn keep(&self, serial: u64, bytes: bytes::Bytes) -> Result<(), StoreError> {
        let (objects, path) = (&self.shared.objects, version_at(&self.key, serial));
        if objects.create(&path, bytes.clone()).await?.is_some() {
            return Ok(());
        }
        let kept = match objects.get(&path).await? {
            Some(left) => objects.replace(&path, bytes, &left.tag).await?,
            None => objects.create(&path, bytes).await?,
        };
        if kept.is_some() { Ok(()) } else { Err(self.held.lose()) }
    }

    /// A version too many does no harm, so what fails here is not told.
    async fn forget_old_versions(&self) {
        let Ok(versions) = self.shared.versions(&self.key).await else { return };
        for old in versions.iter().skip(self.shared.kept) {
            let _ = self.shared.objects.delete(&version_at(&self.key, old.serial)).await;
        }
    }
}

/// The tag and the serial of the document that is there.
async fn document(shared: &Shared, key: &str) -> Result<Option<(String, u64)>, StoreError> {
    let Some(found) = shared.objects.get(&document_at(key)).await? else { return Ok(None) };
    match shared.codec.serial(key, &found.bytes) {
        Ok(serial) => Ok(Some((found.tag, serial))),
        // A damaged document may be replaced by a good one from the history, which goes on counting.
        Err(StoreError::Damaged { .. }) => Ok(Some((found.tag, shared.newest_good(key).await.unwrap_or(0)))),
        Err(error) => Err(error),
    }
}

/// Makes the lock object ours, if it is not there, was freed, or its holder is gone.
async fn take(shared: &Shared, key: &str, content: &Content) -> Result<Taken, StoreError> {
    let path = lock_at(key);
    let sent = (shared.lease.clock)();
    if let Some(tag) = shared.objects.create(&path, content.bytes()).await? {
        return Ok(Taken { tag, former: None, unsettled: Duration::ZERO, sent });
    }
    let locked = |holder| StoreError::Locked { key: key.to_owned(), holder: Box::new(holder) };
    let unknown = || Holder::endless(LockOwner::unknown());
    let Some(seen) = LockObject::read(&shared.objects, key).await? else { return Err(locked(unknown())) };
    match seen.holder() {
        Some(holder) if !holder.is_gone() => Err(locked(holder)),
        _ => {
            let sent = (shared.lease.clock)();
            match shared.objects.replace(&path, content.bytes(), &seen.tag).await? {
                Some(tag) => {
                    let unsettled = seen.unsettled();
                    Ok(Taken { tag, former: Some(seen.content.owner), unsettled, sent })
                }
                // Somebody else was faster.
                None => {
                    let now = LockObject::read(&shared.objects, key).await?;
                    Err(locked(now.and_then(|now| now.holder()).unwrap_or_else(unknown)))
                }
            }
        }
    }
}

async fn renew(shared: &Shared, key: &str, own: &Mutex<OwnLock>) -> Result<Renewal, StoreError> {
    let mut own = own.lock().await;
    let next = Content { beat: own.content.beat + 1, ..own.content.clone() };
    if let Some(tag) = shared.objects.replace(&lock_at(key), next.bytes(), &own.tag).await? {
        *own = OwnLock { content: next, tag };
        return Ok(Renewal::Renewed);
    }
    // An earlier beat may have arrived although its answer did not.
    match LockObject::read(&shared.objects, key).await? {
        Some(seen) if seen.content.owner.id == next.owner.id && !seen.content.released => {
            *own = OwnLock { content: seen.content, tag: seen.tag };
            Ok(Renewal::Unknown)
        }
        _ => Ok(Renewal::Lost),
    }
}

#[async_trait]
impl LockedState for S3Lock {
    fn owner(&self) -> &LockOwner {
        &self.owner
    }

    fn still_held(&self) -> Result<(), StoreError> {
        self.held.check()
    }

    fn unsettled(&self) -> Duration {
        self.unsettled
    }

    async fn write(&self, document: &StateDocument) -> Result<(), StoreError> {
        self.put(document, Replaces::Former).await
    }

    async fn adopt(&self, document: &StateDocument) -> Result<(), StoreError> {
        self.put(document, Replaces::Nothing).await
    }

    async fn adopt_version(&self, document: &StateDocument) -> Result<(), StoreError> {
        let bytes = self.shared.codec.encode(document)?;
        let written = self.written.lock().await;
        self.still_ours().await?;
        let stored = written.document.as_ref().map(|(_, serial)| *serial);
        Replaces::Nothing.check(&self.key, document, stored)?;
        self.keep(document.serial, bytes.into()).await
    }

    async fn append_journal(&self, records: &[JournalRecord]) -> Result<(), StoreError> {
        let lines = self.shared.codec.encode_journal(&self.key, records)?;
        let mut written = self.written.lock().await;
        self.still_ours().await?;
        if written.journal.append(&self.shared.objects, &lines).await? {
            // What took longer than the lease may have come after somebody else's.
            return self.held.check();
        }
        Err(self.held.lose())
    }

    async fn clear_journal(&self) -> Result<(), StoreError> {
        let mut written = self.written.lock().await;
        self.still_ours().await?;
        if written.journal.clear(&self.shared.objects).await? { Ok(()) } else { Err(self.held.lose()) }
    }

    async fn release(&self) -> Result<(), StoreError> {
        self.heart.stop();
        self.held.lose();
        if let Some(table) = &self.shared.table {
            table.free(&self.key, &self.owner.id).await?;
        }
        let own = self.lock.lock().await;
        let freed = Content { released: true, ..own.content.clone() };
        // The beat that was just stopped may have arrived; then the tag is another one.
        if self.shared.objects.replace(&lock_at(&self.key), freed.bytes(), &own.tag).await?.is_none()
            && let Some(seen) = LockObject::read(&self.shared.objects, &self.key).await?
            && seen.content.owner.id == self.owner.id
            && !seen.content.released
        {
            seen.free(&self.shared.objects, &self.key).await?;
        }
        Ok(())
    }
}
