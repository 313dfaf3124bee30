//! Ranges of VMIDs: that guests keep to their stack's, and that no two stacks share one.

use std::collections::{BTreeMap, HashSet};

use strata_diagnostics::{Diagnostic, Diagnostics, Span};
use strata_yaml::Spanned;

use super::guests::Guest;
use crate::repository::{EffectiveStack, Repository};
use crate::stack::id_range::IdRange;

/// The last VMID that Proxmox takes.
const LAST: u32 = 999_999_999;

pub(super) fn check(repository: &Repository, guests: &[Guest<'_>], diagnostics: &mut Diagnostics) {
    let mut by_endpoint: BTreeMap<String, Vec<(&EffectiveStack, Spanned<IdRange>)>> = BTreeMap::new();
    for stack in repository.effective() {
        if let (Some(range), Some(endpoint)) = (range(stack), repository.proxmox_endpoint(stack)) {
            by_endpoint.entry(endpoint).or_default().push((stack, range));
        }
    }
    for ranges in by_endpoint.values_mut() {
        ranges.sort_by_key(|(_, range)| range.first);
        // In the order of their beginnings, a range overlaps an earlier one if it begins before the farthest end.
        let mut farthest: Option<(&EffectiveStack, Spanned<IdRange>)> = None;
        for (stack, range) in ranges.iter().copied() {
            if let Some((other, before)) = farthest.filter(|(other, before)| {
                // One stack in two environments: the VMIDs themselves decide.
                other.name != stack.name && before.overlaps(&range)
            }) {
                let message = format!("the ranges `{}` and `{}` overlap", before.value, range.value);
                let problem = Diagnostic::error("id-range-overlap", message);
                let problem = problem.at_with(range.span, format!("of stack `{}`", stack.name));
                diagnostics.push(problem.also(before.span, format!("of stack `{}`", other.name)));
            }
            if farthest.is_none_or(|(_, before)| before.last < range.last) {
                farthest = Some((stack, range));
            }
        }
    }
    let mut told: HashSet<Span> = HashSet::new();
    for guest in guests {
        if let Some((id, span)) = guest.vm_id.filter(|(id, span)| *id > LAST && told.insert(*span)) {
            let message = format!("`{}` would get the VMID `{id}`; they end at {LAST}", guest.name);
            diagnostics.push(Diagnostic::error("out-of-range", message).at(span));
        }
        let (Some((id, span)), Some(own)) = (guest.vm_id, range(guest.stack)) else { continue };
        if !own.contains(id) && told.insert(span) {
            let message =
                format!("the VMID `{id}` of `{}` is outside the stack's range `{}`", guest.name, own.value);
            let problem = Diagnostic::error("outside-id-range", message).at(span);
            diagnostics.push(problem.also(own.span, "the range"));
        }
    }
}

fn range(stack: &EffectiveStack) -> Option<Spanned<IdRange>> {
    stack.placement()?.id_range
}
