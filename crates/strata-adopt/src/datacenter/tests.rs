use serde_json::json;
use strata_resource::kind;

use super::*;

mod pool {
    use super::*;
    kind! {
        /// A pool.
        "pool" { identity: &["pool"], ..KindTable::new("", "", &[]) }
        /// its name
        "pool": Text => InPlace;
        /// what people read of it
        "comment": Text => InPlace [default_text("")];
        /// the ownership mark
        "mark": Text => InPlace [purpose(Purpose::Mark)];
    }
    pub(super) const OWN: &KindTable = &TABLE;
}

mod acl {
    use super::*;
    kind! {
        /// A permission.
        "acl" { identity: &["path", "subject", "grants"], ..KindTable::new("", "", &[]) }
        /// where
        "path": Text => InPlace;
    }
    pub(super) const OWN: &KindTable = &TABLE;
}

mod network {
    use super::*;
    kind! {
        /// The network of a host.
        "network" { identity: &["network"], ..KindTable::new("", "", &[]) }
        /// the host
        "network": Text => InPlace;
    }
    pub(super) const OWN: &KindTable = &TABLE;
}

fn spec(json: serde_json::Value) -> Spec {
    serde_json::from_value(json).unwrap()
}

#[test]
fn what_its_name_and_its_mark_say_is_not_written() {
    let live = spec(json!({"pool": "lab/gpu", "comment": "for tests", "mark": "[strata x]", "odd": 1}));
    let written = object(pool::OWN, &live).unwrap();
    assert_eq!(written.yaml, json!({"comment": "for tests", "adopt": true}));
    assert_eq!(written.notes, ["`odd` has no key in the YAML: it stays as it is"]);
    assert_eq!(object_name(pool::OWN, &live), "lab~gpu");
    let (text, paths) = put_objects("", &[written]).unwrap();
    assert_eq!(text, "pools:\n  lab/gpu:\n    comment: for tests\n    adopt: true\n");
    assert_eq!(paths, [vec![Step::from("pools"), Step::from("lab/gpu")]]);
}

#[test]
fn permissions_are_added_to_the_list() {
    let live = spec(json!({
        "path": "/vms", "subject": "ops", "subject_type": "group", "grants": "Operator", "propagate": false,
    }));
    assert_eq!(object_name(acl::OWN, &live), "ops=Operator=~vms");
    let written = object(acl::OWN, &live).unwrap();
    let before = "acl:\n  # the boss\n  - {path: /, role: Administrator, user: a@pve}\n";
    let (text, paths) = put_objects(before, &[written]).unwrap();
    assert!(text.starts_with(before), "{text}");
    let item = json!({"path": "/vms", "role": "Operator", "group": "ops", "propagate": false, "adopt": true});
    assert_eq!(edit::value_of(&text).unwrap()["acl"][1], item);
    assert_eq!(paths, [vec![Step::from("acl"), Step::Index(1)]]);
}

#[test]
fn an_interface_that_no_key_takes_is_told_and_the_others_are_written() {
    let live = spec(json!({"network": "pve1", "staged": false, "interfaces": {
        "vmbr0": {"type": "bridge", "cidr": "192.0.2.11/24", "autostart": true, "ports": ["eno1"]},
        "vmbr1": {"type": "bridge"},
        "eno1": {"type": "eth"},
        "ovs0": {"type": "OVSBridge"},
    }}));
    let written = object(network::OWN, &live).unwrap();
    let expected = json!({
        "eno1": {"type": "eth"},
        "vmbr0": {"ports": ["eno1"], "address": "192.0.2.11/24", "adopt": true},
        "vmbr1": {"autostart": false, "adopt": true},
    });
    assert_eq!(written.yaml, expected);
    assert_eq!(written.notes, ["`network.ovs0` has no key in the YAML: it stays as it is"]);
    assert_eq!(host_of(network::OWN, &live), Some("pve1"));
}
