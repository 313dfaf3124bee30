//! Hosts, out of states and of what the source says beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use strata_resource::{Address, Layer, Spec, Value};
use strata_state::{StateDocument, StateResource};

use crate::host::{Host, HostKind, Inventory};
use crate::name::{GroupNames, alias};

/// A stack: what its state has, and the addresses that its source says.
pub struct StackState<'s> {
    /// Its name in the source.
    pub stack: &'s str,
    /// Which of its environments the state is of.
    pub environment: &'s str,
    /// Becomes a group of its hosts.
    pub layer: Layer,
    /// What an apply recorded: no target is asked.
    pub state: &'s StateDocument,
    /// Addresses that the source writes down. They go before those that a guest reported.
    pub written: &'s BTreeMap<Address, String>,
}

impl Inventory {
    /// One host for each guest and machine. A name that two of them have gets its stack or environment in front.
    pub fn of(stacks: &[StackState<'_>]) -> Self {
        let mut hosts: Vec<Host> = stacks.iter().flat_map(hosts_of).collect();
        tell_apart(&mut hosts);
        hosts.sort_by(|one, other| one.name.cmp(&other.name));
        let groups = grouped(&hosts);
        Self { hosts, groups }
    }
}

fn hosts_of(stack: &StackState<'_>) -> Vec<Host> {
    let resources = &stack.state.resources;
    let is = |address: &Address, kind: &str| address.kind().as_str() == kind;
    let machine = |name: &str| {
        let found = resources.iter().find(|(address, _)| is(address, "machine") && address.name() == name);
        found.map(|(_, resource)| resource)
    };
    let mut hosts = Vec::new();
    for (address, resource) in resources {
        let kind = match address.kind().as_str() {
            "vm" if !flag(&resource.spec, "template") => HostKind::Vm,
            "container" if !flag(&resource.spec, "template") => HostKind::Container,
            // The node of a VM is told with its VM.
            "machine" if !resource.spec.contains_key("vm") => HostKind::Metal,
            _ => continue,
        };
        let talos = if kind == HostKind::Metal { Some(resource) } else { machine(address.name()) };
        hosts.push(host(stack, address, kind, resource, talos));
    }
    hosts
}

fn host(
    stack: &StackState<'_>,
    address: &Address,
    kind: HostKind,
    resource: &StateResource,
    talos: Option<&StateResource>,
) -> Host {
    let spec = &resource.spec;
    let mut addresses: Vec<IpAddr> = Vec::new();
    let of_talos = talos.and_then(|machine| text(&machine.spec, "address"));
    let written = stack.written.get(address).cloned();
    for found in of_talos.into_iter().chain(written).chain(fixed(spec)).chain(reported(&resource.facts)) {
        // With the length of its network, or without; `dhcp` and `auto` are none.
        if let Ok(ip) = found.split('/').next().unwrap_or_default().parse()
            && !addresses.contains(&ip)
        {
            addresses.push(ip);
        }
    }
    let cloud_init = spec.get("cloudinit").and_then(Value::as_map);
    Host {
        name: text(spec, "name").unwrap_or_else(|| address.name().to_owned()),
        kind,
        resource: address.clone(),
        stack: stack.stack.to_owned(),
        environment: stack.environment.to_owned(),
        layer: stack.layer,
        target: resource.target.clone(),
        address: addresses.first().copied(),
        addresses,
        vmid: spec.get("vmid").and_then(Value::as_int),
        node: text(spec, "node"),
        pool: text(spec, "pool"),
        tags: tags(spec),
        role: talos.and_then(|machine| text(&machine.spec, "role")),
        user: cloud_init.and_then(|cloud_init| text(cloud_init, "user")),
    }
}

/// The addresses that cloud-init or the container's own configuration sets.
fn fixed(spec: &Spec) -> Vec<String> {
    let map = |spec: &Spec, key: &str| spec.get(key).and_then(Value::as_map).cloned().unwrap_or_default();
    let configs = map(&map(spec, "cloudinit"), "ipconfig").into_values();
    let devices = configs.chain(map(spec, "networks").into_values());
    let of = |device: Value| {
        let device = device.as_map().cloned().unwrap_or_default();
        ["ip", "ip6"].iter().filter_map(|key| text(&device, key)).collect::<Vec<_>>()
    };
    devices.flat_map(of).collect()
}

/// The addresses that the guest reported of its network devices when it was applied, in the order of the devices.
fn reported(facts: &Spec) -> Vec<String> {
    let devices = facts.get("addresses").and_then(Value::as_map).into_iter().flatten();
    let mut devices: Vec<(&String, &Value)> = devices.collect();
    devices.sort_by_key(|(device, _)| (device.len(), *device));
    let addresses = devices.into_iter().filter_map(|(_, addresses)| addresses.as_list()).flatten();
    addresses.filter_map(Value::as_text).map(str::to_owned).collect()
}

/// A text that is not a secret.
fn text(spec: &Spec, key: &str) -> Option<String> {
    spec.get(key).and_then(Value::as_text).map(str::to_owned).filter(|text| !text.is_empty())
}

fn flag(spec: &Spec, key: &str) -> bool {
    matches!(spec.get(key), Some(Value::Bool(true)))
}

fn tags(spec: &Spec) -> Vec<String> {
    let Some(Value::List(tags)) = spec.get("tags") else { return Vec::new() };
    let tags: BTreeSet<String> = tags.iter().filter_map(Value::as_text).map(str::to_owned).collect();
    tags.into_iter().collect()
}

/// Two guests may have one name; what reads an inventory knows hosts by nothing else.
fn tell_apart(hosts: &mut [Host]) {
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    for host in hosts.iter() {
        *named.entry(alias(&host.name)).or_default() += 1;
    }
    let mut taken = BTreeSet::new();
    for host in hosts {
        let plain = alias(&host.name);
        let mut name = match named.get(&plain) {
            Some(1) | None => plain,
            Some(_) => alias(&format!("{}.{plain}", host.stack)),
        };
        // The same name twice in a stack, or one that the stack's name makes the same.
        if taken.contains(&name) {
            name = alias(&format!("{name}-{}", host.vmid.unwrap_or_default()));
        }
        taken.insert(name.clone());
        host.name = name;
    }
}

fn grouped(hosts: &[Host]) -> BTreeMap<String, Vec<String>> {
    let mut members: BTreeMap<(&'static str, String), Vec<String>> = BTreeMap::new();
    for host in hosts {
        for (sort, text) in host.memberships() {
            members.entry((sort, text.to_owned())).or_default().push(host.name.clone());
        }
    }
    let mut names = GroupNames::default();
    members.into_iter().map(|((sort, text), hosts)| (names.name(sort, &text), hosts)).collect()
}
