//! An interface as the API shows it.

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::endpoints::section::number;
use crate::world::node::Iface;

/// The first one comes after the loopback, which is not shown.
const FIRST: usize = 3;

/// Raw device and number of a VLAN interface.
pub fn vlan<'i>(name: &'i str, iface: &'i Iface) -> Option<(&'i str, Option<&'i str>)> {
    if iface.kind != "vlan" {
        return None;
    }
    if let Some((device, id)) = name.rsplit_once('.') {
        return Some((device, Some(id)));
    }
    let device = iface.props.get("vlan-raw-device")?;
    let own = iface.props.get("vlan-id").map(String::as_str);
    Some((device, name.strip_prefix("vlan").filter(|id| id.parse::<u16>().is_ok()).or(own)))
}

pub fn row(ifaces: &IndexMap<String, Iface>, name: &str, iface: &Iface, at: usize) -> Map<String, Value> {
    let mut row = Map::new();
    let prop = |key: &str| iface.props.get(key).map(String::as_str);
    row.insert("type".into(), json!(iface.kind));
    row.insert("priority".into(), json!(FIRST + at));
    let default = |cidr: &str| if prop(cidr).is_some() { "static" } else { "manual" };
    row.insert("method".into(), json!(prop("method").unwrap_or_else(|| default("cidr"))));
    row.insert("method6".into(), json!(prop("method6").unwrap_or_else(|| default("cidr6"))));
    let families: Vec<&str> = prop("families").unwrap_or("inet").split(' ').collect();
    row.insert("families".into(), json!(families));
    if iface.active {
        row.insert("active".into(), json!(1));
    }
    for suffix in ["", "6"] {
        if let Some((address, mask)) = prop(&format!("cidr{suffix}")).and_then(|c| c.split_once('/')) {
            row.insert(format!("cidr{suffix}"), json!(format!("{address}/{mask}")));
            row.insert(format!("address{suffix}"), json!(address));
            row.insert(format!("netmask{suffix}"), json!(mask));
        }
    }
    for (key, value) in &iface.props {
        match key.as_str() {
            "method" | "method6" | "families" | "cidr" | "cidr6" => {}
            "autostart" | "bridge_vlan_aware" if value != "1" => {}
            "autostart" | "bridge_vlan_aware" => drop(row.insert(key.clone(), number(value))),
            "comments" | "comments6" => {
                let lines: String = value.lines().map(|line| format!("{line}\n")).collect();
                row.insert("comments".into(), json!(lines));
            }
            _ if value.is_empty() && !matches!(key.as_str(), "bridge_ports" | "slaves") => {}
            _ => drop(row.insert(key.clone(), json!(value))),
        }
    }
    match iface.kind.as_str() {
        "bridge" => {
            row.entry("bridge_ports").or_insert(json!(""));
            row.entry("bridge_stp").or_insert(json!("off"));
            row.entry("bridge_fd").or_insert(json!("0"));
            if prop("bridge_vlan_aware") == Some("1") {
                row.entry("bridge_vids").or_insert(json!("2-4094"));
            }
        }
        "bond" => {
            row.entry("slaves").or_insert(json!(""));
            row.entry("bond_miimon").or_insert(json!("100"));
            row.entry("bond_mode").or_insert(json!("balance-rr"));
        }
        _ => {}
    }
    if let Some((device, id)) = vlan(name, iface) {
        row.insert("vlan-raw-device".into(), json!(device));
        row.insert("vlan-id".into(), json!(id));
        // Whether there is hardware below is only said about hardware.
        let hardware = ifaces.get(device).is_some_and(|raw| raw.kind == "eth");
        row.insert("exists".into(), if hardware { json!(1) } else { Value::Null });
    }
    row
}
