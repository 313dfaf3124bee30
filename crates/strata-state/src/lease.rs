//! Leases: a lock that lapses unless its holder is heard of, and a holder that knows in time when that may have happened.
//!
//! The holder counts from the moment at which it *sent* the last renewal that was answered, the store from the moment at which it
//! arrived; so the holder always stops first. It stops a margin earlier still, longer than any single write to a store may take.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::StoreError;

/// A clock that never goes back and counts while the machine sleeps.
pub type MonotonicClock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The machine's own. A laptop that was closed for an hour must know that the hour has passed.
pub fn system_clock() -> MonotonicClock {
    Arc::new(|| {
        #[cfg(target_os = "linux")]
        let clock = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let clock = rustix::time::ClockId::Monotonic;
        let now = rustix::time::clock_gettime(clock);
        Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
    })
}

/// How long leases are.
#[derive(Clone)]
pub struct LeaseTerms {
    /// After this long without a renewal others may take the lock.
    pub length: Duration,
    pub clock: MonotonicClock,
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self { length: Duration::from_secs(60), clock: system_clock() }
    }
}

impl LeaseTerms {
    pub fn of(length: Duration) -> Self {
        Self { length, ..Self::default() }
    }

    /// How long one request to the store may take.
    pub(crate) fn request_timeout(&self) -> Duration {
        self.length / 4
    }

    /// How long one remote write under the lease may take, where nothing but the lease keeps it from coming late. With what is left to
    /// begin it, this is the whole of the lease.
    pub fn write_timeout(&self) -> Duration {
        self.length / 3
    }

    /// How long to wait after a lease of this length has lapsed that was not heard of for `late` more.
    pub(crate) fn late_request_window(length: Duration, late: Duration) -> Duration {
        Self::of(length).write_timeout().saturating_sub(late)
    }

    /// How often the lease is renewed.
    fn pace(&self) -> Duration {
        self.length / 6
    }

    /// How long after a renewal the lock counts as held by its holder.
    fn safe(&self) -> Duration {
        self.length * 2 / 3
    }
}

/// What the holder of a lock knows about it. Shared with the task that renews it.
pub(crate) struct Held {
    key: String,
    terms: LeaseTerms,
    knowledge: Mutex<Knowledge>,
}

struct Knowledge {
    /// When the last renewal that was answered was sent.
    renewed: Duration,
    lost: bool,
}

/// What came of an attempt to renew.
pub(crate) enum Renewal {
    Renewed,
    /// Somebody else has the lock.
    Lost,
    /// No answer, or one that says nothing about the lock.
    Unknown,
}

impl Held {
    /// `sent` is when the request that took the lock was sent.
    pub(crate) fn since(key: &str, terms: &LeaseTerms, sent: Duration) -> Arc<Self> {
        let knowledge = Mutex::new(Knowledge { renewed: sent, lost: false });
        Arc::new(Self { key: key.to_owned(), terms: terms.clone(), knowledge })
    }

    pub(crate) fn write_timeout(&self) -> Duration {
        self.terms.write_timeout()
    }

    fn knowledge(&self) -> std::sync::MutexGuard<'_, Knowledge> {
        self.knowledge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let knowledge = self.knowledge();
        if knowledge.lost {
            return Err(StoreError::LockLost { key: self.key.clone() });
        }
        if (self.terms.clock)().saturating_sub(knowledge.renewed) >= self.terms.safe() {
            return Err(StoreError::Lapsed { key: self.key.clone() });
        }
        Ok(())
    }

    /// The lock was seen to be another's, or was released. It does not come back.
    pub(crate) fn lose(&self) -> StoreError {
        self.knowledge().lost = true;
        StoreError::LockLost { key: self.key.clone() }
    }

    fn note(&self, sent: Duration, renewal: &Renewal) {
        match renewal {
            Renewal::Renewed => self.knowledge().renewed = sent,
            Renewal::Lost => {
                self.lose();
            }
            Renewal::Unknown => {}
        }
    }
}

/// Renews a lease until it is lost or this is dropped.
pub(crate) struct Heartbeat(JoinHandle<()>);

impl Heartbeat {
    pub(crate) fn start<F>(held: Arc<Held>, renew: impl Fn() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Renewal> + Send,
    {
        Self(tokio::spawn(async move {
            let mut pause = held.terms.pace();
            loop {
                tokio::time::sleep(pause).await;
                let sent = (held.terms.clock)();
                let renewal = match tokio::time::timeout(held.terms.request_timeout(), renew()).await {
                    Ok(renewal) => renewal,
                    Err(_) => Renewal::Unknown,
                };
                held.note(sent, &renewal);
                pause = match renewal {
                    Renewal::Renewed => held.terms.pace(),
                    Renewal::Unknown => held.terms.pace() / 5,
                    Renewal::Lost => return,
                };
            }
        }))
    }

    pub(crate) fn stop(&self) {
        self.0.abort();
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A clock that a test moves, in seconds.
    fn moved_by_hand() -> (Arc<AtomicU64>, LeaseTerms) {
        let seconds = Arc::new(AtomicU64::new(100));
        let read = seconds.clone();
        let clock: MonotonicClock = Arc::new(move || Duration::from_secs(read.load(Ordering::SeqCst)));
        (seconds, LeaseTerms { length: Duration::from_secs(60), clock })
    }

    #[test]
    fn a_lock_counts_as_held_until_well_before_its_lease_ends() {
        let (seconds, terms) = moved_by_hand();
        let held = Held::since("dev/web", &terms, Duration::from_secs(100));
        seconds.store(139, Ordering::SeqCst);
        held.check().unwrap();
        seconds.store(140, Ordering::SeqCst);
        assert!(matches!(held.check(), Err(StoreError::Lapsed { .. })));
        // What begins at the last moment ends before another can have the lock.
        assert!(terms.safe() + terms.request_timeout() < terms.length);
        assert!(terms.safe() + terms.write_timeout() <= terms.length);
    }

    #[test]
    fn a_renewal_counts_from_when_it_was_sent() {
        let (seconds, terms) = moved_by_hand();
        let held = Held::since("dev/web", &terms, Duration::from_secs(100));
        held.note(Duration::from_secs(120), &Renewal::Renewed);
        seconds.store(159, Ordering::SeqCst);
        held.check().unwrap();
        seconds.store(160, Ordering::SeqCst);
        assert!(held.check().is_err());
        // A lease that lapsed and was renewed before anybody else wanted it is held again.
        held.note(Duration::from_secs(158), &Renewal::Renewed);
        held.check().unwrap();
    }

    #[test]
    fn a_lost_lock_stays_lost() {
        let (_, terms) = moved_by_hand();
        let held = Held::since("dev/web", &terms, Duration::from_secs(100));
        held.note(Duration::from_secs(100), &Renewal::Unknown);
        held.check().unwrap();
        held.note(Duration::from_secs(100), &Renewal::Lost);
        assert!(matches!(held.check(), Err(StoreError::LockLost { .. })));
        held.note(Duration::from_secs(101), &Renewal::Renewed);
        assert!(held.check().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn the_heart_beats_until_the_lock_is_lost() {
        let terms = LeaseTerms::of(Duration::from_secs(60));
        let held = Held::since("dev/web", &terms, (terms.clock)());
        let beats = Arc::new(AtomicU64::new(0));
        let counted = beats.clone();
        let heart = Heartbeat::start(held.clone(), move || {
            let beat = counted.fetch_add(1, Ordering::SeqCst);
            std::future::ready(match beat {
                0 => Renewal::Unknown,
                1..5 => Renewal::Renewed,
                _ => Renewal::Lost,
            })
        });
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(beats.load(Ordering::SeqCst), 6);
        assert!(matches!(held.check(), Err(StoreError::LockLost { .. })));
        drop(heart);
    }
}
