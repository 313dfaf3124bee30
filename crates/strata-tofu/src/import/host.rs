//! Layer 0 as the bpg/proxmox provider describes it: users and roles, networks, mappings, storages, settings of hosts.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::guest::kind;
use super::module::Resource;
use super::output::{self, Object, Put};
use super::tree::{Place, Tree};
use super::{Import, name};

const KINDS: [&str; 14] = [
    "user",
    "role",
    "group",
    "user_token",
    "acl",
    "pool",
    "network_linux_bridge",
    "network_linux_vlan",
    "network_linux_bond",
    "hardware_mapping_pci",
    "hardware_mapping_usb",
    "dns",
    "time",
    "storage",
];

/// Whether a resource belongs to a hypervisor.
pub(super) fn is_host(resource: &Resource) -> bool {
    let kind = kind(&resource.kind);
    KINDS.contains(&kind) || kind.starts_with("storage_")
}

/// What is said of the whole datacenter, and of each node.
#[derive(Default)]
struct Hosts(BTreeMap<Option<String>, Object>);

impl Hosts {
    fn section(&mut self, node: Option<String>, section: &str) -> Option<&mut Object> {
        let document = self.0.entry(node).or_default();
        document.entry(section).or_insert_with(|| json!({})).as_object_mut()
    }
}

/// Writes `hypervisors/<name>.yaml`, one for each node if there are several.
pub(super) fn import(
    import: &mut Import<'_>,
    resources: &[&Resource],
    own: &str,
    target: &str,
    place: &Place,
) {
    let mut hosts = Hosts::default();
    for resource in resources {
        if !one(import, &mut hosts, resource) {
            import.note(
                Some(&resource.place),
                format!("`{}` lacks what Strata needs to know of it and was left out", resource.address()),
            );
        }
    }
    // One node: everything is said in one file.
    let nodes: Vec<String> = hosts.0.keys().flatten().cloned().collect();
    if nodes.len() == 1
        && let Some(mut rest) = hosts.0.remove(&None)
        && let Some(document) = hosts.0.get_mut(&Some(nodes[0].clone()))
    {
        rest.append(document);
        *document = rest;
    }
    let several = hosts.0.len() > 1;
    for (node, sections) in hosts.0 {
        let wanted = match &node {
            Some(node) if several => format!("{own}-{node}"),
            _ => own.to_owned(),
        };
        let stack = import.stack_name(&wanted, place);
        let mut proxmox = Object::new();
        proxmox.insert("target".into(), json!(target));
        proxmox.put("node", node);
        let mut document = Object::new();
        document.insert("metadata".into(), json!({"name": stack}));
        document.insert("proxmox".into(), Json::Object(proxmox));
        document.extend(sections);
        import.write(format!("hypervisors/{stack}.yaml"), document, place);
    }
}

fn one(import: &mut Import<'_>, hosts: &mut Hosts, resource: &Resource) -> bool {
    let body = &resource.body;
    match kind(&resource.kind) {
        "user" => user(import, hosts, body),
        "role" => {
            let Some(id) = body.text("role_id") else { return false };
            put(hosts, None, "roles", &id, json!(body.texts("privileges")))
        }
        "group" => {
            let Some(id) = body.text("group_id") else { return false };
            let mut group = Object::new();
            group.put("comment", body.text("comment"));
            put(hosts, None, "groups", &id, Json::Object(group))
        }
        "user_token" => {
            let (Some(user), Some(token)) = (body.text("user_id"), body.text("token_name")) else {
                return false;
            };
            let mut written = Object::new();
            written.put("privilegeSeparation", body.bool("privileges_separation"));
            written.put("comment", body.text("comment"));
            put(hosts, None, "tokens", &format!("{user}!{token}"), Json::Object(written))
        }
        "acl" => acl(hosts, body),
        "pool" => {
            // The second is what the Telmate/proxmox provider calls it.
            let Some(id) = body.text("pool_id").or_else(|| body.text("poolid")) else { return false };
            let mut pool = Object::new();
            pool.put("comment", body.text("comment"));
            put(hosts, None, "pools", &id, Json::Object(pool))
        }
        "hardware_mapping_pci" => mapping(hosts, body, "pci"),
        "hardware_mapping_usb" => mapping(hosts, body, "usb"),
        "dns" => {
            let node = body.text("node_name");
            let mut dns = Object::new();
            dns.put_full("servers", json!(body.texts_if("servers", output::is_address)));
            dns.put("searchDomain", body.text("domain"));
            let document = hosts.0.entry(node).or_default();
            document.insert("dns".into(), Json::Object(dns));
            true
        }
        "time" => {
            let (node, Some(zone)) = (body.text("node_name"), body.text("time_zone")) else { return false };
            hosts.0.entry(node).or_default().insert("timezone".into(), json!(zone));
            true
        }
        kind if kind.starts_with("network_linux_") => interface(hosts, kind, body),
        kind => storage(hosts, kind.strip_prefix("storage_").unwrap_or_default(), import, body),
    }
}

fn put(hosts: &mut Hosts, node: Option<String>, section: &str, key: &str, value: Json) -> bool {
    let Some(section) = hosts.section(node, section) else { return false };
    if section.contains_key(key) {
        return false;
    }
    section.insert(key.to_owned(), value);
    true
}

fn user(import: &mut Import<'_>, hosts: &mut Hosts, body: &Tree) -> bool {
    let Some(id) = body.text_if("user_id", |id| id.contains('@')) else { return false };
    let mut user = Object::new();
    user.put_full("groups", json!(body.texts("groups")));
    user.put("enabled", body.bool("enabled"));
    user.put("comment", body.text("comment"));
    user.put("email", body.text("email"));
    user.put("firstName", body.text("first_name"));
    user.put("lastName", body.text("last_name"));
    if let Some(password) = body.text("password") {
        let secret = format!("{}_password", name(&id).replace('-', "_"));
        user.insert("password".into(), import.secret(&secret, &password));
    }
    // Entries of the list of rights that are written beside the user.
    for entry in body.several("acl") {
        if let (Some(path), Some(role)) = (entry.text("path"), entry.text("role_id")) {
            let mut written = Object::new();
            written.insert("path".into(), json!(path));
            written.insert("role".into(), json!(role));
            written.insert("user".into(), json!(id));
            written.put("propagate", entry.bool("propagate"));
            add(hosts, written);
        }
    }
    put(hosts, None, "users", &id, Json::Object(user))
}

fn add(hosts: &mut Hosts, entry: Object) {
    let list = hosts.0.entry(None).or_default().entry("acl").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(Json::Object(entry));
    }
}

fn acl(hosts: &mut Hosts, body: &Tree) -> bool {
    let (Some(path), Some(role)) = (body.text("path"), body.text("role_id")) else { return false };
    let mut written = Object::new();
    written.insert("path".into(), json!(path));
    written.insert("role".into(), json!(role));
    written.put("user", body.text("user_id"));
    written.put("group", body.text("group_id"));
    written.put("token", body.text("token_id"));
    written.put("propagate", body.bool("propagate"));
    let whom = ["user", "group", "token"].iter().any(|who| written.contains_key(*who));
    if whom {
        add(hosts, written);
    }
    whom
}

fn interface(hosts: &mut Hosts, kind: &str, body: &Tree) -> bool {
    let Some(own) = body.text("name") else { return false };
    let mut written = Object::new();
    let kind = kind.trim_start_matches("network_linux_");
    written.insert("type".into(), json!(kind));
    written.put_full("ports", json!(if kind == "bond" { body.texts("slaves") } else { body.texts("ports") }));
    if kind == "vlan" {
        // `vmbr0.50` says both.
        let (device, tag) = own
            .rsplit_once('.')
            .map_or((None, None), |(device, tag)| (Some(device.to_owned()), tag.parse::<i64>().ok()));
        written.put("device", body.text("interface").or(device));
        written.put("tag", body.int_in("vlan", 1..=4094).or(tag));
    }
    for (key, there) in [("address", "address"), ("address6", "address6")] {
        written.put(key, body.text_if(there, output::with_prefix));
    }
    for (key, there) in [("gateway", "gateway"), ("gateway6", "gateway6")] {
        written.put(key, body.text_if(there, output::is_address));
    }
    written.put("vlanAware", body.bool("vlan_aware"));
    written.put("mode", body.text("mode"));
    written.put("mtu", body.int_in("mtu", 576..=65_520));
    written.put("autostart", body.bool("autostart"));
    written.put("comment", body.text("comment"));
    put(hosts, body.text("node_name"), "network", &own, Json::Object(written))
}

fn mapping(hosts: &mut Hosts, body: &Tree, bus: &str) -> bool {
    let Some(own) = body.text("name") else { return false };
    let mut written = Object::new();
    written.put("comment", body.text("comment"));
    written.put("mediated", body.bool("mediated_devices"));
    let mut devices = Vec::new();
    for device in body.several("map") {
        let Some(node) = device.text("node") else { continue };
        let mut one = Object::new();
        one.insert("node".into(), json!(node));
        one.put("path", device.text("path"));
        one.put("id", device.text("id"));
        one.put("subsystemId", device.text("subsystem_id"));
        one.put("iommuGroup", device.int_in("iommu_group", 0..=65_535));
        devices.push(Json::Object(one));
    }
    written.put_full("devices", Json::Array(devices));
    let document = hosts.0.entry(None).or_default();
    let mappings = document.entry("mappings").or_insert_with(|| json!({}));
    let Some(bus) =
        mappings.as_object_mut().and_then(|map| map.entry(bus).or_insert_with(|| json!({})).as_object_mut())
    else {
        return false;
    };
    bus.insert(own, Json::Object(written)).is_none()
}

fn storage(hosts: &mut Hosts, kind: &str, import: &mut Import<'_>, body: &Tree) -> bool {
    let kind = match kind {
        "directory" => "dir",
        other => other,
    };
    let known = ["dir", "lvm", "lvmthin", "zfspool", "btrfs", "nfs", "cifs", "pbs"];
    let (Some(id), true) = (body.text("id"), known.contains(&kind)) else { return false };
    let mut written = Object::new();
    written.insert("type".into(), json!(kind));
    written.put_full("content", json!(body.texts("content")));
    written.put_full("nodes", json!(body.texts("nodes")));
    written.put("shared", body.bool("shared"));
    written.put("enabled", body.bool("disable").map(|disabled| !disabled));
    for (key, there) in [
        ("path", "path"),
        ("server", "server"),
        ("export", "export"),
        ("share", "share"),
        ("datastore", "datastore"),
        ("namespace", "namespace"),
        ("fingerprint", "fingerprint"),
        ("username", "username"),
        ("volumeGroup", "volume_group"),
        ("thinPool", "thin_pool"),
        ("pool", "zfs_pool"),
    ] {
        written.put(key, body.text(there));
    }
    if let Some(password) = body.text("password") {
        let secret = format!("{}_password", name(&id).replace('-', "_"));
        written.insert("password".into(), import.secret(&secret, &password));
    }
    put(hosts, None, "storages", &id, Json::Object(written))
}
