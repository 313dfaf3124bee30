//! What a new configuration would change on a node, and whether the node has to reboot for it.
//!
//! A plan must not ask the node: even a dry run ends a try that is open, needs an administrator's certificate and carries every
//! secret. So the rules are written down here, for each version of Talos (`rules.rs`), and what no rule knows may need a reboot.

mod difference;
mod rules;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::config::MachineConfig;
use crate::contract::Contract;
use crate::document::{Document, DocumentId};

use difference::{Difference, differences, shown};
use rules::{Rules, Touch};

/// Whether a node reboots for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RebootEffect {
    NoReboot,
    /// No rule knows.
    MayReboot,
    /// Up to 1.13 the node does it by itself when it gets the configuration; from 1.14 on somebody has to.
    Reboot,
}

/// One setting that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigChange {
    pub document: DocumentId,
    /// Such as `machine.kubelet.image`; empty if the whole document comes or goes.
    pub path: String,
    /// What it is now, in one line and without secrets; none if it is not there.
    pub before: Option<String>,
    /// What it will be.
    pub after: Option<String>,
    pub effect: RebootEffect,
    /// The node takes it without a reboot, but nothing comes of it before the next one. From 1.14 on the effect is
    /// [`RebootEffect::Reboot`] instead.
    pub pending: bool,
}

/// Everything that changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forecast {
    pub changes: Vec<ConfigChange>,
}

impl Forecast {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The strongest effect of all changes.
    pub fn effect(&self) -> RebootEffect {
        self.changes.iter().map(|change| change.effect).max().unwrap_or(RebootEffect::NoReboot)
    }

    /// The changes for which the node reboots, or may.
    pub fn because_of(&self) -> impl Iterator<Item = &ConfigChange> {
        self.changes.iter().filter(|change| change.effect > RebootEffect::NoReboot)
    }
}

impl fmt::Display for ConfigChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v1alpha1 = self.document.kind == crate::shape::V1ALPHA1;
        match (v1alpha1, self.path.as_str()) {
            (true, path) => f.write_str(path)?,
            (false, "") => write!(f, "{}", self.document)?,
            (false, path) => write!(f, "{}: {path}", self.document)?,
        }
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if before == after => write!(f, ": {before} → another {after}"),
            (Some(before), Some(after)) => write!(f, ": {before} → {after}"),
            (None, Some(after)) => write!(f, ": + {after}"),
            (Some(before), None) => write!(f, ": - {before}"),
            (None, None) => Ok(()),
        }
    }
}

/// Compares what a node of this version has with what it is to have.
pub fn forecast(talos: Contract, live: &MachineConfig, wanted: &MachineConfig) -> Forecast {
    let rules = Rules::new(talos, live, wanted);
    let mut changes = Vec::new();
    let same = |id: &DocumentId, config: &MachineConfig| -> Option<Document> {
        config.documents().iter().find(|document| document.id() == *id).cloned()
    };
    for document in live.documents() {
        let id = document.id();
        let found = match same(&id, wanted) {
            Some(other) => differences(document, &other),
            None => vec![Difference::whole(Some(shown(&document.to_redacted_value())), None)],
        };
        changes.extend(found.into_iter().map(|found| change(&rules, &id, found)));
    }
    for document in wanted.documents() {
        let id = document.id();
        if same(&id, live).is_none() {
            let found = Difference::whole(None, Some(shown(&document.to_redacted_value())));
            changes.push(change(&rules, &id, found));
        }
    }
    Forecast { changes }
}

fn change(rules: &Rules<'_>, id: &DocumentId, found: Difference) -> ConfigChange {
    let touch = Touch { document: id, keys: &found.keys, comes: found.before.is_none() };
    let (effect, pending) = rules.judge(&touch);
    ConfigChange {
        document: id.clone(),
        path: found.path,
        before: found.before,
        after: found.after,
        effect,
        pending,
    }
}
