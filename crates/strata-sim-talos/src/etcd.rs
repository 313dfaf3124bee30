//! etcd: who is a member, who is up, and what a majority allows.

mod bolt;
mod change;
pub mod snapshot;

use serde::{Deserialize, Serialize};

use crate::world::World;

pub use change::Refused;

/// How long a learner takes to catch up, in seconds.
const CATCH_UP: f64 = 3.0;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub id: u64,
    /// The hostname of its machine.
    pub name: String,
    pub machine: String,
    pub address: String,
    pub learner: bool,
    /// When a learner will have caught up, in milliseconds since 1970.
    pub caught_up: i64,
}

/// One etcd cluster, as its members agree on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcdCluster {
    pub id: String,
    /// The identity of the Talos cluster that it belongs to.
    pub talos: String,
    /// The certificate of its authority: only machines with the same one can join.
    pub authority: String,
    pub members: Vec<Member>,
    pub leader: Option<u64>,
    pub term: u64,
    pub revision: u64,
    /// Member and kind of alarm: 1 no space, 2 corrupt.
    pub alarms: Vec<(u64, i32)>,
}

impl EtcdCluster {
    pub fn member(&self, id: u64) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.learner)
    }
}

/// How many of so many voters make a majority.
pub fn majority(voters: usize) -> usize {
    voters / 2 + 1
}

impl World<'_> {
    /// The member runs: its machine is up, has the member's data and nobody stopped it.
    pub fn etcd_up(&self, cluster: &EtcdCluster, member: &Member) -> bool {
        self.etcd_runs(&member.machine, &cluster.id, member.id)
    }

    fn etcd_runs(&self, key: &str, cluster: &str, member: u64) -> bool {
        let Some(machine) = self.talos.machines.get(key) else { return false };
        let Some(boot) = machine.boot.as_ref().filter(|_| machine.is_running() && !machine.cut_off) else {
            return false;
        };
        let data = self.talos_disk(key).and_then(|disk| disk.etcd.as_ref());
        !boot.stopped.iter().any(|service| service == "etcd")
            && data.is_some_and(|data| data.cluster == cluster && data.member == member)
    }

    /// The voters that are up are a majority.
    pub fn has_quorum(&self, cluster: &EtcdCluster) -> bool {
        let voters = cluster.voters().count();
        let up = cluster.voters().filter(|member| self.etcd_up(cluster, member)).count();
        voters > 0 && up >= majority(voters)
    }

    /// The cluster that a machine is a member of, with its membership. A member that was removed is none.
    pub fn etcd_of(&self, key: &str) -> Option<(&EtcdCluster, &Member)> {
        let data = self.talos_disk(key)?.etcd.as_ref()?;
        let cluster = self.talos.etcd.get(&data.cluster)?;
        cluster.member(data.member).map(|member| (cluster, member))
    }

    /// The cluster that a control plane would ask: its own, or one that others of its Talos cluster run.
    pub fn etcd_near(&self, key: &str) -> Option<&EtcdCluster> {
        if let Some((cluster, member)) = self.etcd_of(key)
            && self.etcd_up(cluster, member)
        {
            return Some(cluster);
        }
        let config = self.talos.machines.get(key)?.config()?;
        let (id, authority) = (config.cluster_id()?, config.etcd_authority()?);
        self.talos.etcd.values().find(|cluster| {
            cluster.talos == id
                && cluster.authority == authority
                && cluster.members.iter().any(|member| self.etcd_up(cluster, member))
        })
    }
}
