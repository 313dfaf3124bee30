//! Etcd is bootstrapped only where every control plane says itself that it holds no data of it.

use serde_json::json;

use super::{NAMES, etcd, lose_state, power, remember, remembers, reset, says, snapshots, until};
use crate::cluster::lab::{Lab, Shape};

/// Plan and apply refuse, name the survivor and the way to save it, and change nothing about etcd.
#[track_caller]
fn refused(lab: &Lab, survivors: &[&str], what: &str) {
    let before = etcd(lab);
    for arguments in [&["plan"][..], &["--json", "plan"], &["apply", "--yes"]] {
        let output = lab.run(arguments).code(3);
        says(&output, survivors);
        says(&output, &["strata talos snapshot lab", "majority"]);
        let wrong = "no control plane holds";
        assert!(!output.all().contains(wrong), "{what}: `{wrong}` is not true:\n{}", output.all());
    }
    assert_eq!(etcd(lab), before, "{what}: nothing is bootstrapped, and nothing is wiped");
}

/// One survivor of three and of five, with the state and without it; then the way back that the refusal names.
#[test]
fn b1_etcd_is_never_bootstrapped_beside_a_survivor() {
    for (count, with_state) in [(3, false), (3, true), (5, false)] {
        let what = format!("one of {count}, state: {with_state}");
        let shape = Shape::new(count, 0);
        let lab = Lab::booted(&shape);
        remember(&lab, "precious");
        let (survivor, gone) = NAMES[..count as usize].split_last().unwrap();
        reset(&lab, gone);
        if !with_state {
            lose_state(&lab);
        }
        refused(&lab, &[survivor], &what);
        assert_eq!(etcd(&lab), (1, vec![(*survivor).to_owned()]), "{what}");

        let saved = lab.run(&["talos", "snapshot", "lab"]).ok();
        says(&saved, &[survivor]);
        let copy = snapshots(&lab).pop().unwrap();
        assert!(copy.contains(survivor) && copy.ends_with(".survivor.age"), "{copy}");
        lab.run(&["talos", "restore", "lab", "--snapshot", &copy, "--yes"]).ok();
        assert!(remembers(&lab, "precious"), "{what}: nothing was lost");
        assert_eq!(etcd(&lab).0, 1, "{what}");
        lab.converges(2);
        lab.assert_is(&shape, &what);
    }
}

/// A machine without a configuration may still have etcd's data: it is asked once it can answer, and never taken for empty.
#[test]
fn b1_a_survivor_in_maintenance_mode_is_no_empty_machine() {
    for with_state in [false, true] {
        let lab = Lab::booted(&Shape::new(3, 0));
        reset(&lab, &NAMES[..2]);
        lab.change(&json!({"reset": {"machine": NAMES[2], "partitions": ["STATE"]}}));
        until(&lab, NAMES[2], "maintenance");
        if !with_state {
            lose_state(&lab);
        }
        let output = lab.run(&["apply", "--yes"]);
        assert_ne!(output.code, 0, "{}", output.all());
        assert_eq!(etcd(&lab).0, 1, "it is not bootstrapped again:\n{}", output.all());
        if !with_state {
            // By now it has its configuration again, and says itself what it holds.
            says(&output, &["`lab-cp-3` still holds data"]);
            refused(&lab, &[NAMES[2]], "configured again");
        }
        assert_eq!(etcd(&lab).1.len(), 1, "its data are still there");
    }
}

/// Whoever does not answer, or answers with an error, has not said that it has none.
#[test]
fn b1_an_error_is_no_answer() {
    let lab = Lab::booted(&Shape::new(3, 0));
    reset(&lab, &NAMES[..2]);
    lose_state(&lab);
    for (path, status) in
        [("/talos/192.0.2.43/*/List", 403), ("/talos/192.0.2.43/*/Mounts", 501), ("/talos/192.0.2.43/*", 503)]
    {
        lab.sim.control().fault(&json!({"kind": "refuse", "path": "/talos/192.0.2.43/*/EtcdStatus", "status": 503, "text": "no", "count": 0}));
        lab.sim
            .control()
            .fault(&json!({"kind": "refuse", "path": path, "status": status, "text": "no", "count": 0}));
        lab.repo.edit(
            "clusters/lab/cluster.yaml",
            "  kubernetes: {",
            "  timeouts: {boot: 2s, join: 2s}\n  kubernetes: {",
        );
        let output = lab.run(&["apply", "--yes"]);
        assert_ne!(output.code, 0, "{path}: {}", output.all());
        lab.repo.edit("clusters/lab/cluster.yaml", "  timeouts: {boot: 2s, join: 2s}\n", "");
        lab.sim.control().clear_faults();
        assert_eq!(etcd(&lab), (1, vec!["lab-cp-3".to_owned()]), "{path}: {}", output.all());
    }
    power(&lab, NAMES[2], false);
    lab.change(&json!({"cut-off": {"machine": "vm/802", "cut_off": true}}));
    power(&lab, NAMES[2], true);
    lab.repo.edit(
        "clusters/lab/cluster.yaml",
        "  kubernetes: {",
        "  timeouts: {boot: 2s, join: 2s}\n  kubernetes: {",
    );
    let output = lab.run(&["apply", "--yes"]);
    assert_ne!(output.code, 0, "{}", output.all());
    assert_eq!(etcd(&lab).0, 1, "{}", output.all());
}

/// A majority that was only away comes back by itself, and nothing is begun beside it.
#[test]
fn b1_a_majority_that_comes_back_is_no_reason_to_begin_again() {
    let shape = Shape::new(3, 0);
    let lab = Lab::booted(&shape);
    lose_state(&lab);
    for name in &NAMES[..2] {
        power(&lab, name, false);
    }
    // What they hold cannot be seen while they are off.
    says(
        &lab.run(&["apply", "--yes"]).code(3),
        &["`lab-cp-3` still holds data", "bring the other control planes back"],
    );
    for name in &NAMES[..2] {
        power(&lab, name, true);
    }
    lab.converges(3);
    lab.assert_is(&shape, "switched on again");
    assert_eq!(etcd(&lab).0, 1);
    lab.assert_settled("switched on again");
}

/// Without the secrets a cluster cannot be reached: new ones are not made while the state knows it.
#[test]
fn b3_lost_secrets_of_a_known_cluster_are_not_replaced() {
    let lab = Lab::booted(&Shape::new(1, 1));
    let file = "clusters/lab/talos.sops.yaml";
    let bundle = lab.repo.read(file);
    lab.repo.remove(file);
    let before = lab.export();
    for arguments in [
        &["plan"][..],
        &["apply", "--yes"],
        &["plan", "-o", "a.plan"],
        &["drift"],
        &["apply", "--yes", "--new-cluster"],
    ] {
        let output = lab.run(arguments).code(3);
        says(&output, &["clusters/lab/talos.sops.yaml", "bring the file back"]);
        assert!(!lab.repo.file(file).exists(), "{arguments:?}");
    }
    assert_eq!(lab.export(), before);
    lab.repo.write(file, &bundle);
    lab.assert_settled("with its secrets");
    // VMs go with their disks, so that a destroy needs no keys.
    lab.repo.remove(file);
    lab.run(&["destroy", "lab", "--yes"]).ok();
}
