//! An apply or a destroy of a list of stacks: open, plan, review, and run what does not depend on each other at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{FuturesUnordered, StreamExt};
use strata_blueprint::placement::{Homes, planned_homes};
use strata_engine::{ApplyOptions, ApplyReport, Capacity, LockedRun, PlanFile, StopSignal};
use strata_secret::SecretBytes;

use crate::error::{ErrorKind, SessionError};
use crate::planned::{Planned, PlannedTofu, Unplanned};
use crate::planning::{Planning, Prepared};
use crate::stack_graph::{Progress, StackGraph};
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
    /// Addresses of what is replaced although nothing about it asks for that.
    pub replace: Vec<String>,
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

/// What came of one stack of a run.
pub struct StackOutcome {
    pub stack: String,
    /// The key of its state.
    pub key: String,
    pub result: StackResult,
}

pub enum StackResult {
    /// It was applied, as far as its report says.
    Ended(Report),
    /// It ended before there was a report: its state cannot be written, its lock is lost.
    Failed(SessionError),
    /// It could not be planned.
    NotPlanned(SessionError),
    /// Nothing of it was begun, because a stack that it needs failed.
    NeedsFailed(String),
    /// Nothing of it was begun, because the user said stop.
    Stopped,
}

impl StackOutcome {
    pub fn is_success(&self) -> bool {
        matches!(&self.result, StackResult::Ended(report) if report.is_success())
    }

    pub fn report(&self) -> Option<&Report> {
        match &self.result {
            StackResult::Ended(report) => Some(report),
            _ => None,
        }
    }
}

/// What came of a list of stacks.
pub struct Executed {
    /// One for each plan, in their order.
    pub outcomes: Vec<StackOutcome>,
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
            totals.planned += usize::from(!one.is_deferred() && !one.is_unplanned());
        }
        totals
    }
}

/// The places that a saved plan has for what is new: it is applied as it was shown.
fn saved_homes(saved: &PlanFile) -> Homes {
    let steps = saved.stacks.iter().flat_map(|planned| &planned.plan.steps);
    planned_homes(steps.map(|step| (&step.address, &step.spec)))
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
            replace: job.replace.clone(),
            homes: job.saved.map(saved_homes).unwrap_or_default(),
        };
        let access = StateAccess::Lock(if job.destroy { "destroy" } else { "apply" });
        let planning = Planning { purpose, access, into_file: false, saved: job.saved };
        let Prepared { mut planned, graph } = self.prepare(stacks, &planning).await?;
        let outcomes = self.review_and_run(&mut planned, &graph, job, reviewer).await;
        let totals = Totals::of(&planned);
        // Whatever came of it, the locks are given back; the first error is the one to tell.
        let mut released = Ok(());
        for one in planned {
            released = released.and(one.release().await);
        }
        Ok(Executed { outcomes: outcomes?, totals, released })
    }

    async fn review_and_run<'w>(
        &'w self,
        planned: &mut Vec<Planned<'w>>,
        graph: &StackGraph,
        job: &Job<'_>,
        reviewer: &dyn Reviewer,
    ) -> Result<Vec<StackOutcome>, SessionError> {
        reviewer.show(planned)?;
        // Nothing runs that cannot run to its end.
        if planned.iter().any(Planned::is_blocked) {
            return Err(SessionError::already_shown(ErrorKind::Refused));
        }
        if planned.iter().any(Planned::has_changes) {
            reviewer.agree(planned, None).await?;
        }
        crate::moving::carry_out(planned).await?;
        let limits = self.limits(job.parallelism, planned.len());
        let capacity = Some(Capacity::new(limits.clone()));
        let options = ApplyOptions { limits, stop: reviewer.begin(), capacity };
        let walk = Walk { workspace: self, graph, options, destroy: job.destroy, reviewer };
        let (ended, outcomes) = walk.run(std::mem::take(planned)).await;
        *planned = ended;
        Ok(outcomes)
    }
}

/// The way through the stacks of a run.
struct Walk<'x, 'w> {
    workspace: &'w Workspace,
    graph: &'x StackGraph,
    options: ApplyOptions,
    destroy: bool,
    reviewer: &'x dyn Reviewer,
}

impl<'w> Walk<'_, 'w> {
    /// Runs every stack as soon as what it needs has succeeded. A failure stops what needs it, and nothing else. Gives the stacks back, for their
    /// locks, and what came of each, both in their order.
    async fn run(&self, planned: Vec<Planned<'w>>) -> (Vec<Planned<'w>>, Vec<StackOutcome>) {
        let names: Vec<String> = planned.iter().map(|one| one.name().to_owned()).collect();
        let mut keys: Vec<String> = planned.iter().map(Planned::key).collect();
        let mut waiting: Vec<Option<Planned<'w>>> = planned.into_iter().map(Some).collect();
        let mut progress = vec![Progress::Waiting; names.len()];
        let mut results: Vec<Option<StackResult>> = names.iter().map(|_| None).collect();
        for (place, one) in waiting.iter().enumerate() {
            if let Some(Planned::Unplanned { reason, .. }) = one {
                progress[place] = Progress::Failed;
                results[place] = Some(match reason {
                    Unplanned::Failed(error) => StackResult::NotPlanned(error.clone()),
                    Unplanned::Needs(other) => StackResult::NeedsFailed(other.clone()),
                });
            }
        }
        let mut known = KnownOutputs::new();
        let mut running = FuturesUnordered::new();
        loop {
            let mut asked = None;
            for place in self.ready(&progress) {
                match waiting[place].take() {
                    // Whoever is asked reads what was planned, and no progress in between: it begins when nothing runs.
                    Some(one) if one.is_deferred() => {
                        if running.is_empty() && asked.is_none() {
                            asked = Some((place, one));
                        } else {
                            waiting[place] = Some(one);
                        }
                    }
                    Some(one) => {
                        progress[place] = Progress::Running;
                        running.push(self.run_one(place, one, Ok(())));
                    }
                    None => {}
                }
            }
            if let Some((place, one)) = asked {
                if running.is_empty() {
                    progress[place] = Progress::Running;
                    let (one, agreed) = self.plan_deferred(one, &known).await;
                    running.push(self.run_one(place, one, agreed));
                } else {
                    waiting[place] = Some(one);
                }
            }
            let Some(ended) = running.next().await else { break };
            let Ended { place, planned, result } = ended;
            if let (Planned::Driven(tofu), StackResult::Ended(Report::Driven(applied))) = (&planned, &result)
            {
                known.extend(applied.outputs.clone().map(|outputs| (tofu.driven.name.clone(), outputs)));
            }
            let succeeded = matches!(&result, StackResult::Ended(report) if report.is_success());
            progress[place] = if succeeded { Progress::Done } else { Progress::Failed };
            (waiting[place], results[place]) = (Some(planned), Some(result));
        }
        let outcomes = names.iter().cloned().zip(results).enumerate().map(|(place, (stack, result))| {
            let not_begun = || match self.graph.failed_need(place, &progress) {
                Some(failed) if !self.options.stop.stopping() => {
                    StackResult::NeedsFailed(names[failed].clone())
                }
                _ => StackResult::Stopped,
            };
            let key = std::mem::take(&mut keys[place]);
            StackOutcome { stack, key, result: result.unwrap_or_else(not_begun) }
        });
        let outcomes = outcomes.collect();
        (waiting.into_iter().flatten().collect(), outcomes)
    }

    fn ready(&self, progress: &[Progress]) -> Vec<usize> {
        if self.options.stop.stopping() { Vec::new() } else { self.graph.ready(progress) }
    }

    async fn run_one(
        &self,
        place: usize,
        mut planned: Planned<'w>,
        agreed: Result<(), SessionError>,
    ) -> Ended<'w> {
        let report = match agreed {
            Ok(()) => run_one(&mut planned, &self.options, self.destroy).await,
            Err(error) => {
                let interrupted = error.kind == ErrorKind::Interrupted;
                Ok(Report::Driven(Applied { interrupted, error: Some(error), ..Applied::default() }))
            }
        };
        Ended { place, planned, result: report.map_or_else(StackResult::Failed, StackResult::Ended) }
    }

    /// Plans a stack that waited for outputs, now that they are known, and has it agreed to. All others are as they were.
    async fn plan_deferred(
        &self,
        one: Planned<'w>,
        known: &KnownOutputs,
    ) -> (Planned<'w>, Result<(), SessionError>) {
        let Planned::Deferred { stack, state, waits } = one else { return (one, Ok(())) };
        let planned = async {
            let driven = self.workspace.open_driven(stack, Inputs::All(known)).await?;
            let plan = driven.prepare(false, None).await?;
            Ok((driven, plan))
        };
        let one = match planned.await {
            Ok((driven, plan)) => Planned::Driven(Box::new(PlannedTofu { driven, plan, state })),
            Err(error) => return (Planned::Deferred { stack, state, waits }, Err(error)),
        };
        let (shown, stop) = (std::slice::from_ref(&one), &self.options.stop);
        let agreed = match self.reviewer.show(shown) {
            Err(error) => Err(error),
            Ok(()) if stop.stopping() => Err(interrupted()),
            Ok(()) if one.has_changes() => self.reviewer.agree(shown, Some(stop)).await,
            Ok(()) => Ok(()),
        };
        (one, agreed)
    }
}

/// A stack that ran, by its place among the others.
struct Ended<'w> {
    place: usize,
    planned: Planned<'w>,
    result: StackResult,
}

async fn run_one(
    one: &mut Planned<'_>,
    options: &ApplyOptions,
    destroy: bool,
) -> Result<Report, SessionError> {
    match one {
        Planned::Native(session, plan) => Ok(Report::Native(session.apply(plan, options).await?)),
        Planned::Driven(tofu) => Ok(Report::Driven(apply_driven(tofu, &options.stop, destroy).await?)),
        Planned::Deferred { stack, .. } | Planned::Unplanned { stack, .. } => {
            Err(SessionError::failed(format!("`{}` has no plan", stack.name)))
        }
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
