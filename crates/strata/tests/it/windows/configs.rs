//! Somebody else gives a node a configuration after the plan was made and before ours is sent: theirs stays, and the run says so.

use serde_json::{Value, json};
use strata_sim::{Pace, SimOptions};
use strata_testkit::{Output, Repo, Strata, TestSim};

use crate::cluster::lab::{FILE, Lab, Shape};
use crate::world::BINARY;

const NODE: &str = "lab-cp-1";
/// Taken at once, and only with a reboot.
const SYSCTL: &str = "machine: {sysctls: {net.core.somaxconn: \"65535\"}}";
const WRITTEN_FILE: &str =
    "machine: {files: [{path: /var/etc/a, content: b, permissions: 0o600, op: create}]}";
const CHANGED: &str = "somebody else changed the configuration of";

/// Runs `apply` until a fault strikes, lets somebody act, and lets the run go on without any fault.
fn act_at(sim: &TestSim, strata: &Strata, fault: &Value, act: &dyn Fn()) -> Output {
    let control = sim.control();
    let id = control.fault(fault);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| strata.run(&["apply", "--yes"]));
        let struck = control.wait_fault(id, 60.0);
        act();
        control.clear_faults();
        let output = run.join().unwrap();
        assert!(struck, "{fault} did not strike\n{}", output.all());
        output
    })
}

/// A label of somebody in the configuration of a machine.
fn label(machine: &str, staged: bool) -> Value {
    let patch = json!({"machine": {"nodeLabels": {"by": "somebody"}}});
    json!({"talos": {"configure": {"machine": machine, "patch": patch, "staged": staged}}})
}

/// The configuration that is on the disk of a machine, as a digest.
fn on_disk(sim: &TestSim, name: &str) -> Value {
    let report = sim.control().call("GET", "/_sim/talos", None);
    let machines = report["machines"].as_array().unwrap();
    machines.iter().find(|machine| machine["hostname"] == name).unwrap()["config"].clone()
}

/// Somebody labels the first control plane in a window of an apply. The apply fails with these words, and the label stays.
#[track_caller]
fn keeps_the_label(lab: &Lab, fault: &Value, staged: bool, words: &str) {
    let theirs = std::cell::RefCell::new(Value::Null);
    let output = act_at(&lab.sim, &lab.strata(), fault, &|| {
        lab.sim.control().change(&label(NODE, staged));
        *theirs.borrow_mut() = on_disk(&lab.sim, NODE);
    });
    assert_ne!(output.code, 0, "{fault}: {}", output.all());
    assert_eq!(on_disk(&lab.sim, NODE), theirs.into_inner(), "{fault}: overwritten\n{}", output.all());
    assert!(output.all().contains(words), "{fault}: {}", output.all());
}

/// While etcd is copied, which is after the plan and before anything is sent.
fn at_the_snapshot() -> Value {
    json!({"kind": "hold-after", "path": "*/EtcdSnapshot"})
}

/// Every try to send one comes to nothing, for as long as the fault is there.
fn unavailable() -> Value {
    json!({"kind": "refuse", "path": "*/ApplyConfiguration", "count": 0, "status": 503, "text": "not now"})
}

#[test]
fn what_somebody_writes_into_a_configuration_before_ours_is_sent_stays() {
    let mut shape = Shape::new(1, 0).versions("v1.13.9", "v1.36.1");
    let lab = Lab::booted(&shape);
    shape.patches.push(SYSCTL.to_owned());
    lab.source(&shape);
    keeps_the_label(&lab, &at_the_snapshot(), false, CHANGED);
    // The next plan shows it, and takes it away.
    assert!(lab.run(&["plan"]).ok().stdout.contains("nodeLabels"));
    lab.apply();

    // What is staged is on its disk alone: no plan shows it before the node boots.
    shape.patches.push("machine: {sysctls: {net.core.rmem_max: \"4096\"}}".to_owned());
    lab.source(&shape);
    keeps_the_label(&lab, &at_the_snapshot(), true, "somebody staged it");
    lab.run(&["apply", "--yes"]).code(1);
    lab.change(&json!({"reboot": {"machine": NODE}}));
    lab.converges(3);

    // What is tried again is compared again.
    shape.patches.push(WRITTEN_FILE.to_owned());
    lab.source(&shape);
    keeps_the_label(&lab, &unavailable(), false, CHANGED);
    lab.converges(3);

    // A version of Kubernetes is written into what the node has, whoever wrote the rest of it.
    let shape = shape.versions("v1.13.9", "v1.36.3");
    lab.source(&shape);
    let output = act_at(&lab.sim, &lab.strata(), &at_the_snapshot(), &|| {
        lab.sim.control().change(&label(NODE, false));
    });
    assert_eq!(output.code, 0, "{}", output.all());
    assert!(lab.run(&["plan"]).ok().stdout.contains("nodeLabels"), "the label was taken away with no plan");
    lab.apply();
    lab.assert_settled("at the end");
    lab.assert_sound("at the end");

    // Its address: sent ahead of the restart of its VM.
    lab.repo.edit(
        FILE,
        "\nproxmox:\n",
        &format!("\n  nodes:\n    {NODE}: {{address: 192.0.2.78}}\nproxmox:\n"),
    );
    keeps_the_label(&lab, &at_the_snapshot(), false, CHANGED);
    lab.converges(3);
    lab.assert_is(&shape, "at its new address");
}

/// From 1.14 on a note that a reboot is due is written between the look and the configuration.
#[test]
fn what_somebody_writes_into_a_configuration_while_a_reboot_is_noted_stays() {
    let mut shape = Shape::new(1, 0).versions("v1.14.0", "v1.37.0");
    let lab = Lab::booted(&shape);
    shape.patches.push(WRITTEN_FILE.to_owned());
    lab.source(&shape);
    // The first is the cordon.
    let noted = json!({"kind": "hold-after", "method": "PATCH", "path": "/kubernetes/*/nodes/*", "nth": 2});
    keeps_the_label(&lab, &noted, false, CHANGED);
    lab.converges(3);
    lab.assert_is(&shape, "at the end");
}

/// A machine takes its first configuration from whoever comes first. One that comes up with another than ours was configured by somebody.
#[test]
fn a_new_machine_that_comes_up_with_another_configuration_is_an_error() {
    let shape = Shape::new(1, 0);
    let lab = Lab::new(&shape);
    let sent = json!({"kind": "hold-after", "path": "/talos/*/ApplyConfiguration"});
    let output = act_at(&lab.sim, &lab.strata(), &sent, &|| {
        // It does not know its name yet.
        lab.sim.control().change(&label(&format!("vm/{}", lab.vm(NODE).1), false));
    });
    assert_eq!(output.code, 1, "{}", output.all());
    assert!(
        output.all().contains("has got another configuration since the plan was made"),
        "{}",
        output.all()
    );
    // It was not overwritten: the next plan shows it, and takes it away.
    assert!(lab.run(&["plan"]).ok().stdout.contains("nodeLabels"));
    lab.converges(3);
    lab.assert_is(&shape, "at the end");
    lab.assert_settled("at the end");
}

const METAL: &str = r#"
metadata: {name: metal, environment: dev}
cluster:
  talos: {version: v1.13.9, schematic: {id: ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515}, installDisk: /dev/nvme0n1}
  kubernetes: {version: v1.36.3}
  network: {cidr: 198.51.100.0/24, gateway: 198.51.100.1, vip: 198.51.100.10}
  topology:
    controlPlane: {count: 1, addresses: 198.51.100.11-198.51.100.13}
"#;

/// A machine that was told to go to another address, and has not got it, is told again.
#[test]
fn what_somebody_writes_into_a_configuration_while_a_machine_moves_stays() {
    let sim = TestSim::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() });
    let repo = Repo::empty();
    let strata = Strata::new(BINARY, &repo);
    strata.run(&["init", "."]).ok();
    repo.write("clusters/metal/cluster.yaml", METAL);
    let settings = "repository: metal1\nsecrets: [{sops: secrets.sops.yaml}]\n";
    repo.write("strata.yaml", &format!("{settings}proxy: http://{}\n", sim.gateway()));
    let metal = json!({"name": "m1", "addresses": ["198.51.100.11"], "version": "v1.13.9"});
    sim.control().change(&json!({"talos": {"metal": metal}}));
    strata.run(&["apply", "--yes"]).ok();
    let moved = "  nodes: {metal-cp-1: {address: 198.51.100.22}}\n";
    repo.write("clusters/metal/cluster.yaml", &(METAL.to_owned() + moved));
    let theirs = std::cell::RefCell::new(Value::Null);
    let output = act_at(&sim, &strata, &unavailable(), &|| {
        sim.control().change(&label("metal/m1", false));
        *theirs.borrow_mut() = on_disk(&sim, "metal-cp-1");
    });
    assert_ne!(output.code, 0, "{}", output.all());
    assert_eq!(on_disk(&sim, "metal-cp-1"), theirs.into_inner(), "overwritten\n{}", output.all());
    assert!(output.all().contains(CHANGED), "{}", output.all());
    strata.run(&["apply", "--yes"]).ok();
    strata.run(&["plan", "--detailed-exitcode"]).ok();
}
