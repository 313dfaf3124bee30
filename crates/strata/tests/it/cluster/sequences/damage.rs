//! What breaks: alarms of etcd, nodes that are dead, a majority that is lost. Whoever applies in between makes it no worse.

use serde_json::{Value, json};

use super::invariants::CLUSTER;
use super::{APPLY, History, Next};
use crate::cluster::kill::kill_run;
use crate::cluster::lab::keys;

impl History {
    /// Somebody breaks something: what is down by that is not down by us.
    fn breaks(&self, change: &Value) {
        self.lab.change(change);
        self.lab.change(&json!({"reset-counters": {}}));
    }

    pub(super) fn power(&self, name: &str, running: bool) {
        let vmid = self.lab.vm(name).1;
        self.lab.sim.control().change(&json!({"power": {"vmid": vmid, "running": running}}));
        self.lab.change(&json!({"reset-counters": {}}));
    }

    /// The etcd of the cluster: how often it was begun, and the machines that hold data of it.
    fn etcd(&self) -> (Value, Vec<String>) {
        let begun = self.lab.talos()["counters"][&keys().cluster_id]["bootstraps"].clone();
        let holders = self.machines().into_iter().filter(|machine| machine["etcd-data"] == true);
        (begun, holders.map(|machine| machine["machine"].to_string()).collect())
    }

    /// While an alarm is raised every change that disturbs a node is refused. The way out is the one that the refusal names.
    pub(super) fn raises_an_alarm(&mut self) -> Next {
        let name = self.dice.one_of(&self.control_planes());
        let alarm = self.dice.one_of(&["nospace", "corrupt"]);
        self.tell(&format!("\n  {name} raises an alarm: {alarm}"));
        self.breaks(&json!({"alarm": {"machine": name, "alarm": alarm}}));
        let before = self.shape.clone();
        match self.dice.below(3) {
            0 => self.shape.cores += 1,
            1 => self.shape.control_planes = if self.shape.control_planes == 3 { 5 } else { 3 },
            _ => self.shape.workers += 1,
        }
        self.write_source();
        self.assert_refused(&[&["plan"], &APPLY], &[3]);
        let mut others = self.control_planes();
        others.retain(|other| *other != name);
        if alarm == "corrupt" && others.len() >= 2 && self.dice.once_in(2) {
            self.shape = before;
            self.write_source();
            self.tell(", it is reset");
            let reset = self.lab.run(&["talos", "reset", CLUSTER, &name, "--yes"]);
            assert_eq!(reset.code, 0, "{}\n{}", self.told, reset.all());
        }
        let asked = others.first().unwrap_or(&name);
        self.breaks(&json!({"disarm": {"machine": asked}}));
        Next::Apply
    }

    /// A node is off, cut off or gone while the source asks for fewer, for more or for the same.
    pub(super) fn has_a_dead_node(&mut self) -> Next {
        let name = self.dice.one_of(&self.nodes(|_| true));
        let only = name.contains("-cp-") && self.control_planes().len() == 1;
        let how = self.dice.one_of(if only { &["off", "cut off"] } else { &["off", "cut off", "gone"] });
        self.tell(&format!("\n  {name} is {how}"));
        match how {
            "off" => self.power(&name, false),
            "cut off" => self.breaks(&json!({"cut-off": {"machine": name, "cut_off": true}})),
            _ => {
                let (node, vmid) = self.lab.vm(&name);
                self.lab.lose(&node, vmid);
                self.lab.change(&json!({"reset-counters": {}}));
            }
        }
        if self.dice.once_in(2) {
            self.scales();
        }
        self.write_source();
        self.killed(&APPLY);
        let night = self.lab.run(&APPLY);
        assert!(!night.all().contains("panicked"), "{}\n{}", self.told, night.all());
        self.tell(&format!(", apply: {}", night.code));
        self.assert_invariants();
        // A person brings back what is still there.
        let machines = self.machines();
        let left = machines.iter().find(|machine| machine["hostname"] == name.as_str());
        if let Some(machine) = left.filter(|_| how == "cut off") {
            self.breaks(&json!({"cut-off": {"machine": machine["machine"], "cut_off": false}}));
        }
        if left.is_some_and(|machine| machine["stage"] == "off") {
            self.power(&name, true);
        }
        Next::Apply
    }

    /// Somebody wipes so many control planes that no majority is left. Nothing is begun, nothing is restored that is not its own, and a
    /// restore that is killed is run again.
    pub(super) fn loses_the_majority(&mut self) -> Next {
        let saved = self.lab.run(&["talos", "snapshot", CLUSTER]);
        assert_eq!(saved.code, 0, "{}\n{}", self.told, saved.all());
        let snapshot = self.snapshots().pop().unwrap();
        let names = self.control_planes();
        let count = names.len() / 2 + 1 + self.dice.below((names.len() as u64).div_ceil(2)) as usize;
        let wiped = &names[..count];
        self.tell(&format!("\n  {} lose everything", wiped.join(", ")));
        for name in wiped {
            let machine = format!("vm/{}", self.lab.vm(name).1);
            self.breaks(&json!({"reset": {"machine": machine, "partitions": ["STATE", "EPHEMERAL"]}}));
            self.wait_for(&machine, "maintenance");
        }
        self.lab.change(&json!({"reset-counters": {}}));
        if self.dice.once_in(3) {
            self.loses_its_state();
        }
        let before = self.etcd();
        for _ in 0..2 {
            let night = self.lab.run(&APPLY);
            assert_ne!(night.code, 0, "{}\n{}", self.told, night.all());
            self.tell(&format!(", apply: {}", night.code));
            assert_eq!(self.etcd(), before, "{}\nnothing is begun or wiped:\n{}", self.told, night.all());
        }
        self.assert_wrong_snapshots_change_nothing(&snapshot);
        let arguments = ["talos", "restore", CLUSTER, "--snapshot", &snapshot, "--yes"];
        if self.dice.once_in(2) {
            let k = 1 + self.dice.below(160);
            if kill_run(&self.lab, &arguments, "hold-after", k) {
                self.counted.kills += 1;
                self.tell(&format!(", restore killed: {k}"));
            }
        }
        let restored = self.lab.run(&arguments);
        // One that was killed late has already brought it back.
        let back = restored.all().contains("nothing has to be restored");
        assert!(restored.code == 0 || back, "{}\n{}", self.told, restored.all());
        self.lab.change(&json!({"reset-counters": {}}));
        Next::Apply
    }

    pub(super) fn wait_for(&self, machine: &str, stage: &str) {
        for _ in 0..2000 {
            if self.machines().iter().any(|one| one["machine"] == machine && one["stage"] == stage) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("{}\n`{machine}` is not `{stage}`: {:#}", self.told, self.lab.talos());
    }

    /// Every snapshot, in the order of their names.
    pub(super) fn snapshots(&self) -> Vec<String> {
        let Ok(folder) = std::fs::read_dir(self.lab.repo.file(".strata/snapshots")) else {
            return Vec::new();
        };
        let paths = folder.map(|entry| entry.unwrap().path());
        let own = paths.filter(|path| !path.display().to_string().contains("prod"));
        let mut names: Vec<String> = own.map(|path| path.display().to_string()).collect();
        names.sort();
        names
    }

    /// Another cluster's, and one of our own with a bit that is wrong.
    fn assert_wrong_snapshots_change_nothing(&mut self, own: &str) {
        let mut bytes = std::fs::read(own).unwrap();
        let at = bytes.len() - 1 - self.dice.below(bytes.len() as u64 / 2) as usize;
        bytes[at] ^= 1;
        let broken = self.lab.repo.file("broken.age").display().to_string();
        std::fs::write(&broken, bytes).unwrap();
        let before = self.etcd();
        for wrong in std::iter::once(broken).chain(self.foreign.clone()) {
            let refused = self.lab.run(&["talos", "restore", CLUSTER, "--snapshot", &wrong, "--yes"]);
            assert_ne!(refused.code, 0, "{}\n{wrong}\n{}", self.told, refused.all());
            assert_eq!(self.etcd(), before, "{}\n{wrong}\n{}", self.told, refused.all());
            self.counted.refusals += 1;
        }
    }
}
