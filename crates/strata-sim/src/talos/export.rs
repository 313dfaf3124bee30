//! Machines and etcd clusters as JSON, without times and without what is made up.

use serde_json::{Value, json};

use super::Talos;
use super::machine::{Machine, Stage};
use crate::world::World;

impl World {
    pub fn export_talos(&self) -> Value {
        let machines: Vec<Value> =
            self.talos.machines.iter().map(|(key, machine)| self.export_machine(key, machine)).collect();
        let clusters: Vec<Value> = self
            .talos
            .etcd
            .values()
            .map(|cluster| {
                let mut members: Vec<_> = cluster.members.iter().collect();
                members.sort_by(|a, b| a.name.cmp(&b.name));
                json!({
                    "cluster": cluster.talos,
                    "quorum": self.has_quorum(cluster),
                    "members": members.iter().map(|member| json!({
                        "name": member.name, "machine": member.machine, "learner": member.learner,
                        "up": self.etcd_up(cluster, member),
                    })).collect::<Vec<_>>(),
                })
            })
            .collect();
        let Talos { reservations, reboots, counters, schematics, .. } = &self.talos;
        json!({
            "machines": machines,
            "etcd-clusters": clusters,
            "reservations": reservations,
            "reboots": reboots,
            "counters": counters,
            "schematics": schematics,
        })
    }

    fn export_machine(&self, key: &str, machine: &Machine) -> Value {
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
            "addresses": boot.map(|boot| boot.addresses()).unwrap_or_default(),
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
