//! The texts that a plan or a state marks as sensitive somewhere, so that they are told nowhere.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use strata_secret::REDACTED;

/// Shorter ones would make a text unreadable, and hide nothing.
const SHORTEST: usize = 4;

/// Every text that a plan marks.
pub(super) fn texts(plan: &Json) -> Vec<String> {
    let mut found = BTreeSet::new();
    for list in ["resource_changes", "resource_drift"] {
        for change in plan[list].as_array().into_iter().flatten() {
            of_change(&change["change"], &mut found);
        }
    }
    for change in plan["output_changes"].as_object().into_iter().flat_map(|outputs| outputs.values()) {
        of_change(change, &mut found);
    }
    let declared = &plan["configuration"]["root_module"]["variables"];
    for (name, variable) in plan["variables"].as_object().into_iter().flatten() {
        if declared[name.as_str()]["sensitive"].as_bool() == Some(true) {
            all(&variable["value"], &mut found);
        }
    }
    longest_first(found)
}

/// Every text that a state marks: in its resources and its outputs.
pub(crate) fn of_state(values: &Json, resources: &[&Json]) -> Vec<String> {
    let mut found = BTreeSet::new();
    for resource in resources {
        below(&resource["values"], &resource["sensitive_values"], &mut found);
    }
    for output in values["outputs"].as_object().into_iter().flat_map(|outputs| outputs.values()) {
        below(&output["value"], &output["sensitive"], &mut found);
    }
    longest_first(found)
}

/// One may be a part of another.
fn longest_first(found: BTreeSet<String>) -> Vec<String> {
    let mut found: Vec<String> = found.into_iter().collect();
    found.sort_by_key(|text| std::cmp::Reverse(text.len()));
    found
}

/// The text without any of them.
pub(crate) fn without(text: &str, marked: &[String]) -> String {
    marked.iter().fold(text.to_owned(), |text, secret| {
        if text.contains(secret.as_str()) { text.replace(secret.as_str(), REDACTED) } else { text }
    })
}

fn of_change(change: &Json, found: &mut BTreeSet<String>) {
    for (value, mask) in [("before", "before_sensitive"), ("after", "after_sensitive")] {
        below(&change[value], &change[mask], found);
    }
}

fn below(value: &Json, mask: &Json, found: &mut BTreeSet<String>) {
    match mask {
        Json::Bool(true) => all(value, found),
        Json::Object(fields) => {
            fields.iter().for_each(|(name, mask)| below(&value[name.as_str()], mask, found))
        }
        Json::Array(items) => items.iter().enumerate().for_each(|(at, mask)| below(&value[at], mask, found)),
        _ => {}
    }
}

fn all(value: &Json, found: &mut BTreeSet<String>) {
    match value {
        Json::String(text) if text.len() >= SHORTEST => {
            found.insert(text.clone());
        }
        Json::Object(fields) => fields.values().for_each(|inner| all(inner, found)),
        Json::Array(items) => items.iter().for_each(|inner| all(inner, found)),
        _ => {}
    }
}
