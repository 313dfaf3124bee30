//! How a user stops an apply: once to finish what runs, twice to stop now.

use std::sync::Arc;

use tokio::sync::watch;

/// Shared between the apply and whoever hears the interrupts.
#[derive(Clone)]
pub struct StopSignal(Arc<watch::Sender<u8>>);

impl Default for StopSignal {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl StopSignal {
    /// The first call: nothing new is begun. The second: what runs is left where it is; the journal has it.
    pub fn stop(&self) {
        self.0.send_modify(|calls| *calls = calls.saturating_add(1));
    }

    pub fn stopping(&self) -> bool {
        *self.0.borrow() > 0
    }

    pub fn now(&self) -> bool {
        *self.0.borrow() > 1
    }

    /// Returns once [`Self::stop`] has been called so many times.
    pub async fn called(&self, times: u8) {
        // Fails only if the sender is gone, and the sender is `self`.
        let _ = self.0.subscribe().wait_for(|calls| *calls >= times).await;
    }
}
