//! Two descriptions of the same machines become one: OpenTofu makes the VMs, and talhelper or topf the cluster on them.

use serde_json::{Value as Json, json};

use super::Import;
use super::output::{Object, Put};

/// What all machines of a cluster have in common.
const COMMON: [&str; 22] = [
    "notes",
    "protect",
    "protection",
    "timeouts",
    "options",
    "hotplug",
    "bootOrder",
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
        let linked = |own: &str| {
            let (document, key) = import.links.get(&(path.clone(), own.to_owned()))?;
            machines.iter().find(|machine| machine.document == *document && machine.own == *key)
        };
        let found: Option<Vec<(String, &Machine)>> = nodes
            .iter()
            .map(|(own, node)| Some((own.clone(), linked(own).or_else(|| of_node(&machines, own, node))?)))
            .collect();
        let Some(found) = found.filter(|found| !found.is_empty()) else { continue };
        let target = found[0].1.target.clone();
        if found.iter().any(|(_, machine)| machine.target != target) {
            continue;
        }
        let secure = document["cluster"]["talos"]["secureBoot"].as_bool().unwrap_or(false);
        let proxmox = placement(&found, &target, secure);
        let mut told: Vec<(String, String, String)> = Vec::new();
        for (own, machine) in &found {
            let own = Joined { node: &nodes[own], network: &document["cluster"]["network"] };
            let lost = lost(&machine.vm, &found[0].1.vm, &own);
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
    let address = node["address"].as_str();
    let same_address = |machine: &&Machine| {
        let ip = machine.vm.get("network").and_then(|network| network[0]["ip"].as_str());
        ip.and_then(|ip| ip.split('/').next()).is_some_and(|ip| Some(ip) == address)
    };
    machines
        .iter()
        .find(|machine| machine.own == own)
        .or_else(|| machines.iter().find(same_card))
        .or_else(|| machines.iter().find(same_address))
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

/// What the configuration of Talos says of a machine.
struct Joined<'j> {
    node: &'j Json,
    network: &'j Json,
}

/// What of a machine has no place in a cluster.
fn lost(vm: &Object, first: &Object, joined: &Joined<'_>) -> Vec<String> {
    let mut lost = Vec::new();
    for (key, value) in vm {
        match key.as_str() {
            "vmId" | "cores" | "sockets" | "memory" | "startup" | "pci" | "usb" | "node" | "name" => {}
            "network" => cards(value, first.get("network"), joined, &mut lost),
            "disks" => {
                let isos =
                    value.as_object().into_iter().flatten().filter(|(_, disk)| disk.get("iso").is_some());
                lost.extend(isos.map(|(slot, _)| {
                    format!("the CD in `{slot}` was left out: Strata puts the installer's in, and takes it out again")
                }));
                if flags(vm) != flags(first) {
                    lost.push(
                        "the first disk differs from the first machine's, whose bus and options all have now"
                            .to_owned(),
                    );
                }
            }
            // The addresses come in the drive that Strata makes for Talos.
            "cloudInit" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    let same = match key.as_str() {
                        "nameservers" => joined.network.get("nameservers") == Some(value),
                        "storage" => first_disk(vm).and_then(|(_, disk)| disk.get("storage")) == Some(value),
                        "type" => value == "nocloud",
                        _ => false,
                    };
                    if !same {
                        lost.push(format!(
                            "`cloudInit.{key}` has no place in a cluster and was not carried over"
                        ));
                    }
                }
            }
            "bootOrder" if first.get("bootOrder") == Some(value) => {
                let slots = value.as_array().into_iter().flatten().filter_map(Json::as_str);
                lost.extend(slots.filter(|slot| is_cd(vm, slot)).map(|slot| {
                    format!("`{slot}` in the order of booting is `ide2` now, where Strata puts the installer's CD in")
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

/// Whether a slot to boot from is neither a disk nor a card.
fn is_cd(vm: &Object, slot: &str) -> bool {
    let disk = vm.get("disks").and_then(|disks| disks.get(slot));
    disk.is_none_or(|disk| disk.get("iso").is_some()) && !slot.starts_with("net")
}

/// What of a machine's cards the cluster does not say.
fn cards(value: &Json, first: Option<&Json>, joined: &Joined<'_>, lost: &mut Vec<String>) {
    let list = |value: Option<&Json>| value.and_then(Json::as_array).cloned().unwrap_or_default();
    for (index, card) in list(Some(value)).iter().enumerate() {
        let ip = card["ip"].as_str().unwrap_or("dhcp");
        let own = joined.node["address"].as_str();
        let known = index == 0 && (ip == "dhcp" || ip.split('/').next() == own);
        if !known {
            lost.push(format!(
                "the address `{ip}` of `net{index}` was not carried over: a patch says it inside of Talos"
            ));
        }
        let gateway = card.get("gateway").filter(|gateway| joined.network.get("gateway") != Some(*gateway));
        if let Some(gateway) = gateway.and_then(Json::as_str) {
            lost.push(format!("the router `{gateway}` of `net{index}` was not carried over: the cluster's network says another or none"));
        }
        if index > 0 && card.get("mac").is_some() {
            lost.push(format!(
                "the hardware address of `net{index}` was not carried over: Strata gives it one"
            ));
        }
        if list(first).get(index).map(plain_card) != Some(plain_card(card)) {
            lost.push(format!("`net{index}` differs from the first machine's, which all have now"));
        }
    }
}

/// A card without what is each machine's own.
fn plain_card(card: &Json) -> Json {
    let mut card = card.as_object().cloned().unwrap_or_default();
    for key in ["mac", "ip", "gateway", "ip6", "gateway6"] {
        card.remove(key);
    }
    Json::Object(card)
}

/// The options of the disk that a machine boots from, with what Proxmox does where nobody says it.
fn flags(vm: &Object) -> Option<(String, Object)> {
    let (slot, disk) = first_disk(vm)?;
    let mut flags = disk.as_object()?.clone();
    for key in ["size", "storage", "import"] {
        flags.remove(key);
    }
    for (key, value) in
        [("discard", false), ("ssd", false), ("iothread", false), ("backup", true), ("replicate", true)]
    {
        flags.entry(key).or_insert_with(|| json!(value));
    }
    // Only these two can have it.
    if !slot.starts_with("scsi") && !slot.starts_with("virtio") {
        flags.remove("iothread");
    }
    if slot.starts_with("virtio") {
        flags.remove("ssd");
    }
    Some((slot.clone(), flags))
}

fn placement(found: &[(String, &Machine)], target: &str, secure_boot: bool) -> Json {
    let first = &found[0].1.vm;
    let mut vm = Object::new();
    vm.put("idBase", first.get("vmId").cloned());
    for key in COMMON {
        vm.put(key, first.get(key).cloned());
    }
    // What a machine has where nobody says it; a cluster's machines would have something else.
    for (key, value) in [
        ("bios", json!("seabios")),
        ("machine", json!("pc")),
        ("osType", json!("other")),
        ("scsiController", json!("lsi")),
        ("onboot", json!(false)),
        ("agent", json!({"enabled": false})),
        ("tags", json!([])),
        ("cpu", json!({})),
    ] {
        vm.entry(key).or_insert(value);
    }
    if let Some(Json::Object(cpu)) = vm.get_mut("cpu") {
        cpu.entry("type").or_insert_with(|| json!("kvm64"));
        cpu.entry("numa").or_insert_with(|| json!(false));
    }
    // The drive that Strata puts its CD into is another one.
    if let Some(Json::Array(order)) = vm.get_mut("bootOrder") {
        for slot in order.iter_mut() {
            if slot.as_str().is_some_and(|slot| is_cd(first, slot)) {
                *slot = json!("ide2");
            }
        }
        let mut seen = Vec::new();
        order.retain(|slot| {
            !seen.contains(slot) && {
                seen.push(slot.clone());
                true
            }
        });
    }
    if secure_boot && !vm.contains_key("tpm") {
        vm.insert("tpm".into(), json!({"enabled": false}));
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
    if let (Some((_, disk)), Some((slot, flags))) = (first_disk(first), flags(first)) {
        proxmox.put("storage", disk.get("storage").map(|storage| json!({"disk": storage})));
        let of_slot = if slot == "scsi0" { json!({"disk": flags}) } else { json!({"disks": {slot: flags}}) };
        vm.extend(of_slot.as_object().cloned().unwrap_or_default());
    }
    if let Some(cards) = first.get("network").and_then(Json::as_array) {
        vm.insert("network".into(), cards.iter().map(plain_card).collect());
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
