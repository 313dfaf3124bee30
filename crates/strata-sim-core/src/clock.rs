//! What time it is, and how long a second takes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The clock on every wall of the simulated datacenter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock {
    /// Real seconds that one second of the simulation takes.
    pub second: f64,
}

impl Clock {
    /// Seconds since 1970.
    pub fn now(self) -> i64 {
        i64::try_from(unix_time().as_secs()).unwrap_or_default()
    }

    /// Milliseconds since 1970.
    pub fn now_ms(self) -> i64 {
        i64::try_from(unix_time().as_millis()).unwrap_or_default()
    }

    /// So many seconds at this simulator's pace, in milliseconds.
    pub fn scaled_ms(self, seconds: f64) -> i64 {
        (seconds * self.second * 1000.0) as i64
    }
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
