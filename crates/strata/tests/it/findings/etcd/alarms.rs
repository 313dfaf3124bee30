//! While etcd has raised an alarm no node is disturbed; and what an operator or the source protects stays as it is.

use serde_json::json;

use super::{kubernetes, says};
use crate::cluster::lab::{FILE, Lab, Shape};

#[test]
fn f4_alarms_of_etcd_stop_a_rollout() {
    let shape = Shape::new(3, 1);
    let lab = Lab::booted(&shape);
    let rolled = |shape: &Shape| {
        let mut changed = shape.clone();
        changed.patches = vec![
            "machine: {files: [{path: /var/etc/a, content: \"1\", permissions: 0o600, op: create}]}"
                .to_owned(),
        ];
        changed
    };
    let changes = [
        shape.clone().versions("v1.14.0", "v1.36.3"),
        rolled(&shape),
        Shape { cores: 6, ..shape.clone() },
        Shape { workers: 2, ..shape.clone() },
        Shape { control_planes: 5, ..shape.clone() },
    ];
    for (alarm, way) in [("nospace", "talosctl etcd defrag"), ("corrupt", "strata talos reset lab lab-cp-2")]
    {
        lab.change(&json!({"alarm": {"machine": "lab-cp-2", "alarm": alarm}}));
        for changed in &changes {
            lab.source(changed);
            let before = lab.talos()["reboots"].clone();
            for arguments in [&["plan"][..], &["apply", "--yes"]] {
                let refused = lab.run(arguments).code(3);
                says(&refused, &["etcd has raised an alarm", "lab-cp-2", way, "talosctl etcd alarm disarm"]);
            }
            assert_eq!(lab.talos()["reboots"], before, "{alarm}: nobody was disturbed");
        }
        lab.change(&json!({"disarm": {"machine": "lab-cp-2"}}));
    }
    // Raised between plan and disturbance: the nodes that are left are not touched.
    lab.source(&rolled(&shape));
    let control = lab.sim.control();
    let fault =
        control.fault(&json!({"kind": "hold-after", "path": "/talos/192.0.2.41/*/ApplyConfiguration"}));
    let mut child = lab.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(fault, 60.0));
    lab.change(&json!({"alarm": {"machine": "lab-cp-2", "alarm": "corrupt"}}));
    control.release(fault);
    assert!(!child.wait().unwrap().success(), "it stops after the first node");
    let rebooted: Vec<String> = lab.talos()["reboots"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["cause"] == "apply-config")
        .map(|one| one["hostname"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(rebooted, ["lab-cp-1"]);
    lab.change(&json!({"disarm": {"machine": "lab-cp-2"}}));
    lab.converges(2);
    lab.assert_sound("after the alarms");
}

/// The way out of a corrupt member: it is reset while its own alarm is raised, and joins again.
#[test]
fn f4_the_member_that_differs_can_be_reset() {
    let shape = Shape::new(3, 0);
    let lab = Lab::booted(&shape);
    lab.change(&json!({"alarm": {"machine": "lab-cp-2", "alarm": "corrupt"}}));
    says(&lab.run(&["talos", "reset", "lab", "lab-cp-1", "--yes"]).code(3), &["etcd has raised an alarm"]);
    lab.run(&["talos", "reset", "lab", "lab-cp-2", "--yes"]).ok();
    lab.change(&json!({"disarm": {"machine": "lab-cp-1"}}));
    lab.converges(2);
    lab.assert_is(&shape, "joined again");
    lab.assert_sound("joined again");
}

#[test]
fn f6_a_protected_node_is_not_reset() {
    let lab = Lab::booted(&Shape::new(3, 0));
    let before = lab.machines();
    lab.repo.edit(FILE, "vm: {idBase: 800}", "vm: {idBase: 800, protect: true}");
    let forms = [&[][..], &["--wipe", "disk"], &["--wipe", "state"], &["--wipe", "ephemeral"]];
    let refused = |when: &str| {
        for form in forms {
            let arguments = [&["talos", "reset", "lab", "lab-cp-2", "--yes"][..], form].concat();
            let output = lab.run(&arguments).code(3);
            says(&output, &["`lab-cp-2` is protected", "protect: false"]);
        }
        assert_eq!(lab.machines(), before, "{when}");
    };
    refused("in the source");
    lab.apply();
    lab.repo.edit(FILE, "protect: true", "protect: false");
    refused("still in the state");
    lab.apply();
    lab.run(&["talos", "reset", "lab", "lab-cp-2", "--yes"]).ok();
}

fn cordoned(lab: &Lab, name: &str) -> bool {
    let node = kubernetes(lab, "GET", &format!("/api/v1/nodes/{name}"), serde_json::Value::Null);
    node.to_string().contains("\"unschedulable\":true")
}

#[test]
fn f16_the_cordon_of_an_operator_stays_after_an_upgrade() {
    let shape = Shape::new(1, 2);
    let lab = Lab::booted(&shape);
    let path = "/api/v1/nodes/lab-worker-1";
    kubernetes(&lab, "PATCH", path, json!({"spec": {"unschedulable": true}}));
    assert!(cordoned(&lab, "lab-worker-1"));
    for changed in [
        shape.clone().versions("v1.14.0", "v1.36.3"),
        Shape { cores: 6, ..shape.clone().versions("v1.14.0", "v1.36.3") },
    ] {
        lab.becomes(&changed);
        lab.assert_is(&changed, "upgraded");
        assert!(cordoned(&lab, "lab-worker-1"), "it was cordoned by somebody else");
        assert!(!cordoned(&lab, "lab-worker-2") && !cordoned(&lab, "lab-cp-1"));
        lab.assert_settled("with a cordon of an operator");
    }
}
