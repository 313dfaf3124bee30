//! Control planes that are no members of etcd any more, and have kept its data: they never join with them.

use serde_json::{Value, json};

use super::{NAMES, etcd, remember, remembers, says, snapshots, until};
use crate::cluster::lab::{FILE, Lab, Shape};

/// A machine loses its configuration and keeps the rest of its disk.
fn lose_configuration(lab: &Lab, name: &str) {
    let machine = format!("vm/{}", lab.vm(name).1);
    lab.change(&json!({"reset": {"machine": machine, "partitions": ["STATE"]}}));
    until(lab, name, "maintenance");
}

/// Somebody takes a member out of etcd by hand, by way of another one.
fn remove_member(lab: &Lab, name: &str) {
    let machine = format!("vm/{}", lab.vm(name).1);
    lab.change(&json!({"remove-member": {"machine": machine}}));
}

fn reboots(lab: &Lab, name: &str, cause: &str) -> usize {
    let talos = lab.talos();
    let mut all: Vec<&Value> = talos["reboots"].as_array().unwrap().iter().collect();
    all.retain(|one| one["hostname"] == name && one["cause"] == cause);
    all.len()
}

fn members(lab: &Lab) -> Value {
    lab.talos()["etcd-clusters"][0]["members"].clone()
}

fn id_of(lab: &Lab, name: &str) -> Value {
    let members = members(lab);
    members.as_array().unwrap().iter().find(|member| member["name"] == name).unwrap()["id"].clone()
}

/// What lost its configuration alone is the member that it was: it is configured, and nothing of etcd changes.
#[test]
fn f14_a_control_plane_that_lost_its_configuration_is_the_member_that_it_was() {
    let shape = Shape::new(3, 0);
    let lab = Lab::booted(&shape);
    let before = id_of(&lab, NAMES[1]);
    lose_configuration(&lab, NAMES[1]);
    lab.apply();
    assert_eq!(id_of(&lab, NAMES[1]), before, "it was not removed");
    assert_eq!(reboots(&lab, NAMES[1], "api"), 0, "nobody rebooted it");
    lab.assert_is(&shape, "configured again");
    lab.assert_sound("configured again");
    lab.assert_settled("configured again");
}

/// All of them at once: nobody can be asked about etcd, and all of it is still there.
#[test]
fn f14_control_planes_that_all_lost_their_configuration_are_not_told_that_etcd_is_lost() {
    for count in [1, 3] {
        let shape = Shape::new(count, 0);
        let lab = Lab::booted(&shape);
        remember(&lab, "precious");
        lab.run(&["talos", "snapshot", "lab"]).ok();
        let old = snapshots(&lab).pop().unwrap();
        remember(&lab, "younger");
        for name in &NAMES[..count as usize] {
            lose_configuration(&lab, name);
        }
        for arguments in [&["plan"][..], &["apply", "--yes"]] {
            let refused = lab.run(arguments).code(3);
            assert!(!refused.all().contains("holds data of it any more"), "{}", refused.all());
            says(&refused, &["maintenance mode", "strata talos restore lab"]);
        }
        // The way that it names brings them back, and restores nothing: their etcd is there.
        let restore = lab.run(&["talos", "restore", "lab", "--snapshot", &old, "--yes"]);
        says(&restore, &["runs again and has a leader: nothing was wiped"]);
        lab.converges(2);
        assert!(remembers(&lab, "younger"), "{count}: {}", restore.all());
        lab.assert_is(&shape, "configured again");
        assert_eq!(etcd(&lab).0, 1);
    }
}

/// Etcd takes no member back. The plan says that the data are wiped, and one apply ends it, without a second reboot.
#[test]
fn f14_data_of_a_removed_member_are_wiped_once_and_it_joins() {
    let shape = Shape::new(3, 1);
    let lab = Lab::booted(&shape);
    remember(&lab, "precious");
    remove_member(&lab, NAMES[1]);
    let saved = snapshots(&lab).len();
    let plan = lab.run(&["plan", "--detailed-exitcode"]).code(2);
    says(&plan, &[NAMES[1], "stale_etcd_data", "restarts", "(EPHEMERAL) is wiped", "1 to change"]);
    lab.apply();
    assert_eq!((reboots(&lab, NAMES[1], "reset"), reboots(&lab, NAMES[1], "api")), (1, 0));
    assert!(snapshots(&lab).len() > saved, "what it kept is saved before");
    assert!(snapshots(&lab).iter().any(|name| name.ends_with("lab-cp-2.survivor.age")));
    assert!(remembers(&lab, "precious"));
    lab.assert_is(&shape, "joined");
    lab.assert_settled("joined");
}

/// A run that dies around the wipe: it is done once, and the next apply ends it.
#[test]
fn f14_a_kill_around_the_wipe_of_a_removed_member_converges() {
    let shape = Shape::new(3, 0);
    for kind in ["hold-before", "hold-after"] {
        let lab = Lab::booted(&shape);
        remove_member(&lab, NAMES[2]);
        let fault = json!({"kind": kind, "path": "/talos/192.0.2.43/*/Reset"});
        assert!(lab.strata().kill_at(&lab.sim.control(), &fault, &["apply", "--yes"]).struck, "{kind}");
        lab.converges(2);
        assert_eq!(reboots(&lab, NAMES[2], "reset"), 1, "{kind}");
        lab.assert_is(&shape, kind);
        lab.assert_settled(kind);
    }
}

/// It lost its configuration, and then its member: what it keeps is not known before it is configured. No apply wipes what no plan has shown, and
/// none waits for what never comes.
#[test]
fn f14_data_of_a_removed_member_are_not_wiped_before_a_plan_shows_it() {
    let shape = Shape::new(3, 0);
    let lab = Lab::booted(&shape);
    lose_configuration(&lab, NAMES[1]);
    remove_member(&lab, NAMES[1]);
    let failed = lab.run(&["apply", "--yes"]);
    assert_eq!(failed.code, 1, "{}", failed.all());
    says(&failed, &["keeps the data of a member that etcd removed", "plan again"]);
    assert_eq!(etcd(&lab).1.len(), 3, "nothing is wiped: {}", failed.all());
    says(&lab.run(&["plan", "--detailed-exitcode"]).code(2), &["(EPHEMERAL) is wiped"]);
    lab.apply();
    lab.assert_is(&shape, "joined");
    lab.assert_settled("joined");
}

/// While another control plane is away, a node without a vote is brought back all the same; and a protected one keeps what it has.
#[test]
fn f14_a_protected_node_keeps_the_data_of_a_removed_member() {
    let shape = Shape::new(3, 0);
    let lab = Lab::booted(&shape);
    let nodes = "  nodes: {lab-cp-2: {protect: true}}\nproxmox:\n  target";
    lab.repo.edit(FILE, "proxmox:\n  target", nodes);
    lab.apply();
    remove_member(&lab, NAMES[1]);
    for arguments in [&["plan"][..], &["apply", "--yes"]] {
        says(&lab.run(arguments).code(3), &["`lab-cp-2` is protected", "would be wiped", "protect: false"]);
    }
    assert_eq!(etcd(&lab).1.len(), 3, "nothing was wiped");
    lab.repo.edit(FILE, nodes, "proxmox:\n  target");
    lab.converges(2);
    lab.assert_is(&shape, "joined");
}

/// The others may not go down while it does not vote. A plan that wants both brings it back, and is not refused for what it ends itself.
#[test]
fn f14_a_removed_member_comes_back_by_a_plan_that_restarts_the_others_too() {
    let shape = Shape::new(3, 0);
    let lab = Lab::booted(&shape);
    remove_member(&lab, NAMES[2]);
    let upgraded = shape.versions("v1.14.0", "v1.36.3");
    lab.source(&upgraded);
    lab.converges(3);
    lab.assert_is(&upgraded, "upgraded");
    assert!(lab.talos()["counters"].to_string().contains("\"quorum_lost\":false"), "{}", lab.talos());
}
