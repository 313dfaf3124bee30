//! Targets of Prometheus, as `file_sd_configs` reads them.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use crate::host::{Host, Inventory};

/// One entry for each host with an address, at this port.
pub fn targets(inventory: &Inventory, port: u16) -> Value {
    let of = |host: &Host| {
        let target = match host.address? {
            IpAddr::V4(address) => format!("{address}:{port}"),
            IpAddr::V6(address) => format!("[{address}]:{port}"),
        };
        Some(json!({"targets": [target], "labels": labels(host)}))
    };
    inventory.hosts.iter().filter_map(of).collect()
}

fn labels(host: &Host) -> Value {
    let mut labels = Map::new();
    let mut put = |name: &str, value: Option<String>| {
        labels.extend(value.map(|value| (name.to_owned(), Value::String(value))));
    };
    put("host", Some(host.name.clone()));
    put("stack", Some(host.stack.clone()));
    put("environment", Some(host.environment.clone()));
    put("layer", Some(host.layer.to_string()));
    put("hypervisor", host.node.clone());
    put("vmid", host.vmid.map(|vmid| vmid.to_string()));
    put("pool", host.pool.clone());
    put("role", host.role.clone());
    // A comma on each side, as Prometheus' own discoveries write lists: `.*,app,.*` finds one.
    put("tags", (!host.tags.is_empty()).then(|| format!(",{},", host.tags.join(","))));
    Value::Object(labels)
}
