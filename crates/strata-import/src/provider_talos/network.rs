//! The network of a cluster's nodes: of their patches where these say it, otherwise of their machines.

use crate::records::{CloudInit, ClusterNetwork, Hardware, Nic, NodeSettings, Stack, Vm};
use std::net::Ipv4Addr;
use strata_yaml::Key;

use serde_json::{Value as Json, json};

use super::super::Import;
use super::super::output::{Object, Put};
use super::super::talos::TalosCluster;
use super::patches::Node;

const LINKS: [&str; 3] = ["machine", "network", "interfaces"];
const SERVERS: [&str; 3] = ["machine", "network", "nameservers"];
const TIME: [&str; 3] = ["machine", "time", "servers"];

pub(super) fn network(
    import: &mut Import<'_>,
    cluster: &mut TalosCluster,
    nodes: &mut [Node<'_>],
    endpoint: Option<String>,
) {
    let unsaid = nodes.iter().all(|node| node.said(&LINKS).is_none());
    let found = if unsaid { of_machines(import, nodes) } else { of_patches(import, nodes) };
    if let Some(mut found) = found {
        let named: std::collections::BTreeSet<String> = nodes
            .iter()
            .filter_map(|node| node.said(&LINKS)?[0]["interface"].as_str().map(str::to_owned))
            .collect();
        for link in named {
            let message = format!(
                "the card is called `{link}` in a patch: Strata finds the only one by its hardware address"
            );
            import.note(Some(&cluster.place), message);
        }
        nodes.iter_mut().for_each(|node| drop(node.take(&LINKS)));
        for (key, path) in [(ClusterNetwork::nameservers, &SERVERS), (ClusterNetwork::time_servers, &TIME)] {
            let said: Vec<Option<Json>> = nodes.iter().map(|node| node.said(path).cloned()).collect();
            if let Some(Some(first)) = said.first()
                && said.iter().all(|other| other.as_ref() == Some(first))
                && first.as_array().is_some_and(|list| list.iter().all(Json::is_string))
            {
                found.set(key, first.clone());
                nodes.iter_mut().for_each(|node| drop(node.take(path)));
            }
        }
        cluster.network = found;
    } else if unsaid {
        // A DHCP server gives them the addresses that the code names.
        for node in nodes.iter_mut().filter(|node| node.address.is_some()) {
            node.written.set(NodeSettings::dhcp, json!(true));
        }
    }
    let vip = cluster.network.get("vip").and_then(Json::as_str).map(|vip| format!("https://{vip}:6443"));
    if endpoint != vip {
        cluster.endpoint = endpoint;
    }
}

/// The first card of a node's machine.
fn card<'i>(import: &'i Import<'_>, node: &Node<'_>) -> Option<&'i Json> {
    let machine = node.machine?;
    let (document, _) = import.model.documents.get(&machine.document)?;
    document[Stack::vms.name()][&machine.own][Hardware::network.name()].as_array()?.first()
}

fn cards(import: &Import<'_>, node: &Node<'_>) -> usize {
    let machine = node.machine.and_then(|machine| {
        let (document, _) = import.model.documents.get(&machine.document)?;
        document[Stack::vms.name()][&machine.own][Hardware::network.name()].as_array()
    });
    machine.map_or(0, Vec::len)
}

fn network_of(address: &str) -> Option<String> {
    let (ip, length) = address.split_once('/')?;
    let (ip, length): (Ipv4Addr, u32) = (ip.parse().ok()?, length.parse().ok()?);
    let mask = u32::MAX.checked_shl(32_u32.checked_sub(length)?).unwrap_or(0);
    Some(format!("{}/{length}", Ipv4Addr::from(u32::from(ip) & mask)))
}

/// Puts a value that all have to share; false if another one has another.
fn same(found: &mut Object, key: Key, value: Option<Json>) -> bool {
    match (found.get(key.name()), value) {
        (Some(known), Some(value)) => *known == value,
        (None, Some(value)) => {
            found.set(key, value);
            true
        }
        (_, None) => true,
    }
}

/// The addresses that Proxmox gives the machines at their first boot.
fn of_machines(import: &Import<'_>, nodes: &mut [Node<'_>]) -> Option<Object> {
    let mut found = Object::new();
    for node in nodes.iter_mut() {
        let card = card(import, node)?;
        let address = card[Nic::ip.name()].as_str().filter(|address| address.contains('/'))?;
        let ip = address.split('/').next()?.to_owned();
        let fits = same(&mut found, ClusterNetwork::cidr, Some(json!(network_of(address)?)))
            && same(&mut found, ClusterNetwork::gateway, card.get(Nic::gateway.name()).cloned())
            && node.address.as_ref().is_none_or(|own| *own == ip);
        if !fits {
            return None;
        }
        node.address = Some(ip);
    }
    let machine = nodes.first()?.machine?;
    let (document, _) = import.model.documents.get(&machine.document)?;
    found.put(
        ClusterNetwork::nameservers,
        document[Stack::vms.name()][&machine.own][Vm::cloud_init.name()]
            .get(CloudInit::nameservers.name())
            .cloned(),
    );
    Some(found)
}

/// One card with one fixed address on each node is what Strata configures itself.
fn of_patches(import: &Import<'_>, nodes: &[Node<'_>]) -> Option<Object> {
    let mut found = Object::new();
    for node in nodes {
        let all: Vec<&Json> = node.said(&LINKS)?.as_array()?.iter().collect();
        let [link] = all.as_slice() else { return None };
        let link = link.as_object()?;
        let known = ["interface", "deviceSelector", "dhcp", "addresses", "routes", "vip", "mtu"];
        if link.keys().any(|key| !known.contains(&key.as_str())) || link.get("dhcp") == Some(&json!(true)) {
            return None;
        }
        // By its name or its address: the only card is the one that Strata finds.
        let only = cards(import, node) == 1;
        let mac = card(import, node).and_then(|card| card[Nic::mac.name()].as_str());
        let chosen = link.get("deviceSelector").and_then(|by| by["hardwareAddr"].as_str());
        let is_it = mac.zip(chosen).is_some_and(|(mac, chosen)| mac.eq_ignore_ascii_case(chosen));
        if !only && !is_it {
            return None;
        }
        let addresses = link.get("addresses")?.as_array()?;
        let [Json::String(address)] = addresses.as_slice() else { return None };
        if address.split('/').next() != node.address.as_deref() {
            return None;
        }
        let routes = link.get("routes").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        let gateway = match routes {
            [] => None,
            [route] => {
                let everything = route["network"].as_str().is_none_or(|net| net.ends_with("/0"));
                let plain =
                    route.as_object()?.keys().all(|key| ["network", "gateway"].contains(&key.as_str()));
                if !everything || !plain {
                    return None;
                }
                route.get("gateway").cloned()
            }
            _ => return None,
        };
        let vip = link.get("vip").and_then(|vip| vip.get("ip")).cloned();
        let fits = same(&mut found, ClusterNetwork::cidr, Some(json!(network_of(address)?)))
            && same(&mut found, ClusterNetwork::gateway, gateway)
            && same(&mut found, ClusterNetwork::mtu, link.get("mtu").cloned())
            && (vip.is_none() || node.control_plane && same(&mut found, ClusterNetwork::vip, vip));
        if !fits {
            return None;
        }
    }
    Some(found)
}
