//! F5, F7, F12, F15: what a running cluster or node cannot change is refused in the plan; what it can is done node by node.

use serde_json::{Value, json};

use crate::cluster::lab::{FILE, Lab, Shape};

/// Changes the source, sees it refused by plan and apply, and takes the change back.
#[track_caller]
fn refused(lab: &Lab, from: &str, to: &str, told: &[&str]) {
    let before = lab.repo.read(FILE);
    lab.repo.edit(FILE, from, to);
    let machines = lab.machines();
    for verb in [&["plan"][..], &["apply", "--yes"]] {
        let output = lab.run(verb);
        assert_eq!(output.code, 3, "{to}\n{}", output.all());
        for word in told {
            assert!(output.all().contains(word), "{to}: {word}\n{}", output.all());
        }
    }
    assert_eq!(lab.machines(), machines, "{to}: nothing was touched");
    lab.repo.write(FILE, &before);
}

#[test]
fn f7_what_a_running_cluster_cannot_change_is_refused() {
    let lab = Lab::booted(&Shape::new(1, 1));
    let kubernetes = "kubernetes: {version: v1.36.3}";
    for (key, told) in [
        ("podCidr: 10.200.0.0/16", "the network of pods of `lab` cannot change"),
        ("serviceCidr: 10.112.0.0/16", "the network of services of `lab` cannot change"),
        ("dnsDomain: other.local", "the DNS domain of `lab` cannot change"),
        ("cni: none", "the network plug-in of `lab` cannot change"),
        ("cniManifests: ['https://cni.example/install.yaml']", "the network plug-in of `lab` cannot change"),
        ("kubeProxy: false", "kube-proxy of `lab` cannot change"),
    ] {
        refused(
            &lab,
            kubernetes,
            &format!("kubernetes: {{version: v1.36.3, {key}}}"),
            &[told, "a new cluster"],
        );
    }
    // However it is written.
    let patch = "  patches: [{cluster: {network: {podSubnets: [10.201.0.0/16]}}}]\nproxmox:\n  target";
    refused(&lab, "proxmox:\n  target", patch, &["the network of pods of `lab` cannot change"]);
    // What others changed on a node is put back, and is no reason to refuse.
    lab.assert_settled("everything was taken back");
    lab.assert_sound("nothing happened");
}

#[test]
fn f7_before_the_bootstrap_everything_can_change() {
    let lab = Lab::new(&Shape::new(1, 0));
    let control = lab.sim.control();
    control.fault(&json!({"kind": "refuse", "path": "/talos/*/machine.MachineService/Bootstrap", "count": 0, "status": 403}));
    lab.run(&["apply", "--yes"]).code(1);
    control.clear_faults();
    lab.repo.edit(
        FILE,
        "kubernetes: {version: v1.36.3}",
        "kubernetes: {version: v1.36.3, podCidr: 10.200.0.0/16}",
    );
    lab.apply();
    lab.assert_settled("with another network");
}

#[test]
fn f5_the_encryption_of_a_running_node_is_refused_until_it_is_built_again() {
    let lab = Lab::booted(&Shape::new(3, 0));
    let told = [
        "disk encryption of `lab-cp-1` cannot change",
        "Talos does not boot",
        "strata talos reset lab lab-cp-1",
    ];
    refused(&lab, "installDisk: /dev/sda", "installDisk: /dev/sda\n    encryptDisk: true", &told);
    let pool = "controlPlane: {count: 3, ";
    refused(&lab, pool, "controlPlane: {count: 3, encryptDisk: true, ", &told);
    let patch = "  patches: [{apiVersion: v1alpha1, kind: VolumeConfig, name: STATE, encryption: {provider: luks2, keys: [{slot: 0, nodeID: {}}]}}]\nproxmox:\n  target";
    refused(&lab, "proxmox:\n  target", patch, &told);

    // One node, as the hint says.
    lab.repo.edit(FILE, "proxmox:\n  target", "  nodes: {lab-cp-1: {encryptDisk: true}}\nproxmox:\n  target");
    lab.run(&["plan"]).code(3);
    lab.run(&["talos", "reset", "lab", "lab-cp-1", "--yes"]).ok();
    lab.apply();
    lab.assert_settled("the first node is encrypted");
    lab.assert_is(&Shape::new(3, 0), "the first node is encrypted");
    // It boots from what it has, and cannot go back either.
    lab.change(&json!({"reboot": {"machine": "lab-cp-1"}}));
    let comes_up = (0..40).any(|_| lab.run(&["talos", "health", "lab"]).code == 0);
    assert!(comes_up, "it boots from its encrypted disk");
    refused(
        &lab,
        "{encryptDisk: true}",
        "{encryptDisk: false}",
        &["disk encryption of `lab-cp-1` cannot change"],
    );
}

#[test]
fn f12_another_schematic_is_installed_node_by_node() {
    let lab = Lab::booted(&Shape::new(3, 1));
    lab.change(&json!({"reset-counters": {}}));
    let plain = "{id: ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515}";
    lab.repo.edit(FILE, plain, "{extensions: [siderolabs/iscsi-tools]}");
    let plan = lab.run(&["plan"]).ok();
    assert!(plan.stdout.contains("4 restarts"), "{}", plan.all());
    assert!(plan.stdout.contains("installer"), "{}", plan.all());
    let said = lab.apply_telling();
    assert_eq!(said.matches("is upgraded to v1.13.9 by").count(), 4, "{said}");
    let talos = lab.talos();
    let runs: Vec<&str> = talos["machines"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["runs"]["schematic"].as_str())
        .collect();
    assert_eq!(runs.len(), 4, "{talos:#}");
    assert!(runs.iter().all(|id| *id == runs[0] && !id.starts_with("ce4c98")), "{runs:?}");
    let causes: Vec<&str> =
        talos["reboots"].as_array().unwrap().iter().filter_map(|one| one["hostname"].as_str()).collect();
    assert_eq!(causes, ["lab-cp-1", "lab-cp-2", "lab-cp-3", "lab-worker-1"], "{talos:#}");
    let counters = talos["counters"].to_string();
    assert!(counters.contains("\"most_down\":1") && counters.contains("\"quorum_lost\":false"), "{counters}");
    lab.assert_settled("with another schematic");

    // One node alone, and back to what others installed by hand.
    lab.repo.edit(FILE, "proxmox:\n  target", "  nodes: {lab-worker-1: {schematic: {extensions: [siderolabs/util-linux-tools]}}}\nproxmox:\n  target");
    let plan = lab.run(&["plan"]).ok();
    assert!(plan.stdout.contains("1 restart") && !plan.stdout.contains("machine/lab-cp-1"), "{}", plan.all());
    lab.apply();
    lab.assert_settled("one node with an extension of its own");
}

#[test]
fn f12_what_no_upgrade_can_do_is_refused() {
    let lab = Lab::booted(&Shape::new(1, 1));
    let told = ["Secure Boot of `lab-cp-1` cannot change", "another name"];
    refused(&lab, "installDisk: /dev/sda", "installDisk: /dev/sda\n    secureBoot: true", &told);
    let told = ["the processor architecture of `lab-cp-1` cannot change", "a new cluster"];
    refused(&lab, "installDisk: /dev/sda", "installDisk: /dev/sda\n    arch: arm64", &told);
}

#[test]
fn f15_another_name_is_another_cluster() {
    let lab = Lab::booted(&Shape::new(1, 1));
    // With the names of the nodes kept, and without.
    let told = ["the name of the cluster of `lab` cannot change", "a new cluster"];
    let kept = "installDisk: /dev/sda\n    clusterName: other\n  naming: 'lab-{role}-{n}'";
    refused(&lab, "installDisk: /dev/sda", kept, &told);
    refused(&lab, "installDisk: /dev/sda", "installDisk: /dev/sda\n    clusterName: other", &told);
    lab.assert_settled("the name was put back");
    lab.assert_sound("one cluster");
}

/// A state from before the name was part of what a cluster is: its etcd is recorded under a name that it has no more. The record goes, and
/// etcd is not asked about it.
#[test]
fn f15_a_record_under_a_former_name_goes_and_etcd_stays() {
    let lab = Lab::booted(&Shape::new(1, 1));
    let path = ".strata/state/test/lab/state.json";
    let mut state: Value = serde_json::from_str(&lab.repo.read(path)).unwrap();
    let mut former = state["resources"]["lab/bootstrap/lab"].clone();
    assert_eq!(former["spec"]["etcd"], "lab", "{state:#}");
    former["spec"]["etcd"] = json!("former");
    state["resources"]["lab/bootstrap/former"] = former;
    lab.repo.write(path, &state.to_string());
    let machines = lab.machines();
    let plan = lab.run(&["plan"]).ok();
    assert!(plan.all().contains("lab/bootstrap/former"), "{}", plan.all());
    lab.apply();
    assert_eq!(lab.machines(), machines, "nothing was touched");
    assert!(!lab.repo.read(path).contains("former"));
    lab.assert_settled("without the former name");
    lab.assert_sound("one cluster");
    // With it in the state, control planes still go before what needs them.
    state["serial"] = json!(serde_json::from_str::<Value>(&lab.repo.read(path)).unwrap()["serial"]);
    lab.repo.write(path, &state.to_string());
    lab.run(&["destroy", "--yes"]).ok();
}
