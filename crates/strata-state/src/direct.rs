//! States in a storage that this program opens itself: the rules of the state server (`strata-storage`), without a server.
//!
//! What a server does for its clients is done here: a lease has lapsed when the storage's own clock says so, and documents are given to the
//! storage as bytes.

mod locked;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use strata_net::{Clock as _, SystemClock};
use strata_storage::{
    Beat, Command, Failure, FailureKind, Head, Lock, LockKind, Outcome, Refusal, StateName, Storage,
    StorageError, Which,
};

use crate::s3::Table;
use crate::{
    Codec, Holder, JournalRecord, Lease, LeaseTerms, LockOwner, LockedState, StateDocument, Store,
    StoreError, Version,
};
use locked::DirectLock;

/// Whose commands they are. Without a server there are no users: whoever can write to the storage can do everything.
const USER: &str = "";

/// What differs from one storage to another.
pub(crate) struct Direct {
    pub(crate) storage: Box<dyn Storage>,
    /// For people.
    pub(crate) place: String,
    pub(crate) codec: Codec,
    pub(crate) lease: LeaseTerms,
    pub(crate) kept: usize,
    /// Where locks are entered as well.
    pub(crate) table: Option<Table>,
    /// What to do about a failure.
    pub(crate) hint: fn(FailureKind) -> Option<&'static str>,
}

/// A state as it was looked at.
struct Look {
    head: Head,
    idle: Option<Duration>,
}

impl Look {
    fn holder(&self) -> Option<Holder> {
        self.head.lock.as_ref().map(|lock| holder_of(lock, self.idle))
    }

    /// How long requests of the holder may still arrive, if its lease has lapsed.
    fn late_request_window(&self) -> Duration {
        let ttl = self.head.lock.as_ref().and_then(|lock| lock.ttl);
        match (self.holder(), ttl) {
            (Some(holder), Some(ttl)) if holder.lease == Lease::Lapsed && !holder.owner.is_dead_here() => {
                let ttl = Duration::from_secs(u64::from(ttl));
                LeaseTerms::late_request_window(ttl, self.idle.unwrap_or_default().saturating_sub(ttl))
            }
            _ => Duration::ZERO,
        }
    }
}

/// `idle`: how long nothing was heard of it.
fn holder_of(lock: &Lock, idle: Option<Duration>) -> Holder {
    let lease = match lock.ttl.map(|ttl| Duration::from_secs(u64::from(ttl))) {
        None => Lease::Endless,
        Some(ttl) => match ttl.checked_sub(idle.unwrap_or_default()) {
            Some(left) if !left.is_zero() => Lease::Running(left),
            _ => Lease::Lapsed,
        },
    };
    let told = lock.owner.clone().and_then(|owner| serde_json::from_value(owner).ok());
    let mut owner: LockOwner = told.unwrap_or_else(LockOwner::unknown);
    owner.id.clone_from(&lock.id);
    Holder { owner, lease }
}

impl Direct {
    fn failed(&self, failure: Failure) -> StoreError {
        let hint = (self.hint)(failure.kind).map(str::to_owned);
        StoreError::failure(failure).with_hint(hint)
    }

    /// What a storage could not do with this state.
    fn problem(&self, key: &str, error: StorageError) -> StoreError {
        match error {
            StorageError::Damaged(failure) => {
                StoreError::Damaged { key: key.to_owned(), reason: failure.to_string(), newest_good: None }
            }
            StorageError::Failed(failure) => self.failed(failure),
            other => StoreError::remote_error(format!("the state `{key}` cannot be kept"), other),
        }
    }

    fn name(&self, key: &str) -> Result<StateName, StoreError> {
        let what = || format!("`{key}` cannot be the name of a state here");
        StateName::of_key(key).map_err(|error| StoreError::remote_error(what(), error))
    }

    async fn look(&self, key: &str) -> Result<Look, StoreError> {
        let looked = self.storage.look(&self.name(key)?).await;
        looked.map(|(head, idle)| Look { head, idle }).map_err(|error| self.problem(key, error))
    }

    async fn execute(&self, key: &str, command: Command) -> Result<Result<Outcome, Refusal>, StoreError> {
        let done = self.storage.execute(&self.name(key)?, command).await;
        done.map_err(|error| self.problem(key, error))
    }

    async fn bytes(&self, key: &str, which: Which) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.storage.read(&self.name(key)?, which).await;
        let Some((_, mut content)) = found.map_err(|error| self.problem(key, error))? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        while let Some(piece) = content.next().await {
            bytes.extend_from_slice(&piece.map_err(|error| self.problem(key, error))?);
        }
        Ok(Some(bytes))
    }

    async fn document(&self, key: &str, which: Which) -> Result<Option<StateDocument>, StoreError> {
        let bytes = self.bytes(key, which).await?;
        bytes.map(|bytes| self.codec.decode(key, &bytes)).transpose()
    }

    /// By serial, newest first. Of two with one serial the later counts.
    async fn versions(&self, key: &str) -> Result<Vec<Version>, StoreError> {
        let found = self.storage.versions(&self.name(key)?).await;
        let found = found.map_err(|error| self.problem(key, error))?;
        let mut versions: Vec<Version> = Vec::new();
        for version in found {
            let Some(serial) = version.serial else { continue };
            if versions.iter().all(|known| known.serial != serial) {
                let written = jiff::Timestamp::from_second(version.written).unwrap_or_default().to_string();
                versions.push(Version { serial, written, bytes: version.size });
            }
        }
        versions.sort_by_key(|version| std::cmp::Reverse(version.serial));
        Ok(versions)
    }

    async fn newest_good(&self, key: &str) -> Option<u64> {
        for version in self.versions(key).await.ok()? {
            if matches!(self.document(key, Which::Serial(version.serial)).await, Ok(Some(_))) {
                return Some(version.serial);
            }
        }
        None
    }

    /// Seconds since 1970.
    fn now() -> i64 {
        SystemClock::new().unix()
    }

    fn locked(key: &str, holder: Holder) -> StoreError {
        StoreError::Locked { key: key.to_owned(), holder: Box::new(holder) }
    }

    /// Takes the lease, also of a holder that is gone, and the entry in the lock table. Gives what was seen before.
    async fn take(&self, key: &str, owner: &LockOwner) -> Result<(Look, Duration), StoreError> {
        let look = self.look(key).await?;
        let lock = Lock {
            id: owner.id.clone(),
            kind: LockKind::Lease,
            user: USER.to_owned(),
            owner: serde_json::to_value(owner).ok(),
            info: None,
            ttl: Some(u32::try_from(self.lease.length.as_secs().max(1)).unwrap_or(u32::MAX)),
            beat: 0,
        };
        let gone = look.head.lock.as_ref().filter(|_| look.holder().is_some_and(|holder| holder.is_gone()));
        let lapsed = gone.map(|held| Beat { id: held.id.clone(), beat: held.beat });
        let sent = (self.lease.clock)();
        match self.execute(key, Command::Lock { lock, lapsed }).await? {
            Ok(_) => {}
            Err(Refusal::Held(held)) => {
                let seen = look.head.lock.as_ref() == Some(&*held);
                return Err(Self::locked(key, holder_of(&held, look.idle.filter(|_| seen))));
            }
            Err(refusal) => {
                return Err(StoreError::remote_error(format!("`{key}` cannot be locked"), refusal));
            }
        }
        if let Some(table) = &self.table {
            let former = look.holder().map(|holder| holder.owner);
            if let Err(error) = table.take(key, owner, former.as_ref()).await {
                // The first error is the one to tell; the lease ends by itself.
                let _ = self.execute(key, unlock(&owner.id)).await;
                return Err(error);
            }
        }
        Ok((look, sent))
    }
}

fn unlock(id: &str) -> Command {
    Command::Unlock { id: Some(id.to_owned()), user: USER.to_owned(), may_break: true }
}

/// A store over a storage; `B` says which.
pub struct DirectStore<B> {
    direct: Arc<Direct>,
    backend: PhantomData<fn() -> B>,
}

impl<B> DirectStore<B> {
    pub(crate) fn over(direct: Direct) -> Self {
        Self { direct: Arc::new(direct), backend: PhantomData }
    }
}

#[async_trait]
impl<B> Store for DirectStore<B> {
    fn describe(&self) -> String {
        self.direct.place.clone()
    }

    fn kept(&self) -> Option<usize> {
        Some(self.direct.kept)
    }

    async fn keys(&self) -> Result<Vec<String>, StoreError> {
        let direct = &self.direct;
        let names = direct.storage.names().await.map_err(|error| direct.problem("*", error))?;
        let mut keys: Vec<String> = names.iter().map(|name| name.as_str().to_owned()).collect();
        keys.sort();
        Ok(keys)
    }

    async fn read(&self, key: &str) -> Result<Option<StateDocument>, StoreError> {
        let direct = &self.direct;
        match direct.document(key, Which::Current).await {
            Err(StoreError::Damaged { key, reason, .. }) => {
                let newest_good = direct.newest_good(&key).await;
                Err(StoreError::Damaged { key, reason, newest_good })
            }
            other => other,
        }
    }

    async fn read_journal(&self, key: &str) -> Result<Vec<JournalRecord>, StoreError> {
        let direct = &self.direct;
        let lines =
            direct.storage.journal(&direct.name(key)?).await.map_err(|error| direct.problem(key, error))?;
        direct.codec.decode_journal(key, &lines)
    }

    async fn lock(&self, key: &str, owner: LockOwner) -> Result<Box<dyn LockedState>, StoreError> {
        let direct = &self.direct;
        let (before, sent) = direct.take(key, &owner).await?;
        Ok(Box::new(DirectLock::start(direct.clone(), key, owner, sent, before.late_request_window())))
    }

    async fn holder(&self, key: &str) -> Result<Option<Holder>, StoreError> {
        let direct = &self.direct;
        match (direct.look(key).await?.holder(), &direct.table) {
            (None, Some(table)) => Ok(table.holder(key).await?.map(Holder::endless)),
            (holder, _) => Ok(holder),
        }
    }

    async fn break_lock(&self, key: &str, id: &str) -> Result<(), StoreError> {
        let direct = &self.direct;
        let mut broken = false;
        if let Some(table) = &direct.table
            && table.holder(key).await?.is_some_and(|owner| owner.id == id)
        {
            table.free(key, id).await?;
            broken = true;
        }
        if let Ok(Outcome::Unlocked(Some(_))) = direct.execute(key, unlock(id)).await? {
            broken = true;
        }
        if broken { Ok(()) } else { Err(StoreError::OtherLock { key: key.to_owned(), id: id.to_owned() }) }
    }

    async fn history(&self, key: &str) -> Result<Vec<Version>, StoreError> {
        let direct = &self.direct;
        direct.versions(key).await
    }

    async fn read_version(&self, key: &str, serial: u64) -> Result<StateDocument, StoreError> {
        let direct = &self.direct;
        let found = direct.document(key, Which::Serial(serial)).await?;
        found.ok_or_else(|| StoreError::NoVersion { key: key.to_owned(), serial })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(idle: Option<u64>) -> Look {
        let lock = Lock {
            id: "a".into(),
            kind: LockKind::Lease,
            user: String::new(),
            owner: serde_json::to_value(LockOwner::unknown()).ok(),
            info: None,
            ttl: Some(60),
            beat: 0,
        };
        Look { head: Head { lock: Some(lock), ..Head::default() }, idle: idle.map(Duration::from_secs) }
    }

    #[test]
    fn a_lease_lapses_by_the_clock_of_the_storage() {
        let lease = |idle| seen(idle).holder().unwrap().lease;
        assert_eq!(lease(Some(59)), Lease::Running(Duration::from_secs(1)));
        assert_eq!(lease(Some(60)), Lease::Lapsed);
        // A storage that does not tell the time never lets a lease lapse.
        assert_eq!(lease(None), Lease::Running(Duration::from_secs(60)));
    }

    #[test]
    fn a9_who_takes_a_lapsed_lease_waits_for_requests_of_the_former_holder() {
        assert_eq!(seen(Some(59)).late_request_window(), Duration::ZERO, "it has not lapsed");
        assert_eq!(seen(Some(60)).late_request_window(), Duration::from_secs(20));
        assert_eq!(seen(Some(68)).late_request_window(), Duration::from_secs(12));
        assert_eq!(seen(Some(500)).late_request_window(), Duration::ZERO);
        assert_eq!(
            Look { head: Head::default(), idle: None }.late_request_window(),
            Duration::ZERO,
            "it was given back"
        );
    }
}
