//! Documents as a person would write them: in the usual order, in short forms, what all machines share said once, and nothing that Strata
//! does anyway.

use crate::output::Put as _;
use crate::output::only;
use crate::records::{
    Agent, CloneMode, Cluster, ClusterNode, ClusterSpec, Console, Container, ContainerNic, Cpu, Disk, Efi,
    Guest, Hardware, Nic, NodeSettings, Pci, Stack, StackProxmox, Startup, StorageDefaults, Tpm, Vga, Vm,
};
use std::collections::BTreeSet;
use strata_yaml::Key;

use serde_json::{Value as Json, json};

use super::Import;
use super::output::Object;

/// The keys of a machine, as they are read best.
const ORDER: [Key; 50] = [
    Guest::vm_id,
    ClusterNode::role,
    Guest::name,
    Container::hostname,
    Guest::node,
    NodeSettings::hypervisor,
    Vm::template,
    Vm::clone_mode,
    Vm::image,
    Vm::iso,
    Hardware::os_type,
    Container::unprivileged,
    ClusterNode::address,
    NodeSettings::dhcp,
    ClusterNode::mac,
    Hardware::cores,
    Hardware::sockets,
    Hardware::cpu,
    Container::cpu_units,
    Container::cpu_limit,
    Hardware::memory,
    Hardware::balloon,
    Container::swap,
    Hardware::bios,
    Hardware::machine,
    Hardware::efi,
    Hardware::tpm,
    Hardware::scsi_controller,
    Hardware::disk,
    Hardware::disks,
    Container::mount_points,
    Hardware::boot_order,
    Hardware::network,
    Container::nameservers,
    Container::search_domain,
    Vm::cloud_init,
    Hardware::agent,
    Hardware::vga,
    Hardware::serial,
    Hardware::pci,
    Hardware::usb,
    Hardware::hotplug,
    Container::features,
    Guest::started,
    Guest::onboot,
    Guest::startup,
    Guest::pool,
    Guest::protection,
    Guest::tags,
    Guest::notes,
];

/// Where a stack has machines.
const SECTIONS: [Key; 3] = [Stack::templates, Stack::vms, Stack::containers];

/// Where disks go on a fresh Proxmox.
const STORAGE: &str = "local-lvm";

pub(super) fn shorten(import: &mut Import<'_>) {
    for (path, (document, _)) in &mut import.model.documents {
        let Json::Object(document) = document else { continue };
        if path.starts_with("stacks/") {
            share(document);
            for section in SECTIONS {
                let storage = default_storage(document);
                for (own, guest) in machines(document, section) {
                    if section == Stack::containers {
                        container(own, guest, &storage);
                    } else {
                        machine(guest, &storage);
                    }
                    order(guest);
                }
            }
        } else if path.starts_with("clusters/")
            && let Some(spec) = document.get_mut(Cluster::cluster.name()).and_then(Json::as_object_mut)
        {
            // The machines one by one come last.
            if let Some(mut nodes) = spec.shift_remove(ClusterSpec::nodes.name()) {
                nodes.as_object_mut().into_iter().flat_map(Object::values_mut).for_each(|node| {
                    let Some(node) = node.as_object_mut() else { return };
                    drop_if(node, NodeSettings::secure_boot, &json!(false));
                    order(node);
                });
                spec.set(ClusterSpec::nodes, nodes);
            }
        }
    }
}

fn machines(document: &mut Object, section: Key) -> Vec<(&str, &mut Object)> {
    let found = document.get_mut(section.name()).and_then(Json::as_object_mut);
    let entries = found.into_iter().flatten();
    entries.filter_map(|(own, guest)| Some((own.as_str(), guest.as_object_mut()?))).collect()
}

fn order(guest: &mut Object) {
    let rank = |key: &str| ORDER.iter().position(|known| known.name() == key).unwrap_or(ORDER.len());
    let mut entries: Vec<(String, Json)> = std::mem::take(guest).into_iter().collect();
    entries.sort_by_key(|(key, _)| rank(key));
    guest.extend(entries);
}

/// Says once what every machine says: its node, and where its disks are.
fn share(document: &mut Object) {
    let (mut nodes, mut storages, mut disks) = (BTreeSet::new(), BTreeSet::new(), 0);
    for section in SECTIONS {
        for (_, guest) in machines(document, section) {
            nodes.insert(guest.get(Guest::node.name()).and_then(Json::as_str).map(str::to_owned));
            for disk in own_disks(guest) {
                disks += 1;
                storages.insert(disk.get(Disk::storage.name()).and_then(Json::as_str).map(str::to_owned));
            }
        }
    }
    let Some(proxmox) = document.get_mut(Stack::proxmox.name()).and_then(Json::as_object_mut) else { return };
    let only = |found: BTreeSet<Option<String>>| {
        let mut found = found.into_iter();
        found.next().flatten().filter(|_| found.next().is_none())
    };
    let node = only(nodes).filter(|_| !proxmox.contains_key(StackProxmox::node.name()));
    if let Some(node) = &node {
        proxmox.set(StackProxmox::node, json!(node));
    }
    let storage = only(storages).filter(|_| disks > 1 && !proxmox.contains_key(StackProxmox::storage.name()));
    if let Some(storage) = storage.filter(|storage| storage != STORAGE) {
        proxmox.set(StackProxmox::storage, json!(storage));
    }
    let Some(whole) = proxmox.get(StackProxmox::node.name()).cloned() else { return };
    for section in SECTIONS {
        for (_, guest) in machines(document, section) {
            if guest.get(Guest::node.name()) == Some(&whole) {
                guest.shift_remove(Guest::node.name());
            }
        }
    }
}

/// The storage of disks that say nothing.
fn default_storage(document: &Object) -> String {
    let storage =
        document.get(Stack::proxmox.name()).and_then(|proxmox| proxmox.get(StackProxmox::storage.name()));
    let disk = storage
        .and_then(|storage| storage.as_str().or_else(|| storage[StorageDefaults::disk.name()].as_str()));
    disk.unwrap_or(STORAGE).to_owned()
}

/// The disks that are where the stack says unless they say otherwise: a clone's are where its template's are.
fn own_disks(guest: &mut Object) -> Vec<&mut Object> {
    if guest.contains_key(Vm::template.name()) {
        return Vec::new();
    }
    let mut found: Vec<&mut Object> = Vec::new();
    for (key, value) in guest.iter_mut() {
        if key == Hardware::disk.name() {
            found.extend(value.as_object_mut());
        } else if key == Hardware::disks.name() {
            let disks = value.as_object_mut().into_iter().flatten();
            found.extend(disks.filter_map(|(_, disk)| disk.as_object_mut()));
        }
    }
    found.retain(|disk| !disk.contains_key(Disk::iso.name()) && !disk.contains_key(Disk::volume.name()));
    found
}

fn drop_if(map: &mut Object, key: Key, default: &Json) {
    if map.get(key.name()) == Some(default) {
        map.shift_remove(key.name());
    }
}

/// A mapping with one key that a plain value stands for.
fn short(map: &mut Object, key: &str, inner: Key) {
    let Some(Json::Object(found)) = map.get(key) else { return };
    if found.len() == 1
        && let Some(value) = found.get(inner.name()).cloned()
    {
        map.insert(key.to_owned(), value);
    }
}

fn disks(guest: &mut Object, storage: &str) {
    for disk in own_disks(guest) {
        drop_if(disk, Disk::storage, &json!(storage));
        // What Proxmox does with a disk of which nothing is said.
        for (key, default) in [
            (Disk::ssd, json!(false)),
            (Disk::discard, json!(false)),
            (Disk::iothread, json!(false)),
            (Disk::read_only, json!(false)),
            (Disk::backup, json!(true)),
            (Disk::replicate, json!(true)),
            (Disk::cache, json!("none")),
            (Disk::aio, json!("io_uring")),
            (Disk::format, json!("raw")),
        ] {
            drop_if(disk, key, &default);
        }
    }
    short(guest, Hardware::disk.name(), Disk::size);
    if let Some(disks) = guest.get_mut(Hardware::disks.name()).and_then(Json::as_object_mut) {
        let slots: Vec<String> = disks.keys().cloned().collect();
        slots.iter().for_each(|slot| short(disks, slot, Disk::size));
    }
}

fn nics(guest: &mut Object, default: impl Fn(usize) -> (Key, Json)) {
    let Some(nics) = guest.get_mut(Hardware::network.name()).and_then(Json::as_array_mut) else { return };
    for (index, nic) in nics.iter_mut().enumerate() {
        let Some(map) = nic.as_object_mut() else { continue };
        let (key, value) = default(index);
        drop_if(map, key, &value);
        drop_if(map, Nic::link_down, &json!(false));
        drop_if(map, Nic::firewall, &json!(false));
        if map.len() == 1
            && let Some(bridge) = map.get(Nic::bridge.name()).cloned()
        {
            *nic = bridge;
        }
    }
}

fn machine(vm: &mut Object, storage: &str) {
    // What a clone does not say is its template's.
    if !vm.contains_key(Vm::template.name()) {
        if let Some(cpu) = vm.get_mut(Hardware::cpu.name()).and_then(Json::as_object_mut) {
            drop_if(cpu, Cpu::kind, &json!("x86-64-v2-AES"));
        }
        drop_if(vm, Hardware::cpu, &json!({}));
        drop_if(vm, Hardware::sockets, &json!(1));
        drop_if(vm, Hardware::scsi_controller, &json!("virtio-scsi-single"));
        drop_if(vm, Hardware::os_type, &json!("l26"));
        drop_if(vm, Hardware::bios, &json!("seabios"));
        drop_if(vm, Hardware::tablet, &json!(true));
        if let Some(efi) = vm.get_mut(Hardware::efi.name()).and_then(Json::as_object_mut) {
            drop_if(efi, Efi::kind, &json!("4m"));
            drop_if(efi, Efi::format, &json!("raw"));
            drop_if(efi, Efi::pre_enrolled_keys, &json!(false));
        }
        if let Some(tpm) = vm.get_mut(Hardware::tpm.name()).and_then(Json::as_object_mut) {
            drop_if(tpm, Tpm::version, &json!("v2.0"));
        }
    }
    for device in vm.get_mut(Hardware::pci.name()).and_then(Json::as_object_mut).into_iter().flatten() {
        let Some(device) = device.1.as_object_mut() else { continue };
        drop_if(device, Pci::rombar, &json!(true));
        drop_if(device, Pci::pcie, &json!(false));
        drop_if(device, Pci::xvga, &json!(false));
    }
    drop_if(vm, Guest::protection, &json!(false));
    drop_if(vm, Guest::started, &json!(true));
    drop_if(vm, Vm::clone_mode, &only(CloneMode::full, true));
    disks(vm, storage);
    nics(vm, |_| (Nic::model, json!("virtio")));
    for (key, inner) in [
        (Hardware::cpu, Cpu::kind),
        (Hardware::agent, Agent::enabled),
        (Hardware::efi, Efi::storage),
        (Hardware::tpm, Tpm::storage),
        (Hardware::vga, Vga::kind),
        (Guest::startup, Startup::order),
        (Vm::clone_mode, CloneMode::full),
    ] {
        short(vm, key.name(), inner);
    }
}

fn container(own: &str, guest: &mut Object, storage: &str) {
    drop_if(guest, Guest::protection, &json!(false));
    drop_if(guest, Guest::started, &json!(true));
    drop_if(guest, Container::unprivileged, &json!(true));
    drop_if(guest, Container::hostname, &json!(own));
    disks(guest, storage);
    nics(guest, |index| (ContainerNic::name, json!(format!("eth{index}"))));
    for (key, inner) in [(Guest::startup, Startup::order), (Container::console, Console::enabled)] {
        short(guest, key.name(), inner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened(document: Json) -> Json {
        let mut document = document.as_object().cloned().unwrap_or_default();
        share(&mut document);
        let storage = default_storage(&document);
        for (_, vm) in machines(&mut document, Stack::vms) {
            machine(vm, &storage);
            order(vm);
        }
        Json::Object(document)
    }

    #[test]
    fn what_all_share_is_said_once_and_what_strata_does_is_not_said() {
        let disk = json!({"scsi0": {"size": 20, "storage": "fast"}});
        let one = json!({"memory": 2048, "vmId": 100, "node": "a", "started": true, "cpu": {"type": "host"}, "disks": disk,
            "network": [{"bridge": "vmbr1", "model": "virtio"}]});
        let two = json!({"vmId": 101, "node": "a", "cpu": {"type": "x86-64-v2-AES"}, "disks": disk,
            "network": [{"bridge": "vmbr0", "model": "e1000"}]});
        let found = shortened(json!({"proxmox": {"target": "pve"}, "vms": {"one": one, "two": two}}));
        assert_eq!(
            found.to_string(),
            concat!(
                r#"{"proxmox":{"target":"pve","node":"a","storage":"fast"},"vms":{"#,
                r#""one":{"vmId":100,"cpu":"host","memory":2048,"disks":{"scsi0":20},"network":["vmbr1"]},"#,
                r#""two":{"vmId":101,"disks":{"scsi0":20},"network":[{"bridge":"vmbr0","model":"e1000"}]}}}"#
            )
        );
    }

    /// Its disks would otherwise be where the template's are, and its processor the template's.
    #[test]
    fn a_clone_keeps_what_it_says() {
        let vm = json!({"vmId": 100, "node": "a", "template": "t", "cpu": {"type": "x86-64-v2-AES"},
            "disks": {"scsi0": {"size": 20, "storage": "local-lvm"}}});
        let found = shortened(json!({"proxmox": {"node": "b"}, "vms": {"one": vm}}));
        let one = &found["vms"]["one"];
        assert_eq!((&one["cpu"], &one["node"]), (&json!("x86-64-v2-AES"), &json!("a")));
        assert_eq!(one["disks"]["scsi0"]["storage"], "local-lvm");
    }
}
