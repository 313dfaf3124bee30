//! What the servers of one simulator share: the pace, the seed, faults, counts, the network, and the bell that rings on changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::{Clock, Faults, Network, Pace, Requests, Seed};

type Settle = Box<dyn Fn() + Send + Sync>;

/// What the servers of one simulator have in common. The state of each part is behind a lock of its own.
pub struct Shared {
    /// How fast time passes.
    pub pace: Pace,
    /// What everything that is made up derives from.
    pub seed: Seed,
    /// Rung when something changed: a task ended, and with it any lock it held; a machine came up; an object was written.
    bell: Notify,
    /// Something changed since the last save.
    dirty: AtomicBool,
    /// What goes wrong.
    pub faults: Faults,
    requests: Mutex<Requests>,
    /// Who listens where in the simulated network.
    pub network: Network,
    advance: OnceLock<Settle>,
}

impl Shared {
    /// Nothing listens yet, and nothing goes wrong.
    pub fn new(seed: Seed, pace: Pace) -> Self {
        Self {
            pace,
            seed,
            bell: Notify::new(),
            dirty: AtomicBool::new(true),
            faults: Faults::default(),
            requests: Mutex::default(),
            network: Network::default(),
            advance: OnceLock::new(),
        }
    }

    /// The clock at this simulator's pace.
    pub fn clock(&self) -> Clock {
        Clock { second: self.pace.scale(1.0).as_secs_f64() }
    }

    /// The counts of requests, for as long as the guard lives.
    pub fn count(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everyone who waits that something is not what it was.
    pub fn changed(&self) {
        self.dirty.store(true, Ordering::Release);
        self.bell.notify_waiters();
    }

    /// The next time that something changes.
    pub fn until_changed(&self) -> Notified<'_> {
        self.bell.notified()
    }

    /// Whether something changed since this was last asked.
    pub fn take_dirty(&self) -> bool {
        self.dirty.swap(false, Ordering::AcqRel)
    }

    /// Says what brings every part up to the present. The first word counts.
    pub fn on_advance(&self, advance: impl Fn() + Send + Sync + 'static) {
        let _ = self.advance.set(Box::new(advance));
    }

    /// Brings every part up to the present. Who calls it holds no lock of a part.
    pub fn advance(&self) {
        if let Some(advance) = self.advance.get() {
            advance();
        }
    }
}
