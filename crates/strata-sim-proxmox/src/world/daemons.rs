//! What the nodes do by themselves, some time after a call was answered: qmeventd starts VMs that were told to reboot, the
//! manager of high availability carries out what was asked of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ha::Manager;
use super::replication::Scheduler;
use super::{Guest, GuestKind, World};
use crate::endpoints::{lxc, qemu};

/// How long after its VM is off qmeventd has cleaned up, in seconds.
const CLEANUP: f64 = 1.0;

/// Work that no task does yet.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Daemons {
    /// VMs that are off and are to be started again.
    restarts: Vec<Restart>,
    /// Nodes that go down, or come up again.
    #[serde(default)]
    power: Vec<Power>,
    pub ha: Manager,
    #[serde(default)]
    pub replication: Scheduler,
    /// When a name was last taken note of for statistics, in milliseconds since 1970, and what it was.
    #[serde(skip)]
    pub names: BTreeMap<u32, (i64, String)>,
    /// How many processes of guests were started.
    pub processes: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Restart {
    vmid: u32,
    node: String,
    /// Milliseconds since 1970.
    due: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Power {
    node: String,
    up: bool,
    /// Milliseconds since 1970.
    due: i64,
}

impl World {
    /// A node goes down, or comes up, in so many seconds.
    pub fn power_later(&mut self, node: &str, up: bool, seconds: f64) {
        let due = self.now_ms() + self.scaled_ms(seconds);
        self.daemons.power.push(Power { node: node.to_owned(), up, due });
    }

    /// Puts a node down, with its tasks and guests where they are, or up again.
    pub fn set_power(&mut self, node: &str, up: bool) {
        let now = self.now();
        if let Some(node) = self.nodes.get_mut(node) {
            node.down = !up;
            if up {
                node.booted = now;
            }
        }
        if !up {
            self.tasks.die_on(node, now);
            for guest in self.guests.values_mut().filter(|guest| guest.node == node) {
                guest.power.running = false;
            }
        }
    }

    /// A VM went down on request of a reboot: qmeventd will start it, in a task of root's.
    pub fn restart_later(&mut self, node: &str, vmid: u32) {
        let due = self.now_ms() + self.scaled_ms(CLEANUP);
        self.daemons.restarts.push(Restart { vmid, node: node.to_owned(), due });
    }

    /// Does what is due, which starts tasks. Gives the time of the next thing, in milliseconds since 1970.
    pub fn advance_daemons(&mut self) -> Option<i64> {
        let now = self.now_ms();
        let (due, later) = std::mem::take(&mut self.daemons.restarts).into_iter().partition(|r| r.due <= now);
        self.daemons.restarts = later;
        for Restart { vmid, node, .. } in due {
            self.start_again(&node, vmid);
        }
        let (due, later) = std::mem::take(&mut self.daemons.power).into_iter().partition(|p| p.due <= now);
        self.daemons.power = later;
        for Power { node, up, .. } in due {
            self.set_power(&node, up);
            if up {
                self.start_all(&node);
            }
        }
        let power = self.daemons.power.iter().map(|power| power.due).min();
        let ha = self.advance_ha(now);
        let replication = self.advance_replication(now);
        self.daemons
            .restarts
            .iter()
            .map(|restart| restart.due)
            .chain(power)
            .chain(ha)
            .chain(replication)
            .min()
    }

    /// What a node starts when it has booted: the guests that are to start with it, but for those that high availability keeps.
    fn start_all(&mut self, node: &str) {
        let starts = |guest: &&Guest| {
            guest.node == node
                && !guest.power.running
                && guest.config.get("onboot").is_some_and(|on| on == "1")
        };
        let due: Vec<(u32, GuestKind)> =
            self.guests.values().filter(starts).map(|guest| (guest.vmid, guest.kind)).collect();
        for (vmid, kind) in due.into_iter().filter(|(vmid, _)| !self.is_ha_managed(*vmid)).collect::<Vec<_>>()
        {
            match kind {
                GuestKind::Qemu => qemu::power::spawn_start(self, node, vmid, "root@pam"),
                GuestKind::Lxc => lxc::power::spawn_start(self, node, vmid, "root@pam"),
            };
        }
    }

    fn start_again(&mut self, node: &str, vmid: u32) {
        if self.guest(node, vmid, GuestKind::Qemu).is_err() {
            return;
        }
        if self.is_ha_managed(vmid) {
            self.request_ha_start(node, "vm", vmid, "root@pam");
        } else {
            qemu::power::spawn_start(self, node, vmid, "root@pam");
        }
    }
}
