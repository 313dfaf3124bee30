//! The rollout lock of a cluster, and what the steps of one run know of each other by it.
//!
//! Only execution is here: what observing and reviewing go by is the state and what they see themselves.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, MutexGuard};

pub(crate) struct Rollout {
    lock: Mutex<Slot>,
    /// By the state, by the plan, or because a step of this run bootstrapped etcd or found it running.
    etcd_runs: AtomicBool,
}

/// Whoever holds it disturbs a node, alone.
#[derive(Default)]
pub(crate) struct Slot {
    /// A snapshot of etcd was made in this run.
    pub(crate) snapshot_taken: bool,
}

impl Rollout {
    pub(crate) fn new(etcd_runs: bool) -> Self {
        Self { lock: Mutex::default(), etcd_runs: AtomicBool::new(etcd_runs) }
    }

    pub(crate) async fn slot(&self) -> MutexGuard<'_, Slot> {
        self.lock.lock().await
    }

    pub(crate) fn etcd_runs(&self) -> bool {
        self.etcd_runs.load(Ordering::SeqCst)
    }

    pub(crate) fn now_runs(&self) {
        self.etcd_runs.store(true, Ordering::SeqCst);
    }
}
