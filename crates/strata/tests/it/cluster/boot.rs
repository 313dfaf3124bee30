//! Cold boots: one apply from nothing to a cluster, an empty plan after it, and nothing left after a destroy.

use serde_json::Value;
use strata_sim::{Pace, SimOptions};
use strata_testkit::{Repo, Strata, TestSim};

use super::lab::{Lab, Shape, dial, keys};
use crate::kill::assert_same;
use crate::world::BINARY;

/// An example as `strata init` makes it, on a simulator.
fn example(name: &str, control_planes: u32, workers: u32) {
    let sim = TestSim::with(SimOptions { pace: "0.01".parse::<Pace>().unwrap(), ..SimOptions::default() });
    let repo = Repo::empty();
    let strata = Strata::new(BINARY, &repo).env("STRATA_DIAL", "dial.json");
    strata.run(&["init", "--example", name, "."]).ok();
    repo.edit("strata.yaml", "https://127.0.0.1:18006", &sim.endpoint());
    dial(&sim, &repo);
    let before = sim.export();
    strata.run(&["plan", name, "--detailed-exitcode"]).code(2);
    let applied = strata.run(&["apply", name, "--yes"]).ok();
    assert!(repo.file(&format!("clusters/{name}/talos.sops.yaml")).exists(), "{}", applied.all());
    strata.run(&["plan", name, "--detailed-exitcode"]).ok();
    strata.run(&["drift", name]).ok();
    let talos = sim.control().call("GET", "/_sim/talos", None);
    let counters: Vec<&Value> = talos["counters"].as_object().unwrap().values().collect();
    assert_eq!((counters.len(), &counters[0]["bootstraps"]), (1, &1.into()), "{talos:#}");
    let members = talos["etcd-clusters"][0]["members"].as_array().unwrap();
    assert_eq!(members.len() as u32, control_planes, "{talos:#}");
    let machines = talos["machines"].as_array().unwrap();
    assert_eq!(machines.len() as u32, control_planes + workers);
    // One boot from the ISO, one from the disk.
    assert!(
        machines.iter().all(|machine| machine["boots"] == 2 && machine["stage"] == "running"),
        "{talos:#}"
    );
    let live = sim.export();
    let guests = live["guests"].as_array().unwrap();
    for guest in guests.iter().filter(|guest| guest["config"]["name"].as_str().unwrap().starts_with(name)) {
        let drives = guest["config"].to_string();
        assert!(!drives.contains(".iso"), "the ISO is ejected: {drives}");
    }
    let state = repo.read(&format!(".strata/state/{}/{name}/state.json", environment(name)));
    assert_eq!(state.matches("machine/").count() > 0, state.contains("bootstrap/"), "{state}");
    strata.run(&["destroy", name, "--yes"]).ok();
    assert_same(&sim.export(), &before, "destroy leaves the datacenter as it was");
}

fn environment(example: &str) -> &str {
    if example == "homelab" { "dev" } else { example }
}

#[test]
fn the_homelab_boots_cold() {
    example("homelab", 1, 1);
}

#[test]
fn the_production_cluster_boots_cold() {
    example("prod", 3, 4);
}

#[test]
fn from_nothing_to_flux_in_one_apply() {
    let shape = Shape::new(1, 1).with_gitops();
    let lab = Lab::new(&shape);
    let before = lab.export();
    lab.apply();
    lab.assert_sound("after the boot");
    lab.assert_is(&shape, "after the boot");
    lab.assert_settled("after the boot");
    let export = lab.export();
    let objects = export["kubernetes"].to_string();
    for object in ["GitRepository", "Kustomization", "sops-age", "storage-api", "source-controller"] {
        assert!(objects.contains(object), "no {object} in {objects}");
    }
    assert!(lab.repo.read(".strata/state/test/lab/state.json").contains(&keys().cluster_id));
    // Somebody takes away what we made in the cluster: it is seen, and made again.
    lab.sim.control().change(&serde_json::json!({"kubernetes": {"call": {
        "method": "DELETE", "path": "/api/v1/namespaces/storage/secrets/storage-api",
    }}}));
    let plan = lab.run(&["plan", "--detailed-exitcode"]).code(2);
    assert!(plan.stdout.contains("storage-api"), "{}", plan.all());
    lab.apply();
    assert_same(&lab.export(), &export, "the secret is there again");
    let plan = lab.run(&["plan", "--destroy"]).ok().stdout;
    let said = [
        "VM 800 on pve1, destroyed with its disks",
        "Talos v1.13.9 on 192.0.2.41, goes with its VM",
        "Kubernetes v1.36.3, goes with its machines",
        "Kubernetes secret storage/storage-api, goes with the cluster",
        "Flux v2.9.4, goes with the cluster",
    ];
    for words in said {
        assert!(plan.contains(words), "no `{words}` in:\n{plan}");
    }
    lab.run(&["destroy", "--yes"]).ok();
    assert_same(&lab.export(), &before, "destroy leaves the datacenter as it was");
}

#[test]
fn every_minor_version_boots_cold() {
    for (talos, kubernetes) in
        [("v1.11.6", "v1.34.1"), ("v1.12.6", "v1.35.0"), ("v1.13.9", "v1.36.3"), ("v1.14.0", "v1.37.0")]
    {
        let shape = Shape::new(1, 1).versions(talos, kubernetes);
        let lab = Lab::booted(&shape);
        lab.assert_sound(talos);
        lab.assert_is(&shape, talos);
        lab.assert_settled(talos);
    }
}
