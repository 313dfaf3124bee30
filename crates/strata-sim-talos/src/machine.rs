//! A machine: whether it is on, what it runs, and what it was last told to do.

use serde::{Deserialize, Serialize};

use super::config::MachineConfig;
use super::disk::Disk;
use super::image::Image;

/// What a machine is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Firmware, kernel, network; nothing answers yet.
    Booting,
    /// Waits for a configuration.
    Maintenance,
    /// Writes itself to a disk; then it reboots.
    Installing,
    Running,
    /// Goes down and comes up again.
    Rebooting(String),
    /// Goes down for good.
    ShuttingDown,
    /// There is nothing to boot.
    NoSystem,
}

/// One boot of a machine, from power-on or reboot to the next.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Boot {
    /// Changes with every boot.
    pub id: String,
    pub stage: Stage,
    /// When the stage ends by itself, in milliseconds since 1970.
    pub until: Option<i64>,
    /// What runs.
    pub image: Option<Image>,
    /// It was started from its disk.
    pub from_disk: bool,
    /// Addresses that it has without a configuration.
    pub platform: Vec<String>,
    /// What DHCP gave to its cards. It asks unless its configuration gives them other addresses.
    #[serde(default)]
    pub leases: Vec<String>,
    /// The configuration in effect.
    pub config: Option<MachineConfig>,
    /// The configuration with which this boot began, where what is in effect may differ from it until the next one.
    pub booted_config: Option<MachineConfig>,
    /// A trial ends at this time, and then this configuration comes back.
    pub trial: Option<(i64, MachineConfig)>,
    /// Services that someone stopped.
    pub stopped: Vec<String>,
    /// A snapshot that was uploaded and waits for a bootstrap.
    pub snapshot: Option<Vec<u8>>,
    /// When its services came up.
    pub running_since: Option<i64>,
    /// When its etcd first had a leader in this boot; the API server follows.
    pub etcd_since: Option<i64>,
}

/// A machine that is no VM.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Metal {
    /// What it boots when its disk is empty.
    pub image: Image,
    pub addresses: Vec<String>,
    pub on: bool,
    pub disk: Option<Box<Disk>>,
    /// Changes with each power-on.
    pub starts: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Machine {
    pub metal: Option<Metal>,
    /// The VM and its power cycle that the boot belongs to: when it was made, and how often it was started.
    pub power: Option<(i64, u64)>,
    pub boot: Option<Boot>,
    /// How often it booted, reboots included.
    pub boots: u64,
    /// How far its clock is ahead, in seconds.
    pub skew: i64,
    /// Its certificate has expired.
    pub expired: bool,
    /// Nothing reaches it, though it runs.
    pub cut_off: bool,
    /// How often its kubelet was restarted without a reboot.
    #[serde(default)]
    pub kubelet_restarts: u32,
}

impl Machine {
    pub fn stage(&self) -> Option<&Stage> {
        self.boot.as_ref().map(|boot| &boot.stage)
    }

    pub fn is_running(&self) -> bool {
        self.stage() == Some(&Stage::Running)
    }

    pub fn config(&self) -> Option<&MachineConfig> {
        self.boot.as_ref().and_then(|boot| boot.config.as_ref())
    }
}

impl Boot {
    /// The version of Talos that runs; empty where none does.
    pub fn version(&self) -> String {
        self.image.as_ref().map(|image| image.version.clone()).unwrap_or_default()
    }

    /// Every address the machine has: those of its configuration, those of the platform, and those that DHCP gave it, if it asks.
    pub fn addresses(&self) -> Vec<String> {
        let mut all = self.config.as_ref().map(MachineConfig::addresses).unwrap_or_default();
        let asks = self.config.as_ref().is_none_or(MachineConfig::asks_dhcp);
        for address in self.platform.iter().chain(self.leases.iter().filter(|_| asks)) {
            if !all.contains(address) {
                all.push(address.clone());
            }
        }
        all
    }
}
