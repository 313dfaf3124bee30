//! The world behind its lock, and what the servers of the datacenter share.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::Value;
use strata_sim_core::Shared;
use strata_sim_core::network::{Nobody, ReachedListener, Visit, listener};
use tokio::net::TcpStream;

use crate::control;
use crate::task::{LockKey, drive};
use crate::world::World;

/// How long the API waits for the lock of a guest, in its own seconds.
const LOCK_SECONDS: f64 = 10.0;
const PORT: u16 = 8006;

/// A datacenter that can be served.
pub struct Datacenter {
    pub(crate) shared: Arc<Shared>,
    world: Mutex<World>,
    /// How long a refused login is kept waiting.
    pub(crate) auth_delay: Duration,
    api_port: OnceLock<u16>,
}

impl Datacenter {
    /// From now on its nodes are found at their addresses; they answer once the API is served.
    pub fn open(shared: &Arc<Shared>, mut world: World, auth_delay: Duration) -> Arc<Self> {
        world.clock = shared.clock();
        let datacenter = Arc::new(Self {
            shared: Arc::clone(shared),
            world: Mutex::new(world),
            auth_delay,
            api_port: OnceLock::new(),
        });
        let here = Arc::downgrade(&datacenter);
        shared.network.ask(move |host, port| here.upgrade().ok_or(Nobody::Unreachable)?.find(host, port));
        datacenter
    }

    /// The world, for as long as the guard lives. A call that panicked leaves it as it was at that point.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Someone else's change: a call of the API, or what only a shell on a node could do.
    pub async fn change(self: &Arc<Self>, change: &Value) -> Result<Value, String> {
        control::call::apply(self, change).await
    }

    /// Lets the daemons of the nodes do what is due. Gives the time of what comes next, in milliseconds since 1970.
    pub fn advance(self: &Arc<Self>) -> Option<i64> {
        let mut world = self.world();
        let next = world.advance_daemons();
        drive::pick_up(self, &mut world);
        next
    }

    /// Says on which port of the loopback the API is served.
    pub fn set_api_port(&self, port: u16) {
        let _ = self.api_port.set(port);
    }

    /// Waits until a lock is free, and takes it if a task is named. False after the API's patience.
    pub(crate) async fn wait_free(&self, key: &LockKey, holder: Option<u64>) -> bool {
        let end = tokio::time::Instant::now() + self.shared.pace.scale(LOCK_SECONDS);
        loop {
            let rung = self.shared.until_changed();
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

    fn find(self: Arc<Self>, host: &str, port: u16) -> Result<ReachedListener, Nobody> {
        if !self.world().nodes.values().any(|node| node.ip == host) {
            return Err(Nobody::Unreachable);
        }
        match port {
            PORT => Ok(ReachedListener { listener: listener(&self, pass_on), gone: None }),
            _ => Err(Nobody::Refused),
        }
    }
}

/// The API listens on a loopback port of its own.
async fn pass_on(datacenter: Arc<Datacenter>, mut visit: Visit) {
    let port = datacenter.api_port.get().copied().unwrap_or_default();
    drop(datacenter);
    if let Ok(mut api) = TcpStream::connect(("127.0.0.1", port)).await {
        let _ = tokio::io::copy_bidirectional(&mut visit.stream, &mut api).await;
    }
}
