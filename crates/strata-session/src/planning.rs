//! The plans of a list of stacks, in their order, and the file that keeps them.
//!
//! Stacks that Strata makes itself are planned at the same time, from one look at their targets. OpenTofu plans its stacks one after the other: each
//! may need what the one before it gives.

use futures::stream::{self, StreamExt};
use strata_engine::{EarlierOperations, Look, Plan, PlanFile};
use strata_source::EffectiveStack;

use crate::error::SessionError;
use crate::planned::{Planned, PlannedTofu, Unplanned, Wait};
use crate::stack_graph::StackGraph;
use crate::stack_session::{OpenStack, Purpose, StackSession, StateAccess};
use crate::tofu::Inputs;
use crate::workspace::{Attempt, KnownOutputs, Opened, OpenedStacks, Workspace, commit};

/// How many stacks are planned at once. How many requests that makes at once is for their targets to say.
const AT_ONCE: usize = 32;

/// What plans are made for.
pub struct Planning<'p> {
    pub purpose: Purpose,
    pub access: StateAccess<'p>,
    /// They go into a file: then none may be in it whose order would be turned around.
    pub into_file: bool,
    /// Exactly these, or none.
    pub saved: Option<&'p PlanFile>,
}

/// Plans, and which of their stacks go before which.
pub(crate) struct Prepared<'w> {
    pub(crate) planned: Vec<Planned<'w>>,
    pub(crate) graph: StackGraph,
}

impl Workspace {
    /// Opens the stacks that the arguments select and plans them. What holds locks is among the result; an error has given them back. A stack that
    /// cannot be planned is left out with what needs it; an error concerns all of them, or the only plan there would have been.
    pub async fn plan<'w>(
        &'w self,
        stacks: &[String],
        planning: &Planning<'_>,
    ) -> Result<Vec<Planned<'w>>, SessionError> {
        Ok(self.prepare(stacks, planning).await?.planned)
    }

    /// The same with their graph.
    pub(crate) async fn prepare<'w>(
        &'w self,
        stacks: &[String],
        planning: &Planning<'_>,
    ) -> Result<Prepared<'w>, SessionError> {
        let selected = self.selected(stacks, planning.purpose.destroy)?;
        let OpenedStacks { stacks, mut opened, links } =
            self.open_selected(selected, &planning.purpose, planning.access).await?;
        let graph = StackGraph::of(self.repository(), &stacks, planning.purpose.destroy).linked(links);
        let look = Look::default();
        let plans = plan_native(&mut opened, planning.saved, &look).await;
        let failed: Vec<bool> = opened.iter().map(Result::is_err).collect();
        let mut causes = graph.left_out(&failed);
        let mut planned: Vec<Planned<'w>> = Vec::new();
        for (place, ((one, plan), stack)) in opened.into_iter().zip(plans).zip(&stacks).enumerate() {
            let one = match (one, causes[place]) {
                (Ok(one), None) => {
                    let waits = waits_for(&graph, &planned, planning);
                    self.plan_next(one, plan, stack, waits, &planned, planning).await
                }
                (Ok(one), Some(cause)) => {
                    let _ = one.release().await;
                    let reason = Unplanned::Needs(stacks[cause].name.clone());
                    Ok(Planned::Unplanned { stack, reason })
                }
                (Err(error), _) => Err(error),
            };
            planned.push(one.unwrap_or_else(|error| Planned::Unplanned { stack, reason: failure(error) }));
            if planned.last().is_some_and(Planned::is_unplanned) && causes[place].is_none() {
                let failed: Vec<bool> =
                    (0..causes.len()).map(|other| other == place || causes[other] == Some(other)).collect();
                causes = graph.left_out(&failed);
            }
        }
        let mut planned = leave_out(planned, &stacks, &causes).await;
        let failed = preflight(&mut planned, &stacks, &look).await;
        if failed.iter().any(|failed| *failed) {
            planned = leave_out(planned, &stacks, &graph.left_out(&failed)).await;
        }
        let error = match planning.saved {
            Some(_) => first_failure(&planned),
            None => Planned::only_error(&planned),
        };
        if let Some(error) = error {
            for one in planned {
                let _ = one.release().await;
            }
            return Err(error);
        }
        Ok(Prepared { planned, graph })
    }

    /// `waits`: what goes before it and has no plan yet, where that matters.
    async fn plan_next<'w>(
        &'w self,
        opened: Opened<'w>,
        plan: Option<Plan>,
        stack: &'w EffectiveStack,
        waits: Option<Wait>,
        planned: &[Planned<'w>],
        planning: &Planning<'_>,
    ) -> Result<Planned<'w>, SessionError> {
        match (opened, plan) {
            (Opened::Native(session), Some(plan)) => Ok(match waits {
                Some(waits) => Planned::Deferred { stack, state: session.into_state(), waits },
                None => Planned::Native(session, Box::new(plan)),
            }),
            (Opened::Native(session), None) => {
                let _ = session.release().await;
                Err(SessionError::failed(format!("`{}` has no plan", stack.name)))
            }
            (Opened::Driven(open), _) => {
                let first = planning.purpose.destroy || planning.saved.is_some();
                let output = Planned::awaited_output(open.stack, planned).filter(|_| !first);
                if let Some(waits) = output.or(waits) {
                    let OpenStack { stack, state, .. } = *open;
                    return Ok(Planned::Deferred { stack, state, waits });
                }
                let known = Planned::outputs(planned);
                match self.plan_driven(&open, &known, planning.saved).await {
                    Ok((driven, plan)) => {
                        let state = open.state;
                        Ok(Planned::Driven(Box::new(PlannedTofu { driven, plan, state })))
                    }
                    Err(error) => {
                        // The first error is the one to tell.
                        let _ = open.release().await;
                        Err(error)
                    }
                }
            }
        }
    }

    /// Opens the code of a stack of OpenTofu and plans it.
    pub(crate) async fn plan_driven<'w>(
        &'w self,
        open: &OpenStack<'w>,
        known: &KnownOutputs,
        saved: Option<&PlanFile>,
    ) -> Result<(Box<crate::tofu::Driven<'w>>, crate::tofu::DrivenPlan), SessionError> {
        open.refuse_resources()?;
        let driven = self.open_driven(open.stack, Inputs::All(known)).await?;
        let plan = driven.prepare(open.purpose.destroy, saved).await?;
        Ok((driven, plan))
    }

    /// The file of these plans. Those that wait are named in it, and not more.
    pub async fn plan_file(
        &self,
        planned: &[Planned<'_>],
        destroy: bool,
        asked: &[String],
        replace: &[String],
    ) -> Result<PlanFile, SessionError> {
        let version = env!("CARGO_PKG_VERSION");
        let mut file = PlanFile::new(version, commit(self.root()), self.environment(), destroy);
        file.replace = replace.to_vec();
        if planned.iter().any(Planned::is_selected) {
            file.selection = asked.to_vec();
        }
        for one in planned {
            match one {
                Planned::Native(session, plan) => {
                    file.push(&session.name, session.source_digest(), plan.as_ref().clone());
                }
                Planned::Driven(tofu) => file.driven.push(tofu.driven.saved(&tofu.plan).await?),
                Planned::Deferred { stack, .. } | Planned::Unplanned { stack, .. } => {
                    file.waiting.push(stack.name.clone());
                }
            }
        }
        Ok(file)
    }
}

/// What the next stack goes after and what has no plan yet: a file with its own plan alone would turn their order around.
fn waits_for(graph: &StackGraph, planned: &[Planned<'_>], planning: &Planning<'_>) -> Option<Wait> {
    if !planning.into_file || planning.purpose.destroy {
        return None;
    }
    let mut earlier = graph.needs(planned.len()).into_iter().filter_map(|place| planned.get(place));
    let first = earlier.find(|one| one.is_deferred())?;
    Some(Wait::Stack(first.name().to_owned()))
}

/// Why a stack has no plan. What was reported before is named again, in a word.
fn failure(mut error: SessionError) -> Unplanned {
    if error.message.is_empty() {
        error.message = "its source has errors, which are shown above".to_owned();
    }
    Unplanned::Failed(error)
}

fn first_failure(planned: &[Planned<'_>]) -> Option<SessionError> {
    planned.iter().find_map(|one| match one {
        Planned::Unplanned { reason: Unplanned::Failed(error), .. } => Some(error.clone()),
        _ => None,
    })
}

/// Takes the plans away again of stacks that cannot go without one that failed after them.
async fn leave_out<'w>(
    planned: Vec<Planned<'w>>,
    stacks: &[&'w EffectiveStack],
    causes: &[Option<usize>],
) -> Vec<Planned<'w>> {
    let mut kept = Vec::new();
    for (place, one) in planned.into_iter().enumerate() {
        kept.push(match causes[place] {
            Some(cause) if !one.is_unplanned() => {
                let _ = one.release().await;
                let reason = Unplanned::Needs(stacks[cause].name.clone());
                Planned::Unplanned { stack: stacks[place], reason }
            }
            _ => one,
        });
    }
    kept
}

/// The plans of all stacks that Strata makes itself, many at once, in their order. What interrupted runs left open is resolved first, and only
/// then looked at what there is: one look serves all plans, and nothing is written after it has begun. What fails gives its lock back and stands
/// in the place of its stack.
async fn plan_native(opened: &mut [Attempt<'_>], saved: Option<&PlanFile>, look: &Look) -> Vec<Option<Plan>> {
    if saved.is_none() {
        let recoveries = opened.iter_mut().map(|one| {
            let session = native(one);
            async move {
                match session {
                    Some(session) => session.recover().await,
                    None => Ok(()),
                }
            }
        });
        let recovered = all(recoveries.collect()).await;
        for (one, recovered) in opened.iter_mut().zip(recovered) {
            if let Err(error) = recovered {
                give_up(one, error).await;
            }
        }
    }
    let plans = opened.iter_mut().map(|one| {
        let session = native(one);
        async move {
            match session {
                Some(session) => session.plan_or_check(look, saved).await.map(Some),
                None => Ok(None),
            }
        }
    });
    let made = all(plans.collect()).await;
    let mut plans = Vec::new();
    for (one, made) in opened.iter_mut().zip(made) {
        plans.push(match made {
            Ok(plan) => plan,
            Err(error) => {
                give_up(one, error).await;
                None
            }
        });
    }
    plans
}

/// Asks for every plan whether it can run to its end: what one stack makes is there for those after it, and what it takes is taken. A plan without
/// anything to do asks nothing. A target that does not answer leaves its stack without a plan.
async fn preflight<'w>(planned: &mut [Planned<'w>], stacks: &[&'w EffectiveStack], look: &Look) -> Vec<bool> {
    let mut earlier = EarlierOperations::default();
    let mut failed = vec![false; planned.len()];
    for (place, one) in planned.iter_mut().enumerate() {
        let Planned::Native(session, plan) = one else { continue };
        match session.preflight(plan, look, &mut earlier).await {
            Ok(found) => session.obstacles = found,
            Err(error) => {
                let without = Planned::Unplanned { stack: stacks[place], reason: failure(error) };
                // The first error is the one to tell.
                let _ = std::mem::replace(one, without).release().await;
                failed[place] = true;
            }
        }
    }
    failed
}

/// Puts an error in the place of a stack, and gives its lock back.
async fn give_up(one: &mut Attempt<'_>, error: SessionError) {
    if let Ok(opened) = std::mem::replace(one, Err(error)) {
        let _ = opened.release().await;
    }
}

fn native<'o>(opened: &'o mut Attempt<'_>) -> Option<&'o mut StackSession> {
    match opened {
        Ok(Opened::Native(session)) => Some(session),
        Ok(Opened::Driven(_)) | Err(_) => None,
    }
}

/// Does all of it, many at once, and gives the results in their order.
async fn all<T, F: Future<Output = T>>(work: Vec<F>) -> Vec<T> {
    stream::iter(work).buffered(AT_ONCE).collect().await
}
