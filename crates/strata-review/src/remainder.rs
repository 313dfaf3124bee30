//! What is left of an approved plan whose apply was interrupted. A next run goes on with it, and does nothing beyond it.

use serde::Serialize;
use serde_json::Value as Json;
use strata_engine::{Plan, PlanFile, Step, StepAction};
use strata_resource::Spec;
use strata_session::{Planned, SessionError};

/// Refuses plans that do anything that was not approved.
pub fn check(approved: &PlanFile, planned: &[Planned<'_>]) -> Result<(), SessionError> {
    let mut beyond = Vec::new();
    for one in planned {
        let key = one.key();
        match one {
            Planned::Native(_, plan) => match approved.stacks.iter().find(|stack| stack.plan.key == key) {
                Some(stack) => beyond.extend(beyond_plan(&stack.plan, plan)),
                None if plan.has_changes() => beyond.push(format!("`{key}` was not approved")),
                None => {}
            },
            Planned::Driven(tofu) => {
                let known = approved.driven.iter().find(|stack| stack.key == key);
                let known = known.and_then(|stack| stack.changes["resources"].as_array());
                for change in &tofu.plan.changes.resources {
                    let is_known = known.is_some_and(|known| known.contains(&json(change)));
                    if !is_known {
                        beyond.push(format!("`{}` of `{key}`", change.address));
                    }
                }
            }
            // What waits was not in the plan that was approved.
            Planned::Deferred { .. } => {
                beyond.push(format!("`{key}` was not planned when the rest was approved"))
            }
            Planned::Unplanned { .. } => {}
        }
    }
    if beyond.is_empty() {
        return Ok(());
    }
    let mut error = SessionError::refused("what is left to do is more than what was approved");
    error.details = beyond;
    Err(error.hint("nothing was changed: have a new plan reviewed"))
}

/// What a plan does that the approved one does not.
fn beyond_plan(approved: &Plan, now: &Plan) -> Vec<String> {
    let mut beyond = Vec::new();
    let known: Vec<Json> = approved.moves.iter().map(json).collect();
    beyond.extend(
        now.moves
            .iter()
            .filter(|one| !known.contains(&json(one)))
            .map(|one| format!("`{}` is moved", one.to)),
    );
    for step in now.steps.iter().filter(|step| step.action.is_remote()) {
        let mut of_address =
            approved.steps.iter().filter(|own| own.address == step.address && own.target == step.target);
        if !of_address.any(|own| allows(own, step)) {
            beyond.push(format!("`{}`", step.address));
        }
    }
    beyond
}

/// Whether an approved step covers what is left of it.
fn allows(approved: &Step, step: &Step) -> bool {
    let same = json(&approved.spec) == json(&step.spec);
    match (approved.action, step.action) {
        (StepAction::Create, StepAction::Create) => same && approved.replacement >= step.replacement,
        // It was made, and not brought to its end.
        (StepAction::Create, StepAction::Update) => same,
        (StepAction::Update, StepAction::Update) => {
            let known = |path: &_| approved.changes.iter().any(|change| change.path == *path);
            let fields = step.changes.iter().all(|change| known(&change.path));
            same && fields && approved.restart >= step.restart
        }
        (StepAction::Delete | StepAction::DeleteFormer, StepAction::Delete | StepAction::DeleteFormer) => {
            same_identity(approved, step) && approved.replacement >= step.replacement
        }
        _ => false,
    }
}

fn same_identity(approved: &Step, step: &Step) -> bool {
    let identity = approved.address.kind().table().identity;
    let of = |spec: &Spec| identity.iter().map(|field| spec.get(*field).map(json)).collect::<Vec<_>>();
    of(&approved.spec) == of(&step.spec)
}

/// As it is written: secrets by their digests.
fn json(value: impl Serialize) -> Json {
    serde_json::to_value(value).unwrap_or_default()
}
