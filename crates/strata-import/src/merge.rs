//! Two descriptions of the same machines become one: OpenTofu makes the VMs, and talhelper or topf the cluster on them.

use crate::output::only;
use crate::records::{
    Agent, CloudInit, Cluster, ClusterNetwork, ClusterNode, ClusterProxmox, ClusterSpec, ClusterVm, Cpu,
    Disk, Guest, Hardware, Nic, NodeSettings, Stack, StackProxmox, StorageDefaults, Talos, Tpm, Vm,
};
use serde_json::{Value as Json, json};
use strata_yaml::Key;

use super::Import;
use super::output::{Object, Put};

/// What all machines of a cluster have in common.
const COMMON: [Key; 22] = [
    ClusterVm::notes,
    ClusterVm::protect,
    ClusterVm::protection,
    ClusterVm::timeouts,
    ClusterVm::options,
    Hardware::hotplug,
    Hardware::boot_order,
    Hardware::cpu,
    Hardware::balloon,
    Hardware::bios,
    Hardware::machine,
    Hardware::efi,
    Hardware::tpm,
    Hardware::scsi_controller,
    Hardware::agent,
    Hardware::os_type,
    Hardware::vga,
    Hardware::serial,
    ClusterVm::tags,
    ClusterVm::onboot,
    Hardware::tablet,
    ClusterVm::pool,
];

/// What each machine of a cluster has for itself: the key of the node, and of the VM.
const OF_EACH: [(Key, Key); 7] = [
    (ClusterNode::vm_id, Guest::vm_id),
    (NodeSettings::cores, Hardware::cores),
    (NodeSettings::sockets, Hardware::sockets),
    (NodeSettings::memory, Hardware::memory),
    (NodeSettings::startup, Guest::startup),
    (NodeSettings::pci, Hardware::pci),
    (NodeSettings::usb, Hardware::usb),
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
        import.model.documents.keys().filter(|path| path.starts_with("clusters/")).cloned().collect();
    for path in clusters {
        let Some((document, place)) = import.model.documents.get(&path) else { continue };
        let place = place.clone();
        let Some(nodes) = document[Cluster::cluster.name()][ClusterSpec::nodes.name()]
            .as_object()
            .filter(|_| document.get(Cluster::proxmox.name()).is_none())
        else {
            continue;
        };
        let machines = machines(import);
        let linked = |own: &str| {
            let (document, key) = import.model.links.get(&(path.clone(), own.to_owned()))?;
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
        let secure = document[Cluster::cluster.name()][ClusterSpec::talos.name()][Talos::secure_boot.name()]
            .as_bool()
            .unwrap_or(false);
        let proxmox = placement(&found, &target, secure);
        let mut told: Vec<(String, String, String)> = Vec::new();
        for (own, machine) in &found {
            let own = Joined {
                node: &nodes[own],
                network: &document[Cluster::cluster.name()][ClusterSpec::network.name()],
            };
            let lost = lost(&machine.vm, &found[0].1.vm, &own);
            told.extend(lost.into_iter().map(|why| (machine.document.clone(), machine.own.clone(), why)));
        }
        let moved: Vec<(String, String)> =
            found.iter().map(|(_, machine)| (machine.document.clone(), machine.own.clone())).collect();
        let changes: Vec<(String, Object)> =
            found.iter().map(|(own, machine)| (own.clone(), node(&machine.vm))).collect();
        if let Some((Json::Object(document), _)) = import.model.documents.get_mut(&path) {
            for (own, fields) in changes {
                if let Some(known) =
                    document[Cluster::cluster.name()][ClusterSpec::nodes.name()][&own].as_object_mut()
                {
                    // What the configuration of Talos says of a machine wins.
                    let mut whole = fields;
                    whole.append(known);
                    *known = whole;
                }
            }
            document.set(Cluster::proxmox, proxmox);
        }
        let mut from: Vec<&str> = moved.iter().map(|(document, _)| document.as_str()).collect();
        from.dedup();
        import.note(
            Some(&place),
            format!("its machines are those of `{}`: the two are one cluster now", from.join("`, `")),
        );
        for (document, own, why) in told {
            let origin =
                import.model.origins.get(&(document, Stack::vms.name().to_owned(), own.clone())).cloned();
            import.note(Some(&origin.unwrap_or_else(|| place.clone())), format!("of `{own}`, {why}"));
        }
        for (document, own) in moved {
            remove_machine(import, &document, &own);
        }
    }
}

fn machines(import: &Import<'_>) -> Vec<Machine> {
    let mut found = Vec::new();
    for (path, (document, _)) in import.model.documents.iter().filter(|(path, _)| path.starts_with("stacks/"))
    {
        let target =
            document[Stack::proxmox.name()][StackProxmox::target.name()].as_str().unwrap_or_default();
        let node = document[Stack::proxmox.name()][StackProxmox::node.name()].as_str();
        for (own, vm) in document[Stack::vms.name()].as_object().into_iter().flatten() {
            let Some(mut vm) = vm.as_object().cloned() else { continue };
            if let Some(node) = node {
                vm.entry(Guest::node.name()).or_insert_with(|| json!(node));
            }
            found.push(Machine { document: path.clone(), own: own.clone(), vm, target: target.to_owned() });
        }
    }
    found
}

fn of_node<'m>(machines: &'m [Machine], own: &str, node: &Json) -> Option<&'m Machine> {
    let same_card = |machine: &&Machine| {
        let mac =
            machine.vm.get(Hardware::network.name()).and_then(|network| network[0][Nic::mac.name()].as_str());
        mac.is_some() && mac == node[ClusterNode::mac.name()].as_str()
    };
    let address = node[ClusterNode::address.name()].as_str();
    let same_address = |machine: &&Machine| {
        let ip =
            machine.vm.get(Hardware::network.name()).and_then(|network| network[0][Nic::ip.name()].as_str());
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
    vm.get(Hardware::disks.name())?.as_object()?.iter().find(|(_, disk)| disk.get(Disk::iso.name()).is_none())
}

fn node(vm: &Object) -> Object {
    let mut node = Object::new();
    for (key, of_vm) in OF_EACH {
        node.put(key, vm.get(of_vm.name()).cloned());
    }
    node.put(NodeSettings::hypervisor, vm.get(Guest::node.name()).cloned());
    node.put(
        ClusterNode::mac,
        vm.get(Hardware::network.name()).and_then(|network| network[0].get(Nic::mac.name())).cloned(),
    );
    if let Some((slot, disk)) = first_disk(vm) {
        node.put(NodeSettings::disk, disk.get(Disk::size.name()).cloned());
        let others: Object = vm[Hardware::disks.name()]
            .as_object()
            .into_iter()
            .flatten()
            // Strata puts the installer's CD in, and takes it out again.
            .filter(|(other, disk)| *other != slot && disk.get(Disk::iso.name()).is_none())
            .map(|(other, disk)| (other.clone(), disk.clone()))
            .collect();
        node.put_full(NodeSettings::disks, Json::Object(others));
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
        let is = |known: Key| key == known.name();
        match key.as_str() {
            _ if OF_EACH.iter().any(|(_, of_vm)| is(*of_vm)) || is(Guest::node) || is(Guest::name) => {}
            _ if is(Hardware::network) => {
                cards(value, first.get(Hardware::network.name()), joined, &mut lost)
            }
            _ if is(Hardware::disks) => {
                let isos = value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(_, disk)| disk.get(Disk::iso.name()).is_some());
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
            _ if is(Vm::cloud_init) => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    let is = |known: Key| key == known.name();
                    let same = match key.as_str() {
                        _ if is(CloudInit::nameservers) => {
                            joined.network.get(ClusterNetwork::nameservers.name()) == Some(value)
                        }
                        _ if is(CloudInit::storage) => {
                            first_disk(vm).and_then(|(_, disk)| disk.get(Disk::storage.name())) == Some(value)
                        }
                        _ if is(CloudInit::kind) => value == "nocloud",
                        _ => false,
                    };
                    if !same {
                        lost.push(format!(
                            "`cloudInit.{key}` has no place in a cluster and was not carried over"
                        ));
                    }
                }
            }
            _ if is(Hardware::boot_order) && first.get(key) == Some(value) => {
                let slots = value.as_array().into_iter().flatten().filter_map(Json::as_str);
                lost.extend(slots.filter(|slot| is_cd(vm, slot)).map(|slot| {
                    format!("`{slot}` in the order of booting is `ide2` now, where Strata puts the installer's CD in")
                }));
            }
            // A machine of a cluster runs.
            _ if is(Guest::started) && *value == json!(true) => {}
            known if COMMON.iter().any(|common| is(*common)) => {
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
    let disk = vm.get(Hardware::disks.name()).and_then(|disks| disks.get(slot));
    disk.is_none_or(|disk| disk.get(Disk::iso.name()).is_some()) && !slot.starts_with("net")
}

/// What of a machine's cards the cluster does not say.
fn cards(value: &Json, first: Option<&Json>, joined: &Joined<'_>, lost: &mut Vec<String>) {
    let list = |value: Option<&Json>| value.and_then(Json::as_array).cloned().unwrap_or_default();
    for (index, card) in list(Some(value)).iter().enumerate() {
        let ip = card[Nic::ip.name()].as_str().unwrap_or("dhcp");
        let own = joined.node[ClusterNode::address.name()].as_str();
        let known = index == 0 && (ip == "dhcp" || ip.split('/').next() == own);
        if !known {
            lost.push(format!(
                "the address `{ip}` of `net{index}` was not carried over: a patch says it inside of Talos"
            ));
        }
        let gateway = card
            .get(Nic::gateway.name())
            .filter(|gateway| joined.network.get(ClusterNetwork::gateway.name()) != Some(*gateway));
        if let Some(gateway) = gateway.and_then(Json::as_str) {
            lost.push(format!("the router `{gateway}` of `net{index}` was not carried over: the cluster's network says another or none"));
        }
        if index > 0 && card.get(Nic::mac.name()).is_some() {
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
    for key in [Nic::mac, Nic::ip, Nic::gateway, Nic::ip6, Nic::gateway6] {
        card.remove(key.name());
    }
    Json::Object(card)
}

/// The options of the disk that a machine boots from, with what Proxmox does where nobody says it.
fn flags(vm: &Object) -> Option<(String, Object)> {
    let (slot, disk) = first_disk(vm)?;
    let mut flags = disk.as_object()?.clone();
    for key in [Disk::size, Disk::storage, Disk::import] {
        flags.remove(key.name());
    }
    for (key, value) in [
        (Disk::discard, false),
        (Disk::ssd, false),
        (Disk::iothread, false),
        (Disk::backup, true),
        (Disk::replicate, true),
    ] {
        flags.entry(key.name()).or_insert_with(|| json!(value));
    }
    // Only these two can have it.
    if !slot.starts_with("scsi") && !slot.starts_with("virtio") {
        flags.remove(Disk::iothread.name());
    }
    if slot.starts_with("virtio") {
        flags.remove(Disk::ssd.name());
    }
    Some((slot.clone(), flags))
}

fn placement(found: &[(String, &Machine)], target: &str, secure_boot: bool) -> Json {
    let first = &found[0].1.vm;
    let mut vm = Object::new();
    vm.put(ClusterVm::id_base, first.get(Guest::vm_id.name()).cloned());
    for key in COMMON {
        vm.put(key, first.get(key.name()).cloned());
    }
    // What a machine has where nobody says it; a cluster's machines would have something else.
    for (key, value) in [
        (Hardware::bios, json!("seabios")),
        (Hardware::machine, json!("pc")),
        (Hardware::os_type, json!("other")),
        (Hardware::scsi_controller, json!("lsi")),
        (ClusterVm::onboot, json!(false)),
        (Hardware::agent, only(Agent::enabled, false)),
        (ClusterVm::tags, json!([])),
        (Hardware::cpu, json!({})),
    ] {
        vm.entry(key.name()).or_insert(value);
    }
    if let Some(Json::Object(cpu)) = vm.get_mut(Hardware::cpu.name()) {
        cpu.entry(Cpu::kind.name()).or_insert_with(|| json!("kvm64"));
        cpu.entry(Cpu::numa.name()).or_insert_with(|| json!(false));
    }
    // The drive that Strata puts its CD into is another one.
    if let Some(Json::Array(order)) = vm.get_mut(Hardware::boot_order.name()) {
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
    if secure_boot && !vm.contains_key(Hardware::tpm.name()) {
        vm.set(Hardware::tpm, only(Tpm::enabled, false));
    }
    let mut proxmox = Object::new();
    proxmox.set(ClusterProxmox::target, json!(target));
    let mut nodes: Vec<&str> =
        found.iter().filter_map(|(_, machine)| machine.vm.get(Guest::node.name())?.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    if !nodes.is_empty() {
        proxmox.set(ClusterProxmox::nodes, json!(nodes));
    }
    if let (Some((_, disk)), Some((slot, flags))) = (first_disk(first), flags(first)) {
        proxmox.put(
            ClusterProxmox::storage,
            disk.get(Disk::storage.name()).map(|storage| only(StorageDefaults::disk, storage.clone())),
        );
        if slot == "scsi0" {
            vm.set(Hardware::disk, Json::Object(flags));
        } else {
            vm.set(Hardware::disks, json!({slot: flags}));
        }
    }
    if let Some(cards) = first.get(Hardware::network.name()).and_then(Json::as_array) {
        vm.set(Hardware::network, cards.iter().map(plain_card).collect());
    }
    proxmox.set(ClusterProxmox::vm, Json::Object(vm));
    Json::Object(proxmox)
}

/// Takes a machine out of its stack, and the stack away once it is empty.
fn remove_machine(import: &mut Import<'_>, path: &str, own: &str) {
    let Some((Json::Object(document), _)) = import.model.documents.get_mut(path) else { return };
    if let Some(vms) = document.get_mut(Stack::vms.name()).and_then(Json::as_object_mut) {
        vms.remove(own);
        if vms.is_empty() {
            document.remove(Stack::vms.name());
        }
    }
    if [Stack::vms, Stack::containers, Stack::templates]
        .iter()
        .all(|section| !document.contains_key(section.name()))
    {
        import.model.documents.remove(path);
    }
}
