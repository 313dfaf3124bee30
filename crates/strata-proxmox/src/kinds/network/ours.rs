//! Whose the interfaces of a host are, and what is staged about them.

use std::collections::{BTreeMap, BTreeSet};

use strata_engine::{Dispute, Observed, Sighting, Unmanaged, Wanted};
use strata_resource::{Spec, Value};

use super::host::{STAGED, interfaces, only_configured};
use super::{interface, staged};
use crate::datacenter::{LiveObject, spec_text};

/// A host always has a network: it is ours as far as the source or the state speak of its interfaces.
pub(super) fn judge(wanted: &Wanted<'_>, live: Option<&LiveObject>) -> Sighting {
    let Some(live) = live else { return Sighting::Absent };
    let node = spec_text(wanted.spec, "network");
    let there = interfaces(&live.spec);
    let (asked, none) = (interfaces(wanted.spec), BTreeMap::new());
    let recorded = wanted.recorded.map_or_else(|| none.clone(), |recorded| interfaces(&recorded.spec));
    let begun = wanted.begun.map_or(none, interfaces);
    // Something of ours is open: only then can anything that is staged be ours.
    let unfinished = wanted.begun.is_some() || wanted.recorded.is_some_and(|recorded| recorded.partial);
    // What an open entry was to make is ours if it is that: somebody else may have been there first.
    let is_begun = |name: &str| match (begun.get(name), there.get(name)) {
        (Some(begun), Some(live)) => interface::is_just_that(begun, live),
        _ => false,
    };
    if let Some(changes) = &live.staged {
        let configured = |name: &&&str| {
            let there = there.contains_key(**name);
            !there || is_begun(name) || begun.get(**name).is_some_and(|begun| only_configured(begun))
        };
        let ours: BTreeSet<String> = recorded
            .keys()
            .chain(begun.keys().filter(configured))
            .filter(|_| unfinished)
            .map(|name| (*name).to_owned())
            .collect();
        let foreign = staged::foreign(changes, &live.order, &ours);
        if !unfinished || !foreign.is_empty() {
            let names = foreign.join("`, `");
            return Sighting::Busy(format!(
                "changes of the network of `{node}` are staged that this repository did not make (`{names}`): a reload would bring them along"
            ));
        }
    }
    for (name, own) in asked.iter().filter(|(name, _)| there.contains_key(*name)) {
        if !recorded.contains_key(name) && !only_configured(own) && !is_begun(name) {
            let what = format!("the interface `{name}` of `{node}`");
            return Sighting::Unmanaged(Unmanaged::new(what, Dispute::Unclaimed));
        }
    }
    // What was only configured is left as it is when it leaves the source. Recovery knows no source.
    let recovers = !wanted.spec.contains_key("interfaces");
    let kept = |name: &&str| {
        asked.contains_key(*name)
            || is_begun(name)
            || recovers && begun.get(*name).is_some_and(|begun| only_configured(begun))
            || recorded.get(*name).is_some_and(|recorded| !only_configured(recorded))
    };
    let shown: Spec = there
        .iter()
        .filter(|(name, _)| kept(name))
        .map(|(name, live)| ((*name).to_owned(), Value::Map((*live).clone())))
        .collect();
    let mut spec = live.spec.clone();
    spec.insert("interfaces".to_owned(), Value::Map(shown));
    // Whether the last reload went well is not seen anywhere, so that it is done again.
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
