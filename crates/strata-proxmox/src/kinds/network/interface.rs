//! One interface: between a spec, the server's rows, and requests.

use std::collections::BTreeMap;

use strata_resource::{FieldChange, Spec, Value, diff_specs};

use crate::api::Params;
use crate::datacenter::{Row, row_text, spec_text, text_of};

/// Keys that say what is so at the moment, or say again what others say.
const NOISE: [&str; 17] = [
    "iface",
    "active",
    "exists",
    "priority",
    "families",
    "method",
    "method6",
    "address",
    "netmask",
    "address6",
    "netmask6",
    "altnames",
    "link-type",
    "uplink-id",
    "bridge_stp",
    "bridge_fd",
    "bond_miimon",
];

/// Keys with fields of their own: key, field.
const TEXTS: [(&str, &str); 7] = [
    ("type", "type"),
    ("cidr", "cidr"),
    ("gateway", "gateway"),
    ("cidr6", "cidr6"),
    ("gateway6", "gateway6"),
    ("vlan-raw-device", "device"),
    ("bond_mode", "mode"),
];
const NUMBERS: [(&str, &str); 2] = [("vlan-id", "tag"), ("mtu", "mtu")];
const FLAGS: [(&str, &str); 2] = [("bridge_vlan_aware", "vlan_aware"), ("autostart", "autostart")];
const PORTS: [&str; 2] = ["bridge_ports", "slaves"];

/// A row in canonical form.
pub(super) fn read(row: &Row) -> Spec {
    let mut spec = Spec::new();
    let filled = |key: &str| row_text(row, key).filter(|text| !text.is_empty());
    for (key, field) in TEXTS {
        spec.extend(filled(key).map(|text| (field.to_owned(), Value::Text(text))));
    }
    for (key, field) in NUMBERS {
        let number = filled(key).and_then(|text| text.parse().ok());
        spec.extend(number.map(|number| (field.to_owned(), Value::Int(number))));
    }
    for (key, field) in FLAGS {
        spec.extend(filled(key).map(|text| (field.to_owned(), Value::Bool(text == "1"))));
    }
    let ports: Vec<String> = PORTS.iter().filter_map(|key| filled(key)).collect();
    let ports = ports.iter().flat_map(|list| list.split([' ', ',', ';'])).filter(|port| !port.is_empty());
    let mut ports: Vec<&str> = ports.collect();
    ports.sort_unstable();
    if !ports.is_empty() {
        spec.insert("ports".to_owned(), Value::List(ports.into_iter().map(Value::text).collect()));
    }
    if let Some(comment) =
        filled("comments").map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    {
        spec.insert("comment".to_owned(), Value::Text(comment));
    }
    let known = |key: &str| {
        NOISE.contains(&key)
            || PORTS.contains(&key)
            || matches!(key, "comments" | "comments6")
            || TEXTS.iter().chain(&NUMBERS).chain(&FLAGS).any(|(other, _)| *other == key)
    };
    let others: Spec = row
        .iter()
        .filter(|(key, _)| !known(key))
        .filter_map(|(key, value)| Some((key.clone(), Value::Text(text_of(value)?))))
        .collect();
    if !others.is_empty() {
        spec.insert("options".to_owned(), Value::Map(others));
    }
    spec
}

/// What is set about an interface, to see whether somebody changed it.
pub(super) fn settings(row: Option<&Row>) -> Option<Spec> {
    row.map(read)
}

/// The request that makes it.
pub(super) fn create(name: &str, spec: &Spec) -> Params {
    let mut params = Params::new().with("iface", name);
    for field in spec.keys() {
        put(&mut params, spec, field);
    }
    params
}

/// The request that changes it. Which addresses an interface has follows from those of this very request, so they are always sent; what
/// is not ours about them, as it is.
pub(super) fn update(spec: &Spec, live: &Spec, changes: &[&FieldChange]) -> Params {
    let mut params = Params::new().with("type", spec_text(spec, "type"));
    let mut delete: Vec<String> = Vec::new();
    let removed = |field: &str| {
        changes.iter().any(|change| {
            let keys = change.path.keys();
            keys.len() == 3 && keys[2] == field && change.after.is_none()
        })
    };
    for field in ["cidr", "gateway", "cidr6", "gateway6"] {
        if spec.contains_key(field) {
            put(&mut params, spec, field);
        } else if !removed(field) {
            put(&mut params, live, field);
        }
    }
    for change in changes {
        let keys = change.path.keys();
        match (keys.get(2).map(String::as_str), keys.get(3)) {
            (Some("options"), Some(option)) => match change.after.as_ref().and_then(Value::as_text) {
                Some(text) => params.set(option, text),
                None => delete.push(option.clone()),
            },
            (Some("type") | None, _) => {}
            (Some(field), _) if change.after.is_none() => delete.push(key_of(field, spec).to_owned()),
            (Some(field), _) => put(&mut params, spec, field),
        }
    }
    if !delete.is_empty() {
        params.set("delete", delete.join(","));
    }
    params
}

fn key_of<'a>(field: &'a str, spec: &Spec) -> &'a str {
    match field {
        "ports" if spec_text(spec, "type") == "bond" => "slaves",
        "ports" => "bridge_ports",
        "comment" => "comments",
        _ => TEXTS
            .iter()
            .chain(&NUMBERS)
            .chain(&FLAGS)
            .find(|(_, own)| *own == field)
            .map_or(field, |(key, _)| key),
    }
}

fn put(params: &mut Params, spec: &Spec, field: &str) {
    let key = key_of(field, spec);
    match spec.get(field) {
        Some(Value::Text(text)) => params.set(key, text),
        Some(Value::Int(int)) => params.set(key, int),
        Some(Value::Bool(on)) if !matches!(field, "adopt" | "may_cut") => params.set(key, u8::from(*on)),
        Some(Value::List(items)) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_text).collect();
            params.set(key, texts.join(" "));
        }
        Some(Value::Map(options)) => {
            for (option, value) in options {
                params.set(option, value.as_text().unwrap_or_default());
            }
        }
        _ => {}
    }
}

/// How many interfaces it stands on, one above the other.
pub(super) fn depth(name: &str, all: &BTreeMap<&str, &Spec>) -> usize {
    fn below(name: &str, all: &BTreeMap<&str, &Spec>, left: usize) -> usize {
        let Some(spec) = all.get(name).filter(|_| left > 0) else { return 0 };
        stands_on(name, spec).iter().map(|port| 1 + below(port, all, left - 1)).max().unwrap_or(0)
    }
    below(name, all, 8)
}

/// The ports of a bridge, the slaves of a bond, what a VLAN is on.
pub(super) fn stands_on(name: &str, spec: &Spec) -> Vec<String> {
    let ports = spec.get("ports").and_then(Value::as_list).into_iter().flatten().filter_map(Value::as_text);
    let device = spec.get("device").and_then(Value::as_text);
    let named = name.rsplit_once('.').map(|(device, _)| device);
    ports.chain(device.or(named)).map(str::to_owned).collect()
}

/// The same, and what Open vSwitch writes elsewhere: whatever must work for the interface to work.
pub(super) fn carried_by(name: &str, spec: &Spec) -> Vec<String> {
    let option = |key: &str| spec.get("options")?.as_map()?.get(key)?.as_text();
    let inner = spec_text(spec, "type") == "OVSIntPort";
    let others = [option("ovs_ports"), option("ovs_bonds"), option("ovs_bridge").filter(|_| inner)];
    let others = others.into_iter().flatten().flat_map(|list| list.split([' ', ',', ';']));
    let mut below = stands_on(name, spec);
    below.extend(others.filter(|port| !port.is_empty()).map(str::to_owned));
    below
}

/// What decides whether a host can be reached through an interface.
pub(super) const REACH: [&str; 5] = ["cidr", "gateway", "cidr6", "gateway6", "ports"];

/// One of these, in a form that can be compared.
pub(super) fn reach(spec: &Spec, field: &str) -> Option<Vec<String>> {
    match spec.get(field)? {
        Value::List(items) => {
            let mut texts: Vec<String> = items.iter().filter_map(Value::as_text).map(str::to_owned).collect();
            texts.sort();
            Some(texts).filter(|texts| !texts.is_empty())
        }
        other => other.as_text().map(|text| vec![text.to_owned()]),
    }
}

/// Whether an interface is what a spec says.
pub(super) fn is_just_that(spec: &Spec, live: &Spec) -> bool {
    let whole = |interface: &Spec| -> Spec {
        let slot = Value::Map([("x".to_owned(), Value::Map(interface.clone()))].into());
        [("interfaces".to_owned(), slot)].into()
    };
    diff_specs(super::KIND.rules(), &whole(spec), None, &whole(live)).is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(json: serde_json::Value) -> Spec {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn reads_a_row_of_the_real_server() {
        let row = json!({"bridge_stp": "off", "families": ["inet"], "priority": 6, "bridge_vids": "2-4094", "bridge_vlan_aware": 1,
            "method": "static", "mtu": "1400", "type": "bridge", "comments": "cmt\n", "method6": "manual", "bridge_fd": "0",
            "bridge_ports": "eno2 eno1", "autostart": 1, "cidr": "10.9.0.1/24", "address": "10.9.0.1", "netmask": "24"});
        let serde_json::Value::Object(row) = row else { unreachable!() };
        assert_eq!(
            serde_json::to_value(read(&row)).unwrap(),
            json!({"type": "bridge", "cidr": "10.9.0.1/24", "mtu": 1400, "vlan_aware": true, "autostart": true,
                "ports": ["eno1", "eno2"], "comment": "cmt", "options": {"bridge_vids": "2-4094"}})
        );
    }

    #[test]
    fn an_address_that_is_not_ours_is_sent_as_it_is() {
        let own = spec(json!({"type": "bridge", "mtu": 1500}));
        let live =
            spec(json!({"type": "bridge", "mtu": 1400, "cidr": "192.0.2.11/24", "gateway": "192.0.2.1"}));
        let change = FieldChange {
            path: strata_resource::FieldPath::dotted("interfaces.vmbr0.mtu"),
            before: Some(Value::Int(1400)),
            after: Some(Value::Int(1500)),
            drift: false,
        };
        let params = update(&own, &live, &[&change]);
        assert_eq!(params.encode(), "type=bridge&cidr=192.0.2.11%2F24&gateway=192.0.2.1&mtu=1500");
    }

    #[test]
    fn what_stands_on_others_comes_after_them() {
        let (bond, vlan, bridge) = (
            spec(json!({"type": "bond", "ports": ["eno1", "eno2"]})),
            spec(json!({"type": "vlan"})),
            spec(json!({"type": "bridge", "ports": ["bond0.50"]})),
        );
        let all = BTreeMap::from([("bond0", &bond), ("bond0.50", &vlan), ("vmbr1", &bridge)]);
        assert!(depth("bond0", &all) < depth("bond0.50", &all));
        assert!(depth("bond0.50", &all) < depth("vmbr1", &all));
    }
}
