use serde_json::json;
use strata_resource::FieldPath;
use strata_source::machine::vm::Vm;
use strata_source::stack::Stack;
use strata_yaml::Decode as _;

use super::*;

fn change(path: &str, before: Option<Value>, after: Option<Value>) -> FieldChange {
    FieldChange { path: FieldPath::dotted(path), before, after, drift: true }
}

/// The first way that says it, in a file with this entry.
fn first(file: &str, before: Json, after: Json, live: &FieldChange) -> String {
    let (changes, after) = key_changes(&Vm::shape(), &before, &after);
    let [one] = changes.as_slice() else { panic!("{changes:?}") };
    let entry = Entry { path: vec!["vms".to_owned(), "web".to_owned()], shape: Stack::shape() };
    let whole = edit::value_of(file).unwrap();
    ways(&whole, &entry, one, &after, live)[0].apply(file).unwrap()
}

#[test]
fn a_value_is_written_where_its_key_stands() {
    let cores = change("cpu.cores", Some(Value::Int(2)), Some(Value::Int(4)));
    let file = "vms:\n  web:\n    cores: 2   # enough\n";
    let text = first(file, json!({"cores": 2}), json!({"cores": 4}), &cores);
    assert_eq!(text, "vms:\n  web:\n    cores: 4   # enough\n");
}

#[test]
fn a_short_form_grows_and_a_list_is_met_by_slot() {
    let ssd = change("disks.scsi0.ssd", None, Some(Value::Bool(true)));
    let file = "vms: {web: {disks: {scsi0: 20}}}\n";
    let text = first(
        file,
        json!({"disks": {"scsi0": 20}}),
        json!({"disks": {"scsi0": {"size": 20, "ssd": true}}}),
        &ssd,
    );
    assert_eq!(
        edit::value_of(&text).unwrap()["vms"]["web"]["disks"]["scsi0"],
        json!({"size": 20, "ssd": true})
    );

    let vlan = change("networks.net1.vlan", Some(Value::Int(3)), Some(Value::Int(7)));
    let file = "vms:\n  web:\n    network: [{bridge: a}, {bridge: b, vlan: 3}]\n";
    let (before, after) = (
        json!({"network": [{"bridge": "a"}, {"bridge": "b", "vlan": 3}]}),
        json!({"network": [{"bridge": "a"}, {"bridge": "b", "vlan": 7}]}),
    );
    assert_eq!(
        first(file, before, after, &vlan),
        "vms:\n  web:\n    network: [{bridge: a}, {bridge: b, vlan: 7}]\n"
    );
}

#[test]
fn another_spelling_and_a_default_are_kept_as_they_are_written() {
    let node = change("node", Some(Value::text("pve1")), Some(Value::text("pve2")));
    let file = "vms:\n  web: {hypervisor: pve1}\n";
    let text = first(file, json!({}), json!({"node": "pve2"}), &node);
    assert_eq!(text, "vms:\n  web: {hypervisor: pve2}\n");
    // What is the default live is said, so that no profile says something else.
    let cores = change("cpu.cores", Some(Value::Int(2)), Some(Value::Int(1)));
    let text = first("vms:\n  web: {cores: 2}\n", json!({"cores": 2}), json!({}), &cores);
    assert_eq!(text, "vms:\n  web: {cores: 1}\n");
    let address = change("cloudinit.ipconfig0.ip", None, None);
    let (before, after) =
        (json!({"network": [{"ip": "192.0.2.10/24"}]}), json!({"network": [{"ip": "192.0.2.11/24"}]}));
    let text = first("vms:\n  web: {ip: 192.0.2.10/24}\n", before, after, &address);
    assert_eq!(text, "vms:\n  web: {ip: \"192.0.2.11/24\"}\n");
}
