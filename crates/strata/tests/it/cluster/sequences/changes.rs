//! What the source asks for, and what happens to single machines.

use serde_json::{Value, json};

use super::invariants::CLUSTER;
use super::{History, Next};
use crate::cluster::kill::kill_run;

pub(super) const TALOS: [&str; 4] = ["v1.11.6", "v1.12.6", "v1.13.9", "v1.14.0"];
pub(super) const KUBERNETES: [&str; 5] = ["v1.33.0", "v1.34.1", "v1.35.0", "v1.36.3", "v1.37.0"];

pub(super) fn at(versions: &[&str], version: &str) -> usize {
    versions.iter().position(|one| *one == version).unwrap()
}

impl History {
    pub(super) fn scales(&mut self) -> Next {
        self.shape.control_planes = self.dice.one_of(&[1, 3, 3, 5]);
        self.shape.workers = self.dice.below(4) as u32;
        self.tell(&format!("\n  scale to {} + {}", self.shape.control_planes, self.shape.workers));
        Next::Apply
    }

    pub(super) fn patches(&mut self) -> Next {
        let number = self.dice.below(1000);
        let patch = self.dice.one_of(&[
            "machine: {sysctls: {vm.max_map_count: \"N\"}}",
            "machine: {kubelet: {extraArgs: {v: \"N\"}}}",
            "machine: {files: [{path: /var/etc/a, content: \"N\", permissions: 0o600, op: create}]}",
            "machine: {nodeLabels: {number: \"N\"}}",
        ]);
        self.shape.patches = vec![patch.replace('N', &number.to_string())];
        self.tell(&format!("\n  patch {:?}", self.shape.patches));
        Next::Apply
    }

    pub(super) fn upgrades_talos(&mut self) -> Next {
        let Some(next) = TALOS.get(at(&TALOS, &self.shape.talos) + 1) else { return self.patches() };
        self.shape.talos = (*next).to_owned();
        self.tell(&format!("\n  Talos {next}"));
        Next::Apply
    }

    /// The newest Kubernetes of each Talos is one minor higher than that of the one before.
    pub(super) fn upgrades_kubernetes(&mut self) -> Next {
        let next = at(&KUBERNETES, &self.shape.kubernetes) + 1;
        if next > at(&TALOS, &self.shape.talos) + 1 {
            return self.upgrades_talos();
        }
        self.shape.kubernetes = KUBERNETES[next].to_owned();
        self.tell(&format!("\n  Kubernetes {}", self.shape.kubernetes));
        Next::Apply
    }

    pub(super) fn installs_other_schematic(&mut self) -> Next {
        self.shape.others = !self.shape.others;
        self.tell(&format!("\n  another schematic, with extensions: {}", self.shape.others));
        Next::Apply
    }

    /// The nodes that there are, not those that the source asks for.
    pub(super) fn nodes(&self, keep: impl Fn(&str) -> bool) -> Vec<String> {
        let names = self.machines().into_iter().filter_map(|one| one["hostname"].as_str().map(str::to_owned));
        names.filter(|name| keep(name)).collect()
    }

    pub(super) fn control_planes(&self) -> Vec<String> {
        self.nodes(|name| name.contains("-cp-"))
    }

    /// Nobody is unreachable, dead or lost.
    pub(super) fn all_answer(&self) -> bool {
        self.machines().iter().all(|machine| machine["stage"] == "running")
    }

    /// Any node but the last control plane.
    pub(super) fn loses_a_vm(&mut self) -> Next {
        let only = self.control_planes().len() == 1;
        let nodes = self.nodes(|name| !only || !name.contains("-cp-"));
        if nodes.is_empty() {
            return self.scales();
        }
        let name = self.dice.one_of(&nodes);
        self.tell(&format!("\n  {name} is lost"));
        let (node, vmid) = self.lab.vm(&name);
        self.lab.lose(&node, vmid);
        Next::Apply
    }

    pub(super) fn reboots_by_itself(&mut self) -> Next {
        let name = self.dice.one_of(&self.nodes(|_| true));
        self.tell(&format!("\n  {name} reboots by itself"));
        self.lab.change(&json!({"reboot": {"machine": name}}));
        Next::Apply
    }

    pub(super) fn loses_its_state(&mut self) -> Next {
        self.tell("\n  the state is lost");
        std::fs::remove_dir_all(self.lab.repo.file(".strata/state")).unwrap();
        Next::Apply
    }

    /// An operator cordons a node, or lets pods onto it again; then something is rolled out.
    pub(super) fn is_cordoned(&mut self) -> Next {
        let name = self.dice.one_of(&self.nodes(|_| true));
        let cordoned = self.cordoned.remove(&name).is_none();
        self.tell(&format!("\n  an operator cordons {name}: {cordoned}"));
        let path = format!("/api/v1/nodes/{name}");
        let patched = self.kubernetes(
            CLUSTER,
            "PATCH",
            &path,
            json!({"spec": {"unschedulable": cordoned.then_some(true)}}),
        );
        if cordoned {
            let uid = patched["object"]["metadata"]["uid"].as_str().unwrap().to_owned();
            self.cordoned.insert(name, uid);
        }
        self.patches()
    }

    /// Somebody deletes a Node whose machine runs.
    pub(super) fn loses_a_node_object(&mut self) -> Next {
        let name = self.dice.one_of(&self.nodes(|_| true));
        self.tell(&format!("\n  the Node {name} is deleted"));
        self.kubernetes(CLUSTER, "DELETE", &format!("/api/v1/nodes/{name}"), Value::Null);
        Next::Apply
    }

    /// `strata talos reset`, in all its forms, killed or not. What etcd cannot bear is refused.
    pub(super) fn resets_a_node(&mut self) -> Next {
        let name = self.dice.one_of(&self.nodes(|_| true));
        let wipe = self.dice.one_of(&["state,ephemeral", "disk", "ephemeral", "state"]);
        self.tell(&format!("\n  {name} is reset: {wipe}"));
        let arguments = ["talos", "reset", CLUSTER, &name, "--wipe", wipe, "--yes"];
        let before = self.lab.machines();
        if name.contains("-cp-") && self.control_planes().len() == 1 {
            let refused = self.lab.run(&arguments).code(3);
            assert_eq!(self.lab.machines(), before, "{}\n{}", self.told, refused.all());
            self.counted.refusals += 1;
            return self.patches();
        }
        if self.dice.once_in(2) {
            let k = 1 + self.dice.below(80);
            let kind = self.dice.one_of(&["hold-before", "hold-after"]);
            if kill_run(&self.lab, &arguments, kind, k) {
                self.tell(&format!(", killed: {kind} {k}"));
                self.counted.kills += 1;
            }
            self.assert_invariants();
        } else {
            let reset = self.lab.run(&arguments);
            assert_eq!(reset.code, 0, "{}\n{}", self.told, reset.all());
        }
        Next::Apply
    }
}
