//! What differs between the plan that was approved and the plan as it would be now.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use strata_engine::{DrivenPlan, PlannedStack};

use crate::outline::Outline;
use crate::reviewed::Reviewed;

/// What moved since the approval, by stack: the source, the state, live objects. Nothing if the plan is still the same.
pub fn moved(approved: &Reviewed, now: &Reviewed) -> Vec<String> {
    let (then, today) = (stacks(approved), stacks(now));
    let mut moved = Vec::new();
    for (key, before) in &then {
        match today.get(key) {
            None => moved.push(format!("`{key}`: it has no plan now")),
            Some(after) => {
                if let Err(stale) = before.check(&after.source_digest, &after.plan) {
                    moved.extend(stale.moved.into_iter().map(|what| format!("`{key}`: {what}")));
                }
            }
        }
    }
    moved.extend(
        today.keys().filter(|key| !then.contains_key(*key)).map(|key| format!("`{key}`: it has a plan now")),
    );
    let (then, today) = (driven(approved), driven(now));
    let keys: BTreeSet<&String> = then.keys().chain(today.keys()).collect();
    for key in keys {
        // What OpenTofu sealed is never the same twice: what it does, and where its state stood, is.
        let part = |plan: Option<&&DrivenPlan>| {
            plan.map(|plan| (plan.source_digest.clone(), plan.position.clone(), plan.changes.clone()))
        };
        let (before, after) = (part(then.get(key)), part(today.get(key)));
        if before != after {
            moved.push(format!("`{key}`: what OpenTofu would do is not the same"));
        }
    }
    let waiting = |of: &Reviewed| Outline::of(of, &[]).waiting();
    if waiting(approved) != waiting(now) {
        moved.push("other stacks wait for the plan".to_owned());
    }
    moved
}

fn stacks(of: &Reviewed) -> BTreeMap<String, &PlannedStack> {
    of.plans.iter().flat_map(|file| &file.stacks).map(|stack| (stack.plan.key.clone(), stack)).collect()
}

fn driven(of: &Reviewed) -> BTreeMap<String, &DrivenPlan> {
    of.plans.iter().flat_map(|file| &file.driven).map(|stack| (stack.key.clone(), stack)).collect()
}

/// The objects whose part of the plan is another one, as it was approved and as it is now.
pub fn render(approved: &Reviewed, now: &Reviewed) -> String {
    let (then, today) = (entries(approved), entries(now));
    let addresses: BTreeSet<_> = then.keys().chain(today.keys()).cloned().collect();
    let mut text = String::new();
    for address in addresses {
        let (before, after) = (then.get(&address), today.get(&address));
        if before == after {
            continue;
        }
        let mut side = |title: &str, entry: Option<&String>| {
            let _ = writeln!(text, "{title}\n{}", entry.map_or("  (nothing)", String::as_str));
        };
        side(&format!("{} approved:", address.1), before);
        side(&format!("{} now:", address.1), after);
    }
    text
}

/// The text of each object, by stack and address. One address can have several.
fn entries(of: &Reviewed) -> BTreeMap<(String, String), String> {
    let mut all: BTreeMap<(String, String), String> = BTreeMap::new();
    for stack in Outline::of(of, &[]).stacks {
        for entry in stack.entries {
            let text = all.entry((stack.key.clone(), entry.address)).or_default();
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&entry.text);
        }
    }
    all
}
