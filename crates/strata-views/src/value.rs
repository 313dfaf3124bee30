//! A value of a spec, for people. A secret is never more than the word.

use strata_resource::{FieldPath, Kind, Said, Shown, Spec, Unit, Value};

/// A value in its unit; of a secret no more than that it is one.
pub fn show(shown: &Shown, value: &Value, unit: Unit) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Int(int) => unit.show(*int),
        Value::Text(text) if text.is_empty() => "(empty)".to_owned(),
        Value::Text(text) => shortened(text),
        Value::List(list) => {
            let items: Vec<String> = list.iter().map(|item| show(shown, item, unit)).collect();
            if items.is_empty() { "(none)".to_owned() } else { items.join(", ") }
        }
        Value::Map(map) if map.is_empty() => "(empty)".to_owned(),
        Value::Map(map) => parts(shown, map),
        Value::Secret(_) => "(secret)".to_owned(),
        Value::Input { address, output } => format!("(known after `{address}`: {output})"),
        Value::Unknown => "(cannot be read back)".to_owned(),
    }
}

/// A map without rules of its own, such as a firewall rule.
fn parts(shown: &Shown, map: &Spec) -> String {
    let mut fields: Vec<_> = map.iter().filter(|(_, value)| **value != Value::Bool(true)).collect();
    fields.sort_by_key(|(key, _)| shown.part_place(key));
    let part = |(key, value): (&String, &Value)| match shown.said(key) {
        Said::BareInLists => show(shown, value, Unit::None),
        _ => format!("{key} {}", show(shown, value, Unit::None)),
    };
    fields.into_iter().map(part).collect::<Vec<_>>().join(" ")
}

fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(MOST).collect();
    if cut.len() < text.trim_end().len() { format!("{cut}…") } else { cut }
}

/// The fields of a spec in rows of path and value: one row for each slot, one for each group of plain fields.
pub fn rows(kind: Kind, spec: &Spec) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut fields: Vec<_> = spec.iter().collect();
    fields.sort_by_key(|(key, _)| kind.table().shown.place(key));
    for (key, value) in fields {
        push_rows(kind, &FieldPath::root().child(key), value, &mut rows);
    }
    rows
}

fn push_rows(kind: Kind, path: &FieldPath, value: &Value, rows: &mut Vec<(String, String)>) {
    let shown = &kind.table().shown;
    match value {
        Value::Map(map) if map.values().any(|value| value.as_map().is_some()) => {
            for (key, value) in map {
                push_rows(kind, &path.child(key), value, rows);
            }
        }
        Value::Map(map) => rows.push((path.to_string(), group(kind, path, map))),
        Value::List(list) if list.iter().any(|item| item.as_map().is_some()) => {
            for (index, item) in list.iter().enumerate() {
                rows.push((format!("{path}[{index}]"), show(shown, item, Unit::None)));
            }
        }
        other => rows.push((path.to_string(), show(shown, other, kind.rules().rule(path).unit))),
    }
}

/// `64 GiB on local-lvm, ssd`; yes and no are said by the name alone.
pub fn group(kind: Kind, path: &FieldPath, map: &Spec) -> String {
    let (rules, shown) = (kind.rules(), &kind.table().shown);
    let mut fields: Vec<_> = map.iter().collect();
    fields.sort_by_key(|(key, _)| shown.part_place(key));
    let mut text = String::new();
    for (key, value) in fields {
        let said = show(shown, value, rules.rule(&path.child(key)).unit);
        let (joint, part) = match (shown.said(key), value) {
            (_, Value::Bool(true)) => (", ", key.clone()),
            (_, Value::Bool(false)) => (", ", format!("no {key}")),
            (Said::Bare, _) => (", ", said),
            (Said::On, _) => (" ", format!("on {said}")),
            _ => (", ", format!("{key} {said}")),
        };
        if !text.is_empty() {
            text.push_str(joint);
        }
        text.push_str(&part);
    }
    text
}
