//! The fault test over a cold boot: requests to Proxmox, Talos and Kubernetes are refused, delayed, cut, or their answers lost.

use serde_json::{Value, json};

use super::kill::undisturbed;
use super::lab::{Lab, Shape};
use crate::kill::assert_same;

fn faults() -> Vec<Value> {
    vec![
        json!({"kind": "refuse", "status": 500, "text": "some error of the server"}),
        json!({"kind": "refuse", "status": 503, "text": "not just now"}),
        json!({"kind": "refuse", "status": 403, "text": "you may not"}),
        json!({"kind": "delay", "seconds": 0.2}),
        json!({"kind": "cut"}),
        json!({"kind": "lost"}),
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

fn fault_every(shape: &Shape, step: usize) {
    let (expected, requests) = undisturbed(shape);
    for (number, fault) in faults().iter().enumerate() {
        let (mut at_once, mut tried) = (0, 0);
        // Another beginning for each fault, so that a sample covers more requests.
        for k in (1 + (number * step / 6) as u64..=requests).step_by(step) {
            let mut order = fault.clone();
            order["nth"] = json!(k);
            at_once += usize::from(fault_at(shape, &order, &expected));
            tried += 1;
        }
        println!("{fault}: {tried} of {requests} requests, {at_once} applies succeeded at once");
    }
}

#[test]
fn faults_at_some_requests_of_a_cold_boot_end_well() {
    fault_every(&Shape::new(1, 1).with_gitops(), 40);
}

/// Every kind of call that changes something in Talos and Kubernetes, each with each fault.
#[test]
fn calls_that_change_a_node_may_fail_in_any_way() {
    let shape = Shape::new(1, 1).with_gitops();
    let (expected, _) = undisturbed(&shape);
    for path in ["/talos/*/ApplyConfiguration", "/talos/*/Bootstrap"] {
        for fault in faults() {
            let mut order = fault.clone();
            order["path"] = json!(path);
            fault_at(&shape, &order, &expected);
        }
    }
}

#[test]
#[ignore = "takes most of an hour: just cluster-fault-test"]
fn fault_cold_boot() {
    fault_every(&Shape::new(1, 1).with_gitops(), 1);
}
