//! Guardrails: what a repository forbids its own changes, as the base has it.

use std::collections::BTreeSet;

use strata_source::settings::review::{Approval, Effect, Review};

use crate::effects::{Effects, Importance};
use crate::finding::Finding;
use crate::outline::Outline;
use crate::reviewed::Reviewed;
use crate::rules;

mod freeze;
mod paths;

pub use freeze::frozen;
pub use paths::matches;

/// What guardrails and rules say of plans. Without errors they may be applied, once they are approved.
pub fn findings(review: Option<&Review>, reviewed: &Reviewed) -> Vec<Finding> {
    let Some(review) = review else { return Vec::new() };
    let mut found = Vec::new();
    let effects = Effects::of(reviewed);
    let removed = effects.summary.delete + effects.summary.replace;
    if let Some(most) = review.max_destroys.filter(|most| removed > *most as usize) {
        let message = format!("{removed} would be destroyed or replaced, and {most} are allowed");
        found.push(Finding::error("maxDestroys", "", message));
    }
    found.extend(of_protected(&review.protected, reviewed));
    found.extend(rules::check(&review.rules, reviewed));
    found
}

fn of_protected(protected: &[String], reviewed: &Reviewed) -> Vec<Finding> {
    let is_protected = |key: &str| {
        let stack = key.split_once('/').map_or(key, |(_, stack)| stack);
        protected.iter().any(|named| named == key || named == stack)
    };
    let outline = Outline::of(reviewed, &[]);
    let mut found = Vec::new();
    for stack in outline.stacks.iter().filter(|stack| is_protected(&stack.key)) {
        for entry in stack.entries.iter().filter(|entry| entry.importance == Importance::Removal) {
            let message =
                format!("stack `{}` is protected: nothing of it is destroyed or replaced", stack.key);
            found.push(Finding::error("protected", entry.address.clone(), message));
        }
    }
    found
}

/// What a plan does, for those who ask for approvals by it.
fn effects(reviewed: &Reviewed) -> BTreeSet<Effect> {
    let of = Effects::of(reviewed);
    let counts = [
        (of.summary.delete, Effect::Destroy),
        (of.summary.replace, Effect::Replace),
        (of.summary.restart, Effect::Restart),
        (of.reboots, Effect::Reboot),
        (of.quorum, Effect::Quorum),
    ];
    counts.into_iter().filter(|(count, _)| *count > 0).map(|(_, effect)| effect).collect()
}

/// The approvals that these plans need.
pub fn required<'g>(review: Option<&'g Review>, reviewed: &Reviewed) -> Vec<&'g Approval> {
    let effects = effects(reviewed);
    let asks = |approval: &&Approval| {
        let of_paths = approval.paths.iter().any(|pattern| match &reviewed.paths {
            Some(paths) => paths.iter().any(|path| matches(pattern, path)),
            // Where nobody can say what differs, it may be this.
            None => true,
        });
        let of_effects = approval.effects.iter().any(|effect| effects.contains(effect));
        let always = approval.paths.is_empty() && approval.effects.is_empty();
        always || of_paths || of_effects
    };
    review.into_iter().flat_map(|review| &review.approvals).filter(asks).collect()
}

/// Which of them these people do not give.
pub fn missing(required: &[&Approval], approvers: &BTreeSet<String>) -> Vec<Finding> {
    let mut found = Vec::new();
    for approval in required {
        // No forge has two people whose names differ by case alone.
        let named = |name: &String| approval.by.iter().any(|own| own.eq_ignore_ascii_case(name));
        let counts = |name: &&String| approval.by.is_empty() || named(name);
        let given = approvers.iter().filter(counts).count();
        let needed = approval.count as usize;
        if given < needed {
            let by = match approval.by.is_empty() {
                true => String::new(),
                false => format!(" of {}", approval.by.join(", ")),
            };
            let message = format!("{given} of {needed} approvals{by}{}", reason(approval));
            found.push(Finding::error("approvals", "", message));
        }
    }
    found
}

fn reason(approval: &Approval) -> String {
    let effects = approval.effects.iter().map(|effect| effect.to_string());
    let parts: Vec<String> = approval.paths.iter().cloned().chain(effects).collect();
    if parts.is_empty() { String::new() } else { format!(", asked for by: {}", parts.join(", ")) }
}
