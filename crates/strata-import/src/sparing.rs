//! Documents as a person would write them: in the usual order, in short forms, what all machines share said once, and nothing that Strata
//! does anyway.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::Import;
use super::output::Object;

/// The keys of a machine, as they are read best.
const ORDER: [&str; 50] = [
    "vmId",
    "role",
    "name",
    "hostname",
    "node",
    "hypervisor",
    "template",
    "clone",
    "image",
    "iso",
    "osType",
    "unprivileged",
    "address",
    "dhcp",
    "mac",
    "cores",
    "sockets",
    "cpu",
    "cpuUnits",
    "cpuLimit",
    "memory",
    "balloon",
    "swap",
    "bios",
    "machine",
    "efi",
    "tpm",
    "scsiController",
    "disk",
    "disks",
    "mountPoints",
    "bootOrder",
    "network",
    "nameservers",
    "searchDomain",
    "cloudInit",
    "agent",
    "vga",
    "serial",
    "pci",
    "usb",
    "hotplug",
    "features",
    "started",
    "onboot",
    "startup",
    "pool",
    "protection",
    "tags",
    "notes",
];

/// Where disks go on a fresh Proxmox.
const STORAGE: &str = "local-lvm";

pub(super) fn spare(import: &mut Import<'_>) {
    for (path, (document, _)) in &mut import.documents {
        let Json::Object(document) = document else { continue };
        if path.starts_with("stacks/") {
            share(document);
            for section in ["templates", "vms", "containers"] {
                let storage = default_storage(document);
                for (own, guest) in machines(document, section) {
                    match section {
                        "containers" => container(own, guest, &storage),
                        _ => machine(guest, &storage),
                    }
                    order(guest);
                }
            }
        } else if path.starts_with("clusters/")
            && let Some(spec) = document.get_mut("cluster").and_then(Json::as_object_mut)
        {
            // The machines one by one come last.
            if let Some(mut nodes) = spec.shift_remove("nodes") {
                nodes.as_object_mut().into_iter().flat_map(Object::values_mut).for_each(|node| {
                    let Some(node) = node.as_object_mut() else { return };
                    drop_if(node, "secureBoot", &json!(false));
                    order(node);
                });
                spec.insert("nodes".into(), nodes);
            }
        }
    }
}

fn machines<'d>(document: &'d mut Object, section: &str) -> Vec<(&'d str, &'d mut Object)> {
    let found = document.get_mut(section).and_then(Json::as_object_mut);
    let entries = found.into_iter().flatten();
    entries.filter_map(|(own, guest)| Some((own.as_str(), guest.as_object_mut()?))).collect()
}

fn order(guest: &mut Object) {
    let rank = |key: &str| ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len());
    let mut entries: Vec<(String, Json)> = std::mem::take(guest).into_iter().collect();
    entries.sort_by_key(|(key, _)| rank(key));
    guest.extend(entries);
}

/// Says once what every machine says: its node, and where its disks are.
fn share(document: &mut Object) {
    let (mut nodes, mut storages, mut disks) = (BTreeSet::new(), BTreeSet::new(), 0);
    for section in ["templates", "vms", "containers"] {
        for (_, guest) in machines(document, section) {
            nodes.insert(guest.get("node").and_then(Json::as_str).map(str::to_owned));
            for disk in own_disks(guest) {
                disks += 1;
                storages.insert(disk.get("storage").and_then(Json::as_str).map(str::to_owned));
            }
        }
    }
    let Some(proxmox) = document.get_mut("proxmox").and_then(Json::as_object_mut) else { return };
    let only = |found: BTreeSet<Option<String>>| {
        let mut found = found.into_iter();
        found.next().flatten().filter(|_| found.next().is_none())
    };
    let node = only(nodes).filter(|_| !proxmox.contains_key("node"));
    if let Some(node) = &node {
        proxmox.insert("node".into(), json!(node));
    }
    let storage = only(storages).filter(|_| disks > 1 && !proxmox.contains_key("storage"));
    if let Some(storage) = storage.filter(|storage| storage != STORAGE) {
        proxmox.insert("storage".into(), json!(storage));
    }
    let Some(whole) = proxmox.get("node").cloned() else { return };
    for section in ["templates", "vms", "containers"] {
        for (_, guest) in machines(document, section) {
            if guest.get("node") == Some(&whole) {
                guest.shift_remove("node");
            }
        }
    }
}

/// The storage of disks that say nothing.
fn default_storage(document: &Object) -> String {
    let storage = document.get("proxmox").and_then(|proxmox| proxmox.get("storage"));
    let disk = storage.and_then(|storage| storage.as_str().or_else(|| storage["disk"].as_str()));
    disk.unwrap_or(STORAGE).to_owned()
}

/// The disks that are where the stack says unless they say otherwise: a clone's are where its template's are.
fn own_disks(guest: &mut Object) -> Vec<&mut Object> {
    if guest.contains_key("template") {
        return Vec::new();
    }
    let mut found: Vec<&mut Object> = Vec::new();
    for (key, value) in guest.iter_mut() {
        match key.as_str() {
            "disk" => found.extend(value.as_object_mut()),
            "disks" => {
                let disks = value.as_object_mut().into_iter().flatten();
                found.extend(disks.filter_map(|(_, disk)| disk.as_object_mut()));
            }
            _ => {}
        }
    }
    found.retain(|disk| !disk.contains_key("iso") && !disk.contains_key("volume"));
    found
}

fn drop_if(map: &mut Object, key: &str, default: &Json) {
    if map.get(key) == Some(default) {
        map.shift_remove(key);
    }
}

/// A mapping with one key that a plain value stands for.
fn short(map: &mut Object, key: &str, inner: &str) {
    let Some(Json::Object(found)) = map.get(key) else { return };
    if found.len() == 1
        && let Some(value) = found.get(inner).cloned()
    {
        map.insert(key.to_owned(), value);
    }
}

fn disks(guest: &mut Object, storage: &str) {
    for disk in own_disks(guest) {
        drop_if(disk, "storage", &json!(storage));
        // What Proxmox does with a disk of which nothing is said.
        for (key, default) in [
            ("ssd", json!(false)),
            ("discard", json!(false)),
            ("iothread", json!(false)),
            ("readOnly", json!(false)),
            ("backup", json!(true)),
            ("replicate", json!(true)),
            ("cache", json!("none")),
            ("aio", json!("io_uring")),
            ("format", json!("raw")),
        ] {
            drop_if(disk, key, &default);
        }
    }
    short(guest, "disk", "size");
    if let Some(disks) = guest.get_mut("disks").and_then(Json::as_object_mut) {
        let slots: Vec<String> = disks.keys().cloned().collect();
        slots.iter().for_each(|slot| short(disks, slot, "size"));
    }
}

fn nics(guest: &mut Object, default: impl Fn(usize) -> (&'static str, Json)) {
    let Some(nics) = guest.get_mut("network").and_then(Json::as_array_mut) else { return };
    for (index, nic) in nics.iter_mut().enumerate() {
        let Some(map) = nic.as_object_mut() else { continue };
        let (key, value) = default(index);
        drop_if(map, key, &value);
        drop_if(map, "linkDown", &json!(false));
        drop_if(map, "firewall", &json!(false));
        if map.len() == 1
            && let Some(bridge) = map.get("bridge").cloned()
        {
            *nic = bridge;
        }
    }
}

fn machine(vm: &mut Object, storage: &str) {
    // What a clone does not say is its template's.
    if !vm.contains_key("template") {
        if let Some(cpu) = vm.get_mut("cpu").and_then(Json::as_object_mut) {
            drop_if(cpu, "type", &json!("x86-64-v2-AES"));
        }
        drop_if(vm, "cpu", &json!({}));
        drop_if(vm, "sockets", &json!(1));
        drop_if(vm, "scsiController", &json!("virtio-scsi-single"));
        drop_if(vm, "osType", &json!("l26"));
        drop_if(vm, "bios", &json!("seabios"));
        drop_if(vm, "tablet", &json!(true));
        if let Some(efi) = vm.get_mut("efi").and_then(Json::as_object_mut) {
            drop_if(efi, "type", &json!("4m"));
            drop_if(efi, "format", &json!("raw"));
            drop_if(efi, "preEnrolledKeys", &json!(false));
        }
        if let Some(tpm) = vm.get_mut("tpm").and_then(Json::as_object_mut) {
            drop_if(tpm, "version", &json!("v2.0"));
        }
    }
    for device in vm.get_mut("pci").and_then(Json::as_object_mut).into_iter().flatten() {
        let Some(device) = device.1.as_object_mut() else { continue };
        drop_if(device, "rombar", &json!(true));
        drop_if(device, "pcie", &json!(false));
        drop_if(device, "xvga", &json!(false));
    }
    drop_if(vm, "protection", &json!(false));
    drop_if(vm, "started", &json!(true));
    drop_if(vm, "clone", &json!({"full": true}));
    disks(vm, storage);
    nics(vm, |_| ("model", json!("virtio")));
    for (key, inner) in [
        ("cpu", "type"),
        ("agent", "enabled"),
        ("efi", "storage"),
        ("tpm", "storage"),
        ("vga", "type"),
        ("startup", "order"),
        ("clone", "full"),
    ] {
        short(vm, key, inner);
    }
}

fn container(own: &str, guest: &mut Object, storage: &str) {
    drop_if(guest, "protection", &json!(false));
    drop_if(guest, "started", &json!(true));
    drop_if(guest, "unprivileged", &json!(true));
    drop_if(guest, "hostname", &json!(own));
    disks(guest, storage);
    nics(guest, |index| ("name", json!(format!("eth{index}"))));
    for (key, inner) in [("startup", "order"), ("console", "enabled")] {
        short(guest, key, inner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spared(document: Json) -> Json {
        let mut document = document.as_object().cloned().unwrap_or_default();
        share(&mut document);
        let storage = default_storage(&document);
        for (_, vm) in machines(&mut document, "vms") {
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
        let found = spared(json!({"proxmox": {"target": "pve"}, "vms": {"one": one, "two": two}}));
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
        let found = spared(json!({"proxmox": {"node": "b"}, "vms": {"one": vm}}));
        let one = &found["vms"]["one"];
        assert_eq!((&one["cpu"], &one["node"]), (&json!("x86-64-v2-AES"), &json!("a")));
        assert_eq!(one["disks"]["scsi0"]["storage"], "local-lvm");
    }
}
