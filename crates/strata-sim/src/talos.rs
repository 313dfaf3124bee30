//! Simulated Talos machines: virtual ones that come alive when a VM boots Talos, and bare ones that tests put up.
//!
//! Their state is part of the world. `settle` brings it up to the present: what boots, installs, joins or is promoted does
//! so as time passes and is never waited for. What a machine keeps on its disk is kept with the volume, and goes with it.

mod api;
mod boot;
mod certificate;
pub mod clusters;
pub mod config;
pub mod control;
mod counters;
mod disk;
pub mod drive;
mod etcd;
mod export;
mod grpc;
pub mod image;
mod kubernetes;
pub mod machine;
pub mod place;
mod reboot;
mod server;
mod settle;
mod version;
mod wire;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::{Deserialize, Serialize};

pub use certificate::Certificates;
pub use disk::Disk;
pub use server::answer;

use etcd::EtcdCluster;
use machine::Machine;

/// Everything about Talos that is not on a disk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Talos {
    /// By `vm/VMID` or `metal/NAME`.
    pub machines: BTreeMap<String, Machine>,
    /// By the identity of the etcd cluster.
    pub etcd: BTreeMap<String, EtcdCluster>,
    /// Addresses that DHCP gives, by hardware address in upper case.
    pub reservations: BTreeMap<String, String>,
    /// How often Talos was installed on each machine: what is made up for an installation derives from it.
    pub installs: BTreeMap<String, u64>,
    /// Schematics that the image factory was given, by their identity.
    #[serde(default)]
    pub schematics: BTreeMap<String, String>,
    /// Every reboot of a machine that was configured, in order.
    pub reboots: Vec<Rebooted>,
    /// By the identity of the Talos cluster.
    pub counters: BTreeMap<String, Counters>,
}

/// A machine went down and came up again, or was asked to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebooted {
    pub machine: String,
    pub hostname: String,
    /// `apply-config`, `api`, `install`, `upgrade`, `reset`, `power`.
    pub cause: String,
}

/// What must not happen to a cluster, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// etcd clusters that were ever made for it; a restored one is not a new one.
    pub bootstraps: u64,
    /// The most voting members that were down at once, since all were up.
    pub most_down: u64,
    /// An etcd cluster of more than one member had no leader at some time.
    pub quorum_lost: bool,
    /// All members were up once; counting who is down starts then.
    pub was_healthy: bool,
    /// There was a majority once; only then it can be lost.
    #[serde(default)]
    pub had_quorum: bool,
}

impl Talos {
    /// Changes whenever something about a machine or a cluster does that others may wait for.
    pub fn mark(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        for (key, machine) in &self.machines {
            key.hash(&mut hash);
            machine.boots.hash(&mut hash);
            machine.cut_off.hash(&mut hash);
            if let Some(boot) = &machine.boot {
                format!("{:?}", boot.stage).hash(&mut hash);
                boot.trial.is_some().hash(&mut hash);
                boot.etcd_since.hash(&mut hash);
            }
        }
        for cluster in self.etcd.values() {
            cluster.id.hash(&mut hash);
            cluster.revision.hash(&mut hash);
            cluster.leader.hash(&mut hash);
        }
        hash.finish()
    }
}
