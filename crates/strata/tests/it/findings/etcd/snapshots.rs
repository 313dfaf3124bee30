//! Snapshots belong to one cluster: restored nowhere else, and pruned with no other.

use strata_secret::SecretString;
use strata_secrets::Identities;

use super::{NAMES, etcd, remember, remembers, reset, says, snapshots};
use crate::cluster::lab::{FILE, Lab, Shape};

/// The newest snapshot as etcd wrote it: without encryption, and without what Strata puts before it.
fn raw(lab: &Lab) -> Vec<u8> {
    let identities = Identities::parse(&SecretString::new(lab.repo.read("age.key"))).unwrap();
    let sealed = std::fs::read(snapshots(lab).pop().unwrap()).unwrap();
    identities.decrypt(&sealed).unwrap().expose()[512..].to_vec()
}

/// Another cluster whose nodes have the same names and addresses, with secrets of its own.
#[test]
fn f2_a_snapshot_of_another_cluster_is_refused() {
    let other = Lab::new(&Shape::new(1, 0));
    other.repo.remove("clusters/lab/talos.sops.yaml");
    other.apply();
    remember(&other, "foreign");
    other.run(&["talos", "snapshot", "lab"]).ok();

    let shape = Shape::new(1, 0);
    let lab = Lab::booted(&shape);
    remember(&lab, "own");
    lab.run(&["talos", "snapshot", "lab"]).ok();
    let own = snapshots(&lab).pop().unwrap();
    std::fs::write(lab.repo.file("own.db"), raw(&lab)).unwrap();
    std::fs::write(lab.repo.file("foreign.db"), raw(&other)).unwrap();
    let enveloped = std::fs::read(snapshots(&other).pop().unwrap()).unwrap();
    std::fs::write(lab.repo.file("foreign.age"), enveloped).unwrap();
    // Without a checksum, as `talosctl cp` takes the file of a member.
    let database = raw(&other);
    std::fs::write(lab.repo.file("foreign.member"), &database[..database.len() - 32]).unwrap();

    reset(&lab, &NAMES[..1]);
    lab.repo.write("age.key", &format!("{}\n{}", lab.repo.read("age.key"), other.repo.read("age.key")));
    for foreign in ["foreign.age", "foreign.db", "foreign.member"] {
        let path = lab.repo.file(foreign).display().to_string();
        let refused = lab.run(&["talos", "restore", "lab", "--snapshot", &path, "--yes"]).code(3);
        says(&refused, &["is no snapshot of the cluster `lab`", foreign]);
        assert_eq!(etcd(&lab).1.len(), 0, "nothing was done with `{foreign}`");
    }
    for own in [own, lab.repo.file("own.db").display().to_string()] {
        reset(&lab, &NAMES[..1]);
        lab.run(&["talos", "restore", "lab", "--snapshot", &own, "--yes"]).ok();
        assert!(remembers(&lab, "own") && !remembers(&lab, "foreign"), "{own}");
    }
}

#[test]
fn f3_pruning_leaves_the_snapshots_of_others_alone() {
    let lab = Lab::booted(&Shape::new(1, 0));
    lab.repo.edit(FILE, "  kubernetes: {", "  etcd: {snapshots: {keep: 2}}\n  kubernetes: {");
    let others = [
        "lab-2-20200101T000000.snapshot.age",
        "lab-2-20200101T000000-0123456789ab.snapshot.age",
        "lab-20200101T000000-0123456789ab.snapshot.age",
        "lab-before-the-upgrade.snapshot.age",
        "lab-20200101T000000.snapshot.age.bak",
        "laboratory-20200101T000000.snapshot.age",
    ];
    for name in others {
        lab.repo.write(&format!(".strata/snapshots/{name}"), "somebody else's");
    }
    for _ in 0..4 {
        lab.run(&["talos", "snapshot", "lab"]).ok();
    }
    let left = snapshots(&lab);
    for name in others {
        assert!(left.iter().any(|path| path.ends_with(name)), "`{name}` is gone: {left:#?}");
    }
    assert_eq!(left.len(), others.len() + 2, "two of its own are kept: {left:#?}");
}
