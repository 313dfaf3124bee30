//! The plans of a list of stacks, in their order, and the file that keeps them.
//!
//! Stacks that Strata makes itself are planned at the same time, from one look at their targets. OpenTofu plans its stacks one after the other: each
//! may need what the one before it gives.

use futures::stream::{self, StreamExt};
use strata_engine::{Look, Plan, PlanFile};
use strata_source::EffectiveStack;

use crate::error::SessionError;
use crate::planned::{Planned, PlannedTofu, Wait};
use crate::stack_graph::StackGraph;
use crate::stack_session::{OpenStack, Purpose, StackSession, StateAccess};
use crate::tofu::Inputs;
use crate::workspace::{KnownOutputs, Opened, Workspace, commit};

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
    /// Opens the stacks that the arguments select and plans them. What holds locks is among the result; an error has given them back.
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
        let (stacks, mut opened) = self.open_selected(selected, &planning.purpose, planning.access).await?;
        let graph = StackGraph::of(self.repository(), &stacks, planning.purpose.destroy);
        let plans = match plan_native(&mut opened, planning.saved).await {
            Ok(plans) => plans,
            Err(error) => {
                for one in opened {
                    let _ = one.release().await;
                }
                return Err(error);
            }
        };
        let mut rest = opened.into_iter().zip(plans).zip(stacks);
        let mut planned: Vec<Planned<'w>> = Vec::new();
        while let Some(((one, plan), stack)) = rest.next() {
            let waits = waits_for(&graph, &planned, planning);
            if let Err(error) = self.plan_next(one, plan, stack, waits, &mut planned, planning).await {
                for ((one, _), _) in rest {
                    let _ = one.release().await;
                }
                for one in planned {
                    let _ = one.release().await;
                }
                return Err(error);
            }
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
        planned: &mut Vec<Planned<'w>>,
        planning: &Planning<'_>,
    ) -> Result<(), SessionError> {
        match (opened, plan) {
            (Opened::Native(session), Some(plan)) => planned.push(match waits {
                Some(waits) => Planned::Deferred { stack, state: session.into_state(), waits },
                None => Planned::Native(session, Box::new(plan)),
            }),
            (Opened::Native(session), None) => {
                let _ = session.release().await;
                return Err(SessionError::failed(format!("`{}` has no plan", stack.name)));
            }
            (Opened::Driven(open), _) => {
                let first = planning.purpose.destroy || planning.saved.is_some();
                let output = Planned::awaited_output(open.stack, planned).filter(|_| !first);
                if let Some(waits) = output.or(waits) {
                    let OpenStack { stack, state, .. } = *open;
                    planned.push(Planned::Deferred { stack, state, waits });
                    return Ok(());
                }
                let known = Planned::outputs(planned);
                match self.plan_driven(&open, &known, planning.saved).await {
                    Ok((driven, plan)) => {
                        let state = open.state;
                        planned.push(Planned::Driven(Box::new(PlannedTofu { driven, plan, state })));
                    }
                    Err(error) => {
                        // The first error is the one to tell.
                        let _ = open.release().await;
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
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
                Planned::Deferred { stack, .. } => file.waiting.push(stack.name.clone()),
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

/// The plans of all stacks that Strata makes itself, many at once, in their order. What interrupted runs left open is resolved first, and only
/// then looked at what there is: one look serves all plans, and nothing is written after it has begun.
async fn plan_native(
    opened: &mut [Opened<'_>],
    saved: Option<&PlanFile>,
) -> Result<Vec<Option<Plan>>, SessionError> {
    if saved.is_none() {
        let recoveries = opened.iter_mut().filter_map(native).map(StackSession::recover);
        first_error(recoveries.collect()).await?;
    }
    let look = Look::default();
    let plans = opened.iter_mut().map(|one| {
        let (session, look) = (native(one), &look);
        async move {
            match session {
                Some(session) => session.plan_or_check(look, saved).await.map(Some),
                None => Ok(None),
            }
        }
    });
    first_error(plans.collect()).await
}

fn native<'o>(opened: &'o mut Opened<'_>) -> Option<&'o mut StackSession> {
    match opened {
        Opened::Native(session) => Some(session),
        Opened::Driven(_) => None,
    }
}

/// Does all of it, and gives the first error by their order: what is told must not depend on who was faster.
async fn first_error<T, F>(work: Vec<F>) -> Result<Vec<T>, SessionError>
where
    F: Future<Output = Result<T, SessionError>>,
{
    let results: Vec<Result<T, SessionError>> = stream::iter(work).buffered(AT_ONCE).collect().await;
    results.into_iter().collect()
}
