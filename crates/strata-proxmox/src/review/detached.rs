//! Disks that the state knows and the guest does not have any more. The volume is attached again where it is still there; an empty one
//! is never put in its place.

use std::collections::BTreeMap;

use strata_engine::{Finding, Operation};
use strata_resource::{FieldChange, Spec, Value};
use strata_state::{Action, StateResource};

use crate::codec::{LiveConfig, detached_now, volume_key};

/// A disk of the spec that is not there.
struct Missing<'a> {
    /// The key of the configuration: `scsi0`, `mp1`, `efidisk0`.
    key: &'a str,
    field: String,
}

/// Disks that an update would add although the state knows them.
fn missing(operation: &Operation) -> Vec<Missing<'_>> {
    let Some(recorded) = operation.recorded.as_ref().filter(|recorded| !recorded.partial) else {
        return Vec::new();
    };
    if operation.action != Action::Update {
        return Vec::new();
    }
    let is_known = |change: &&FieldChange| value_at(&recorded.spec, change.path.keys()).is_some();
    added(operation)
        .filter(|(_, change)| is_known(change))
        .map(|(key, change)| Missing { key, field: change.path.to_string() })
        .collect()
}

/// Disks that an update adds as a whole, by their keys. What names its volume itself is attached, not made.
fn added(operation: &Operation) -> impl Iterator<Item = (&str, &FieldChange)> {
    let is_new = |change: &&FieldChange| {
        let names_volume =
            change.after.as_ref().and_then(Value::as_map).is_some_and(|map| map.contains_key("volume"));
        change.before.is_none() && change.after.is_some() && !names_volume
    };
    operation.changes.iter().filter(is_new).filter_map(|change| Some((volume_key(&change.path)?, change)))
}

fn value_at<'s>(spec: &'s Spec, keys: &[String]) -> Option<&'s Value> {
    let (first, rest) = keys.split_first()?;
    rest.iter().try_fold(spec.get(first)?, |value, key| value.as_map()?.get(key))
}

fn text_map(facts: Option<&Spec>, name: &str) -> BTreeMap<String, String> {
    let map = facts.and_then(|facts| facts.get(name)).and_then(Value::as_map);
    let pairs = map.into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_text()?.to_owned()))).collect()
}

fn texts(facts: Option<&Spec>, name: &str) -> Vec<String> {
    let list = facts.and_then(|facts| facts.get(name)).and_then(Value::as_list).unwrap_or_default();
    list.iter().filter_map(|value| value.as_text().map(str::to_owned)).collect()
}

/// The volumes that were attached when the guest was last applied.
fn known_volumes(recorded: Option<&StateResource>) -> BTreeMap<String, String> {
    text_map(recorded.map(|recorded| &recorded.facts), "volumes")
}

/// What an update attaches again, by key: volumes that the state knows in a slot that is empty now, and that the guest still has.
pub(crate) fn reattached(recorded: Option<&StateResource>, live: &LiveConfig) -> BTreeMap<String, String> {
    let there = detached_now(live);
    known_volumes(recorded)
        .into_iter()
        .filter(|(key, volume)| live.get(key).is_none() && there.contains(volume))
        .collect()
}

pub(super) fn preconditions(operations: &[Operation]) -> Vec<Finding> {
    operations.iter().flat_map(|operation| lost(operation).into_iter().chain(renamed(operation))).collect()
}

fn lost(operation: &Operation) -> Vec<Finding> {
    let observed = operation.observed.as_ref().map(|observed| &observed.facts);
    let (unused, attached) = (texts(observed, "unused"), text_map(observed, "volumes"));
    let known = known_volumes(operation.recorded.as_ref());
    let object = |missing: Missing<'_>| {
        let Missing { key, field } = missing;
        let again = format!(
            "an empty disk is not put in its place; to have one, remove `{field}` from the source, apply, then put it back"
        );
        let (message, hint) = match known.get(key) {
            Some(volume) if unused.contains(volume) => return None,
            Some(volume) => match attached.iter().find(|(_, other)| *other == volume) {
                Some((other, _)) => (
                    format!("`{field}` is gone: its volume `{volume}` is attached as `{other}`"),
                    format!("attach it as `{key}` again by hand, or write `{other}` in the source"),
                ),
                None => (
                    format!("`{field}` is gone: its volume `{volume}` was deleted or given to another guest"),
                    format!("restore it, or attach it by hand; {again}"),
                ),
            },
            None if unused.is_empty() => (
                format!("`{field}` is gone, and no detached volume of the guest can be it"),
                format!("restore it, or attach it by hand; {again}"),
            ),
            None => (
                format!("`{field}` was detached: it may be one of {}", unused.join(", ")),
                format!("attach it as `{key}` by hand; {again}"),
            ),
        };
        Some(Finding::precondition(operation, message, hint))
    };
    missing(operation).into_iter().filter_map(object).collect()
}

/// A disk that leaves one slot and one of the same size that comes in another look like one disk that was renamed.
fn renamed(operation: &Operation) -> Vec<Finding> {
    let size = |value: &Option<Value>| value.as_ref()?.as_map()?.get("size")?.as_int();
    let leaves = |change: &&FieldChange| change.after.is_none() && volume_key(&change.path).is_some();
    let Some(recorded) = operation.recorded.as_ref() else { return Vec::new() };
    let leaving: Vec<&FieldChange> = operation.changes.iter().filter(leaves).collect();
    added(operation)
        .filter(|(_, change)| value_at(&recorded.spec, change.path.keys()).is_none())
        .filter_map(|(key, change)| {
            let former = leaving.iter().find(|former| {
                let same = size(&former.before) == size(&change.after);
                same && size(&change.after).is_some()
            })?;
            Some(Finding::precondition(operation, format!(
                    "`{}` leaves and `{}` of the same size comes: renamed in the source, its data would stay behind and an empty disk take its place",
                    former.path, change.path
                ), format!(
                    "to keep the data, attach the volume as `{key}` by hand, then plan again; for an empty disk, apply the one change and then the other"
                )))
        })
        .collect()
}

/// What a plan says about the disks of an update.
pub(super) fn remarks(operation: &Operation) -> Vec<Finding> {
    if operation.action != Action::Update {
        return Vec::new();
    }
    let observed = operation.observed.as_ref().map(|observed| &observed.facts);
    let unused = texts(observed, "unused");
    let known = known_volumes(operation.recorded.as_ref());
    let mut remarks = Vec::new();
    for (key, change) in added(operation) {
        match known.get(key).filter(|volume| unused.contains(volume)) {
            Some(volume) => remarks.push(format!(
                "`{}` was detached by somebody else: its volume `{volume}` is attached again, with its data",
                change.path
            )),
            None if !unused.is_empty() => remarks.push(format!(
                "`{}` is a new, empty disk; detached volumes of the guest stay: {}",
                change.path,
                unused.join(", ")
            )),
            None => {}
        }
    }
    remarks.into_iter().map(|remark| Finding::remark(operation, remark)).collect()
}
