//! The fault test over a cold boot: requests to Proxmox, Talos, Kubernetes, the image factory and TrueNAS are refused, delayed, cut, or
//! their answers lost.

use serde_json::{Value, json};

use super::kill::undisturbed;
use super::lab::{Lab, Shape};
use super::sweep::Sweep;
use crate::kill::assert_same;

fn faults() -> [(&'static str, Value); 6] {
    [
        ("error", json!({"kind": "refuse", "status": 500, "text": "some error of the server"})),
        ("busy", json!({"kind": "refuse", "status": 503, "text": "not just now"})),
        ("forbidden", json!({"kind": "refuse", "status": 403, "text": "you may not"})),
        ("delay", json!({"kind": "delay", "seconds": 0.2})),
        ("cut", json!({"kind": "cut"})),
        ("lost", json!({"kind": "lost"})),
    ]
}

/// Orders a fault, applies, and applies again if that failed. Whether it succeeded at once.
fn fault_at(shape: &Shape, order: &Value, expected: &Value) -> bool {
    let lab = Lab::new(shape);
    let control = lab.sim.control();
    control.fault(order);
    let first = lab.run(&["apply", "--yes"]);
    let struck = control.call("GET", "/_sim/faults", None)[0]["request"].clone();
    control.clear_faults();
    let what = format!("{order} at {struck}\n{}", first.all());
    if first.code != 0 {
        assert!(first.stderr.contains("error:"), "{what}");
        assert!(!first.all().contains("panicked"), "{what}");
        let again = lab.run(&["apply", "--yes"]);
        assert_eq!(again.code, 0, "{what}\nthen:\n{}", again.all());
    }
    assert_same(&lab.export(), expected, &what);
    lab.assert_sound(&what);
    lab.assert_is(shape, &what);
    lab.assert_settled(&what);
    first.code == 0
}

fn fault_every(shape: &Shape, step: u64) {
    let (expected, requests) = undisturbed(shape);
    let mut sweep = Sweep::new();
    for ((name, fault), number) in faults().iter().zip(0..) {
        let (mut at_once, mut tried) = (0, 0);
        // Another beginning for each fault, so that a sample covers more requests.
        for k in (1 + number * step / 6..=requests).step_by(step as usize) {
            if !sweep.has(name, k) {
                continue;
            }
            let mut order = fault.clone();
            order["nth"] = json!(k);
            at_once += usize::from(sweep.case(name, k, || fault_at(shape, &order, &expected)));
            tried += 1;
        }
        println!("{fault}: {tried} of {requests} requests, {at_once} applies succeeded at once");
    }
    sweep.end();
}

#[test]
fn faults_at_some_requests_of_a_cold_boot_end_well() {
    fault_every(&Shape::new(1, 1).whole(), 40);
}

/// Every kind of call that changes something in Talos and Kubernetes, each with each fault.
#[test]
fn calls_that_change_a_node_may_fail_in_any_way() {
    let shape = Shape::new(1, 1).with_gitops();
    let (expected, _) = undisturbed(&shape);
    for path in ["/talos/*/ApplyConfiguration", "/talos/*/Bootstrap"] {
        for (_, fault) in faults() {
            let mut order = fault.clone();
            order["path"] = json!(path);
            fault_at(&shape, &order, &expected);
        }
    }
}

/// Workers get their certificates from control planes. One whose VM could not be started is not waited for.
#[test]
fn a_worker_waits_for_no_control_plane_that_does_not_come() {
    let shape = Shape::new(1, 1);
    let lab = Lab::new(&shape);
    let control = lab.sim.control();
    control.fault(
        &json!({"kind": "refuse", "path": "/nodes/*/qemu/800/status/start", "text": "no room for it"}),
    );
    let failed = lab.run(&["apply", "--yes"]).code(1);
    assert!(failed.stderr.contains("no room for it"), "{}", failed.all());
    assert!(failed.stderr.contains("gets its certificate from a control plane"), "{}", failed.all());
    control.clear_faults();
    lab.apply();
    lab.assert_is(&shape, "after it could be started");
    lab.assert_settled("after it could be started");
}

#[test]
#[ignore = "takes most of an hour: just cluster-fault-test"]
fn fault_cold_boot() {
    fault_every(&Shape::new(1, 1).whole(), 1);
}
