//! `snapshotBefore`: what is made of a guest directly before a change that it may not survive as it was.
//!
//! A restart and a change of disks have a snapshot before them. A replacement takes all snapshots with it: before that the guest is backed up. Both carry
//! the ownership mark, and a name or notes that say that Strata made them before a change; of these only the number that was asked for stays.

use sha2::{Digest, Sha256};
use strata_engine::Operation;
use strata_resource::{Spec, Value, stored_spec};

use crate::acts::Snapshot;
use crate::codec::LiveConfig;

/// What a snapshot of ours before a change is called; its number and the digest of its step follow.
const PREFIX: &str = "strata-before-";
/// How the notes of a backup of ours before a replacement begin; who the guest was follows.
const NOTES: &str = "before the replacement of ";
/// The snapshot that a guest went on from when its last change was done.
pub(crate) const FACT: &str = "before";

/// Changes of these are changes of disks.
const DISKS: [&str; 5] = ["disks", "mounts", "rootfs", "efidisk", "tpm"];

/// What the source asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapshotBefore {
    restart: bool,
    replace: bool,
    disks: bool,
    pub(crate) keep: usize,
    pub(crate) storage: Option<String>,
}

impl SnapshotBefore {
    pub(crate) fn of(spec: &Spec) -> Option<Self> {
        let written = spec.get("snapshot_before")?.as_map()?;
        let changes = written.get("changes").and_then(Value::as_list).unwrap_or_default();
        let has = |name: &str| changes.iter().any(|change| change.as_text() == Some(name));
        let keep = written.get("keep").and_then(Value::as_int).and_then(|keep| usize::try_from(keep).ok());
        Some(Self {
            restart: has("restart"),
            replace: has("replace"),
            disks: has("disks"),
            keep: keep.unwrap_or(1).max(1),
            storage: written.get("storage").and_then(Value::as_text).map(str::to_owned),
        })
    }

    /// Whether it asks for snapshots at all.
    pub(crate) fn takes_snapshots(&self) -> bool {
        self.restart || self.disks
    }

    /// Whether it asks for a backup before a replacement.
    pub(crate) fn backs_up(&self) -> bool {
        self.replace
    }

    /// What an update does that a snapshot is asked for. A guest that was never whole has nothing to keep.
    pub(crate) fn reason(&self, operation: &Operation) -> Option<&'static str> {
        if operation.recorded.as_ref().is_some_and(|recorded| recorded.partial) {
            return None;
        }
        let disks = DISKS.iter().any(|field| operation.touches(field));
        match (self.restart && operation.restart, self.disks && disks) {
            (true, _) => Some("its restart"),
            (false, true) => Some("its disks change"),
            (false, false) => None,
        }
    }
}

/// The same for each run that tries the same step: what the object is to become.
fn step_digest(operation: &Operation) -> String {
    let spec = serde_json::to_vec(&stored_spec(&operation.spec)).unwrap_or_default();
    let mut hash = Sha256::new();
    hash.update(operation.address.to_string());
    hash.update([0]);
    hash.update(spec);
    hex::encode(&hash.finalize()[..4])
}

fn number(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

/// The snapshots that Strata took of this guest before changes, oldest first.
pub(crate) fn ours(all: &[Snapshot]) -> Vec<&Snapshot> {
    let mut ours: Vec<&Snapshot> = all.iter().filter(|one| one.ours && number(&one.name).is_some()).collect();
    ours.sort_by_key(|one| (number(&one.name), one.created));
    ours
}

/// The snapshot that an interrupted run took before this very step: the guest goes on from it, and the step was never done.
pub(crate) fn taken_already(operation: &Operation, all: &[Snapshot], live: &LiveConfig) -> Option<String> {
    let done = operation.recorded.as_ref().and_then(|recorded| recorded.facts.get(FACT)?.as_text());
    let digest = format!("-{}", step_digest(operation));
    let is_it = |one: &&Snapshot| {
        one.unfinished.is_none()
            && one.name.ends_with(&digest)
            && live.get("parent") == Some(one.name.as_str())
            && done != Some(one.name.as_str())
    };
    ours(all).into_iter().find(is_it).map(|one| one.name.clone())
}

/// Names of others are never taken: a number that is in use by anybody is passed.
pub(crate) fn next_name(operation: &Operation, all: &[Snapshot]) -> String {
    let last = all.iter().filter_map(|one| number(&one.name)).max().unwrap_or_default();
    format!("{PREFIX}{}-{}", last.saturating_add(1), step_digest(operation))
}

/// Those that are one too many, once `now` is there beside them. Never `now`, and never one of others.
pub(crate) fn too_many(all: &[Snapshot], now: Option<&str>, keep: usize) -> Vec<String> {
    let older: Vec<&Snapshot> = ours(all).into_iter().filter(|one| Some(one.name.as_str()) != now).collect();
    let stay = keep.saturating_sub(1);
    older.iter().take(older.len().saturating_sub(stay)).map(|one| one.name.clone()).collect()
}

/// The fact that a guest goes on from a snapshot of ours.
pub(crate) fn fact(config: &LiveConfig) -> Option<Value> {
    config.get("parent").filter(|name| number(name).is_some()).map(Value::text)
}

/// What the notes of the backup say, before the ownership mark: which of all the guests that had this address it was.
pub(crate) fn notes(who: &str) -> String {
    format!("{NOTES}{who}")
}

pub(crate) fn is_before_replacement(notes: &str) -> bool {
    notes.starts_with(NOTES)
}

/// What the step of a replacement carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackupBefore {
    pub(crate) storage: String,
    pub(crate) keep: usize,
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strata_resource::{FieldChange, FieldPath, Lineage};
    use strata_state::{Action, StateResource};

    use super::*;
    use crate::codec::live;

    fn operation(restart: bool, changed: &[&str]) -> Operation {
        let change = |path: &&str| FieldChange {
            path: FieldPath::dotted(path),
            before: None,
            after: Some(Value::Int(1)),
            drift: false,
        };
        let spec = json!({"vmid": 9100, "snapshot_before": {"changes": ["restart", "disks"], "keep": 2}});
        Operation {
            action: Action::Update,
            address: crate::kinds::address("web/vm/db"),
            target: "pve".into(),
            lineage: Lineage::derive("r", "k"),
            spec: serde_json::from_value(spec).unwrap(),
            recorded: None,
            observed: None,
            changes: changed.iter().map(change).collect(),
            restart,
            replacement: false,
            awaited: false,
            payload: None,
        }
    }

    fn snapshot(name: &str, created: i64, ours: bool) -> Snapshot {
        let (name, notes) = (name.to_owned(), String::new());
        Snapshot { name, created, notes, memory: false, parent: None, ours, unfinished: None }
    }

    fn record(facts: serde_json::Value, partial: bool) -> StateResource {
        let mut record: StateResource =
            serde_json::from_value(json!({"target": "pve", "spec": {}, "stage": "compute"})).unwrap();
        record.facts = serde_json::from_value(facts).unwrap();
        record.partial = partial;
        record
    }

    #[test]
    fn only_what_was_asked_for_has_a_snapshot_before_it() {
        let reason = |restart, changed: &[&str]| {
            let operation = operation(restart, changed);
            SnapshotBefore::of(&operation.spec).unwrap().reason(&operation)
        };
        assert_eq!(reason(true, &["memory.size"]), Some("its restart"));
        assert_eq!(reason(false, &["disks.scsi0.size"]), Some("its disks change"));
        assert_eq!(reason(false, &["memory.size"]), None);
        let mut begun = operation(true, &["disks.scsi0"]);
        begun.recorded = Some(record(json!({}), true));
        assert_eq!(SnapshotBefore::of(&begun.spec).unwrap().reason(&begun), None, "it is still being made");
    }

    #[test]
    fn a_step_finds_the_snapshot_that_an_interrupted_run_took_before_it() {
        let mut step = operation(true, &[]);
        let name =
            next_name(&step, &[snapshot("strata-before-7-aaaaaaaa", 1, false), snapshot("mine", 2, true)]);
        assert!(name.starts_with("strata-before-8-") && name.len() <= 40, "{name}");
        let all = [snapshot(&name, 3, true)];
        let there = live(&[("parent", name.as_str())]);
        assert_eq!(taken_already(&step, &all, &there), Some(name.clone()));
        assert_eq!(
            taken_already(&step, &all, &live(&[("parent", "other")])),
            None,
            "somebody took one since"
        );
        assert_eq!(taken_already(&step, &[snapshot(&name, 3, false)], &there), None, "not ours");
        step.spec.insert("name".into(), Value::text("other"));
        assert_eq!(taken_already(&step, &all, &there), None, "another step");
        let mut done = operation(true, &[]);
        done.recorded = Some(record(json!({"before": name}), false));
        assert_eq!(taken_already(&done, &all, &there), None, "that step was done");
    }

    #[test]
    fn only_our_own_are_pruned_and_never_the_one_of_this_step() {
        let all = [
            snapshot("strata-before-10-bb", 10, true),
            snapshot("strata-before-9-aa", 9, true),
            snapshot("strata-before-8-aa", 8, false),
            snapshot("mine", 1, true),
            snapshot("strata-before-11-cc", 11, true),
        ];
        assert_eq!(
            too_many(&all, Some("strata-before-11-cc"), 1),
            ["strata-before-9-aa", "strata-before-10-bb"]
        );
        assert_eq!(too_many(&all, Some("strata-before-11-cc"), 2), ["strata-before-9-aa"]);
        assert_eq!(too_many(&all, Some("strata-before-11-cc"), 3), Vec::<String>::new());
        assert_eq!(too_many(&all, None, 3), ["strata-before-9-aa"], "with one to come");
    }
}
