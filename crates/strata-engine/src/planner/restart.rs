//! Whether a running guest must be restarted for what is planned about it.

use strata_resource::{
    ChangeEffect, FieldChange, FieldPath, Resource, Spec, Value, diff_specs, diff_unfinished,
};
use strata_state::StateResource;

use crate::Observed;

/// What a restart is needed for.
pub(super) struct Restart {
    /// Changes that only a restart brings into effect.
    pub(super) by_changes: bool,
    /// Fields of ours whose value waits for one already.
    pub(super) waiting: Vec<String>,
}

impl Restart {
    pub(super) fn is_needed(&self) -> bool {
        self.by_changes || !self.waiting.is_empty()
    }
}

/// Leaves out what has never reached the guest, what it was started with, and what waits and is not ours.
pub(super) fn needs(
    resource: &Resource,
    recorded: Option<&StateResource>,
    observed: &Observed,
    changes: &[FieldChange],
) -> Restart {
    let rules = resource.kind().rules();
    let left_of = |live: &Spec| match recorded {
        Some(recorded) if recorded.partial => {
            diff_unfinished(rules, &resource.spec, &recorded.spec, live).changes
        }
        _ => diff_specs(rules, &resource.spec, recorded.map(|recorded| &recorded.spec), live).changes,
    };
    let left = observed.running.as_ref().map(left_of);
    // Somebody else set it, and it is set back before it came into effect: compared with what runs nothing is left of it.
    let set_back = |path: &FieldPath| {
        let touches = |change: &FieldChange| change.path.overlaps(path);
        left.as_ref().is_some_and(|left| changes.iter().any(touches) && !left.iter().any(touches))
    };
    let needs = |change: &FieldChange| {
        rules.rule(&change.path).effect == ChangeEffect::Restart && !set_back(&change.path)
    };
    let ours = |path: &FieldPath| {
        speaks_of(&resource.spec, path) || recorded.is_some_and(|recorded| speaks_of(&recorded.spec, path))
    };
    let waits = |path: &&String| {
        let path = FieldPath::dotted(path);
        ours(&path) && !set_back(&path)
    };
    Restart {
        by_changes: changes.iter().any(needs),
        waiting: observed.pending.iter().filter(waits).cloned().collect(),
    }
}

/// Whether a spec says something about a field, or about what it is part of.
fn speaks_of(spec: &Spec, path: &FieldPath) -> bool {
    let mut map = spec;
    for key in path.keys() {
        match map.get(key) {
            None => return false,
            Some(Value::Map(below)) => map = below,
            Some(_) => return true,
        }
    }
    true
}

/// Leaves fields alone that cannot be read back, of a running guest whose creation was cut off, and that are still what was begun. A
/// guest is started last and its configuration is written in one piece: where everything beside them that can be read is in place, it
/// runs with them.
pub(super) fn drop_begun_alike(
    resource: &Resource,
    recorded: Option<&StateResource>,
    observed: &Observed,
    changes: &mut Vec<FieldChange>,
) {
    let rules = resource.kind().rules();
    let Some(begun) = recorded.filter(|recorded| recorded.partial) else { return };
    let at_boot = |change: &FieldChange| rules.is_below(&change.path, |rule| rule.read_at_boot);
    let hidden = |change: &FieldChange| rules.rule(&change.path).write_only;
    if changes.iter().any(|change| at_boot(change) && !hidden(change)) {
        return;
    }
    let other = diff_specs(rules, &resource.spec, Some(&begun.spec), &observed.spec).changes;
    let is_other = |path: &FieldPath| other.iter().any(|change| change.path.overlaps(path));
    changes.retain(|change| !hidden(change) || is_other(&change.path));
}
