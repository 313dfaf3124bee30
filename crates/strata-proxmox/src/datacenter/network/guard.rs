//! Changes that could cut off the host, or Strata from it: told in the plan, which then does not run.

use std::collections::{BTreeMap, BTreeSet};

use strata_engine::{Objection, Operation, ProviderError};
use strata_resource::{FieldChange, Kind, Spec, Value};
use strata_state::Action;

use super::super::family::{Row, row_text, spec_text};
use super::{Host, interface, interfaces, is, only_configured};
use crate::api::Params;
use crate::client::Client;

pub(crate) async fn objections(
    client: &Client,
    operations: &[Operation],
) -> Result<Vec<Objection>, ProviderError> {
    let networks: Vec<&Operation> =
        operations.iter().filter(|operation| operation.address.kind() == Kind::Network).collect();
    if networks.is_empty() {
        return Ok(Vec::new());
    }
    let addresses = addresses(client).await;
    let mut found = Vec::new();
    for operation in networks {
        let node = spec_text(&operation.spec, "network");
        let host = Host::read(client, node).await;
        let host = host.map_err(|error| error.explain(&format!("look at the network of `{node}`")))?;
        let Some(host) = host else { continue };
        found.extend(missing_hardware(operation, &host));
        found.extend(loses_dhcp(operation, &host));
        let reached: BTreeSet<&String> =
            addresses.iter().filter(|(on, _)| on.is_empty() || on == node).map(|(_, ip)| ip).collect();
        found.extend(cuts(operation, &host, &reached));
    }
    Ok(found)
}

/// The addresses that hosts are reached by: that of the endpoint, and those that their cluster knows. An empty name is any host.
async fn addresses(client: &Client) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> =
        client.endpoint_ip().into_iter().map(|ip| (String::new(), ip)).collect();
    // Whoever may not ask knows at least the endpoint.
    let rows: Vec<Row> = client.get("/cluster/status", Params::new()).await.unwrap_or_default();
    for row in rows.iter().filter(|row| row_text(row, "type").as_deref() == Some("node")) {
        found.extend(row_text(row, "name").zip(row_text(row, "ip")));
    }
    found
}

fn missing_hardware(operation: &Operation, host: &Host) -> Vec<Objection> {
    let wanted = interfaces(&operation.spec);
    let absent = wanted
        .iter()
        .filter(|(name, own)| spec_text(own, "type") == "eth" && !host.rows.contains_key(**name));
    absent
        .filter(|_| operation.action != Action::Delete)
        .map(|(name, _)| Objection {
            address: operation.address.clone(),
            message: format!("there is no interface `{name}`: an `eth` is hardware, and cannot be made"),
            hint: "name one that the host has".to_owned(),
        })
        .collect()
}

/// Interfaces that get their address from a server: Proxmox takes a change of one for a change to a fixed address, or to none.
fn loses_dhcp(operation: &Operation, host: &Host) -> Vec<Objection> {
    let wanted = interfaces(&operation.spec);
    let asks = |name: &str, family: &str| {
        let method = host.rows.get(name).and_then(|row| row_text(row, &format!("method{family}")));
        method.is_some_and(|method| matches!(method.as_str(), "dhcp" | "auto"))
            && wanted.get(name).is_some_and(|own| !own.contains_key(&format!("cidr{family}")))
    };
    touched(operation)
        .into_iter()
        .filter(|name| asks(name, "") || asks(name, "6"))
        .map(|name| Objection {
            address: operation.address.clone(),
            message: format!(
                "`{name}` gets its address by DHCP, which Proxmox does not keep when it changes the interface"
            ),
            hint: format!("give `{name}` a fixed `address`, or take it out of the source"),
        })
        .collect()
}

/// The interfaces that an operation does something to, but for their comments.
fn touched(operation: &Operation) -> BTreeSet<&str> {
    let harmless = |change: &FieldChange| change.path.keys().get(2).is_some_and(|field| field == "comment");
    if operation.action == Action::Delete {
        let own = interfaces(&operation.spec);
        return own.into_iter().filter(|(_, own)| !only_configured(own)).map(|(name, _)| name).collect();
    }
    let changes = operation.changes.iter().filter(|change| change.path.keys().len() > 1 && !harmless(change));
    changes.map(|change| change.path.keys()[1].as_str()).collect()
}

/// Interfaces that carry one of the addresses, and those that they stand on.
fn carriers(host: &Host, reached: &BTreeSet<&String>) -> BTreeMap<String, String> {
    let live: BTreeMap<String, Spec> =
        host.rows.iter().map(|(name, row)| (name.clone(), interface::read(row))).collect();
    let mut carriers: BTreeMap<String, String> = BTreeMap::new();
    for (name, spec) in &live {
        let own = ["cidr", "cidr6"].iter().filter_map(|field| spec.get(*field)?.as_text()?.split('/').next());
        if let Some(ip) = own.into_iter().find(|ip| reached.iter().any(|other| other.as_str() == *ip)) {
            let mut below = vec![name.clone()];
            while let Some(next) = below.pop() {
                if carriers.insert(next.clone(), ip.to_owned()).is_none()
                    && let Some(spec) = live.get(&next)
                {
                    below.extend(interface::stands_on(&next, spec));
                }
            }
        }
    }
    carriers
}

fn cuts(operation: &Operation, host: &Host, reached: &BTreeSet<&String>) -> Vec<Objection> {
    let carriers = carriers(host, reached);
    let wanted = interfaces(&operation.spec);
    let recorded = operation.recorded.as_ref().map(|recorded| interfaces(&recorded.spec)).unwrap_or_default();
    let allowed = |name: &str| wanted.get(name).or(recorded.get(name)).is_some_and(|own| is(own, "may_cut"));
    touched(operation)
        .into_iter()
        .filter(|name| !allowed(name))
        .filter_map(|name| {
            let ip = carriers.get(name)?;
            Some(Objection {
                address: operation.address.clone(),
                message: format!(
                    "`{name}` carries `{ip}`, by which the host is reached, and the plan would change it"
                ),
                hint: format!("with a console of the host at hand, set `mayCutConnection: true` on `{name}`"),
            })
        })
        .collect()
}

/// What a plan says about a network besides its changes.
pub(in crate::datacenter) fn notice(operation: &Operation) -> String {
    let node = operation.spec.get("network").and_then(Value::as_text).unwrap_or_default();
    format!("the network of `{node}` is reloaded")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strata_resource::{FieldPath, Lineage};

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
            address: "dc/network/pve1".parse().unwrap(),
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
        }
    }

    #[test]
    fn what_carries_the_address_needs_consent() {
        let ip = "192.0.2.11".to_owned();
        let reached = BTreeSet::from([&ip]);
        let told = |operation: &Operation| cuts(operation, &host(), &reached).len();
        for name in ["vmbr0", "bond0.5", "bond0", "eno1"] {
            assert_eq!(told(&change(name, json!({"type": "x"}), "mtu")), 1, "{name}");
            assert_eq!(told(&change(name, json!({"type": "x", "may_cut": true}), "mtu")), 0, "{name}");
            assert_eq!(told(&change(name, json!({"type": "x"}), "comment")), 0, "{name}");
        }
        assert_eq!(told(&change("vmbr1", json!({"type": "bridge"}), "mtu")), 0);
    }

    #[test]
    fn an_address_by_dhcp_is_not_lost() {
        let told = |own: serde_json::Value| loses_dhcp(&change("eno2", own, "mtu"), &host()).len();
        assert_eq!(told(json!({"type": "eth", "mtu": 1400})), 1);
        assert_eq!(told(json!({"type": "eth", "mtu": 1400, "cidr": "192.0.2.9/24"})), 0);
    }
}
