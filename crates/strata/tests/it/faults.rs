//! The fault test: each request in turn is refused, delayed, or carried out with its answer lost. The apply ends in success, or in
//! a clear error after which `apply` succeeds.

use serde_json::{Value, json};

use crate::kill::assert_same;
use crate::world::World;

fn faults() -> Vec<Value> {
    vec![
        json!({"kind": "refuse", "status": 500, "text": "some error of the server"}),
        json!({"kind": "refuse", "status": 596, "text": "Connection timed out"}),
        json!({"kind": "refuse", "status": 500, "text": "can't lock file '/var/lock/qemu-server/lock-9100.conf' - got timeout"}),
        json!({"kind": "delay", "seconds": 0.2}),
        json!({"kind": "cut"}),
        json!({"kind": "lost"}),
    ]
}

fn undisturbed() -> (Value, u64) {
    let world = World::new();
    world.sim.control().reset_requests();
    world.strata().run(&["apply", "--yes"]).ok();
    let requests = world.sim.requests();
    (world.export(), requests)
}

fn fault_at(fault: &Value, k: u64, expected: &Value) -> bool {
    let world = World::new();
    let control = world.sim.control();
    let mut order = fault.clone();
    order["nth"] = json!(k);
    control.fault(&order);
    let first = world.strata().run(&["apply", "--yes"]);
    control.clear_faults();
    let what = format!("{order}\n{}", first.all());
    if first.code != 0 {
        assert!(first.stderr.contains("error:"), "{what}");
        assert!(!first.all().contains("panicked"), "{what}");
        let again = world.strata().run(&["apply", "--yes"]);
        assert_eq!(again.code, 0, "{what}\nthen:\n{}", again.all());
    }
    assert_same(&world.export(), expected, &what);
    world.assert_settled();
    first.code == 0
}

fn fault_every(step: usize) {
    let (expected, requests) = undisturbed();
    for (number, fault) in faults().iter().enumerate() {
        let mut at_once = 0;
        let mut tried = 0;
        // Another beginning for each fault, so that a sample covers more requests.
        for k in (1 + number as u64..=requests).step_by(step) {
            at_once += usize::from(fault_at(fault, k, &expected));
            tried += 1;
        }
        println!("{fault}: {tried} of {requests} requests, {at_once} applies succeeded at once");
    }
}

#[test]
fn faults_at_some_requests_end_well() {
    fault_every(41);
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_requests() {
    fault_every(1);
}
