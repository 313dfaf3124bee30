//! Layer 0 as the bpg/proxmox provider describes it: users and roles, networks, mappings, storages, settings of hosts.

use crate::output::only;
use crate::records::{
    AclEntry, Alias, DatacenterFirewall, DnsSettings, GuestPool, HostInterface, Hypervisor,
    HypervisorProxmox, IpSet, MappedDevice, Mapping, Metadata, SecurityGroup, Storage, Token, User,
};
use std::collections::BTreeMap;
use strata_yaml::Key;

use serde_json::{Value as Json, json};

use strata_resource::CommentMark;

use super::guest::kind;
use super::module::Resource;
use super::output::{self, Object, Put};
use super::tree::{SourceLine, Tree};
use super::{Import, name};

pub(super) const KINDS: [&str; 16] = [
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
    "cluster_firewall",
    "cluster_firewall_security_group",
];

/// Whether a resource belongs to a hypervisor.
pub(super) fn is_host(resource: &Resource) -> bool {
    is_of_host(&resource.kind, &resource.body)
}

/// Parts of firewalls belong to whatever they name.
pub(crate) fn is_of_host(full: &str, body: &Tree) -> bool {
    let elsewhere = ["node_name", "vm_id", "container_id"].iter().any(|place| body.get(place).is_some());
    match kind(full) {
        "firewall_alias" | "firewall_ipset" | "firewall_rules" => !elsewhere,
        kind => KINDS.contains(&kind) || kind.starts_with("storage_"),
    }
}

/// The sections of a document, as they are read best.
const ORDER: [&str; 12] = [
    "storages", "network", "dns", "timezone", "pools", "roles", "groups", "users", "tokens", "acl",
    "mappings", "firewall",
];

/// The sections that are about a node.
const OF_NODES: [&str; 3] = ["network", "dns", "timezone"];

/// What is said of the whole datacenter, and of each node.
pub(crate) struct Hosts<'s> {
    sections: BTreeMap<Option<String>, Object>,
    /// Keeps a value under a name, and gives what refers to it.
    secret: &'s mut dyn FnMut(&str, &str) -> Json,
}

impl<'s> Hosts<'s> {
    pub(crate) fn new(secret: &'s mut dyn FnMut(&str, &str) -> Json) -> Self {
        Self { sections: BTreeMap::new(), secret }
    }

    fn section(&mut self, node: Option<String>, section: Key) -> Option<&mut Object> {
        let document = self.sections.entry(node).or_default();
        document.entry(section.name()).or_insert_with(|| json!({})).as_object_mut()
    }

    fn password(&mut self, of: &str, password: &str) -> Json {
        (self.secret)(&format!("{}_password", name(of).replace('-', "_")), password)
    }

    fn firewall(&mut self) -> Option<&mut Object> {
        self.section(None, Hypervisor::firewall)
    }

    /// What is said of each node, the whole first. With one node everything is said in one place.
    pub(crate) fn documents(self) -> BTreeMap<Option<String>, Object> {
        let mut sections = self.sections;
        let nodes: Vec<String> = sections.keys().flatten().cloned().collect();
        if nodes.len() == 1
            && let Some(mut rest) = sections.remove(&None)
            && let Some(document) = sections.get_mut(&Some(nodes[0].clone()))
        {
            rest.append(document);
            *document = rest;
        }
        sections
    }

    /// Whether the resource said enough of itself.
    pub(crate) fn add(&mut self, full: &str, body: &Tree) -> bool {
        one(self, kind(full), body)
    }
}

/// A document of `hypervisors/`.
pub(crate) fn document(stack: &str, target: &str, node: Option<String>, mut sections: Object) -> Object {
    let mut proxmox = Object::new();
    proxmox.set(HypervisorProxmox::target, json!(target));
    proxmox.put(HypervisorProxmox::node, node);
    let mut document = Object::new();
    document.set(Hypervisor::metadata, only(Metadata::name, stack));
    document.set(Hypervisor::proxmox, Json::Object(proxmox));
    for section in ORDER {
        document.extend(sections.remove_entry(section));
    }
    document
}

/// Writes `hypervisors/<name>.yaml`, one for each node if there are several.
pub(super) fn import(
    import: &mut Import<'_>,
    resources: &[&Resource],
    own: &str,
    target: &str,
    place: &SourceLine,
) {
    let mut secret = |name: &str, value: &str| import.secret(name, value);
    let mut hosts = Hosts::new(&mut secret);
    let poor: Vec<&&Resource> =
        resources.iter().filter(|resource| !hosts.add(&resource.kind, &resource.body)).collect();
    let documents = hosts.documents();
    for resource in poor {
        import.note(
            Some(&resource.place),
            format!("`{}` lacks what Strata needs to know of it and was left out", resource.address()),
        );
    }
    let several = documents.len() > 1;
    for (mut node, mut sections) in documents {
        // A resource of which nothing is known says nothing.
        let empty = |section: &Json| section.as_object().is_some_and(Object::is_empty);
        sections.retain(|_, section| !empty(section));
        if sections.is_empty() {
            continue;
        }
        if node.is_none() && OF_NODES.iter().any(|section| sections.contains_key(*section)) {
            let message = format!(
                "which node these settings of `{own}` are for is in no file that was read: `pve` was written down"
            );
            import.note(Some(place), message);
            node = Some("pve".to_owned());
        }
        let wanted = match &node {
            Some(node) if several => format!("{own}-{node}"),
            _ => own.to_owned(),
        };
        let stack = import.stack_name(&wanted, place);
        let document = document(&stack, target, node, sections);
        import.write(format!("hypervisors/{stack}.yaml"), document, place);
    }
}

fn one(hosts: &mut Hosts<'_>, kind: &str, body: &Tree) -> bool {
    match kind {
        "user" => user(hosts, body),
        "role" => {
            let Some(id) = body.text("role_id") else { return false };
            put(hosts, None, Hypervisor::roles, &id, json!(body.texts("privileges")))
        }
        "group" => {
            let Some(id) = body.text("group_id") else { return false };
            rights(hosts, body, "group", &id);
            put(hosts, None, Hypervisor::groups, &id, Json::Object(commented(body)))
        }
        "user_token" => {
            let (Some(user), Some(token)) = (body.text("user_id"), body.text("token_name")) else {
                return false;
            };
            let mut written = commented(body);
            written
                .put(Token::privilege_separation, body.bool("privileges_separation").filter(|apart| !apart));
            written.put(Token::expire, expiration(body));
            put(hosts, None, Hypervisor::tokens, &format!("{user}!{token}"), Json::Object(written))
        }
        "acl" => acl(hosts, body),
        "pool" => {
            // The second is what the Telmate/proxmox provider calls it.
            let Some(id) = body.text("pool_id").or_else(|| body.text("poolid")) else { return false };
            put(hosts, None, Hypervisor::pools, &id, Json::Object(commented(body)))
        }
        "hardware_mapping_pci" => mapping(hosts, body, "pci"),
        "hardware_mapping_usb" => mapping(hosts, body, "usb"),
        "dns" => {
            let node = body.text("node_name");
            let mut dns = Object::new();
            dns.put_full(DnsSettings::servers, json!(body.texts_if("servers", output::is_address)));
            dns.put(DnsSettings::search_domain, body.text("domain"));
            let document = hosts.sections.entry(node).or_default();
            document.set(Hypervisor::dns, Json::Object(dns));
            true
        }
        "time" => {
            let (node, Some(zone)) = (body.text("node_name"), body.text("time_zone")) else { return false };
            hosts.sections.entry(node).or_default().set(Hypervisor::timezone, json!(zone));
            true
        }
        kind if kind.contains("firewall") => firewall(hosts, kind, body),
        kind if kind.starts_with("network_linux_") => interface(hosts, kind, body),
        kind => storage(hosts, kind.strip_prefix("storage_").unwrap_or_default(), body),
    }
}

/// What people wrote, without the mark of another state.
fn comment(body: &Tree) -> Option<String> {
    let (_, comment) = CommentMark::split_from_comment(&body.text("comment")?);
    (!comment.is_empty()).then_some(comment)
}

fn commented(body: &Tree) -> Object {
    let mut written = Object::new();
    written.put(GuestPool::comment, comment(body));
    written
}

/// The provider has a date, Proxmox seconds.
fn expiration(body: &Tree) -> Option<i64> {
    let date = body.text_if("expiration_date", |date| date.parse::<jiff::Timestamp>().is_ok())?;
    date.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second).filter(|seconds| *seconds > 0)
}

/// The parts of the datacenter's firewall.
fn firewall(hosts: &mut Hosts<'_>, kind: &str, body: &Tree) -> bool {
    let rules = || -> Json {
        body.several("rule").into_iter().map(|rule| Json::Object(output::firewall_rule(rule))).collect()
    };
    let (section, value) = match kind {
        "cluster_firewall" => {
            let Some(firewall) = hosts.firewall() else { return false };
            firewall.put(DatacenterFirewall::enabled, body.bool("enabled"));
            firewall.put(DatacenterFirewall::policy_in, body.text_if("input_policy", is_policy));
            firewall.put(DatacenterFirewall::policy_out, body.text_if("output_policy", is_policy));
            return true;
        }
        "firewall_rules" => {
            let Some(firewall) = hosts.firewall() else { return false };
            return firewall.insert(DatacenterFirewall::rules.name().to_owned(), rules()).is_none();
        }
        "firewall_alias" => {
            let mut alias = commented(body);
            let Some(address) = body.text("cidr") else { return false };
            alias.set(Alias::address, json!(address));
            (DatacenterFirewall::aliases, alias)
        }
        "firewall_ipset" => {
            let mut set = commented(body);
            let addresses: Vec<String> = body
                .several("cidr")
                .into_iter()
                .filter_map(|address| {
                    let not = if address.bool("nomatch") == Some(true) { "!" } else { "" };
                    Some(format!("{not}{}", address.text("name")?))
                })
                .collect();
            set.set(IpSet::addresses, json!(addresses));
            (DatacenterFirewall::ip_sets, set)
        }
        "cluster_firewall_security_group" => {
            let mut group = commented(body);
            group.set(SecurityGroup::rules, rules());
            (DatacenterFirewall::groups, group)
        }
        _ => return false,
    };
    let (Some(own), Some(firewall)) = (body.text("name"), hosts.firewall()) else { return false };
    let part = firewall.entry(section.name()).or_insert_with(|| json!({}));
    part.as_object_mut().is_some_and(|part| part.insert(own, Json::Object(value)).is_none())
}

fn is_policy(policy: &str) -> bool {
    ["ACCEPT", "DROP", "REJECT"].contains(&policy)
}

fn put(hosts: &mut Hosts<'_>, node: Option<String>, section: Key, own: &str, value: Json) -> bool {
    let Some(section) = hosts.section(node, section) else { return false };
    if section.contains_key(own) {
        return false;
    }
    section.insert(own.to_owned(), value);
    true
}

fn user(hosts: &mut Hosts<'_>, body: &Tree) -> bool {
    let Some(id) = body.text_if("user_id", |id| id.contains('@')) else { return false };
    let mut user = commented(body);
    user.put_full(User::groups, json!(body.texts("groups")));
    user.put(User::enabled, body.bool("enabled").filter(|enabled| !enabled));
    user.put(User::expire, expiration(body));
    user.put(User::email, body.text("email"));
    user.put(User::first_name, body.text("first_name"));
    user.put(User::last_name, body.text("last_name"));
    if let Some(password) = body.text("password") {
        user.set(User::password, hosts.password(&id, &password));
    }
    rights(hosts, body, "user", &id);
    put(hosts, None, Hypervisor::users, &id, Json::Object(user))
}

/// Entries of the list of rights that are written beside whom they are for.
fn rights(hosts: &mut Hosts<'_>, body: &Tree, whose: &str, id: &str) {
    for entry in body.several("acl") {
        if let (Some(path), Some(role)) = (entry.text("path"), entry.text("role_id")) {
            let mut written = Object::new();
            written.set(AclEntry::path, json!(path));
            written.set(AclEntry::role, json!(role));
            written.insert(whose.into(), json!(id));
            written.put(AclEntry::propagate, entry.bool("propagate").filter(|also| !also));
            add(hosts, written);
        }
    }
}

fn add(hosts: &mut Hosts<'_>, entry: Object) {
    let list =
        hosts.sections.entry(None).or_default().entry(Hypervisor::acl.name()).or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(Json::Object(entry));
    }
}

fn acl(hosts: &mut Hosts<'_>, body: &Tree) -> bool {
    let (Some(path), Some(role)) = (body.text("path"), body.text("role_id")) else { return false };
    let mut written = Object::new();
    written.set(AclEntry::path, json!(path));
    written.set(AclEntry::role, json!(role));
    written.put(AclEntry::user, body.text("user_id"));
    written.put(AclEntry::group, body.text("group_id"));
    written.put(AclEntry::token, body.text("token_id"));
    written.put(AclEntry::propagate, body.bool("propagate").filter(|also| !also));
    let whom = ["user", "group", "token"].iter().any(|who| written.contains_key(*who));
    if whom {
        add(hosts, written);
    }
    whom
}

fn interface(hosts: &mut Hosts<'_>, kind: &str, body: &Tree) -> bool {
    let Some(own) = body.text("name") else { return false };
    let mut written = Object::new();
    let kind = kind.trim_start_matches("network_linux_");
    written.set(HostInterface::kind, json!(kind));
    written.put_full(
        HostInterface::ports,
        json!(if kind == "bond" { body.texts("slaves") } else { body.texts("ports") }),
    );
    if kind == "vlan" {
        // `vmbr0.50` says both.
        let (device, tag) = own
            .rsplit_once('.')
            .map_or((None, None), |(device, tag)| (Some(device.to_owned()), tag.parse::<i64>().ok()));
        written.put(HostInterface::device, body.text("interface").or(device));
        written.put(HostInterface::tag, body.int_in("vlan", 1..=4094).or(tag));
    }
    for (key, there) in [(HostInterface::address, "address"), (HostInterface::address6, "address6")] {
        written.put(key, body.text_if(there, output::with_prefix));
    }
    for (key, there) in [(HostInterface::gateway, "gateway"), (HostInterface::gateway6, "gateway6")] {
        written.put(key, body.text_if(there, output::is_address));
    }
    written.put(HostInterface::vlan_aware, body.bool("vlan_aware").filter(|aware| *aware));
    if kind == "bond" {
        written.put(HostInterface::mode, body.text("bond_mode"));
    }
    written.put(HostInterface::mtu, body.int_in("mtu", 576..=65_520));
    written.put(HostInterface::autostart, body.bool("autostart").filter(|start| !start));
    written.put(HostInterface::comment, comment(body));
    put(hosts, body.text("node_name"), Hypervisor::network, &own, Json::Object(written))
}

fn mapping(hosts: &mut Hosts<'_>, body: &Tree, bus: &str) -> bool {
    let Some(own) = body.text("name") else { return false };
    let mut written = commented(body);
    written.put(Mapping::mediated, body.bool("mediated_devices").filter(|mediated| *mediated));
    let mut devices = Vec::new();
    for device in body.several("map") {
        let Some(node) = device.text("node") else { continue };
        let mut one = Object::new();
        one.set(MappedDevice::node, json!(node));
        one.put(MappedDevice::path, device.text("path"));
        one.put(MappedDevice::id, device.text("id"));
        one.put(MappedDevice::subsystem_id, device.text("subsystem_id"));
        one.put(MappedDevice::iommu_group, device.int_in("iommu_group", 0..=65_535));
        devices.push(Json::Object(one));
    }
    written.put_full(Mapping::devices, Json::Array(devices));
    let document = hosts.sections.entry(None).or_default();
    let mappings = document.entry(Hypervisor::mappings.name()).or_insert_with(|| json!({}));
    let Some(bus) =
        mappings.as_object_mut().and_then(|map| map.entry(bus).or_insert_with(|| json!({})).as_object_mut())
    else {
        return false;
    };
    bus.insert(own, Json::Object(written)).is_none()
}

fn storage(hosts: &mut Hosts<'_>, kind: &str, body: &Tree) -> bool {
    let kind = match kind {
        "directory" => "dir",
        other => other,
    };
    let known = ["dir", "lvm", "lvmthin", "zfspool", "btrfs", "nfs", "cifs", "pbs"];
    let (Some(id), true) = (body.text("id"), known.contains(&kind)) else { return false };
    let mut written = Object::new();
    written.set(Storage::kind, json!(kind));
    written.put_full(Storage::content, json!(body.texts("content")));
    written.put_full(Storage::nodes, json!(body.texts("nodes")));
    // Storages on a network are shared without a word.
    let is_local = ["dir", "lvm", "lvmthin", "zfspool", "btrfs"].contains(&kind);
    written.put(Storage::shared, body.bool("shared").filter(|shared| *shared && is_local));
    written
        .put(Storage::enabled, body.bool("disable").filter(|disabled| *disabled).map(|disabled| !disabled));
    written.put(Storage::sparse, body.bool("thin_provision").filter(|sparse| *sparse));
    for (key, there) in [
        (Storage::path, "path"),
        (Storage::server, "server"),
        (Storage::export, "export"),
        (Storage::share, "share"),
        (Storage::datastore, "datastore"),
        (Storage::namespace, "namespace"),
        (Storage::fingerprint, "fingerprint"),
        (Storage::username, "username"),
        (Storage::volume_group, "volume_group"),
        (Storage::thin_pool, "thin_pool"),
        (Storage::pool, "zfs_pool"),
    ] {
        written.put(key, body.text(there));
    }
    if let Some(password) = body.text("password") {
        written.set(Storage::password, hosts.password(&id, &password));
    }
    put(hosts, None, Hypervisor::storages, &id, Json::Object(written))
}
