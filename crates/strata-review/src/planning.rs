//! Plans what a commit range changes: every stack in each of its environments, each environment in one run.

use std::collections::BTreeMap;

use strata_engine::{PlanFile, Problem};
use strata_secret::Redactor;
use strata_session::{
    Capacity, Keys, Planned, Planning, Purpose, SessionError, StateAccess, Surroundings, Unplanned, Workspace,
};

use crate::changed::{ChangedStack, SourceVersion};
use crate::finding::Finding;
use crate::range::{Range, short};
use crate::reviewed::{Reviewed, ReviewedStack};

/// What came of it.
pub struct PlannedReview {
    pub reviewed: Reviewed,
    /// What stands in the way of the plans themselves: with an error among them there is nothing to approve.
    pub findings: Vec<Finding>,
    /// What the hypervisors have, by their addresses.
    pub capacity: BTreeMap<String, Capacity>,
    redactors: Vec<Redactor>,
}

impl PlannedReview {
    pub fn is_blocked(&self) -> bool {
        self.findings.iter().any(Finding::is_error)
    }

    /// Whether anything would be done, now or by a stack that waits.
    pub fn has_changes(&self) -> bool {
        let waiting = self.reviewed.plans.iter().any(|file| !file.waiting.is_empty());
        waiting || self.reviewed.summary().changes() > 0
    }

    /// A text of it without any secret that this run came to know. The views show none; this is for what nobody has marked as one.
    pub fn scrubbed(&self, text: String) -> String {
        self.redactors.iter().fold(text, |text, redactor| redactor.redact(&text).into_owned())
    }
}

/// Plans what changed in the range. The files on the disk must be those of its head: they are what is read.
pub async fn plan(
    surroundings: &Surroundings,
    range: &Range,
    paths: Option<Vec<String>>,
) -> Result<PlannedReview, SessionError> {
    let workspace = valid_workspace(surroundings)?;
    let repository = workspace.repository_id()?.to_owned();
    same_source(&workspace, range)?;
    let stacks: Vec<ReviewedStack> =
        range.changed.iter().map(|one| reviewed_stack(one, &range.source)).collect();
    let made = plan_stacks(surroundings, &stacks).await?;
    // Keys of a new cluster are made by its first plan, and are no part of the commit then.
    same_source(&workspace, range)?;
    let reviewed = Reviewed {
        strata: env!("CARGO_PKG_VERSION").to_owned(),
        repository,
        commit: range.head.clone(),
        merge_base: range.merge_base.clone(),
        paths,
        stacks,
        plans: made.plans,
    };
    let capacity = surroundings.providers.capacity().await;
    Ok(PlannedReview { reviewed, findings: made.findings, capacity, redactors: made.redactors })
}

/// Plans again what was reviewed, as everything stands now.
pub async fn plan_again(
    surroundings: &Surroundings,
    approved: &Reviewed,
) -> Result<PlannedReview, SessionError> {
    let made = plan_stacks(surroundings, &approved.stacks).await?;
    let reviewed = Reviewed { plans: made.plans, ..approved.clone() };
    let capacity = BTreeMap::new();
    Ok(PlannedReview { reviewed, findings: made.findings, capacity, redactors: made.redactors })
}

/// The repository as it is on the disk, if nothing in it is wrong.
pub fn valid_workspace(surroundings: &Surroundings) -> Result<Workspace, SessionError> {
    let (workspace, diagnostics) = Workspace::load(surroundings.clone())?;
    match diagnostics.iter().find(|one| one.is_error()) {
        None => Ok(workspace),
        Some(error) => Err(SessionError::failed(error.message.clone())
            .hint("`strata validate` shows everything that is wrong")),
    }
}

struct Made {
    plans: Vec<PlanFile>,
    findings: Vec<Finding>,
    redactors: Vec<Redactor>,
}

async fn plan_stacks(surroundings: &Surroundings, stacks: &[ReviewedStack]) -> Result<Made, SessionError> {
    let mut by_environment: BTreeMap<&str, Vec<&ReviewedStack>> = BTreeMap::new();
    for one in stacks {
        by_environment.entry(&one.environment).or_default().push(one);
    }
    let (mut plans, mut findings, mut redactors) = (Vec::new(), Vec::new(), Vec::new());
    for (environment, changed) in by_environment {
        let own = Surroundings { environment: Some(environment.to_owned()), ..surroundings.clone() };
        let (own, _) = Workspace::load(own)?;
        plans.extend(plan_environment(&own, &changed, &mut findings).await?);
        redactors.push(own.redactor().clone());
    }
    Ok(Made { plans, findings, redactors })
}

/// What is on the disk is what the commit has, as far as any stack is made from it.
fn same_source(workspace: &Workspace, range: &Range) -> Result<(), SessionError> {
    let disk = SourceVersion::read(workspace.world()).map_err(SessionError::failed)?;
    let changed = range.source.changes_to(&disk);
    let Some(first) = changed.first() else { return Ok(()) };
    let about = first.reasons.first().map(|reason| reason.text.clone()).unwrap_or_default();
    let error = format!("the files here are not those of {}: {about}", short(&range.head));
    Err(SessionError::refused(error).hint("what is reviewed is a commit: commit everything, then plan again"))
}

async fn plan_environment(
    workspace: &Workspace,
    changed: &[&ReviewedStack],
    findings: &mut Vec<Finding>,
) -> Result<Option<PlanFile>, SessionError> {
    let mut names: Vec<String> = changed.iter().map(|one| one.stack.clone()).collect();
    workspace.find_removed(&names).await?;
    // What was never applied leaves nothing behind.
    names.retain(|name| {
        let is_left = || workspace.removed().iter().any(|removed| removed.stack.name == *name);
        changed.iter().any(|one| one.stack == *name && one.source.is_some()) || is_left()
    });
    if names.is_empty() {
        return Ok(None);
    }
    let purpose = Purpose {
        destroy: false,
        keys: Keys::Make,
        new_cluster: false,
        restoring: None,
        replace: Vec::new(),
        homes: Default::default(),
    };
    let planning = Planning { purpose, access: StateAccess::Look, into_file: true, saved: None };
    let planned = workspace.plan(&names, &planning).await?;
    for one in &planned {
        findings.extend(problems(one));
    }
    let file = workspace.plan_file(&planned, false, &names, &[]).await?;
    // The commit is that of the review; whether the clone has other files beside it means nothing.
    Ok(Some(PlanFile { commit: None, ..file }))
}

/// What stands in the way of one plan.
fn problems(planned: &Planned<'_>) -> Vec<Finding> {
    let key = planned.key();
    let of = |problem: &Problem| {
        Finding::error(
            key.clone(),
            problem.address.to_string(),
            format!("{}; {}", problem.message, problem.hint),
        )
    };
    match planned {
        Planned::Native(session, plan) => {
            let open = plan.open.iter().map(|entry| {
                let message = "an interrupted run left work open; `strata apply` finishes it";
                Finding::error(key.clone(), entry.address.to_string(), message)
            });
            open.chain(plan.problems.iter().chain(&session.obstacles).map(of)).collect()
        }
        Planned::Unplanned { reason: Unplanned::Failed(error), .. } => {
            vec![Finding::error(key, "", format!("not planned: {}", error.message))]
        }
        Planned::Unplanned { reason: Unplanned::Needs(other), .. } => {
            vec![Finding::error(key, "", format!("not planned: it needs `{other}`, which cannot be planned"))]
        }
        Planned::Driven(_) | Planned::Deferred { .. } => Vec::new(),
    }
}

fn reviewed_stack(one: &ChangedStack, source: &SourceVersion) -> ReviewedStack {
    ReviewedStack {
        environment: one.key.environment.clone(),
        stack: one.key.stack.clone(),
        change: one.change.as_str().to_owned(),
        source: source.digest(&one.key),
    }
}
