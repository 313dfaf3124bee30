//! Machines and etcd clusters as JSON, without times and without what is made up.
//!
//! The export has what is kept on disks, so that two worlds can be compared. What passes, and what has happened, is apart.

use serde_json::{Value, json};

use super::Talos;
use super::certificate::console_fingerprint;
use super::disk::Disk;
use super::etcd::EtcdCluster;
use super::machine::{Machine, Stage};
use crate::world::World;

impl World<'_> {
    /// What is installed where, and who is a member of what: nothing, once all machines are gone.
    pub fn export_talos(&self) -> Value {
        let installed = self.talos.machines.keys().filter_map(|key| {
            let disk = self.talos_disk(key)?;
            let config = disk.config.as_ref();
            let named = config.map(|config| config.hostname().map_or_else(|| self.talos_hostname(key), str::to_owned));
            Some(json!({
                "machine": key, "hostname": named, "installed": disk.image, "role": config.and_then(|c| c.role()),
                "config": config.map(|config| config.digest()), "etcd-data": disk.etcd.is_some(),
            }))
        });
        let clusters = self.talos.etcd.values().filter(|cluster| self.has_data(cluster)).map(|cluster| {
            let mut members: Vec<_> = cluster.members.iter().collect();
            members.sort_by(|a, b| a.name.cmp(&b.name));
            json!({
                "cluster": cluster.talos,
                "members": members.iter().map(|member| json!({
                    "name": member.name, "machine": member.machine, "learner": member.learner,
                })).collect::<Vec<_>>(),
            })
        });
        json!({
            "machines": installed.collect::<Vec<_>>(),
            "etcd-clusters": clusters.collect::<Vec<_>>(),
            "reservations": self.talos.reservations,
        })
    }

    /// Some disk still holds data of the cluster.
    fn has_data(&self, cluster: &EtcdCluster) -> bool {
        let holds = |disk: &Disk| disk.etcd.as_ref().is_some_and(|data| data.cluster == cluster.id);
        self.talos.machines.keys().any(|key| self.talos_disk(key).is_some_and(holds))
    }

    /// The present: every machine with its stage, every etcd cluster with who is up; and the past: reboots, counters.
    pub fn talos_report(&self) -> Value {
        let machines: Vec<Value> =
            self.talos.machines.iter().map(|(key, machine)| self.report_machine(key, machine)).collect();
        let clusters = self.talos.etcd.values().filter(|cluster| self.has_data(cluster)).map(|cluster| {
            let mut members: Vec<_> = cluster.members.iter().collect();
            members.sort_by(|a, b| a.name.cmp(&b.name));
            json!({
                "cluster": cluster.talos,
                "quorum": self.has_quorum(cluster),
                "leader": cluster.leader.and_then(|id| cluster.member(id)).map(|member| &member.name),
                "members": members.iter().map(|member| json!({
                    "id": member.id, "name": member.name, "machine": member.machine, "learner": member.learner, "address": member.address,
                    "up": self.etcd_up(cluster, member),
                })).collect::<Vec<_>>(),
            })
        });
        let Talos { reservations, reboots, counters, schematics, .. } = &*self.talos;
        json!({
            "machines": machines,
            "etcd-clusters": clusters.collect::<Vec<_>>(),
            "reservations": reservations,
            "reboots": reboots,
            "counters": counters,
            "schematics": schematics,
        })
    }

    fn report_machine(&self, key: &str, machine: &Machine) -> Value {
        let disk = self.talos_disk(key);
        let boot = machine.boot.as_ref();
        let stage = match machine.stage() {
            None => "off",
            Some(Stage::Booting) => "booting",
            Some(Stage::Maintenance) => "maintenance",
            Some(Stage::Installing) => "installing",
            Some(Stage::Running) => "running",
            Some(Stage::Rebooting(_)) => "rebooting",
            Some(Stage::ShuttingDown) => "shutting-down",
            Some(Stage::NoSystem) => "no-system",
        };
        let config = machine.config().or_else(|| disk.and_then(|disk| disk.config.as_ref()));
        json!({
            "machine": key,
            "hostname": config.map(|config| config.hostname().map_or_else(|| self.talos_hostname(key), str::to_owned)),
            "stage": stage,
            "fingerprint": console_fingerprint(self, key),
            "addresses": boot.map(|boot| boot.addresses()).unwrap_or_default(),
            "api": {
                "talos": boot.is_some_and(|boot| boot.addresses().iter().any(|a| self.talos_presence(a).is_some())),
                "kubernetes": self.api_server_up(key),
            },
            "runs": boot.and_then(|boot| boot.image.as_ref()),
            "installed": disk.map(|disk| &disk.image),
            "role": config.and_then(|config| config.role()),
            "config": disk.and_then(|disk| disk.config.as_ref()).map(|config| config.digest()),
            "config-in-effect": boot.and_then(|boot| boot.config.as_ref()).map(|config| config.digest()),
            "reboot-pending": self.reboot_pending(key),
            "etcd": self.etcd_of(key).map(|(cluster, member)| json!({
                "cluster": cluster.talos, "learner": member.learner,
            })),
            "etcd-data": disk.is_some_and(|disk| disk.etcd.is_some()),
            "boots": machine.boots,
        })
    }
}
