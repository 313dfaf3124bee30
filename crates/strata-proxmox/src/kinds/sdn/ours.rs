//! Whose zones, networks and subnets are, and what is staged about them.

use std::collections::BTreeSet;

use strata_engine::{Dispute, Observed, Sighting, Unmanaged, Wanted};
use strata_resource::{Spec, Value};

use super::class::{CLASSES, Class};
use super::config::{STAGED, is_adopted, items};
use crate::datacenter::LiveObject;

/// The configuration is always there: it is ours as far as the source or the state speak of what is in it.
pub(super) fn judge(wanted: &Wanted<'_>, live: Option<&LiveObject>) -> Sighting {
    let Some(live) = live else { return Sighting::Absent };
    // Something of ours is open: only then can anything that is staged be ours.
    let unfinished = wanted.begun.is_some() || wanted.recorded.is_some_and(|recorded| recorded.partial);
    let foreign = foreign(&live.order, &known(wanted));
    if live.staged.is_some() && (!unfinished || !foreign.is_empty()) {
        let names = if foreign.is_empty() { live.order.join(", ") } else { foreign.join(", ") };
        return Sighting::Busy(format!(
            "others staged changes of the SDN ({names}): they would be brought into effect along with this one"
        ));
    }
    let mut spec = live.spec.clone();
    for class in &CLASSES {
        let (there, asked) = (items(&live.spec, class), items(wanted.spec, class));
        let recorded = wanted.recorded.map(|recorded| items(&recorded.spec, class)).unwrap_or_default();
        let begun = wanted.begun.map(|begun| items(begun, class)).unwrap_or_default();
        let is_begun = |name: &str| match (begun.get(name), there.get(name)) {
            (Some(begun), Some(live)) => class.is_just_that(begun, live),
            _ => false,
        };
        for (name, own) in asked.iter().filter(|(name, _)| there.contains_key(*name)) {
            if !recorded.contains_key(name) && !is_adopted(own) && !is_begun(name) {
                let what = format!("the {} `{name}`", class.word);
                return Sighting::Unmanaged(Unmanaged::new(what, Dispute::Unclaimed));
            }
        }
        // What was taken over is left as it is when it leaves the source. Recovery knows no source.
        let recovers = CLASSES.iter().all(|class| !wanted.spec.contains_key(class.field));
        let kept = |name: &str| {
            asked.contains_key(name)
                || is_begun(name)
                || recovers && begun.get(name).is_some_and(|begun| is_adopted(begun))
                || recorded.get(name).is_some_and(|recorded| !is_adopted(recorded))
        };
        let shown = there.iter().filter(|(name, _)| kept(name));
        let shown: Spec =
            shown.map(|(name, live)| ((*name).to_owned(), Value::Map((*live).clone()))).collect();
        spec.insert(class.field.to_owned(), Value::Map(shown));
    }
    // Whether what was staged came into effect is not seen anywhere, so that it is done again.
    spec.insert(STAGED.to_owned(), Value::Bool(live.staged.is_some() || unfinished));
    Sighting::Ours(Observed {
        spec,
        facts: Spec::new(),
        digest: live.digest.clone(),
        pending: Vec::new(),
        running: None,
        evidence: Default::default(),
    })
}

/// As people are told of an object.
pub(super) fn named(class: &Class, name: &str) -> String {
    format!("{} `{name}`", class.word)
}

/// All that the state or an open entry speaks of.
fn known(wanted: &Wanted<'_>) -> BTreeSet<String> {
    let specs = [wanted.recorded.map(|recorded| &recorded.spec), wanted.begun];
    let of = |spec: &Spec| -> Vec<String> {
        let all = CLASSES.iter().flat_map(|class| {
            items(spec, class).into_keys().map(|name| named(class, name)).collect::<Vec<_>>()
        });
        all.collect()
    };
    specs.into_iter().flatten().flat_map(of).collect()
}

/// What of the staged changes is about others.
pub(super) fn foreign(waiting: &[String], ours: &BTreeSet<String>) -> Vec<String> {
    waiting.iter().filter(|name| !ours.contains(*name)).cloned().collect()
}
