//! The lock as an object: who holds it, and for how long without a sign of life. Freed by overwriting it, never by deleting it.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use strata_storage::s3::Objects;

use crate::{Holder, Lease, LeaseTerms, LockOwner, StoreError};

/// The server tells times in whole seconds, of its answer and of the object.
const COARSENESS: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Content {
    pub(super) owner: LockOwner,
    /// After this many seconds without a beat others may take it.
    pub(super) lease: u64,
    /// Makes every renewal another object.
    pub(super) beat: u64,
    pub(super) released: bool,
}

impl Content {
    pub(super) fn bytes(&self) -> Bytes {
        serde_json::to_vec(self).expect("texts and numbers are JSON").into()
    }
}

/// The lock as it was seen.
pub(super) struct LockObject {
    pub(super) content: Content,
    pub(super) tag: String,
    age: Option<Duration>,
}

pub(super) fn lock_at(key: &str) -> String {
    format!("{key}/lock")
}

impl LockObject {
    pub(super) async fn read(objects: &Objects, key: &str) -> Result<Option<Self>, StoreError> {
        let Some(found) = objects.get(&lock_at(key)).await? else { return Ok(None) };
        let content = serde_json::from_slice(&found.bytes).unwrap_or_else(|_| Content {
            owner: LockOwner::unknown(),
            lease: u64::from(u32::MAX),
            beat: 0,
            released: false,
        });
        Ok(Some(Self { content, tag: found.tag, age: found.age }))
    }

    /// None if it is free.
    pub(super) fn holder(&self) -> Option<Holder> {
        if self.content.released {
            return None;
        }
        let lease = Duration::from_secs(self.content.lease);
        let lease = match (lease + COARSENESS).checked_sub(self.age.unwrap_or_default()) {
            Some(left) if !left.is_zero() => Lease::Running(left),
            _ => Lease::Lapsed,
        };
        Some(Holder { owner: self.content.owner.clone(), lease })
    }

    /// How long requests of its holder may still arrive, if its lease has lapsed.
    pub(super) fn unsettled(&self) -> Duration {
        match self.holder() {
            Some(holder) if holder.lease == Lease::Lapsed && !holder.owner.is_dead_here() => {
                let lease = Duration::from_secs(self.content.lease);
                let late = self.age.unwrap_or_default().saturating_sub(lease + COARSENESS);
                LeaseTerms::unsettled(lease, late)
            }
            _ => Duration::ZERO,
        }
    }

    /// Frees the lock as it was seen. False if it is another one by now.
    pub(super) async fn free(&self, objects: &Objects, key: &str) -> Result<bool, StoreError> {
        let freed = Content { released: true, ..self.content.clone() };
        Ok(objects.replace(&lock_at(key), freed.bytes(), &self.tag).await?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(age: Option<u64>, released: bool) -> LockObject {
        let content = Content { owner: LockOwner::unknown(), lease: 60, beat: 0, released };
        LockObject { content, tag: String::new(), age: age.map(Duration::from_secs) }
    }

    #[test]
    fn a_lease_lapses_by_the_clock_of_the_server() {
        assert_eq!(seen(Some(61), false).holder().unwrap().lease, Lease::Running(Duration::from_secs(1)));
        assert_eq!(seen(Some(62), false).holder().unwrap().lease, Lease::Lapsed);
        // A server that does not tell the time never lets a lease lapse.
        assert_eq!(seen(None, false).holder().unwrap().lease, Lease::Running(Duration::from_secs(62)));
        assert_eq!(seen(Some(0), true).holder(), None);
    }

    #[test]
    fn a9_who_takes_a_lapsed_lease_waits_for_requests_of_the_former_holder() {
        assert_eq!(seen(Some(61), false).unsettled(), Duration::ZERO, "it has not lapsed");
        assert_eq!(seen(Some(62), false).unsettled(), Duration::from_secs(20));
        assert_eq!(seen(Some(70), false).unsettled(), Duration::from_secs(12));
        assert_eq!(seen(Some(500), false).unsettled(), Duration::ZERO);
        assert_eq!(seen(Some(62), true).unsettled(), Duration::ZERO, "it was given back");
    }
}
