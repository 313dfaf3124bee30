//! Compares two versions of a state by resource: which came, went and changed. Values are compared and never shown.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct StateDiff {
    pub(crate) added: Vec<String>,
    pub(crate) removed: Vec<String>,
    pub(crate) changed: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this version lists no resources: it may be encrypted")]
pub(crate) struct NotComparable;

/// What is compared of a state: a digest for each address.
pub(crate) struct Inventory(BTreeMap<String, [u8; 32]>);

impl Inventory {
    /// Reads OpenTofu's states and ours. Values are looked at one resource at a time.
    pub(crate) fn read(state: &[u8]) -> Result<Self, NotComparable> {
        let outer: BTreeMap<&str, &RawValue> = serde_json::from_slice(state).map_err(|_| NotComparable)?;
        let resources = outer.get("resources").ok_or(NotComparable)?.get();
        let mut found = BTreeMap::new();
        if resources.trim_start().starts_with('[') {
            let resources: Vec<&RawValue> = serde_json::from_str(resources).map_err(|_| NotComparable)?;
            for resource in resources {
                let resource = serde_json::from_str(resource.get()).map_err(|_| NotComparable)?;
                tofu_instances(&resource, &mut found);
            }
        } else {
            let resources: BTreeMap<String, &RawValue> =
                serde_json::from_str(resources).map_err(|_| NotComparable)?;
            for (address, resource) in resources {
                let resource = serde_json::from_str(resource.get()).map_err(|_| NotComparable)?;
                found.insert(address, digest(&[&resource]));
            }
        }
        let outputs = outer.get("outputs").map_or("{}", |outputs| outputs.get());
        let outputs: BTreeMap<String, Value> = serde_json::from_str(outputs).map_err(|_| NotComparable)?;
        for (name, output) in outputs {
            found.insert(format!("output.{name}"), digest(&[&output]));
        }
        Ok(Self(found))
    }

    pub(crate) fn compare(&self, newer: &Self) -> StateDiff {
        let missing = |here: &Self, there: &Self| {
            here.0.keys().filter(|address| !there.0.contains_key(*address)).cloned().collect()
        };
        let differs = |(address, digest): &(&String, &[u8; 32])| {
            newer.0.get(*address).is_some_and(|newer| newer != *digest)
        };
        StateDiff {
            added: missing(newer, self),
            removed: missing(self, newer),
            changed: self.0.iter().filter(differs).map(|(address, _)| address.clone()).collect(),
        }
    }
}

/// `module.a.data.type.name["key"]`, as OpenTofu writes addresses.
fn tofu_instances(resource: &Value, found: &mut BTreeMap<String, [u8; 32]>) {
    let text = |key: &str| resource.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut address = String::new();
    if !text("module").is_empty() {
        address = format!("{}.", text("module"));
    }
    if text("mode") == "data" {
        address.push_str("data.");
    }
    address = format!("{address}{}.{}", text("type"), text("name"));
    let instances = resource.get("instances").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for instance in instances {
        let mut address = address.clone();
        if let Some(key) = instance.get("index_key") {
            address = format!("{address}[{key}]");
        }
        if let Some(deposed) = instance.get("deposed").and_then(Value::as_str) {
            address = format!("{address} (deposed {deposed})");
        }
        let provider = resource.get("provider").unwrap_or(&Value::Null);
        found.insert(address, digest(&[provider, instance]));
    }
}

fn digest(values: &[&Value]) -> [u8; 32] {
    let mut digest = Sha256::new();
    values.iter().for_each(|value| feed(value, &mut digest));
    digest.finalize().into()
}

/// The order of keys means nothing.
fn feed(value: &Value, digest: &mut Sha256) {
    match value {
        Value::Object(map) => {
            digest.update(b"{");
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            for key in keys {
                feed(&Value::String(key.clone()), digest);
                feed(&map[key], digest);
            }
            digest.update(b"}");
        }
        Value::Array(items) => {
            digest.update(b"[");
            items.iter().for_each(|item| feed(item, digest));
            digest.update(b"]");
        }
        scalar => {
            digest.update(scalar.to_string().as_bytes());
            digest.update(b",");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(older: &str, newer: &str) -> StateDiff {
        let read = |text: &str| Inventory::read(text.as_bytes()).unwrap();
        read(older).compare(&read(newer))
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn states_of_tofu_are_compared_by_instance() {
        let state = |instances: &str, outputs: &str| {
            format!(
                r#"{{"version":4,"serial":1,"lineage":"l","outputs":{outputs},"resources":[{{"module":"module.m","mode":"managed",
                "type":"t","name":"n","provider":"p","instances":[{instances}]}},{{"mode":"data","type":"d","name":"x",
                "instances":[{{"attributes":{{}}}}]}}]}}"#
            )
        };
        let older =
            state(r#"{"index_key":"a","attributes":{"x":1,"y":2}},{"index_key":0}"#, r#"{"o":{"value":1}}"#);
        let newer =
            state(r#"{"index_key":"a","attributes":{"y":2,"x":3}},{"index_key":1}"#, r#"{"o":{"value":2}}"#);
        assert_eq!(diff(&older, &older), StateDiff::default());
        assert_eq!(
            diff(&older, &newer),
            StateDiff {
                added: names(&["module.m.t.n[1]"]),
                removed: names(&["module.m.t.n[0]"]),
                changed: names(&["module.m.t.n[\"a\"]", "output.o"]),
            }
        );
        // The order of keys means nothing.
        let turned =
            state(r#"{"attributes":{"y":2,"x":1},"index_key":"a"},{"index_key":0}"#, r#"{"o":{"value":1}}"#);
        assert_eq!(diff(&older, &turned), StateDiff::default());
    }

    #[test]
    fn our_states_are_compared_by_address() {
        let older = r#"{"format":1,"resources":{"web/vm/a":{"spec":{"cores":1}},"web/vm/b":{}}}"#;
        let newer = r#"{"format":1,"resources":{"web/vm/a":{"spec":{"cores":2}},"web/vm/c":{}}}"#;
        let found = diff(older, newer);
        assert_eq!(
            (found.added, found.removed, found.changed),
            (names(&["web/vm/c"]), names(&["web/vm/b"]), names(&["web/vm/a"]))
        );
    }

    #[test]
    fn an_encrypted_state_cannot_be_compared() {
        assert!(Inventory::read(br#"{"serial":1,"encrypted_data":"x"}"#).is_err());
        assert!(Inventory::read(b"nonsense").is_err());
    }
}
