//! Time, passed in: what waits asks a clock, so that a test can replay it.

use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;

/// Time, passed in so that a run can be repeated.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Time since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;
    /// Seconds since 1970.
    fn unix(&self) -> i64;
    /// Waits.
    async fn sleep(&self, duration: Duration);
}

/// The clock of the machine.
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that begins now.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix(&self) -> i64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
