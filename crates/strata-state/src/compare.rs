//! What differs between two versions of a state.

use std::collections::BTreeSet;

use strata_resource::{Address, FieldChange, FieldPath, Spec, Value};

use crate::{StateDocument, StateResource};

/// What became of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateDifference {
    Added,
    Removed,
    Changed(Vec<FieldChange>),
}

impl StateDifference {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed(_) => "changed",
        }
    }

    /// The fields that differ, by their paths.
    pub fn fields(&self) -> Vec<String> {
        match self {
            Self::Changed(changes) => changes.iter().map(|change| change.path.to_string()).collect(),
            _ => Vec::new(),
        }
    }
}

/// What differs, by address. A secret is only ever said to have changed.
pub fn compare_states(older: &StateDocument, newer: &StateDocument) -> Vec<(Address, StateDifference)> {
    let addresses: BTreeSet<&Address> = older.resources.keys().chain(newer.resources.keys()).collect();
    let mut found = Vec::new();
    for address in addresses {
        let difference = match (older.resources.get(address), newer.resources.get(address)) {
            (None, _) => StateDifference::Added,
            (_, None) => StateDifference::Removed,
            (Some(before), Some(after)) if before == after => continue,
            (Some(before), Some(after)) => StateDifference::Changed(changes(before, after)),
        };
        found.push((address.clone(), difference));
    }
    found
}

fn changes(before: &StateResource, after: &StateResource) -> Vec<FieldChange> {
    let mut found = Vec::new();
    fields(&FieldPath::root(), &before.spec, &after.spec, &mut found);
    fields(&FieldPath::root(), &before.facts, &after.facts, &mut found);
    found
}

fn fields(at: &FieldPath, before: &Spec, after: &Spec, found: &mut Vec<FieldChange>) {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        let path = at.child(name);
        match (before.get(name), after.get(name)) {
            (Some(Value::Map(before)), Some(Value::Map(after))) => fields(&path, before, after, found),
            (before, after) if before == after => {}
            (before, after) => {
                found.push(FieldChange { path, before: before.cloned(), after: after.cloned(), drift: false })
            }
        }
    }
}
