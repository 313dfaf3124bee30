//! How a simulator is set up.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Which datacenter to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorldKind {
    /// Three nodes, local and shared storages, a pool, a role with its token.
    #[default]
    Default,
    /// One node `pve`, storage `local`, bridge `vmbr0`, one ISO and one container template.
    Single,
}

impl FromStr for WorldKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "default" => Ok(Self::Default),
            "single" => Ok(Self::Single),
            other => Err(format!("unknown world `{other}`, expected `default` or `single`")),
        }
    }
}

/// How long tasks take: a factor on what they take in reality.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace(f64);

impl Pace {
    /// Every task has ended when its request is answered.
    pub const INSTANT: Self = Self(0.0);
    /// Twenty times as fast as a small real server.
    pub const FAST: Self = Self(0.05);
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

/// Everything that can be chosen. `SimOptions::default()` is a default world on free ports.
#[derive(Debug, Clone)]
pub struct SimOptions {
    pub world: WorldKind,
    /// Port of the API; 0 takes a free one.
    pub port: u16,
    /// Port of the control interface; 0 takes a free one.
    pub control_port: u16,
    /// Port of the gateway to the simulated network; 0 takes a free one.
    pub gateway_port: u16,
    /// A token `user@realm!name=secret` without privilege separation to have besides the world's own.
    pub token: Option<String>,
    /// The password of root@pam.
    pub password: Option<String>,
    /// Everything the server makes up derives from this and from the object it is for.
    pub seed: u64,
    pub pace: Pace,
    /// Keeps the objects across runs.
    pub data_dir: Option<PathBuf>,
    /// How long a refused login waits; none means 3 s at real pace and nothing otherwise.
    pub auth_delay: Option<Duration>,
    /// This many stopped VMs to begin with, numbered from 10000.
    pub guests: usize,
}

/// The ports of the default world, so that examples can name them.
pub const DEFAULT_PORT: u16 = 18006;
pub const DEFAULT_CONTROL_PORT: u16 = 18007;
pub const DEFAULT_GATEWAY_PORT: u16 = 18008;

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            world: WorldKind::Default,
            port: 0,
            control_port: 0,
            gateway_port: 0,
            token: None,
            password: None,
            seed: 1,
            pace: Pace::default(),
            data_dir: None,
            auth_delay: None,
            guests: 0,
        }
    }
}

impl SimOptions {
    pub fn auth_delay(&self) -> Duration {
        self.auth_delay.unwrap_or(if self.pace.is_real() { Duration::from_secs(3) } else { Duration::ZERO })
    }
}
