//! Changes that could cut off the host, or Strata from it: told in the plan, which then does not run.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use strata_engine::{Finding, Operation, ProviderError};
use strata_resource::{FieldChange, Spec};
use strata_state::Action;

use super::host::{Host, interfaces, is, only_configured};
use super::{interface, staged};
use crate::api::Params;
use crate::client::Client;
use crate::datacenter::{Row, row_text, spec_text};

pub(super) async fn preconditions(
    client: &Client,
    networks: &[&Operation],
) -> Result<Vec<Finding>, ProviderError> {
    let known = Known::ask(client).await;
    let mut found = Vec::new();
    for operation in networks {
        let node = spec_text(&operation.spec, "network");
        let host = Host::read(client, node).await;
        let host = host.map_err(|error| error.explain(&format!("look at the network of `{node}`")))?;
        let Some(host) = host else { continue };
        found.extend(missing_hardware(operation, &host));
        found.extend(loses_dhcp(operation, &host));
        found.extend(takes_over(operation, &host, &known));
        found.extend(cuts(operation, &host, &known));
    }
    Ok(found)
}

/// The addresses that hosts are reached by.
struct Known {
    /// Host and address: that of the endpoint, whose host is not known and has no name here, and those that the cluster knows.
    addresses: Vec<(String, String)>,
    /// The cluster did not say.
    blind: bool,
}

impl Known {
    async fn ask(client: &Client) -> Self {
        let mut addresses: Vec<(String, String)> =
            client.endpoint_ips().await.into_iter().map(|ip| (String::new(), ip)).collect();
        let rows: Result<Vec<Row>, _> = client.get("/cluster/status", Params::new()).await;
        let blind = rows.is_err();
        for row in rows.unwrap_or_default() {
            if row_text(&row, "type").as_deref() == Some("node") {
                addresses.extend(row_text(&row, "name").zip(row_text(&row, "ip")));
            }
        }
        Self { addresses, blind }
    }

    fn of(&self, node: &str) -> BTreeSet<&String> {
        self.addresses.iter().filter(|(on, _)| on.is_empty() || on == node).map(|(_, ip)| ip).collect()
    }
}

fn missing_hardware(operation: &Operation, host: &Host) -> Vec<Finding> {
    let wanted = interfaces(&operation.spec);
    let absent = wanted
        .iter()
        .filter(|(name, own)| spec_text(own, "type") == "eth" && !host.rows.contains_key(**name));
    absent
        .filter(|_| operation.action != Action::Delete)
        .map(|(name, _)| {
            Finding::precondition(
                operation,
                format!("there is no interface `{name}`: an `eth` is hardware, and cannot be made"),
                "name one that the host has",
            )
        })
        .collect()
}

/// Whether an interface gets its address from a server; the family is empty or `6`.
fn asks_server(row: &Row, family: &str) -> bool {
    row_text(row, &format!("method{family}")).is_some_and(|method| matches!(method.as_str(), "dhcp" | "auto"))
}

/// Interfaces that get their address from a server: Proxmox takes any change of one for a change to a fixed address, or to none.
fn loses_dhcp(operation: &Operation, host: &Host) -> Vec<Finding> {
    let wanted = interfaces(&operation.spec);
    let mut found = Vec::new();
    for name in changed(operation) {
        let (Some(row), Some(own)) = (host.rows.get(name), wanted.get(name)) else { continue };
        let lost: Vec<&str> = ["", "6"].into_iter().filter(|family| asks_server(row, family)).collect();
        let fixed = lost.iter().all(|family| own.contains_key(&format!("cidr{family}")));
        if lost.is_empty() || fixed && is(own, "may_cut") {
            continue;
        }
        let (message, hint) = if fixed {
            (
                format!("`{name}` gets its address by DHCP, and the plan would give it a fixed one"),
                format!("with a console of the host at hand, set `mayCutConnection: true` on `{name}`"),
            )
        } else {
            (
                format!(
                    "`{name}` gets its address by DHCP, which Proxmox does not keep when it changes the interface"
                ),
                format!(
                    "remove `{name}` from the source; or, with a console of the host at hand, give it a fixed `address` and `mayCutConnection: true`"
                ),
            )
        };
        found.push(Finding::precondition(operation, message, hint));
    }
    found
}

/// The interfaces that an operation changes, in whatever way.
fn changed(operation: &Operation) -> BTreeSet<&str> {
    operation.changes.iter().filter_map(|change| Some(change.path.keys().get(1)?.as_str())).collect()
}

/// The interfaces that an operation does something to, but for their comments; and all about which something is staged, as it comes into
/// effect together with the rest.
fn touched(operation: &Operation, host: &Host) -> BTreeSet<String> {
    let harmless = |change: &FieldChange| change.path.keys().get(2).is_some_and(|field| field == "comment");
    let mut touched: BTreeSet<String> = match operation.action {
        Action::Delete => {
            let own = interfaces(&operation.spec).into_iter().filter(|(_, own)| !only_configured(own));
            own.map(|(name, _)| name.to_owned()).collect()
        }
        _ => {
            let changes = operation.changes.iter().filter(|change| !harmless(change));
            changes.filter_map(|change| change.path.keys().get(1).cloned()).collect()
        }
    };
    if let Some(changes) = &host.changes {
        touched.extend(staged::about(changes, &host.order()));
    }
    touched
}

fn ips(spec: &Spec) -> impl Iterator<Item = String> {
    ["cidr", "cidr6"].into_iter().filter_map(|field| {
        let ip = spec.get(field)?.as_text()?.split('/').next()?;
        Some(ip.parse::<IpAddr>().map_or_else(|_| ip.to_owned(), |ip| ip.to_string()))
    })
}

/// Interfaces that the connection to a host goes through, and why that is so of each.
fn carriers(host: &Host, node: &str, known: &Known) -> BTreeMap<String, String> {
    let live: BTreeMap<String, Spec> =
        host.rows.iter().map(|(name, row)| (name.clone(), interface::read(row))).collect();
    let reached = known.of(node);
    let mut carriers: BTreeMap<String, String> = BTreeMap::new();
    let mut carry = |name: &str, why: &str| {
        let mut below = vec![name.to_owned()];
        while let Some(next) = below.pop() {
            if carriers.contains_key(&next) {
                continue;
            }
            if let Some(spec) = live.get(&next) {
                below.extend(interface::carried_by(&next, spec));
            }
            carriers.insert(next, why.to_owned());
        }
    };
    let mut seen = false;
    for (name, spec) in &live {
        if let Some(ip) = ips(spec).find(|ip| reached.contains(ip)) {
            seen = true;
            carry(name, &format!("carries `{ip}`, by which the host is reached"));
        }
    }
    for (name, spec) in &live {
        if let Some(gateway) = ["gateway", "gateway6"].iter().find_map(|field| spec.get(*field)?.as_text()) {
            carry(name, &format!("carries the default gateway `{gateway}`"));
        }
    }
    if !seen || known.blind {
        for (name, spec) in &live {
            let row = &host.rows[name];
            if ips(spec).next().is_some() || asks_server(row, "") || asks_server(row, "6") {
                carry(name, "has an address, by which the host may be reached (which one is not known)");
            }
        }
    }
    if let Some(changes) = &host.changes
        && staged::takes_away(changes, &reached)
    {
        for name in staged::about(changes, &host.order()) {
            carry(
                &name,
                "may carry the connection to the host: what is staged takes an address or a gateway away",
            );
        }
    }
    carriers
}

fn cuts(operation: &Operation, host: &Host, known: &Known) -> Vec<Finding> {
    let carriers = carriers(host, spec_text(&operation.spec, "network"), known);
    let wanted = interfaces(&operation.spec);
    let recorded = operation.recorded.as_ref().map(|recorded| interfaces(&recorded.spec)).unwrap_or_default();
    let allowed = |name: &str| wanted.get(name).or(recorded.get(name)).is_some_and(|own| is(own, "may_cut"));
    touched(operation, host)
        .into_iter()
        .filter(|name| !allowed(name))
        .filter_map(|name| {
            let why = carriers.get(&name)?;
            Some(Finding::precondition(
                operation,
                format!("`{name}` {why}, and the plan would change it"),
                format!("with a console of the host at hand, set `mayCutConnection: true` on `{name}`"),
            ))
        })
        .collect()
}

/// Interfaces that would take an address by which a host is reached, this one or another.
fn takes_over(operation: &Operation, host: &Host, known: &Known) -> Vec<Finding> {
    if operation.action == Action::Delete {
        return Vec::new();
    }
    let wanted = interfaces(&operation.spec);
    let live: BTreeMap<&String, Spec> =
        host.rows.iter().map(|(name, row)| (name, interface::read(row))).collect();
    let has = |name: &String, ip: &String| live.get(name).is_some_and(|spec| ips(spec).any(|own| own == *ip));
    let node = spec_text(&operation.spec, "network");
    let touched = touched(operation, host);
    let mut found = Vec::new();
    for name in &touched {
        let Some(own) = wanted.get(name.as_str()) else { continue };
        for ip in ips(own).filter(|ip| !has(name, ip)) {
            let Some((on, _)) = known.addresses.iter().find(|(_, other)| *other == ip) else { continue };
            let holder = live.keys().copied().find(|other| *other != name && has(other, &ip));
            // It moves, and the interface that it leaves needs consent of its own.
            let moves = holder.is_some_and(|holder| {
                touched.contains(holder)
                    && wanted
                        .get(holder.as_str())
                        .is_none_or(|own| ips(own).next().is_some_and(|_| ips(own).all(|other| other != ip)))
            });
            let unseen = holder.is_none() && (on.is_empty() || on == node) && is(own, "may_cut");
            if moves || unseen {
                continue;
            }
            let whose = match holder {
                Some(holder) => format!("`{holder}` has it"),
                None if on.is_empty() => "it is that of the endpoint".to_owned(),
                None => format!("it is that of `{on}`"),
            };
            found.push(Finding::precondition(
                operation,
                format!("`{name}` would take `{ip}`, by which a host is reached: {whose}"),
                format!("give `{name}` another `address`"),
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strata_resource::{FieldPath, Lineage, Value};

    use super::*;

    fn host() -> Host {
        let rows = [
            ("eno1", json!({"iface": "eno1", "type": "eth", "method": "manual"})),
            ("eno2", json!({"iface": "eno2", "type": "eth", "method": "dhcp"})),
            ("bond0", json!({"iface": "bond0", "type": "bond", "slaves": "eno1"})),
            (
                "vmbr0",
                json!({"iface": "vmbr0", "type": "bridge", "bridge_ports": "bond0.5", "cidr": "192.0.2.11/24"}),
            ),
            ("bond0.5", json!({"iface": "bond0.5", "type": "vlan", "vlan-raw-device": "bond0"})),
            ("vmbr1", json!({"iface": "vmbr1", "type": "bridge"})),
        ];
        let row = |json: serde_json::Value| json.as_object().cloned().unwrap();
        Host {
            rows: rows.into_iter().map(|(name, json)| (name.to_owned(), row(json))).collect(),
            changes: None,
        }
    }

    fn change(name: &str, own: serde_json::Value, field: &str) -> Operation {
        let spec = json!({"network": "pve1", "interfaces": {name: own}});
        Operation {
            action: Action::Update,
            address: crate::kinds::address("dc/network/pve1"),
            target: "pve".to_owned(),
            lineage: Lineage::derive("r", "dev/dc"),
            spec: serde_json::from_value(spec).unwrap(),
            recorded: None,
            observed: None,
            changes: vec![FieldChange {
                path: FieldPath::root().child("interfaces").child(name).child(field),
                before: None,
                after: Some(Value::Int(1400)),
                drift: false,
            }],
            restart: false,
            replacement: false,
            awaited: false,
            payload: None,
        }
    }

    fn known() -> Known {
        let addresses = [("pve1", "192.0.2.11"), ("pve2", "192.0.2.12")];
        Known { addresses: addresses.map(|(on, ip)| (on.to_owned(), ip.to_owned())).to_vec(), blind: false }
    }

    fn with(mut host: Host, name: &str, row: serde_json::Value) -> Host {
        host.rows.insert(name.to_owned(), row.as_object().cloned().unwrap());
        host
    }

    #[test]
    fn what_carries_the_address_needs_consent() {
        let told = |operation: &Operation| cuts(operation, &host(), &known()).len();
        for name in ["vmbr0", "bond0.5", "bond0", "eno1"] {
            assert_eq!(told(&change(name, json!({"type": "x"}), "mtu")), 1, "{name}");
            assert_eq!(told(&change(name, json!({"type": "x", "may_cut": true}), "mtu")), 0, "{name}");
            assert_eq!(told(&change(name, json!({"type": "x"}), "comment")), 0, "{name}");
        }
        assert_eq!(told(&change("vmbr1", json!({"type": "bridge"}), "mtu")), 0);
    }

    #[test]
    fn the_default_gateway_and_open_vswitch_count() {
        let row = json!({"type": "OVSBridge", "ovs_ports": "eno3 mgmt", "gateway": "198.51.100.1"});
        let host = with(host(), "vmbr7", row);
        for name in ["vmbr7", "eno3", "mgmt"] {
            let told = cuts(&change(name, json!({"type": "x"}), "mtu"), &host, &known());
            assert!(
                told.len() == 1 && told[0].refusal().is_some_and(|text| text.contains("gateway")),
                "{name}: {told:?}"
            );
        }
    }

    #[test]
    fn without_a_known_address_each_one_counts() {
        let host = with(host(), "vmbr8", json!({"type": "bridge", "cidr": "10.0.0.1/24"}));
        let of =
            |known: &Known, name: &str| cuts(&change(name, json!({"type": "x"}), "mtu"), &host, known).len();
        assert_eq!(of(&known(), "vmbr8"), 0);
        for known in [Known { addresses: Vec::new(), blind: false }, Known { blind: true, ..known() }] {
            for (name, told) in [("vmbr8", 1), ("vmbr0", 1), ("eno2", 1), ("vmbr1", 0), ("new", 0)] {
                assert_eq!(of(&known, name), told, "{name}");
            }
        }
    }

    #[test]
    fn what_is_staged_counts_as_touched() {
        let mut host = host();
        host.changes = Some("@@ -1,4 +1,4 @@\n auto vmbr0\n iface vmbr0 inet static\n-\taddress 192.0.2.11/24\n+\taddress 192.0.2.66/24\n".to_owned());
        host.rows.get_mut("vmbr0").unwrap().insert("cidr".to_owned(), json!("192.0.2.66/24"));
        let told = cuts(&change("vmbr1", json!({"type": "bridge"}), "mtu"), &host, &known());
        assert!(
            told.len() == 1 && told[0].refusal().is_some_and(|text| text.contains("`vmbr0`")),
            "{told:?}"
        );
    }

    #[test]
    fn an_address_that_a_host_is_reached_by_is_not_taken() {
        let told = |name: &str, ip: &str| {
            takes_over(&change(name, json!({"type": "bridge", "cidr": ip}), "cidr"), &host(), &known()).len()
        };
        assert_eq!(told("vmbr9", "192.0.2.11/24"), 1);
        assert_eq!(told("vmbr1", "192.0.2.12/24"), 1, "that of another host");
        assert_eq!(told("vmbr0", "192.0.2.11/24"), 0, "it has it already");
        assert_eq!(told("vmbr9", "192.0.2.13/24"), 0);
    }

    #[test]
    fn an_address_by_dhcp_is_not_lost() {
        let told =
            |own: serde_json::Value, field: &str| loses_dhcp(&change("eno2", own, field), &host()).len();
        assert_eq!(told(json!({"type": "eth", "mtu": 1400}), "mtu"), 1);
        assert_eq!(told(json!({"type": "eth", "comment": "x"}), "comment"), 1);
        assert_eq!(told(json!({"type": "eth", "cidr": "192.0.2.9/24"}), "cidr"), 1);
        assert_eq!(told(json!({"type": "eth", "cidr": "192.0.2.9/24", "may_cut": true}), "cidr"), 0);
    }
}
