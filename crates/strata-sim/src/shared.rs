//! What the servers of one simulator share: the world behind its lock, the pace, faults and counts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::control::faults::Faults;
use crate::control::requests::Requests;
use crate::gateway::Network;
use crate::options::Pace;
use crate::talos::Certificates;
use crate::task::LockKey;
use crate::world::World;

/// How long the API waits for the lock of a guest, in its own seconds.
const LOCK_SECONDS: f64 = 10.0;

pub struct Shared {
    world: Mutex<World>,
    pub pace: Pace,
    /// How long a refused login is kept waiting.
    pub auth_delay: Duration,
    /// Rung when a task ended, and with it any lock it held.
    bell: Notify,
    /// Something changed since the last save.
    pub dirty: AtomicBool,
    pub faults: Faults,
    pub requests: Mutex<Requests>,
    /// Who listens where in the simulated network.
    pub network: Network,
    pub certificates: Certificates,
    api_port: OnceLock<u16>,
}

impl Shared {
    pub fn new(world: World, pace: Pace, auth_delay: Duration) -> Self {
        Self {
            world: Mutex::new(world),
            pace,
            auth_delay,
            bell: Notify::new(),
            dirty: AtomicBool::new(true),
            faults: Faults::default(),
            requests: Mutex::default(),
            network: Network::default(),
            certificates: Certificates::default(),
            api_port: OnceLock::new(),
        }
    }

    /// The world, for as long as the guard lives. A call that panicked leaves it as it was at that point.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn count(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everyone who waits that the world is not what it was.
    pub fn changed(&self) {
        self.dirty.store(true, Ordering::Release);
        self.bell.notify_waiters();
    }

    /// The next time that something changes.
    pub fn until_changed(&self) -> Notified<'_> {
        self.bell.notified()
    }

    /// Brings the machines up to the present. Gives the time of the next event, in milliseconds since 1970, and now.
    pub fn settle(&self) -> (Option<i64>, i64) {
        let mut world = self.world();
        let before = (world.talos.mark(), world.kubernetes.mark());
        let next = world.settle();
        let moved = before != (world.talos.mark(), world.kubernetes.mark());
        let now = world.now_ms();
        drop(world);
        if moved {
            self.changed();
        }
        (next, now)
    }

    /// The loopback port of the API, once it is known.
    pub fn api_port(&self) -> u16 {
        self.api_port.get().copied().unwrap_or_default()
    }

    pub fn set_api_port(&self, port: u16) {
        let _ = self.api_port.set(port);
    }

    /// Waits until a lock is free, and takes it if a task is named. False after the API's patience.
    pub async fn wait_free(&self, key: &LockKey, holder: Option<u64>) -> bool {
        let end = tokio::time::Instant::now() + self.pace.scale(LOCK_SECONDS);
        loop {
            let rung = self.bell.notified();
            tokio::pin!(rung);
            rung.as_mut().enable();
            {
                let mut world = self.world();
                let free = match holder {
                    Some(id) => world.tasks.lock(key, id),
                    None => !world.tasks.is_locked(key),
                };
                if free {
                    return true;
                }
            }
            if tokio::time::timeout_at(end, rung).await.is_err() {
                return false;
            }
        }
    }
}
