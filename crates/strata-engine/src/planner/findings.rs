//! Takes what a review found into the draft.

use strata_state::Action;

use crate::plan::{PlanContent, Problem, ProblemKind, Step, StepAction};
use crate::{Finding, FindingKind};

pub(super) fn take_in(draft: &mut PlanContent, finding: Finding) {
    let Finding { address, action, kind } = finding;
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
        FindingKind::Precondition { .. } => {}
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
