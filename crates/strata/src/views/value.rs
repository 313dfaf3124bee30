//! A value of a spec, for people. A secret is never more than the word.

use strata_resource::{FieldPath, KindRules, Spec, Unit, Value};

/// Fields that say nothing new to a reader of a plan: the headline has them.
const HIDDEN: [&str; 10] =
    ["mark", "timeouts", "vmid", "node", "files", "volume", "storage", "shared", "content", "template"];

/// What a reader looks for first; the rest follows by name.
const ORDER: [&str; 17] = [
    "name",
    "clone",
    "image",
    "url",
    "checksum",
    "cpu",
    "memory",
    "disks",
    "rootfs",
    "mounts",
    "efidisk",
    "tpm",
    "cdroms",
    "networks",
    "cloudinit",
    "firewall",
    "power",
];

/// The same within a slot.
const PART_ORDER: [&str; 13] = [
    "size", "storage", "model", "mac", "bridge", "vlan", "ip", "cidr", "gateway", "type", "action", "proto",
    "dport",
];

fn place(order: &[&str], key: &str) -> usize {
    order.iter().position(|known| *known == key).unwrap_or(order.len())
}

pub(crate) fn show(value: &Value, unit: Unit) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Int(int) => unit.show(*int),
        Value::Text(text) if text.is_empty() => "(empty)".to_owned(),
        Value::Text(text) => shortened(text),
        Value::List(list) => {
            let items: Vec<String> = list.iter().map(|item| show(item, unit)).collect();
            if items.is_empty() { "(none)".to_owned() } else { items.join(", ") }
        }
        Value::Map(map) if map.is_empty() => "(empty)".to_owned(),
        Value::Map(map) => parts(map),
        Value::Secret(_) => "(secret)".to_owned(),
        Value::Input { address, output } => format!("(known after `{address}`: {output})"),
        Value::Unknown => "(cannot be read back)".to_owned(),
    }
}

/// A map without rules of its own, such as a firewall rule.
fn parts(map: &Spec) -> String {
    let mut fields: Vec<_> = map.iter().filter(|(_, value)| **value != Value::Bool(true)).collect();
    fields.sort_by_key(|(key, _)| place(&PART_ORDER, key));
    let part = |(key, value): (&String, &Value)| match key.as_str() {
        "type" | "action" | "proto" => show(value, Unit::None),
        _ => format!("{key} {}", show(value, Unit::None)),
    };
    fields.into_iter().map(part).collect::<Vec<_>>().join(" ")
}

fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(MOST).collect();
    if cut.len() < text.trim_end().len() { format!("{cut}…") } else { cut }
}

/// The fields of a spec in rows of path and value: one row for each slot, one for each group of plain fields. `hides` those that
/// say nothing new of a guest or a volume.
pub(crate) fn rows(rules: &KindRules, spec: &Spec, hides: bool) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut fields: Vec<_> =
        spec.iter().filter(|(key, _)| !hides || !HIDDEN.contains(&key.as_str())).collect();
    fields.sort_by_key(|(key, _)| place(&ORDER, key));
    for (key, value) in fields {
        push_rows(rules, &FieldPath::root().child(key), value, &mut rows);
    }
    rows
}

fn push_rows(rules: &KindRules, path: &FieldPath, value: &Value, rows: &mut Vec<(String, String)>) {
    match value {
        Value::Map(map) if map.values().any(|value| value.as_map().is_some()) => {
            for (key, value) in map {
                push_rows(rules, &path.child(key), value, rows);
            }
        }
        Value::Map(map) => rows.push((path.to_string(), group(rules, path, map))),
        Value::List(list) if list.iter().any(|item| item.as_map().is_some()) => {
            for (index, item) in list.iter().enumerate() {
                rows.push((format!("{path}[{index}]"), show(item, Unit::None)));
            }
        }
        other => rows.push((path.to_string(), show(other, rules.rule(path).unit))),
    }
}

/// `64 GiB on local-lvm, ssd`; yes and no are said by the name alone.
pub(crate) fn group(rules: &KindRules, path: &FieldPath, map: &Spec) -> String {
    let mut fields: Vec<_> = map.iter().collect();
    fields.sort_by_key(|(key, _)| place(&PART_ORDER, key));
    let mut text = String::new();
    for (key, value) in fields {
        let shown = show(value, rules.rule(&path.child(key)).unit);
        let (joint, part) = match (key.as_str(), value) {
            (_, Value::Bool(true)) => (", ", key.clone()),
            (_, Value::Bool(false)) => (", ", format!("no {key}")),
            ("size" | "model" | "mac" | "ip" | "cidr", _) => (", ", shown),
            ("storage" | "bridge", _) => (" ", format!("on {shown}")),
            _ => (", ", format!("{key} {shown}")),
        };
        if !text.is_empty() {
            text.push_str(joint);
        }
        text.push_str(&part);
    }
    text
}
