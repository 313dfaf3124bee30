//! How a simulator is set up.

use std::path::PathBuf;
use std::time::Duration;

use strata_sim_core::{Pace, Seed};
use strata_sim_proxmox::{Beginning, WorldKind};

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

    /// What the world begins with.
    pub(crate) fn beginning(&self) -> Beginning {
        Beginning {
            world: self.world,
            seed: Seed(self.seed),
            token: self.token.clone(),
            password: self.password.clone(),
            guests: self.guests,
        }
    }
}
