//! A restore wipes nothing that has recovered, and nothing that it has not saved.

use serde_json::json;

use super::{NAMES, etcd, power, remember, remembers, reset, says, snapshots};
use crate::cluster::lab::{FILE, Lab, Shape};

/// Two of three are only switched off: the run switches them on, etcd is back, and nothing is wiped.
#[test]
fn f1_control_planes_whose_etcd_has_recovered_are_not_wiped() {
    let shape = Shape::new(3, 0);
    let restore =
        |copy: &str| ["talos", "restore", "lab", "--snapshot", copy, "--yes"].map(str::to_owned).to_vec();
    for new_cluster in [false, true] {
        let lab = Lab::booted(&shape);
        lab.run(&["talos", "snapshot", "lab"]).ok();
        let copy = snapshots(&lab).pop().unwrap();
        remember(&lab, "younger");
        power(&lab, NAMES[1], false);
        power(&lab, NAMES[2], false);
        lab.sim.control().fault(&json!({"kind": "delay", "path": "/talos/*", "seconds": 0.2, "count": 0}));
        let arguments = if new_cluster {
            ["apply", "--yes", "--new-cluster"].map(str::to_owned).to_vec()
        } else {
            restore(&copy)
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = lab.run(&arguments);
        lab.sim.control().clear_faults();
        assert_ne!(output.code, 0, "the restore was not needed:\n{}", output.all());
        says(&output, &["runs again and has a leader: nothing was wiped", "`strata apply` goes on"]);
        assert!(!output.all().contains("etcd is back"), "{}", output.all());
        lab.converges(2);
        assert!(remembers(&lab, "younger"), "what was written after the snapshot is still there");
        assert_eq!(etcd(&lab), (1, NAMES[..3].iter().map(|name| (*name).to_owned()).collect()));
        let reboots = lab.talos()["reboots"].to_string();
        assert!(!reboots.contains("\"reset\""), "nobody was reset: {reboots}");
        lab.assert_is(&shape, "as before");
        lab.assert_settled("as before");
    }
}

/// The survivor's database is saved before it is wiped, and can be restored itself.
#[test]
fn f1_what_a_survivor_holds_is_saved_before_it_is_wiped() {
    let shape = Shape::new(3, 0);
    let lab = Lab::booted(&shape);
    lab.run(&["talos", "snapshot", "lab"]).ok();
    let old = snapshots(&lab).pop().unwrap();
    remember(&lab, "younger");
    reset(&lab, &NAMES[..2]);
    // Without the copy nothing is wiped.
    lab.sim.control().fault(&json!({"kind": "refuse", "path": "/talos/192.0.2.43/*/EtcdSnapshot", "status": 503, "text": "no", "count": 0}));
    lab.sim.control().fault(&json!({"kind": "refuse", "path": "/talos/192.0.2.43/*/Read", "status": 403, "text": "no", "count": 0}));
    let failed = lab.run(&["talos", "restore", "lab", "--snapshot", &old, "--yes"]);
    assert_ne!(failed.code, 0, "{}", failed.all());
    assert_eq!(etcd(&lab).1, ["lab-cp-3"], "{}", failed.all());
    lab.sim.control().clear_faults();
    // The first control plane has to be looked at again, as every run does.
    lab.run(&["talos", "restore", "lab", "--snapshot", &old, "--yes"]).ok();
    assert!(!remembers(&lab, "younger"), "the old snapshot was restored");
    let saved = snapshots(&lab)
        .into_iter()
        .find(|name| name.ends_with("lab-cp-3.survivor.age"))
        .expect("it was saved");
    reset(&lab, &NAMES[..3]);
    says(&lab.run(&["plan"]).code(3), &["in maintenance mode, and may have kept data of it"]);
    lab.run(&["talos", "restore", "lab", "--snapshot", &saved, "--yes"]).ok();
    assert!(remembers(&lab, "younger"), "and what the survivor had comes back from its own copy");
    lab.converges(2);
    lab.assert_is(&shape, "restored");
}

/// The request that wipes a survivor is lost on its way: it is sent again.
#[test]
fn f1_a_wipe_of_a_survivor_that_got_lost_is_sent_again() {
    let shape = Shape::new(3, 0);
    let lab = Lab::booted(&shape);
    lab.repo.edit(FILE, "  kubernetes: {", "  timeouts: {reboot: 30s}\n  kubernetes: {");
    lab.run(&["talos", "snapshot", "lab"]).ok();
    let copy = snapshots(&lab).pop().unwrap();
    reset(&lab, &NAMES[..2]);
    lab.sim.control().fault(&json!({"kind": "cut", "path": "/talos/192.0.2.43/*/Reset"}));
    lab.run(&["talos", "restore", "lab", "--snapshot", &copy, "--yes"]).ok();
    lab.converges(2);
    lab.assert_is(&shape, "restored");
}
