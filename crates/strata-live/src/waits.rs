//! What a step that has not begun waits for.

use crate::model::{Model, PlannedStack, State, Step};

/// In a few words: another step, the stack's turn, or a slot.
pub(crate) fn waits_for(model: &Model, stack: &PlannedStack, step: &Step) -> String {
    let unmet = |place: &&usize| stack.steps.get(**place).is_some_and(|need| !is_done(need));
    let mut needs = step.needs.iter().filter(unmet).filter_map(|place| stack.steps.get(*place));
    if let Some(first) = needs.next() {
        return match needs.count() {
            0 => format!("waits for {}", first.address),
            more => format!("waits for {} and {more} more", first.address),
        };
    }
    if model.stopping {
        return "not begun: stopping".to_owned();
    }
    if !has_begun(stack) {
        return "waits for the stacks before it".to_owned();
    }
    match step.limits.first() {
        Some(limit) => format!("waits for a slot of {}", limit.replacen(':', " ", 1)),
        None => "waits for a slot".to_owned(),
    }
}

pub(crate) fn has_begun(stack: &PlannedStack) -> bool {
    stack.steps.iter().any(|step| step.state != State::Pending)
}

fn is_done(step: &Step) -> bool {
    matches!(step.state, State::Done { .. })
}
