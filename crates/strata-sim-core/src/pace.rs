//! How fast time passes.

use std::str::FromStr;
use std::time::Duration;

/// How long tasks take: a factor on what they take in reality.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace(f64);

impl Pace {
    /// Every task has ended when its request is answered.
    pub const INSTANT: Self = Self(0.0);
    /// Twenty times as fast as a small real server.
    pub const FAST: Self = Self(0.05);
    /// As fast as a small real server.
    pub const REAL: Self = Self(1.0);

    pub fn is_instant(self) -> bool {
        self.0 == 0.0
    }

    pub fn is_real(self) -> bool {
        self.0 >= 1.0
    }

    pub fn scale(self, seconds: f64) -> Duration {
        Duration::from_secs_f64((seconds * self.0).clamp(0.0, 86_400.0))
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::FAST
    }
}

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "instant" => Ok(Self::INSTANT),
            "fast" => Ok(Self::FAST),
            "real" => Ok(Self::REAL),
            number => match number.parse::<f64>() {
                Ok(factor) if (0.0..=1000.0).contains(&factor) => Ok(Self(factor)),
                _ => Err(format!("unknown pace `{number}`, expected `instant`, `fast`, `real` or a factor")),
            },
        }
    }
}
