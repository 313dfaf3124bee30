//! What a machine says of its network: one link for each card, the addresses on them, the way out, who it asks for names and time.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::kinds::{ADDRESS, LINK, NODE_ADDRESS, RESOLVER, ROUTE, TIME_SERVER};
use super::shown;
use crate::hypervisor::vmid;
use crate::machine::Boot;
use crate::wire::cosi::Resource;
use crate::world::World;

const LOOPBACK: &str = "lo";

/// The cards of a machine: their names and hardware addresses.
fn cards(world: &World, key: &str) -> Vec<(String, String)> {
    let Some(vmid) = vmid(key) else { return vec![("enp1s0".to_owned(), made_up(world, key))] };
    let mut cards = world.hypervisor.cards(vmid);
    cards.sort_by_key(|card| card.number);
    // The first card of a VM is in the eighteenth slot of its bus.
    cards.into_iter().map(|card| (format!("ens{}", 18 + card.number), card.mac.to_lowercase())).collect()
}

fn made_up(world: &World, key: &str) -> String {
    let bytes = world.derive(&["card", key]);
    let rest: Vec<String> = bytes[..5].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("52:{}", rest.join(":"))
}

/// The texts under a key, wherever it stands in the configuration.
fn mentioned(boot: &Boot, name: &str) -> Vec<String> {
    fn search(value: &Value, name: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    if key == name {
                        texts(value, found);
                    } else {
                        search(value, name, found);
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|value| search(value, name, found)),
            _ => {}
        }
    }
    fn texts(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => found.push(text.clone()),
            Value::Array(list) => list.iter().for_each(|value| texts(value, found)),
            Value::Object(map) => map.get("address").into_iter().for_each(|value| texts(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for document in boot.config.iter().flat_map(|config| config.documents()) {
        search(document, name, &mut found);
    }
    found
}

/// Every address with its length: as the configuration writes it, or that of a usual network.
fn addresses(boot: &Boot) -> Vec<String> {
    let written = mentioned(boot, "addresses");
    let length = |address: &str| {
        let own = written.iter().find(|cidr| cidr.split('/').next() == Some(address) && cidr.contains('/'));
        let usual = if address.contains(':') { 64 } else { 24 };
        own.cloned().unwrap_or_else(|| format!("{address}/{usual}"))
    };
    boot.addresses().iter().filter(|a| a.parse::<IpAddr>().is_ok()).map(|a| length(a)).collect()
}

/// The shared address, where this machine has it.
fn shared(world: &World, key: &str, boot: &Boot) -> Option<String> {
    let vip = boot.config.as_ref()?.vip()?;
    (world.talos_at(vip)?.0 == key).then(|| format!("{vip}/32"))
}

pub(super) fn all(world: &World, key: &str, boot: &Boot, kind: &str) -> Vec<Resource> {
    let cards = cards(world, key);
    let first = cards.first().map_or(LOOPBACK, |(name, _)| name.as_str());
    let own = addresses(boot);
    let vip = shared(world, key, boot);
    match kind {
        ADDRESS => {
            let address = |link: &str, cidr: &str| {
                let family = if cidr.contains(':') { "inet6" } else { "inet4" };
                let spec = json!({
                    "address": cidr, "linkName": link, "family": family, "scope": if link == LOOPBACK { "host" } else { "global" },
                });
                shown(ADDRESS, &format!("{link}/{cidr}"), spec)
            };
            let loopback = ["127.0.0.1/8", "::1/128"].map(|cidr| address(LOOPBACK, cidr));
            // One address for each card, as far as they go; what is left is on the first.
            let placed = own.iter().enumerate().map(|(number, cidr)| {
                address(cards.get(number).map_or(first, |(name, _)| name.as_str()), cidr)
            });
            placed.chain(vip.iter().map(|cidr| address(first, cidr))).chain(loopback).collect()
        }
        NODE_ADDRESS => {
            let current: Vec<String> = own.iter().cloned().chain(vip).collect();
            [
                ("current", current),
                ("default", own.iter().take(1).cloned().collect()),
                ("routed", own.clone()),
            ]
            .into_iter()
            .map(|(id, list)| shown(NODE_ADDRESS, id, json!({ "addresses": list, "sortAlgorithm": "v1" })))
            .collect()
        }
        LINK => {
            let link = |name: &str, kind: &str, mac: &str, state: &str| {
                let spec = json!({
                    "alias": "", "type": kind, "kind": "", "hardwareAddr": mac, "operationalState": state, "linkState": true,
                    "mtu": if kind == "loopback" { 65536 } else { 1500 }, "physical": kind == "ether",
                });
                shown(LINK, name, spec)
            };
            let real = cards.iter().map(|(name, mac)| link(name, "ether", mac, "up"));
            real.chain([link(LOOPBACK, "loopback", "00:00:00:00:00:00", "unknown")]).collect()
        }
        ROUTE => {
            let mut gateways = mentioned(boot, "gateway");
            gateways.sort();
            gateways.dedup();
            let routes = gateways.iter().map(|gateway| {
                let id = format!("inet4/{gateway}//1024");
                let spec = json!({ "family": "inet4", "dst": "", "gateway": gateway, "outLinkName": first, "priority": 1024 });
                shown(ROUTE, &id, spec)
            });
            routes.collect()
        }
        RESOLVER => {
            let servers = mentioned(boot, "nameservers");
            let servers =
                if servers.is_empty() { vec!["1.1.1.1".to_owned(), "8.8.8.8".to_owned()] } else { servers };
            vec![shown(RESOLVER, "resolvers", json!({ "dnsServers": servers, "searchDomains": [] }))]
        }
        TIME_SERVER => {
            let servers = mentioned(boot, "servers");
            let servers = if servers.is_empty() { vec!["time.cloudflare.com".to_owned()] } else { servers };
            vec![shown(TIME_SERVER, "timeservers", json!({ "timeServers": servers }))]
        }
        _ => Vec::new(),
    }
}
