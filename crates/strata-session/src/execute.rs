//! An apply or a destroy of a list of stacks: open, plan, review, run, one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use strata_engine::{ApplyOptions, ApplyReport, LockedRun, Plan, PlanFile, StopSignal};
use strata_secret::SecretBytes;

use crate::error::{ErrorKind, SessionError};
use crate::observer::Notice;
use crate::planned::{Planned, PlannedTofu};
use crate::planning::Planning;
use crate::stack_session::{HeldState, Keys, Purpose, StateAccess};
use crate::tofu::{Applied, Driven, DrivenPlan, Inputs};
use crate::workspace::{KnownOutputs, Workspace};

/// What is to be done, and how.
#[derive(Default)]
pub struct Job<'j> {
    pub destroy: bool,
    pub parallelism: Option<usize>,
    /// Another etcd may be bootstrapped in the place of one that was lost.
    pub new_cluster: bool,
    /// An etcd snapshot that a lost etcd is restored from.
    pub restoring: Option<Arc<SecretBytes>>,
    /// Exactly this plan, or nothing.
    pub saved: Option<&'j PlanFile>,
}

/// Who decides whether what is planned is done: a person at a terminal, a rule, a test.
#[async_trait]
pub trait Reviewer: Send + Sync {
    /// Sees what is planned, before anything is asked of a target. An error ends the run, with nothing changed.
    fn show(&self, planned: &[Planned<'_>]) -> Result<(), SessionError>;

    /// Agrees to it, or ends the run with an error. For what could not be planned before, with the signal that stops the run.
    async fn agree(&self, planned: &[Planned<'_>], stop: Option<&StopSignal>) -> Result<(), SessionError>;

    /// It is agreed to, and work begins: this stops it.
    fn begin(&self) -> StopSignal;
}

/// What came of one stack.
pub enum Report {
    Native(ApplyReport),
    Driven(Applied),
}

impl Report {
    pub fn is_success(&self) -> bool {
        match self {
            Self::Native(report) => report.is_success(),
            Self::Driven(applied) => applied.error.is_none(),
        }
    }

    pub fn done(&self) -> usize {
        match self {
            Self::Native(report) => report.done,
            Self::Driven(applied) => applied.done,
        }
    }

    pub fn failed(&self) -> usize {
        match self {
            Self::Native(report) => report.failed.len(),
            Self::Driven(applied) => applied.failed,
        }
    }

    pub fn interrupted(&self) -> bool {
        match self {
            Self::Native(report) => report.interrupted,
            Self::Driven(applied) => applied.interrupted,
        }
    }
}

/// What came of a list of stacks.
pub struct Executed {
    /// In the order of the plans; fewer where something failed or was stopped.
    pub reports: Vec<Report>,
    pub totals: Totals,
    /// Whether all locks were given back.
    pub released: Result<(), SessionError>,
}

/// What was planned, in numbers.
#[derive(Debug, Default, Clone, Copy)]
pub struct Totals {
    pub summary: strata_engine::Summary,
    pub steps: usize,
    /// What nobody can see, and is left as it is.
    pub unknown: usize,
    /// Stacks that had a plan when the run ended.
    pub planned: usize,
}

impl Totals {
    fn of(planned: &[Planned<'_>]) -> Self {
        let mut totals = Self::default();
        for one in planned {
            totals.summary += one.summary();
            totals.steps += one.steps();
            totals.unknown += one.unknown();
            totals.planned += usize::from(!one.is_deferred());
        }
        totals
    }
}

impl Workspace {
    /// Plans, has it reviewed, and runs it. With a plan file, exactly that one or nothing.
    pub async fn execute(
        &self,
        stacks: &[String],
        job: &Job<'_>,
        reviewer: &dyn Reviewer,
    ) -> Result<Executed, SessionError> {
        // A destroy needs no keys of a cluster that was never made.
        let keys = if job.destroy { Keys::Draw } else { Keys::Make };
        let purpose = Purpose {
            destroy: job.destroy,
            keys,
            new_cluster: job.new_cluster,
            restoring: job.restoring.clone(),
        };
        let access = StateAccess::Lock(if job.destroy { "destroy" } else { "apply" });
        let planning = Planning { purpose, access, into_file: false, saved: job.saved };
        let mut planned = self.plan(stacks, &planning).await?;
        let reports = self.review_and_run(&mut planned, job, reviewer).await;
        let totals = Totals::of(&planned);
        // Whatever came of it, the locks are given back; the first error is the one to tell.
        let mut released = Ok(());
        for one in planned {
            released = released.and(one.release().await);
        }
        Ok(Executed { reports: reports?, totals, released })
    }

    async fn review_and_run<'w>(
        &'w self,
        planned: &mut Vec<Planned<'w>>,
        job: &Job<'_>,
        reviewer: &dyn Reviewer,
    ) -> Result<Vec<Report>, SessionError> {
        reviewer.show(planned)?;
        self.check(planned).await?;
        if planned.iter().any(Planned::has_changes) {
            reviewer.agree(planned, None).await?;
        }
        let options = ApplyOptions { limits: self.limits(job.parallelism), stop: reviewer.begin() };
        self.run_all(planned, &options, job.destroy, reviewer).await
    }

    /// Nothing runs that cannot run to its end.
    async fn check(&self, planned: &[Planned<'_>]) -> Result<(), SessionError> {
        if planned.iter().any(Planned::is_blocked) {
            return Err(SessionError::silent(ErrorKind::Refused));
        }
        let mut missing = Vec::new();
        let mut earlier: Vec<&Plan> = Vec::new();
        for one in planned {
            if let Planned::Native(session, plan) = one {
                missing.extend(session.preflight(plan, &earlier).await?);
                earlier.push(plan);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        for problem in missing {
            self.surroundings().observer.notice(Notice::Preflight(&SessionError::from(problem)));
        }
        Err(SessionError::refused("the preflight found what would fail later; nothing was changed"))
    }

    /// One stack after the other. What waited for outputs is planned, shown and asked for when they are known.
    async fn run_all<'w>(
        &'w self,
        planned: &mut Vec<Planned<'w>>,
        options: &ApplyOptions,
        destroy: bool,
        reviewer: &dyn Reviewer,
    ) -> Result<Vec<Report>, SessionError> {
        let mut known = KnownOutputs::new();
        let mut reports = Vec::new();
        let mut outcome = Ok(());
        let mut rest = std::mem::take(planned).into_iter();
        for one in rest.by_ref() {
            if options.stop.stopping() {
                planned.push(one);
                break;
            }
            let (mut one, agreed) = self.plan_deferred(one, &known, &options.stop, reviewer).await;
            let report = match agreed {
                Ok(()) => run_one(&mut one, options, destroy, &mut known).await,
                Err(error) => {
                    let interrupted = error.kind == ErrorKind::Interrupted;
                    Ok(Report::Driven(Applied { interrupted, error: Some(error), ..Applied::default() }))
                }
            };
            planned.push(one);
            match report {
                Ok(report) => reports.push(report),
                Err(error) => outcome = Err(error),
            }
            // A higher layer may need what failed here.
            if outcome.is_err() || !reports.last().is_some_and(Report::is_success) {
                break;
            }
        }
        planned.extend(rest);
        outcome.map(|()| reports)
    }

    /// Plans a stack that waited for outputs, now that they are known, and has it agreed to. All others are as they were.
    async fn plan_deferred<'w>(
        &'w self,
        one: Planned<'w>,
        known: &KnownOutputs,
        stop: &StopSignal,
        reviewer: &dyn Reviewer,
    ) -> (Planned<'w>, Result<(), SessionError>) {
        let Planned::Deferred { stack, state, waits } = one else { return (one, Ok(())) };
        let planned = async {
            let driven = self.open_driven(stack, Inputs::All(known)).await?;
            let plan = driven.prepare(false, None).await?;
            Ok((driven, plan))
        };
        let one = match planned.await {
            Ok((driven, plan)) => Planned::Driven(Box::new(PlannedTofu { driven, plan, state })),
            Err(error) => return (Planned::Deferred { stack, state, waits }, Err(error)),
        };
        let shown = std::slice::from_ref(&one);
        let agreed = match reviewer.show(shown) {
            Err(error) => Err(error),
            Ok(()) if stop.stopping() => Err(interrupted()),
            Ok(()) if one.has_changes() => reviewer.agree(shown, Some(stop)).await,
            Ok(()) => Ok(()),
        };
        (one, agreed)
    }
}

async fn run_one(
    one: &mut Planned<'_>,
    options: &ApplyOptions,
    destroy: bool,
    known: &mut KnownOutputs,
) -> Result<Report, SessionError> {
    match one {
        Planned::Native(session, plan) => Ok(Report::Native(session.apply(plan, options).await?)),
        Planned::Driven(tofu) => {
            let applied = apply_driven(tofu, &options.stop, destroy).await?;
            known.extend(applied.outputs.clone().map(|outputs| (tofu.driven.name.clone(), outputs)));
            Ok(Report::Driven(applied))
        }
        Planned::Deferred { stack, .. } => Err(SessionError::failed(format!("`{}` has no plan", stack.name))),
    }
}

/// Somebody stopped the run before it was agreed to.
pub fn interrupted() -> SessionError {
    SessionError::new(ErrorKind::Interrupted, "interrupted before it was agreed to")
}

/// A stack that OpenTofu makes. Of what it made, Strata's state keeps the outputs, for others to ask for.
async fn apply_driven(
    tofu: &mut PlannedTofu<'_>,
    stop: &StopSignal,
    destroy: bool,
) -> Result<Applied, SessionError> {
    let PlannedTofu { driven, plan, state } = tofu;
    let HeldState::Locked(run) = state else {
        return Err(SessionError::failed(format!("`{}` was opened to look, not to be changed", driven.name)));
    };
    run.still_held()?;
    let applied = if plan.changes.any() {
        driven.apply(plan, stop).await?
    } else {
        // A run that was killed may have left this undone.
        Applied { outputs: Some(plan.outputs()), ..Applied::default() }
    };
    let outputs = match applied.error {
        Some(_) => None,
        None if destroy => Some(BTreeMap::new()),
        None => applied.outputs.clone(),
    };
    if let Some(outputs) = outputs {
        keep_outputs(run, driven, plan, outputs, destroy).await?;
    }
    Ok(applied)
}

async fn keep_outputs(
    run: &mut LockedRun,
    driven: &Driven<'_>,
    plan: &DrivenPlan,
    outputs: BTreeMap<String, strata_resource::Value>,
    destroy: bool,
) -> Result<(), SessionError> {
    // What OpenTofu holds is known by its folder: without it nobody would miss a stack that left the source.
    let held = !destroy && (plan.changes.unchanged > 0 || plan.changes.any() || !outputs.is_empty());
    let tofu = held.then(|| driven.stack.folder.clone());
    if run.state().outputs != outputs || run.state().tofu != tofu {
        run.edit(|document| {
            document.outputs = outputs;
            document.tofu = tofu;
        })
        .await?;
    }
    Ok(())
}
