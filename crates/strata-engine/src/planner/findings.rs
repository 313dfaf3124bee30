//! Takes what a review found into the draft.

use strata_resource::{Address, Spec};
use strata_state::Action;

use crate::plan::{PlanContent, Problem, ProblemKind, Step, StepAction};
use crate::{Finding, FindingKind};

pub(super) fn take_in(draft: &mut PlanContent, finding: Finding) {
    let Finding { address, action, kind } = finding;
    let kind = match kind {
        FindingKind::InUse { identity, stays, message, hint } => {
            if let Some(former) = former_of(draft, &address, &identity) {
                leave(draft, former);
                draft.in_use.entry(address).or_default().push(stays);
                return;
            }
            FindingKind::Precondition { message, hint }
        }
        kind => kind,
    };
    if let FindingKind::Precondition { message, hint } = kind {
        let step = draft.steps.iter().find(|step| step.address == address);
        let origin = step.and_then(|step| step.origin.clone());
        draft.problems.push(Problem { kind: ProblemKind::Precondition, address, message, hint, origin });
        return;
    }
    let is_it = |step: &Step| step.address == address && step.action.is_remote();
    let does = |step: &Step| is_it(step) && step.action.action() == action;
    // The delete of a replacement is shown with the create that belongs to it.
    let shows = |step: &Step| match (action, step.action) {
        (Action::Delete, StepAction::Create) => is_it(step) && step.replacement,
        (Action::Delete, _) => does(step) && !step.replacement,
        _ => does(step),
    };
    let is_remark = matches!(kind, FindingKind::Remark(_));
    let found = draft.steps.iter_mut().find(|step| if is_remark { shows(step) } else { does(step) });
    let Some(step) = found else { return };
    match kind {
        FindingKind::Precondition { .. } | FindingKind::InUse { .. } => {}
        FindingKind::Remark(remark) => step.reasons.push(remark),
        FindingKind::Restarts => step.restart = true,
        FindingKind::MayRestart => {
            step.reasons.push("it may need a restart: nobody knows before it is tried".to_owned());
        }
        FindingKind::Sends(payload) => {
            step.payload = Some(match step.payload.take() {
                Some(before) => before.and(payload),
                None => payload,
            });
        }
    }
}

/// The step that deletes this very object, where a replacement left it behind and its address stays in the plan. With its address everything of it goes.
fn former_of(draft: &PlanContent, address: &Address, identity: &Spec) -> Option<usize> {
    let mut own = draft.steps.iter().filter(|step| step.address == *address);
    if own.any(|step| step.action == StepAction::Delete && !step.replacement) {
        return None;
    }
    let is_it = |step: &Step| {
        step.address == *address
            && step.action == StepAction::DeleteFormer
            && address.kind().table().identity_of(&step.spec) == *identity
    };
    draft.steps.iter().position(is_it)
}

/// Takes a step out. What waited for it waits for what it waited for; the state goes on knowing its object.
fn leave(draft: &mut PlanContent, left: usize) {
    let step = draft.steps.remove(left);
    for other in &mut draft.steps {
        if other.needs.contains(&left) {
            other.needs.extend(&step.needs);
        }
        other.needs.retain(|need| *need != left);
        for need in &mut other.needs {
            *need -= usize::from(*need > left);
        }
        other.needs.sort_unstable();
        other.needs.dedup();
        // Nothing goes: it is a new object beside the former one.
        if step.replacement && other.address == step.address && other.action == StepAction::Create {
            other.replacement = false;
        }
    }
}
