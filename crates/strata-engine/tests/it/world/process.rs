//! One run of the program, which can be killed: from then on nothing that it asked for goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Process {
    dead: AtomicBool,
    died: Notify,
    /// How many turns others get more, each time.
    slowness: usize,
}

impl Process {
    pub(crate) fn start() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn start_slow(slowness: usize) -> Arc<Self> {
        Arc::new(Self { slowness, ..Self::default() })
    }

    /// Kills it, and never returns to the one who asked.
    pub(crate) async fn kill(&self) -> ! {
        self.dead.store(true, Ordering::SeqCst);
        self.died.notify_one();
        std::future::pending().await
    }

    /// Goes on only while it lives. Others run here, as with any real request.
    pub(crate) async fn breathe(&self) {
        for _ in 0..=self.slowness {
            tokio::task::yield_now().await;
        }
        if self.dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) async fn death(&self) {
        self.died.notified().await;
    }
}
