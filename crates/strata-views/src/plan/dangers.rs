//! What of a plan cannot be undone or is felt, for the lines before the question.

use strata_engine::{Plan, Step, StepAction};
use strata_resource::Address;

use super::alike::listed;
use crate::style::{self, paint};

/// What is restarted, replaced and destroyed, in this order: the worst stands next to the question.
pub fn render_dangers<'p>(plans: impl IntoIterator<Item = &'p Plan>) -> Vec<String> {
    let steps: Vec<&Step> = plans.into_iter().flat_map(|plan| &plan.steps).collect();
    let named = |is: &dyn Fn(&Step) -> bool| {
        let addresses: Vec<&Address> =
            steps.iter().filter(|step| is(step)).map(|step| &step.address).collect();
        (addresses.len(), listed(&addresses))
    };
    let removes = |step: &Step| matches!(step.action, StepAction::Delete | StepAction::DeleteFormer);
    let dangers = [
        (style::CHANGE, "restarts", named(&|step| step.restart)),
        (style::REPLACE, "replaces", named(&|step| step.replacement && step.action == StepAction::Create)),
        (style::DESTROY, "destroys", named(&|step| removes(step) && !step.replacement)),
    ];
    let some = dangers.into_iter().filter(|(_, _, (count, _))| *count > 0);
    some.map(|(style, verb, (count, names))| format!("{} {names}", paint(style, format!("{verb} {count}:"))))
        .collect()
}
