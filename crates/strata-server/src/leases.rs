//! Which leases have lapsed, as far as this server can tell.
//!
//! A heartbeat changes the lock's number. A server that saw one number for the whole of the lease by its own monotonic clock knows that no
//! heartbeat came, whatever the clocks on the walls say and whichever server the heartbeats would have gone to.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use strata_storage::{Beat, Lock, StateName};

#[derive(Default)]
pub(crate) struct Leases(Mutex<HashMap<StateName, Seen>>);

struct Seen {
    beat: Beat,
    since: Duration,
    ttl: Duration,
}

impl Leases {
    /// Notes a lock that was seen at `now`.
    pub(crate) fn see(&self, name: &StateName, lock: Option<&Lock>, now: Duration) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((lock, ttl)) = lock.and_then(|lock| Some((lock, lock.ttl?))) else {
            seen.remove(name);
            return;
        };
        if seen.get(name).is_some_and(|seen| lock.is_at(&seen.beat)) {
            return;
        }
        let beat = Beat { id: lock.id.clone(), beat: lock.beat };
        seen.insert(name.clone(), Seen { beat, since: now, ttl: Duration::from_secs(u64::from(ttl)) });
    }

    /// How long ago the lease of this state lapsed.
    pub(crate) fn lapsed_for(&self, name: &StateName, now: Duration) -> Option<Duration> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.get(name)?;
        now.saturating_sub(seen.since).checked_sub(seen.ttl)
    }

    /// The lease of this state that has lapsed.
    pub(crate) fn lapsed(&self, name: &StateName, now: Duration) -> Option<Beat> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.get(name)?;
        (now.saturating_sub(seen.since) >= seen.ttl).then(|| seen.beat.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strata_storage::LockKind;

    fn lease(beat: u64) -> Lock {
        let (id, user) = ("a".to_owned(), "ci".to_owned());
        Lock { id, kind: LockKind::Lease, user, owner: None, info: None, ttl: Some(60), beat }
    }

    #[test]
    fn a_lease_lapses_when_its_number_stands_still() {
        let (leases, name) = (Leases::default(), StateName::parse("a").unwrap());
        let at = Duration::from_secs;
        leases.see(&name, Some(&lease(0)), at(0));
        leases.see(&name, Some(&lease(0)), at(50));
        assert_eq!(leases.lapsed(&name, at(59)), None);
        assert!(lease(0).is_at(&leases.lapsed(&name, at(60)).unwrap()));
        leases.see(&name, Some(&lease(1)), at(70));
        assert_eq!(leases.lapsed(&name, at(129)), None);
        assert!(leases.lapsed(&name, at(130)).is_some());
        assert_eq!(leases.lapsed_for(&name, at(131)), Some(at(1)));
        // A clock that went back lapses nothing.
        assert_eq!(leases.lapsed(&name, at(0)), None);
        leases.see(&name, None, at(131));
        assert_eq!(leases.lapsed(&name, at(999)), None);
    }

    #[test]
    fn a_lock_of_tofu_never_lapses() {
        let (leases, name) = (Leases::default(), StateName::parse("a").unwrap());
        leases.see(&name, Some(&Lock { kind: LockKind::Tofu, ttl: None, ..lease(0) }), Duration::ZERO);
        assert_eq!(leases.lapsed(&name, Duration::from_secs(1 << 40)), None);
    }
}
