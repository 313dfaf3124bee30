//! Machines of metal keep what is on their disks: they are removed only when they can be reset.

use serde_json::{Value, json};
use strata_sim::{Pace, SimOptions};
use strata_testkit::{Repo, Strata, TestSim};

use super::says;
use crate::world::BINARY;

const FILE: &str = "clusters/metal/cluster.yaml";
const CLUSTER: &str = r#"
metadata: {name: metal, environment: dev}
cluster:
  talos: {version: v1.13.9, installDisk: /dev/nvme0n1}
  kubernetes: {version: v1.36.3}
  network: {cidr: 198.51.100.0/24, gateway: 198.51.100.1, vip: 198.51.100.10}
  topology:
    controlPlane: {count: 3, addresses: 198.51.100.11-198.51.100.13}
    workers: {count: 1, addresses: 198.51.100.14-198.51.100.19}
"#;

struct Metal {
    sim: TestSim,
    repo: Repo,
    strata: Strata,
}

impl Metal {
    fn booted() -> Self {
        let sim = TestSim::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() });
        let repo = Repo::empty();
        let strata = Strata::new(BINARY, &repo).env("SSL_CERT_FILE", "network-ca.pem");
        strata.run(&["init", "."]).ok();
        repo.write("network-ca.pem", sim.network_ca_pem());
        repo.write(FILE, CLUSTER);
        let settings = format!(
            "repository: metal1\nstate: {{backend: local}}\nsecrets: [{{sops: secrets.sops.yaml}}]\nproxy: http://{}\n",
            sim.gateway(),
        );
        repo.write("strata.yaml", &settings);
        for number in 1..=4 {
            let metal = json!({"name": format!("m{number}"), "addresses": [format!("198.51.100.1{number}")], "version": "v1.13.9"});
            assert_eq!(sim.control().change(&json!({"talos": {"metal": metal}}))["status"], 200);
        }
        strata.run(&["apply", "--yes"]).ok();
        Self { sim, repo, strata }
    }

    fn power(&self, name: &str, on: bool) {
        self.sim.control().change(&json!({"talos": {"metal-power": {"name": name, "on": on}}}));
    }

    fn machine(&self, key: &str) -> Value {
        let talos = self.sim.control().call("GET", "/_sim/talos", None);
        let mut machines = talos["machines"].as_array().unwrap().iter();
        machines.find(|machine| machine["machine"] == key).unwrap().clone()
    }
}

#[test]
fn f18_metal_that_is_off_does_not_come_back_with_its_keys() {
    let metal = Metal::booted();
    metal.power("m4", false);
    metal.repo.edit(FILE, "workers: {count: 1", "workers: {count: 0");
    for arguments in [&["plan"][..], &["apply", "--yes"], &["destroy", "--yes"]] {
        let refused = metal.strata.run(arguments).code(3);
        says(&refused, &["metal-worker-1", "switch it on", "strata state rm metal/machine/metal-worker-1"]);
        assert!(!metal.machine("metal/m4")["config"].is_null());
    }
    metal.power("m4", true);
    metal.strata.run(&["apply", "--yes"]).ok();
    assert!(metal.machine("metal/m4")["config"].is_null(), "it has no keys any more");
    metal.strata.run(&["plan", "--detailed-exitcode"]).ok();
}

/// A control plane that is off would come back with its keys and the data of etcd.
#[test]
fn f18_a_control_plane_of_metal_that_is_off_is_not_removed() {
    let metal = Metal::booted();
    metal.power("m3", false);
    metal.repo.edit(FILE, "controlPlane: {count: 3", "controlPlane: {count: 1");
    let members = |metal: &Metal| {
        let talos = metal.sim.control().call("GET", "/_sim/talos", None);
        talos["etcd-clusters"][0]["members"].as_array().unwrap().len()
    };
    for arguments in [&["plan"][..], &["apply", "--yes"], &["destroy", "--yes"]] {
        let refused = metal.strata.run(arguments).code(3);
        says(&refused, &["metal-cp-3", "switch it on"]);
        assert_eq!(members(&metal), 3, "{arguments:?}");
        assert!(!metal.machine("metal/m2")["config"].is_null(), "{arguments:?}");
    }
    metal.power("m3", true);
    metal.strata.run(&["apply", "--yes"]).ok();
    assert_eq!(members(&metal), 1);
    for machine in ["metal/m2", "metal/m3"] {
        assert!(metal.machine(machine)["config"].is_null(), "{machine} has no keys any more");
    }
    metal.strata.run(&["plan", "--detailed-exitcode"]).ok();
}

#[test]
fn f6_protected_metal_is_not_reset() {
    let metal = Metal::booted();
    metal.repo.edit(FILE, "workers: {count: 1", "workers: {protect: true, count: 1");
    let refused = metal.strata.run(&["talos", "reset", "metal", "metal-worker-1", "--yes"]).code(3);
    says(&refused, &["`metal-worker-1` is protected"]);
    assert!(!metal.machine("metal/m4")["config"].is_null());
}

/// The request that resets it is lost on its way. It counts as removed when it is seen without its keys, and not when it was asked.
#[test]
fn f18_metal_whose_reset_got_lost_does_not_keep_its_keys() {
    for kind in ["cut", "lost"] {
        let metal = Metal::booted();
        metal.sim.control().fault(&json!({"kind": kind, "path": "/talos/198.51.100.14/*/Reset"}));
        metal.repo.edit(FILE, "workers: {count: 1", "workers: {count: 0");
        metal.strata.run(&["apply", "--yes"]).ok();
        let machine = metal.machine("metal/m4");
        assert!(machine["config"].is_null(), "{kind}: it has no keys any more: {machine}");
    }
    let metal = Metal::booted();
    metal.sim.control().fault(&json!({"kind": "cut", "path": "/talos/198.51.100.11/*/Reset"}));
    metal.strata.run(&["destroy", "--yes"]).ok();
    for machine in ["metal/m1", "metal/m2", "metal/m3", "metal/m4"] {
        assert!(metal.machine(machine)["config"].is_null(), "{machine} has no keys any more");
    }
}
