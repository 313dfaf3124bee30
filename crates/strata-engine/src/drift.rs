//! Differences between what was last applied and what is live, that Strata did not make.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use strata_resource::{Address, FieldChange, ResourceGraph, drift_between};
use strata_state::{ReplayedState, StateDocument};

use crate::planner::ignored::split_ignored;
use crate::{IgnoredChange, Live, Sighting};

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Drift {
    pub address: Address,
    #[serde(flatten)]
    pub kind: DriftKind,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "drift", rename_all = "kebab-case")]
pub enum DriftKind {
    /// From what was applied to what is there.
    Changed {
        changes: Vec<FieldChange>,
    },
    Gone,
    /// Something else has its identity now.
    Taken {
        by: String,
    },
    Busy {
        what: String,
    },
    /// It does not answer.
    Unreachable {
        what: String,
    },
    /// Whether it is there cannot be seen.
    Unknown {
        what: String,
        hint: String,
    },
    /// An interrupted run left it unfinished; `apply` completes it.
    Unfinished,
    /// From what was applied to what is there, in fields that the source leaves to others.
    Ignored {
        changes: Vec<IgnoredChange>,
    },
}

impl DriftKind {
    /// Whether an apply brings it back. What is not ours, or does not answer, is left alone.
    pub fn is_corrected(&self) -> bool {
        match self {
            Self::Changed { .. } | Self::Gone | Self::Unfinished => true,
            Self::Taken { .. }
            | Self::Busy { .. }
            | Self::Unreachable { .. }
            | Self::Unknown { .. }
            | Self::Ignored { .. } => false,
        }
    }

    /// Whether it is no drift: the source leaves it to others.
    pub fn is_ignored(&self) -> bool {
        matches!(self, Self::Ignored { .. })
    }
}

/// Tells what the source leaves to others apart from the rest.
pub(crate) fn apart(found: Vec<Drift>, graph: &ResourceGraph) -> Vec<Drift> {
    let mut told = Vec::new();
    for Drift { address, kind } in found {
        let resource = graph.get(&address).filter(|resource| !resource.ignore.is_empty());
        let (Some(resource), DriftKind::Changed { changes }) = (resource, &kind) else {
            told.push(Drift { address, kind });
            continue;
        };
        let (changes, ignored) = split_ignored(resource, changes.clone());
        if !changes.is_empty() {
            told.push(Drift { address: address.clone(), kind: DriftKind::Changed { changes } });
        }
        if !ignored.is_empty() {
            told.push(Drift { address, kind: DriftKind::Ignored { changes: ignored } });
        }
    }
    told
}

/// Objects with those that they depend on, by their records.
pub(crate) fn with_needed(selected: &BTreeSet<Address>, state: &StateDocument) -> BTreeSet<Address> {
    let mut about = selected.clone();
    let mut next: Vec<&Address> = selected.iter().collect();
    while let Some(address) = next.pop() {
        let needed = state.resources.get(address).into_iter().flat_map(|record| &record.depends_on);
        next.extend(needed.filter(|needed| about.insert((*needed).clone())));
    }
    about
}

pub(crate) fn compare(state: &ReplayedState, live: &Live) -> Vec<Drift> {
    let mut found = Vec::new();
    for (address, recorded) in &state.document.resources {
        let kind = match live.current.get(address).unwrap_or(&Sighting::Absent) {
            Sighting::Absent => DriftKind::Gone,
            Sighting::Unmanaged(by) => DriftKind::Taken { by: by.to_string() },
            Sighting::Busy(what) => DriftKind::Busy { what: what.clone() },
            Sighting::Unreachable(what) => DriftKind::Unreachable { what: what.clone() },
            Sighting::Unknown(unseen) => {
                DriftKind::Unknown { what: unseen.what.clone(), hint: unseen.hint.clone() }
            }
            Sighting::Ours(_) if recorded.partial => DriftKind::Unfinished,
            Sighting::Ours(observed) => {
                let changes = drift_between(address.kind().rules(), &recorded.spec, &observed.spec);
                if changes.is_empty() {
                    continue;
                }
                DriftKind::Changed { changes }
            }
        };
        found.push(Drift { address: address.clone(), kind });
    }
    // What came of an open entry is not in the state yet, and may be there all the same.
    for entry in &state.open {
        if found.iter().all(|drift| drift.address != entry.address) {
            found.push(Drift { address: entry.address.clone(), kind: DriftKind::Unfinished });
        }
    }
    found
}

#[cfg(test)]
mod tests;
