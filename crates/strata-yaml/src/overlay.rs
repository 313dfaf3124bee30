//! One tree laid over another, key by key; every value keeps the place it came from.

use std::collections::BTreeSet;

use crate::{Entry, Kind, Mapping, Node, Spanned};

/// `over` laid on `base`: mappings are merged by key, `null` removes a key, and everything else replaces what is there.
///
/// A list under a mapping with numbered keys (`net0`, `net3`) is taken by its numbers, so that one item of a list
/// can be changed.
pub fn overlay(base: &Node, over: &Node) -> Node {
    match (&base.kind, &over.kind) {
        (Kind::Mapping(below), Kind::Mapping(above)) => {
            Node { span: base.span, kind: Kind::Mapping(merge(below, above)) }
        }
        (Kind::List(items), Kind::Mapping(above)) => match prefix(above) {
            Some(prefix) => {
                let numbered = |(index, item): (usize, &Node)| Entry {
                    key: Spanned::new(format!("{prefix}{index}"), item.span),
                    value: item.clone(),
                };
                let below = Mapping { entries: items.iter().enumerate().map(numbered).collect() };
                Node { span: base.span, kind: Kind::Mapping(merge(&below, above)) }
            }
            None => over.clone(),
        },
        _ => over.clone(),
    }
}

fn merge(below: &Mapping, above: &Mapping) -> Mapping {
    let mut entries = Vec::with_capacity(below.entries.len() + above.entries.len());
    for entry in &below.entries {
        match above.get(&entry.key) {
            Some(value) if value.is_null() => {}
            Some(value) => {
                entries.push(Entry { key: entry.key.clone(), value: overlay(&entry.value, value) })
            }
            None => entries.push(entry.clone()),
        }
    }
    let known: BTreeSet<&str> = below.keys().collect();
    let new = above.entries.iter().filter(|entry| !known.contains(entry.key.value.as_str()));
    entries.extend(new.filter(|entry| !entry.value.is_null()).cloned());
    Mapping { entries }
}

/// The letters before the numbers, if every key is the same letters and a number.
fn prefix(mapping: &Mapping) -> Option<&str> {
    let letters = |key| -> Option<&str> {
        let key: &str = key;
        let letters = key.trim_end_matches(|c: char| c.is_ascii_digit());
        (!letters.is_empty() && letters.len() < key.len()).then_some(letters)
    };
    let mut keys = mapping.keys();
    let first = letters(keys.next()?)?;
    keys.all(|key| letters(key) == Some(first)).then_some(first)
}
