//! Any other server that speaks the protocol of OpenTofu's backend `http`, GitLab's among them.
//!
//! Such a server keeps one document for each state and knows one lock that never lapses. So the journal and the older versions live
//! inside that document, whose own serial goes up with every write. Nothing there compares and swaps: a change is made under the
//! lock, by reading again, writing, and reading back.

mod envelope;
mod locked;

use async_trait::async_trait;
use http::Method;
use strata_net::Response;

use super::addresses::StateAddresses;
use super::lock_info::{LockInfo, marked_id};
use super::wire::{Call, Wire};
use crate::{
    Codec, Holder, JournalRecord, LockOwner, LockedState, StateDocument, Store, StoreError, Version,
};
use envelope::Envelope;
use locked::ForeignLock;

/// Every version is written with every change, so there are few.
pub(super) const KEPT_VERSIONS: usize = 10;

#[derive(Clone)]
pub(super) struct ForeignServer {
    url: String,
    wire: Wire,
    place: StateAddresses,
    codec: Codec,
    kept: usize,
    known: Vec<String>,
}

impl ForeignServer {
    pub(super) fn new(
        url: String,
        wire: Wire,
        place: StateAddresses,
        codec: Codec,
        kept: usize,
        known: Vec<String>,
    ) -> Self {
        Self { url, wire, place, codec, kept: kept.min(KEPT_VERSIONS), known }
    }

    /// What the server has; none if it has nothing.
    async fn envelope(&self, key: &str) -> Result<Option<Envelope>, StoreError> {
        let (path, query) = self.place.state(key);
        let call = Call::new(Method::GET, path).query(query);
        let answer = self.wire.send(&call).await?;
        match answer.status {
            200 if answer.body.is_empty() => Ok(None),
            200 => Envelope::parse(key, &answer.body).map(Some),
            // GitLab says this of a project that does not exist, and of one that we may not see.
            404 if is_about_project(&answer) => Err(self.wire.unexpected(&call, &answer)),
            204 | 404 => Ok(None),
            _ => Err(self.wire.unexpected(&call, &answer)),
        }
    }

    fn lock_call(&self, key: &str, info: &LockInfo) -> Call {
        let (path, query) = self.place.lock(key);
        Call::new(self.place.lock_method.clone(), path).query(query).json(json_of(info)).once()
    }

    /// Locks, or says who holds the lock.
    async fn ask_for_lock(&self, key: &str, info: &LockInfo) -> Result<Result<(), Holder>, StoreError> {
        let call = self.lock_call(key, info);
        let answer = self.wire.send(&call).await?;
        match answer.status {
            200..=299 => Ok(Ok(())),
            409 | 423 => {
                let holder = holder_in(&answer);
                // The answer to a request that arrived can be lost, and the server asked again by a proxy.
                if marked_id(&holder.owner) == info.id { Ok(Ok(())) } else { Ok(Err(holder)) }
            }
            _ => Err(self.wire.unexpected(&call, &answer)),
        }
    }

    async fn unlock(&self, key: &str, info: &LockInfo) -> Result<(), StoreError> {
        let (path, query) = self.place.unlock(key);
        let call = Call::new(self.place.unlock_method.clone(), path).query(query).json(json_of(info));
        let answer = self.wire.send(&call).await?;
        match answer.status {
            200..=299 | 404 => Ok(()),
            409 | 423 => Err(StoreError::OtherLock { key: key.to_owned(), id: info.id.clone() }),
            _ => Err(self.wire.unexpected(&call, &answer)),
        }
    }
}

fn json_of(info: &LockInfo) -> Vec<u8> {
    serde_json::to_vec(info).expect("texts are JSON")
}

fn is_about_project(answer: &Response) -> bool {
    #[derive(serde::Deserialize)]
    struct ErrorBody {
        message: String,
    }
    serde_json::from_slice(&answer.body).is_ok_and(|told: ErrorBody| told.message.contains("Project"))
}

fn holder_in(answer: &Response) -> Holder {
    let info: LockInfo = serde_json::from_slice(&answer.body).unwrap_or_default();
    Holder::endless(info.owner())
}

#[async_trait]
impl Store for ForeignServer {
    fn describe(&self) -> String {
        format!("http, {}", self.url)
    }

    fn caveat(&self) -> Option<String> {
        Some(
            "this server cannot compare and swap: a write is safe only while everyone respects the lock; it cannot list \
             its states either: a stack that left the source is found only where a command names it, as in `strata destroy NAME`"
                .to_owned(),
        )
    }

    fn kept(&self) -> Option<usize> {
        Some(self.kept)
    }

    async fn keys(&self) -> Result<Vec<String>, StoreError> {
        let mut keys = Vec::new();
        for key in &self.known {
            if self.envelope(key).await?.is_some_and(|envelope| envelope.holds_anything()) {
                keys.push(key.clone());
            }
        }
        keys.sort();
        Ok(keys)
    }

    async fn lists(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn read(&self, key: &str) -> Result<Option<StateDocument>, StoreError> {
        match self.envelope(key).await? {
            Some(envelope) => envelope.document(&self.codec, key),
            None => Ok(None),
        }
    }

    async fn read_journal(&self, key: &str) -> Result<Vec<JournalRecord>, StoreError> {
        match self.envelope(key).await? {
            Some(envelope) => self.codec.decode_journal(key, envelope.strata.journal.as_bytes()),
            None => Ok(Vec::new()),
        }
    }

    async fn lock(&self, key: &str, owner: LockOwner) -> Result<Box<dyn LockedState>, StoreError> {
        let info = LockInfo::marked(&owner, key);
        let mut asked = self.ask_for_lock(key, &info).await?;
        if let Err(holder) = &asked
            && holder.is_gone()
        {
            match self.unlock(key, &LockInfo::marked(&holder.owner, key)).await {
                Ok(()) | Err(StoreError::OtherLock { .. }) => {}
                Err(error) => return Err(error),
            }
            asked = self.ask_for_lock(key, &info).await?;
        }
        if let Err(holder) = asked {
            return Err(StoreError::Locked { key: key.to_owned(), holder: Box::new(holder) });
        }
        match self.envelope(key).await {
            Ok(envelope) => {
                let envelope = envelope.unwrap_or_else(|| Envelope::new(key));
                Ok(Box::new(ForeignLock::new(self.clone(), key, owner, envelope)))
            }
            Err(error) => {
                // The first error is the one to tell.
                let _ = self.unlock(key, &info).await;
                Err(error)
            }
        }
    }

    /// The protocol has no question for it: the lock is asked for, and given back if it was free.
    async fn holder(&self, key: &str) -> Result<Option<Holder>, StoreError> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| StoreError::Io {
            what: "no random numbers".to_owned(),
            source: std::io::Error::other(error.to_string()),
        })?;
        let asking = LockOwner {
            id: hex::encode(id),
            operation: "asking who holds the lock".to_owned(),
            ..LockOwner::unknown()
        };
        let asking = LockInfo::of(&asking, key);
        match self.ask_for_lock(key, &asking).await? {
            Ok(()) => self.unlock(key, &asking).await.map(|()| None),
            Err(holder) => Ok(Some(holder)),
        }
    }

    async fn break_lock(&self, key: &str, id: &str) -> Result<(), StoreError> {
        match self.holder(key).await? {
            Some(holder) if holder.owner.id == id => {
                self.unlock(key, &LockInfo::marked(&holder.owner, key)).await
            }
            _ => Err(StoreError::OtherLock { key: key.to_owned(), id: id.to_owned() }),
        }
    }

    async fn history(&self, key: &str) -> Result<Vec<Version>, StoreError> {
        Ok(self.envelope(key).await?.map(|envelope| envelope.versions()).unwrap_or_default())
    }

    async fn read_version(&self, key: &str, serial: u64) -> Result<StateDocument, StoreError> {
        let missing = || StoreError::NoVersion { key: key.to_owned(), serial };
        let envelope = self.envelope(key).await?.ok_or_else(missing)?;
        let kept = envelope.strata.versions.into_iter().find(|version| version.serial == serial);
        self.codec.decode(key, &envelope::bytes_of(&kept.ok_or_else(missing)?.document))
    }
}
