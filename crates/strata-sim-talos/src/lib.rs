//! Simulated Talos machines: virtual ones that come alive when a VM boots Talos, and bare ones that tests put up.
//!
//! [`Machines::advance`] brings them up to the present: what boots, installs, joins or is promoted does so as time passes and is
//! never waited for. What a machine keeps on its disk is kept with the volume, and goes with it. The image factory, at
//! `factory.talos.dev` of the simulated network, is here too.
//!
//! # Main types
//! - [`Machines`]: the handle of all machines; [`World`] is what they see while its locks are held.
//! - [`Talos`]: what is not on a disk, as it is kept across runs.
//! - [`Host`] and [`Hypervisor`]: what machines ask of whatever they run on. A hypervisor is made to fit by whoever puts both together.
//!
//! # Invariants
//! - Locks are taken in one order: machines, hypervisor, Kubernetes clusters. A call is carried out under all of them.
//! - Kubernetes is told what its machines are ([`strata_sim_kubernetes::ReportedCluster`]) and asks them nothing.
//!
//! ```
//! # use std::sync::Arc;
//! use strata_sim_core::{Medium, Pace, Seed, Shared};
//! use strata_sim_kubernetes::{Clusters, Kubernetes};
//! use strata_sim_talos::{Card, Drive, Host, Hypervisor, Machines, Talos, Vm};
//!
//! /// A hypervisor without any virtual machine: all machines are bare ones.
//! struct Nothing;
//! # impl Hypervisor for Nothing {
//! #     fn vms(&self) -> Vec<Vm> { Vec::new() }
//! #     fn vm(&self, _: u32) -> Option<Vm> { None }
//! #     fn boot_drives(&self, _: u32) -> Vec<Drive<'_>> { Vec::new() }
//! #     fn drives(&self, _: u32) -> Vec<Drive<'_>> { Vec::new() }
//! #     fn cards(&self, _: u32) -> Vec<Card> { Vec::new() }
//! #     fn memory(&self, _: u32) -> Option<u64> { None }
//! #     fn write(&mut self, _: u32, _: &str, _: Option<Medium>) -> bool { false }
//! #     fn power_off(&mut self, _: u32) {}
//! # }
//! impl Host for Nothing {
//!     fn enter(&self) -> Box<dyn Hypervisor + '_> { Box::new(Nothing) }
//! }
//!
//! let shared = Arc::new(Shared::new(Seed(1), Pace::INSTANT));
//! let clusters = Clusters::open(&shared, Kubernetes::default());
//! let machines = Machines::open(&shared, Talos::default(), &clusters, Box::new(Nothing));
//! let metal = serde_json::json!({ "metal": { "name": "a", "addresses": ["192.0.2.50"], "version": "1.13.0" } });
//! machines.change(&metal).unwrap();
//! assert_eq!(machines.report()["machines"][0]["stage"], "maintenance");
//! ```

// The modules are private: `pub` in them means "for the rest of this crate".
#![allow(unreachable_pub)]

mod advance;
mod api;
mod boot;
mod certificate;
mod config;
mod control;
mod counters;
mod disk;
mod etcd;
mod export;
mod factory;
mod grpc;
mod hypervisor;
mod image;
mod kubernetes;
mod machine;
mod place;
mod reboot;
mod server;
mod version;
mod wire;
mod world;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::{Deserialize, Serialize};

pub use hypervisor::{Card, Drive, Host, Hypervisor, Vm, Volume};
pub use world::{Machines, World};

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
