//! The simulated datacenter itself: every object it has, and the questions that concern more than one of them.
//! Nothing here knows routes or HTTP.

pub mod access;
mod allocated;
pub mod begin;
pub mod cluster;
pub mod daemons;
pub mod disks;
pub mod export;
pub mod firewall;
pub mod guest;
pub mod ha;
pub mod ipam;
pub mod kind;
mod lived_in;
pub mod made_up;
pub mod node;
pub mod privileges;
pub mod replication;
pub mod storage;
pub mod volume;

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use strata_sim_core::{Clock, Seed};

use crate::api::{Refusal, no};
use crate::task::{Cont, Tasks};
pub use access::{Access, Pool};
pub use cluster::Cluster;
pub use firewall::Firewall;
pub use guest::{Guest, GuestKind};
pub use ipam::Ipam;
pub use kind::WorldKind;
pub use node::Node;
pub use storage::Storage;
pub use volume::{Volume, Volumes};

/// The objects, in the order in which configuration files keep them.
#[derive(Serialize, Deserialize)]
pub struct World {
    pub kind: WorldKind,
    pub seed: Seed,
    pub nodes: IndexMap<String, Node>,
    pub storages: IndexMap<String, Storage>,
    pub volumes: Volumes,
    pub guests: BTreeMap<u32, Guest>,
    pub access: Access,
    pub pools: BTreeMap<String, Pool>,
    /// By scope: `cluster`, `node/NAME`, `guest/VMID`.
    pub firewall: BTreeMap<String, Firewall>,
    pub cluster: Cluster,
    #[serde(default)]
    pub ipam: Ipam,
    /// What the daemons of the nodes have in hand.
    #[serde(default)]
    pub daemons: daemons::Daemons,
    #[serde(skip)]
    pub tasks: Tasks,
    /// What time it is, and how the pace scales a second.
    #[serde(skip)]
    pub clock: Clock,
}

impl World {
    /// Seconds since 1970.
    pub fn now(&self) -> i64 {
        self.clock.now()
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// So many seconds at this simulator's pace, in milliseconds.
    pub fn scaled_ms(&self, seconds: f64) -> i64 {
        self.clock.scaled_ms(seconds)
    }

    /// The address of each node.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        self.nodes.values().map(|node| node.ip.as_str())
    }

    /// The id of a process that starts now.
    pub fn new_pid(&mut self) -> u32 {
        self.daemons.processes = self.daemons.processes % 3_000_000 + 1;
        100_000 + self.daemons.processes
    }

    pub fn start_task(&mut self, node: &str, kind: &str, id: &str, user: &str, work: Cont) -> String {
        let now = self.now();
        self.tasks.start(node, kind, id, user, now, work)
    }

    /// The guest of that kind on that node, or the API's complaint about its missing file.
    pub fn guest(&self, node: &str, vmid: u32, kind: GuestKind) -> Result<&Guest, Refusal> {
        self.guests
            .get(&vmid)
            .filter(|guest| guest.kind == kind && guest.node == node)
            .ok_or_else(|| no_config(node, vmid, kind))
    }

    pub fn guest_mut(&mut self, node: &str, vmid: u32, kind: GuestKind) -> Result<&mut Guest, Refusal> {
        self.guests
            .get_mut(&vmid)
            .filter(|guest| guest.kind == kind && guest.node == node)
            .ok_or_else(|| no_config(node, vmid, kind))
    }

    /// The storage, or the API's complaint.
    pub fn storage(&self, id: &str) -> Result<&Storage, Refusal> {
        self.storages.get(id).ok_or_else(|| no(format!("storage '{id}' does not exist")))
    }

    /// The storage, if it is enabled on that node.
    pub fn storage_on(&self, id: &str, node: &str) -> Result<&Storage, Refusal> {
        let storage = self.storage(id)?;
        if storage.is_disabled() {
            return Err(no(format!("storage '{id}' is disabled")));
        }
        if !storage.is_on(node) {
            return Err(no(format!("storage '{id}' is not available on node '{node}'")));
        }
        Ok(storage)
    }

    /// The pool a guest is in.
    pub fn pool_of(&self, vmid: u32) -> Option<&str> {
        self.pools.iter().find(|(_, pool)| pool.vms.contains(&vmid)).map(|(id, _)| id.as_str())
    }

    /// The lowest free VMID in a range.
    pub fn free_vmid(&self, lower: u32, upper: u32) -> Option<u32> {
        let mut candidate = lower;
        for taken in self.guests.range(lower..).map(|(id, _)| *id) {
            if taken > candidate {
                break;
            }
            candidate = taken + 1;
        }
        (candidate < upper).then_some(candidate)
    }

    /// Removes what other files say about a guest.
    pub fn forget_guest(&mut self, vmid: u32) {
        self.guests.remove(&vmid);
        self.firewall.remove(&format!("guest/{vmid}"));
        for pool in self.pools.values_mut() {
            pool.vms.remove(&vmid);
        }
        self.access.acl.remove(&format!("/vms/{vmid}"));
    }

    /// Puts a guest into a pool (and out of any other).
    pub fn join_pool(&mut self, vmid: u32, pool: &str) {
        for other in self.pools.values_mut() {
            other.vms.remove(&vmid);
        }
        if let Some(pool) = self.pools.get_mut(pool) {
            pool.vms.insert(vmid);
        }
    }
}

/// What the API says when a guest's configuration file is not there.
pub fn no_config(node: &str, vmid: u32, kind: GuestKind) -> Refusal {
    no(format!("Configuration file 'nodes/{node}/{}/{vmid}.conf' does not exist", kind.folder()))
}
