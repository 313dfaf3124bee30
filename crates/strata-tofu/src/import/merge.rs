//! Two descriptions of the same machines become one: OpenTofu makes the VMs, and talhelper or topf the cluster on them.

use serde_json::{Value as Json, json};

use super::Import;
use super::output::{Object, Put};

/// What all machines of a cluster have in common.
const COMMON: [&str; 15] = [
    "cpu",
    "balloon",
    "bios",
    "machine",
    "efi",
    "tpm",
    "scsiController",
    "agent",
    "osType",
    "vga",
    "serial",
    "tags",
    "onboot",
    "tablet",
    "pool",
];

/// A machine of a stack.
struct Machine {
    document: String,
    own: String,
    vm: Object,
    target: String,
}

pub(super) fn merge(import: &mut Import<'_>) {
    let clusters: Vec<String> =
        import.documents.keys().filter(|path| path.starts_with("clusters/")).cloned().collect();
    for path in clusters {
        let Some((document, place)) = import.documents.get(&path) else { continue };
        let place = place.clone();
        let Some(nodes) =
            document["cluster"]["nodes"].as_object().filter(|_| document.get("proxmox").is_none())
        else {
            continue;
        };
        let machines = machines(import);
        let found: Option<Vec<(String, &Machine)>> =
            nodes.iter().map(|(own, node)| Some((own.clone(), of_node(&machines, own, node)?))).collect();
        let Some(found) = found.filter(|found| !found.is_empty()) else { continue };
        let target = found[0].1.target.clone();
        if found.iter().any(|(_, machine)| machine.target != target) {
            continue;
        }
        let proxmox = placement(&found, &target);
        let mut told: Vec<(String, String, String)> = Vec::new();
        for (_, machine) in &found {
            let lost = lost(&machine.vm, &found[0].1.vm);
            told.extend(lost.into_iter().map(|why| (machine.document.clone(), machine.own.clone(), why)));
        }
        let moved: Vec<(String, String)> =
            found.iter().map(|(_, machine)| (machine.document.clone(), machine.own.clone())).collect();
        let changes: Vec<(String, Object)> =
            found.iter().map(|(own, machine)| (own.clone(), node(&machine.vm))).collect();
        if let Some((Json::Object(document), _)) = import.documents.get_mut(&path) {
            for (own, fields) in changes {
                if let Some(known) = document["cluster"]["nodes"][&own].as_object_mut() {
                    // What the configuration of Talos says of a machine wins.
                    let mut whole = fields;
                    whole.append(known);
                    *known = whole;
                }
            }
            document.insert("proxmox".into(), proxmox);
        }
        let mut from: Vec<&str> = moved.iter().map(|(document, _)| document.as_str()).collect();
        from.dedup();
        import.note(
            Some(&place),
            format!("its machines are those of `{}`: the two are one cluster now", from.join("`, `")),
        );
        for (document, own, why) in told {
            let origin = import.origins.get(&(document, "vms".to_owned(), own.clone())).cloned();
            import.note(Some(&origin.unwrap_or_else(|| place.clone())), format!("of `{own}`, {why}"));
        }
        for (document, own) in moved {
            take_out(import, &document, &own);
        }
    }
}

fn machines(import: &Import<'_>) -> Vec<Machine> {
    let mut found = Vec::new();
    for (path, (document, _)) in import.documents.iter().filter(|(path, _)| path.starts_with("stacks/")) {
        let target = document["proxmox"]["target"].as_str().unwrap_or_default();
        let node = document["proxmox"]["node"].as_str();
        for (own, vm) in document["vms"].as_object().into_iter().flatten() {
            let Some(mut vm) = vm.as_object().cloned() else { continue };
            if let Some(node) = node {
                vm.entry("node").or_insert_with(|| json!(node));
            }
            found.push(Machine { document: path.clone(), own: own.clone(), vm, target: target.to_owned() });
        }
    }
    found
}

fn of_node<'m>(machines: &'m [Machine], own: &str, node: &Json) -> Option<&'m Machine> {
    let same_card = |machine: &&Machine| {
        let mac = machine.vm.get("network").and_then(|network| network[0]["mac"].as_str());
        mac.is_some() && mac == node["mac"].as_str()
    };
    machines.iter().find(|machine| machine.own == own).or_else(|| machines.iter().find(same_card))
}

/// The disk that the machine boots from.
fn first_disk(vm: &Object) -> Option<(&String, &Json)> {
    vm.get("disks")?.as_object()?.iter().find(|(_, disk)| disk.get("iso").is_none())
}

fn node(vm: &Object) -> Object {
    let mut node = Object::new();
    for key in ["vmId", "cores", "sockets", "memory", "startup", "pci", "usb"] {
        node.put(key, vm.get(key).cloned());
    }
    node.put("hypervisor", vm.get("node").cloned());
    node.put("mac", vm.get("network").and_then(|network| network[0].get("mac")).cloned());
    if let Some((slot, disk)) = first_disk(vm) {
        node.put("disk", disk.get("size").cloned());
        let others: Object = vm["disks"]
            .as_object()
            .into_iter()
            .flatten()
            // Strata puts the installer's CD in, and takes it out again.
            .filter(|(other, disk)| *other != slot && disk.get("iso").is_none())
            .map(|(other, disk)| (other.clone(), disk.clone()))
            .collect();
        node.put_full("disks", Json::Object(others));
    }
    node
}

/// What of a machine has no place in a cluster.
fn lost(vm: &Object, first: &Object) -> Vec<String> {
    let mut lost = Vec::new();
    for (key, value) in vm {
        match key.as_str() {
            "vmId" | "cores" | "sockets" | "memory" | "startup" | "pci" | "usb" | "node" | "network" => {}
            "disks" => {
                let isos =
                    value.as_object().into_iter().flatten().filter(|(_, disk)| disk.get("iso").is_some());
                lost.extend(isos.map(|(slot, _)| {
                    format!("the CD in `{slot}` was left out: Strata puts the installer's in, and takes it out again")
                }));
            }
            // A machine of a cluster runs.
            "started" if *value == json!(true) => {}
            known if COMMON.contains(&known) => {
                if first.get(known) != Some(value) {
                    lost.push(format!("`{known}` is another than the first machine's, which all have now"));
                }
            }
            other => lost.push(format!("`{other}` has no place in a cluster and was not carried over")),
        }
    }
    lost
}

fn placement(found: &[(String, &Machine)], target: &str) -> Json {
    let first = &found[0].1.vm;
    let mut vm = Object::new();
    vm.put("idBase", first.get("vmId").cloned());
    for key in COMMON {
        vm.put(key, first.get(key).cloned());
    }
    let mut proxmox = Object::new();
    proxmox.insert("target".into(), json!(target));
    let mut nodes: Vec<&str> =
        found.iter().filter_map(|(_, machine)| machine.vm.get("node")?.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    if !nodes.is_empty() {
        proxmox.insert("nodes".into(), json!(nodes));
    }
    if let Some(disk) = first_disk(first).and_then(|(_, disk)| disk.as_object()) {
        proxmox.put("storage", disk.get("storage").map(|storage| json!({"disk": storage})));
        let mut flags = disk.clone();
        for key in ["size", "storage", "import"] {
            flags.remove(key);
        }
        vm.put_full("disk", Json::Object(flags));
    }
    if let Some(nic) = first.get("network").and_then(|network| network[0].as_object()) {
        let mut nic = nic.clone();
        for key in ["mac", "ip", "gateway", "ip6", "gateway6"] {
            nic.remove(key);
        }
        vm.insert("network".into(), json!([nic]));
    }
    proxmox.insert("vm".into(), Json::Object(vm));
    Json::Object(proxmox)
}

/// Takes a machine out of its stack, and the stack away once it is empty.
fn take_out(import: &mut Import<'_>, path: &str, own: &str) {
    let Some((Json::Object(document), _)) = import.documents.get_mut(path) else { return };
    if let Some(vms) = document.get_mut("vms").and_then(Json::as_object_mut) {
        vms.remove(own);
        if vms.is_empty() {
            document.remove("vms");
        }
    }
    if ["vms", "containers", "templates"].iter().all(|section| !document.contains_key(*section)) {
        import.documents.remove(path);
    }
}
