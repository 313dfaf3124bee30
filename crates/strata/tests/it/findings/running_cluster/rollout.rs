//! F11: every change that a node can feel goes through the rollout: one control plane at a time, after a look at etcd.

use serde_json::{Value, json};

use crate::cluster::lab::{FILE, Lab, Shape};

/// What was asked of the VMs of nodes and is a write, in order, while the first one is held.
fn writes(lab: &Lab) -> Vec<String> {
    let requests = lab.sim.control().requests();
    let counted: Vec<String> = requests
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(call, _)| !call.starts_with("GET"))
        .map(|(call, count)| format!("{call} {count}"))
        .collect();
    counted
}

/// Changes the source; while the first VM is changed no other one is, and each is healthy again before the next.
fn one_at_a_time(lab: &Lab, from: &str, to: &str, path: &str) {
    lab.repo.edit(FILE, from, to);
    let control = lab.sim.control();
    lab.run(&["plan"]).ok();
    control.reset_requests();
    let fault = control.fault(&json!({"kind": "hold-before", "writes": true, "path": path, "nth": 1}));
    let mut child = lab.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(fault, 60.0), "{to}: a VM is changed");
    // The others would have begun by now: the engine does ten things at once.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let begun = writes(lab);
    let of_vms = |calls: &[String]| -> u64 {
        let counts = calls.iter().filter(|call| call.contains("/qemu/"));
        counts.filter_map(|call| call.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    };
    assert!(of_vms(&begun) <= 1, "{to}: {begun:?}");
    control.release(fault);
    control.clear_faults();
    assert!(child.wait().unwrap().success(), "{to}");
    lab.assert_sound(to);
    lab.assert_settled(to);
}

#[test]
fn f11_what_a_node_can_feel_is_done_one_node_at_a_time() {
    let lab = Lab::booted(&Shape::new(3, 0));
    one_at_a_time(&lab, "bridge: vmbr0", "bridge: vmbr1", "/nodes/*/qemu/*/config");
    one_at_a_time(&lab, "bridge: vmbr1", "bridge: vmbr1\n    vlan: 30", "/nodes/*/qemu/*/config");
    // Another order moves nothing; a host that leaves the list sends its node away.
    one_at_a_time(&lab, "nodes: [pve1, pve2, pve3]", "nodes: [pve2, pve3]", "/nodes/*/qemu/*/migrate");
}

#[test]
fn f11_nothing_is_unplugged_while_etcd_cannot_do_without_it() {
    let lab = Lab::booted(&Shape::new(3, 0));
    // A member that is there and does not vote: its disk is full.
    lab.change(&json!({"alarm": {"machine": "lab-cp-3", "alarm": "nospace"}}));
    lab.change(&json!({"cut-off": {"machine": "lab-cp-3", "cut_off": true}}));
    lab.repo.edit(FILE, "bridge: vmbr0", "bridge: vmbr1");
    let before = lab.export()["guests"].clone();
    let output = lab.run(&["apply", "--yes"]);
    assert_ne!(output.code, 0, "{}", output.all());
    let bridges = |guests: &Value| -> usize { guests.to_string().matches("bridge=vmbr1").count() };
    assert_eq!(bridges(&lab.export()["guests"]), bridges(&before), "{}", output.all());
}

/// With `-v` every request is shown, whichever client sends it.
#[test]
fn a15_requests_of_the_kubernetes_client_are_shown() {
    let lab = Lab::booted(&Shape::new(1, 0));
    assert!(!lab.run(&["plan"]).ok().all().contains("GET /api"));
    let shown = lab.run(&["-v", "plan"]).ok();
    assert!(shown.all().contains("GET /api") && shown.all().contains(" 200 "), "{}", shown.all());
}
