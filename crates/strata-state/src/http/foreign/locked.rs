//! A state under the lock of a foreign server.

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::envelope::{Content, Envelope, KeptVersion, bytes_of};
use super::{ForeignServer, LockInfo};
use crate::http::addresses::segments;
use crate::http::lock_info::marked_id;
use crate::http::wire::Call;
use crate::store::Replaces;
use crate::{JournalRecord, LockOwner, LockedState, StateDocument, StoreError};

pub(super) struct ForeignLock {
    server: ForeignServer,
    key: String,
    owner: LockOwner,
    /// What the server had when we last looked or wrote.
    last: Mutex<Envelope>,
    lost: std::sync::atomic::AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Into {
    Document,
    HistoryOnly,
}

impl ForeignLock {
    pub(super) fn new(server: ForeignServer, key: &str, owner: LockOwner, last: Envelope) -> Self {
        Self { server, key: key.to_owned(), owner, last: Mutex::new(last), lost: false.into() }
    }

    fn lose(&self) -> StoreError {
        self.lost.store(true, std::sync::atomic::Ordering::SeqCst);
        StoreError::LockLost { key: self.key.clone() }
    }

    /// Reads again, writes, reads back. Somebody else's change shows that the lock is not ours any more.
    async fn change(
        &self,
        change: impl FnOnce(&mut Content) -> Result<(), StoreError> + Send,
    ) -> Result<(), StoreError> {
        let mut last = self.last.lock().await;
        self.still_held()?;
        let there = self.server.envelope(&self.key).await?.unwrap_or_else(|| Envelope::new(&self.key));
        if there != *last {
            return Err(self.lose());
        }
        let mut next = last.clone();
        change(&mut next.strata)?;
        if next == *last {
            return Ok(());
        }
        next.serial += 1;
        let sent = self.post(&next).await;
        match self.server.envelope(&self.key).await {
            // It is there, whatever became of the answer.
            Ok(Some(there)) if there == next => {
                *last = next;
                Ok(())
            }
            Ok(there) => match sent {
                Err(error) => Err(error),
                Ok(()) if there.as_ref() == Some(&*last) => Err(StoreError::remote(
                    format!("the state `{}` was not written", self.key),
                    "the server accepted it and still has the former one",
                )),
                Ok(()) => Err(self.lose()),
            },
            Err(error) => Err(sent.err().unwrap_or(error)),
        }
    }

    async fn post(&self, envelope: &Envelope) -> Result<(), StoreError> {
        use base64::Engine as _;
        use md5::Digest as _;
        let bytes = serde_json::to_vec(envelope).map_err(|error| StoreError::Io {
            what: "cannot write the state".to_owned(),
            source: error.into(),
        })?;
        let (path, query) = self.server.place.state(&self.key);
        let id = segments(&marked_id(&self.owner));
        let query = if query.is_empty() { format!("ID={id}") } else { format!("{query}&ID={id}") };
        let sum = base64::engine::general_purpose::STANDARD.encode(md5::Md5::digest(&bytes));
        let call = Call::new(self.server.place.update_method.clone(), path)
            .query(query)
            .header("content-md5", sum)
            .json(bytes)
            .once();
        let answer = self.server.wire.send(&call).await?;
        match answer.status {
            200..=299 => Ok(()),
            409 | 423 => Err(self.lose()),
            _ => Err(self.server.wire.unexpected(&call, &answer)),
        }
    }

    async fn put(&self, document: &StateDocument, replaces: Replaces, place: Into) -> Result<(), StoreError> {
        let bytes = self.server.codec.encode(document)?;
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| StoreError::Io {
            what: "cannot write the state".to_owned(),
            source: error.into(),
        })?;
        self.change(|content| {
            let stored = match &content.document {
                Some(stored) => Some(self.server.codec.serial(&self.key, &bytes_of(stored))?),
                None => None,
            };
            replaces.check(&self.key, document, stored)?;
            let kept = KeptVersion {
                serial: document.serial,
                written: self.owner.since.clone(),
                document: value.clone(),
            };
            content.versions.retain(|version| version.serial != kept.serial);
            content.versions.push(kept);
            content.versions.sort_by_key(|version| std::cmp::Reverse(version.serial));
            content.versions.truncate(self.server.kept);
            if place == Into::Document {
                content.document = Some(value);
            }
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl LockedState for ForeignLock {
    fn owner(&self) -> &LockOwner {
        &self.owner
    }

    fn still_held(&self) -> Result<(), StoreError> {
        if self.lost.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(StoreError::LockLost { key: self.key.clone() });
        }
        Ok(())
    }

    async fn write(&self, document: &StateDocument) -> Result<(), StoreError> {
        self.put(document, Replaces::Former, Into::Document).await
    }

    async fn adopt(&self, document: &StateDocument) -> Result<(), StoreError> {
        self.put(document, Replaces::Nothing, Into::Document).await
    }

    async fn adopt_version(&self, document: &StateDocument) -> Result<(), StoreError> {
        self.put(document, Replaces::Nothing, Into::HistoryOnly).await
    }

    async fn append_journal(&self, records: &[JournalRecord]) -> Result<(), StoreError> {
        let lines = self.server.codec.encode_journal(&self.key, records)?;
        let lines = String::from_utf8(lines).expect("records are lines of JSON");
        self.change(|content| {
            content.journal.push_str(&lines);
            Ok(())
        })
        .await
    }

    async fn clear_journal(&self) -> Result<(), StoreError> {
        self.change(|content| {
            content.journal.clear();
            Ok(())
        })
        .await
    }

    async fn release(&self) -> Result<(), StoreError> {
        let ours = self.still_held().is_ok();
        self.lose();
        if !ours {
            return Ok(());
        }
        match self.server.unlock(&self.key, &LockInfo::marked(&self.owner, &self.key)).await {
            Ok(()) | Err(StoreError::OtherLock { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
