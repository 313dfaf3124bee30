//! What a parameter is here beside what the schema says of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use strata_sim_proxmox::Facts;

/// The name under which the schema has a numbered parameter: `net[n]` for `net0`.
fn numbered(name: &str) -> Option<String> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem.len() < name.len()).then(|| format!("{stem}[n]"))
}

/// Every difference between two sets of parameters, each a line that begins with a name.
pub(crate) fn parameters(
    here: &BTreeMap<String, Facts>,
    there: &BTreeMap<String, Value>,
) -> BTreeSet<String> {
    let mut differences = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for (name, facts) in here {
        let series = numbered(name);
        let own = there.get_key_value(name);
        let found = own.or_else(|| there.get_key_value(series.as_deref()?));
        // Other names of a key are no keys of their own.
        let Some((key, said)) = found.filter(|(_, said)| said.get("alias").is_none()) else {
            differences.insert(format!("{name}: the schema has no such parameter"));
            continue;
        };
        seen.insert(key.clone());
        for line in one(facts, said) {
            differences.insert(format!("{key}{line}"));
        }
    }
    for name in there.keys().filter(|name| !seen.contains(*name) && there[*name].get("alias").is_none()) {
        differences.insert(format!("{name}: missing here"));
    }
    differences
}

/// The differences of one parameter, each with what comes after its name.
fn one(here: &Facts, there: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut differ = |what: &str, here: String, there: String| {
        if here != there {
            lines.push(format!(": {what} is {there} in the schema and {here} here"));
        }
    };
    let none = || "nothing".to_owned();
    let text = |key: &str| there.get(key).map_or_else(none, |value| value.to_string().replace('"', ""));
    // Some limits are texts in the schema.
    let read = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let number = |key: &str| there.get(key).and_then(read).map_or_else(none, |n| n.to_string());
    let said = |value: Option<f64>| value.map_or_else(none, |n| n.to_string());
    let length = |value: Option<usize>| value.map_or_else(none, |n| n.to_string());
    differ("type", here.kind.to_owned(), text("type"));
    differ("optional", here.optional.to_string(), (there["optional"] == 1).to_string());
    differ("minimum", said(here.minimum), number("minimum"));
    differ("maximum", said(here.maximum), number("maximum"));
    differ("minLength", length(here.min_length), number("minLength"));
    differ("maxLength", length(here.max_length), number("maxLength"));
    differ("requires", here.requires.map_or_else(none, str::to_owned), text("requires"));
    let values = there["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    differ("enum", sorted(here.values.iter().copied()), sorted(values));
    let checks = there.get("format").is_some_and(Value::is_string) || there.get("pattern").is_some();
    if checks && !here.checked && here.values.is_empty() {
        lines.push(format!(": not checked, format {} pattern {}", text("format"), text("pattern")));
    }
    if let Some(keys) = there["format"].as_object() {
        let keys: BTreeMap<String, Value> = keys.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        match &here.keys {
            Some(own) => lines.extend(parameters(own, &keys).into_iter().map(|line| format!(".{line}"))),
            None => lines.push(": a property string that is not checked".to_owned()),
        }
    }
    if let (Some(item), Some(said)) = (&here.item, there.get("items")) {
        lines.extend(
            one(item, said).into_iter().filter(|line| !line.contains("optional")).map(|l| format!("[]{l}")),
        );
    }
    lines
}

fn sorted<'t>(values: impl Iterator<Item = &'t str>) -> String {
    let mut all: Vec<&str> = values.collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}
