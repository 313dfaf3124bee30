//! A store whose locks are waited for: `--lock-timeout`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use strata_state::{
    Holder, JournalRecord, LockOwner, LockedState, StateDocument, Store, StoreError, Version,
};
use tokio::time::Instant;

use crate::observer::SessionEvent;
use crate::surroundings::Surroundings;

/// How often a lock is asked for. Short at first: most runs that are in the way are about to end.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Who waits is told again after this long that it goes on.
const REMINDER: Duration = Duration::from_secs(60);

/// Asks again for a lock that somebody else holds, until the time is over; everything else is as it is.
pub(super) struct WaitingStore {
    pub(super) store: Arc<dyn Store>,
    pub(super) surroundings: Surroundings,
}

#[async_trait]
impl Store for WaitingStore {
    fn describe(&self) -> String {
        self.store.describe()
    }

    fn caveat(&self) -> Option<String> {
        self.store.caveat()
    }

    fn kept(&self) -> Option<usize> {
        self.store.kept()
    }

    async fn keys(&self) -> Result<Vec<String>, StoreError> {
        self.store.keys().await
    }

    async fn lists(&self) -> Result<bool, StoreError> {
        self.store.lists().await
    }

    async fn read(&self, key: &str) -> Result<Option<StateDocument>, StoreError> {
        self.store.read(key).await
    }

    async fn read_journal(&self, key: &str) -> Result<Vec<JournalRecord>, StoreError> {
        self.store.read_journal(key).await
    }

    async fn lock(&self, key: &str, owner: LockOwner) -> Result<Box<dyn LockedState>, StoreError> {
        let until = Instant::now() + self.surroundings.lock_timeout;
        let mut told: Option<(String, Instant)> = None;
        let mut pause = FIRST_PAUSE;
        loop {
            // The lock is held since it was got, not since it was wanted.
            let owner = LockOwner { since: self.surroundings.timestamp(), ..owner.clone() };
            let holder = match self.store.lock(key, owner).await {
                Err(StoreError::Locked { holder, .. }) => holder,
                other => return other,
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(StoreError::Locked { key: key.to_owned(), holder });
            }
            let known =
                told.as_ref().is_some_and(|(id, when)| *id == holder.owner.id && when.elapsed() < REMINDER);
            if !known {
                self.surroundings.observer.session_event(SessionEvent::Waiting {
                    key,
                    holder: &holder,
                    left,
                });
                told = Some((holder.owner.id.clone(), Instant::now()));
            }
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn holder(&self, key: &str) -> Result<Option<Holder>, StoreError> {
        self.store.holder(key).await
    }

    async fn break_lock(&self, key: &str, id: &str) -> Result<(), StoreError> {
        self.store.break_lock(key, id).await
    }

    async fn history(&self, key: &str) -> Result<Vec<Version>, StoreError> {
        self.store.history(key).await
    }

    async fn read_version(&self, key: &str, serial: u64) -> Result<StateDocument, StoreError> {
        self.store.read_version(key, serial).await
    }
}
