//! Fields that the source uses when an object is made, and leaves to others after that.
//!
//! Where the object is there, what it has stands for what the source says: then nothing differs, nothing is sent, and the record has what was
//! there. A run that died has its record speak instead: of a create it says what was to be made, of a change what was there before it.

use std::borrow::Cow;

use strata_resource::{FieldChange, FieldPath, KindRules, Resource, Spec, Value, diff_specs};
use strata_state::StateResource;

use crate::Observed;
use crate::plan::IgnoredChange;

/// What differs and is left so, with the reasons.
pub(super) fn ignored_changes(
    resource: &Resource,
    recorded: Option<&StateResource>,
    observed: &Observed,
) -> Vec<IgnoredChange> {
    if resource.ignore.is_empty() {
        return Vec::new();
    }
    let rules = resource.kind().rules();
    let diff = diff_specs(rules, &resource.spec, recorded.map(|recorded| &recorded.spec), &observed.spec);
    split_ignored(resource, diff.changes).1
}

/// Changes that count, and those that the source leaves to others.
pub(crate) fn split_ignored(
    resource: &Resource,
    changes: Vec<FieldChange>,
) -> (Vec<FieldChange>, Vec<IgnoredChange>) {
    let (mut kept, mut ignored) = (Vec::new(), Vec::new());
    for change in changes {
        let by = resource.ignore.iter().find(|field| is_below(&change.path, &field.path));
        match by {
            Some(field) => ignored.push(IgnoredChange { change, reason: field.reason.clone() }),
            None => kept.push(change),
        }
    }
    (kept, ignored)
}

fn is_below(path: &FieldPath, above: &FieldPath) -> bool {
    path.keys().len() >= above.keys().len() && path.overlaps(above)
}

/// The resource with what is there in the fields that the source leaves to others.
pub(super) fn as_it_is<'r>(
    resource: &'r Resource,
    recorded: Option<&StateResource>,
    observed: &Observed,
) -> Cow<'r, Resource> {
    if resource.ignore.is_empty() {
        return Cow::Borrowed(resource);
    }
    let unfinished = recorded.filter(|recorded| recorded.partial);
    let live = unfinished.map_or(&observed.spec, |recorded| &recorded.spec);
    let mut own = resource.clone();
    let rules = resource.kind().rules();
    for field in &resource.ignore {
        let known = recorded.and_then(|recorded| at(&recorded.spec, &field.path));
        let there = Sides { wanted: at(&resource.spec, &field.path), known, live: at(live, &field.path) };
        if there.wanted.is_some() || there.known.is_some() {
            put(&mut own.spec, field.path.keys(), there.left(rules, &field.path));
        }
    }
    Cow::Owned(own)
}

/// What was seen, without what waits for a restart in those fields: that is for others to bring about.
pub(super) fn without_waiting<'o>(resource: &Resource, observed: &'o Observed) -> Cow<'o, Observed> {
    let is_left = |path: &String| {
        let path = FieldPath::dotted(path);
        resource.ignore.iter().any(|field| is_below(&path, &field.path))
    };
    if !observed.pending.iter().any(is_left) {
        return Cow::Borrowed(observed);
    }
    let mut own = observed.clone();
    own.pending.retain(|path| !is_left(path));
    Cow::Owned(own)
}

/// One field, as the source, the state and a look have it.
#[derive(Clone, Copy)]
struct Sides<'v> {
    wanted: Option<&'v Value>,
    known: Option<&'v Value>,
    live: Option<&'v Value>,
}

impl Sides<'_> {
    /// What stands for the source: what is there. What cannot be read back is as it was applied.
    fn left(self, rules: &KindRules, path: &FieldPath) -> Option<Value> {
        if rules.is_below(path, |rule| rule.write_only) {
            return self.known.or(self.wanted).cloned();
        }
        let parts = [self.wanted, self.known].into_iter().flatten().filter_map(Value::as_map);
        let keys: std::collections::BTreeSet<&String> = parts.flat_map(|part| part.keys()).collect();
        if keys.is_empty() || self.live.is_some_and(|live| live.as_map().is_none()) {
            return self.live.cloned();
        }
        let part =
            |side: Option<&'_ Value>, key: &str| side.and_then(|side| side.as_map()?.get(key)).cloned();
        let mut left = Spec::new();
        for key in keys {
            let (wanted, known, live) = (part(self.wanted, key), part(self.known, key), part(self.live, key));
            let sides = Sides { wanted: wanted.as_ref(), known: known.as_ref(), live: live.as_ref() };
            if let Some(value) = sides.left(rules, &path.child(key)) {
                left.insert(key.clone(), value);
            }
        }
        (self.live.is_some() || !left.is_empty()).then_some(Value::Map(left))
    }
}

fn at<'s>(spec: &'s Spec, path: &FieldPath) -> Option<&'s Value> {
    let (first, rest) = path.keys().split_first()?;
    rest.iter().try_fold(spec.get(first)?, |value, key| value.as_map()?.get(key))
}

fn put(spec: &mut Spec, path: &[String], value: Option<Value>) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        match value {
            Some(value) => spec.insert(first.clone(), value),
            None => spec.remove(first),
        };
        return;
    }
    if !spec.contains_key(first) && value.is_none() {
        return;
    }
    let inner = spec.entry(first.clone()).or_insert_with(|| Value::Map(Spec::new()));
    if let Value::Map(inner) = inner {
        put(inner, rest, value);
    }
}
