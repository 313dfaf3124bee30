//! The plans of a list of stacks, in their order, and the file that keeps them.

use strata_engine::PlanFile;

use crate::error::SessionError;
use crate::planned::{Planned, PlannedTofu, Wait};
use crate::stack_session::{OpenStack, Purpose, StateAccess};
use crate::tofu::Inputs;
use crate::workspace::{KnownOutputs, Opened, Workspace, commit};

/// What plans are made for.
pub struct Planning<'p> {
    pub purpose: Purpose,
    pub access: StateAccess<'p>,
    /// They go into a file: then none may be in it whose order would be turned around.
    pub into_file: bool,
    /// Exactly these, or none.
    pub saved: Option<&'p PlanFile>,
}

impl Workspace {
    /// Opens the stacks that the arguments select and plans them. What holds locks is among the result; an error has given them back.
    pub async fn plan<'w>(
        &'w self,
        stacks: &[String],
        planning: &Planning<'_>,
    ) -> Result<Vec<Planned<'w>>, SessionError> {
        let opened = self.open(stacks, &planning.purpose, planning.access).await?;
        let mut rest = opened.into_iter();
        let mut planned = Vec::new();
        while let Some(one) = rest.next() {
            if let Err(error) = self.plan_next(one, &mut planned, planning).await {
                for one in rest {
                    let _ = one.release().await;
                }
                for one in planned {
                    let _ = one.release().await;
                }
                return Err(error);
            }
        }
        Ok(planned)
    }

    async fn plan_next<'w>(
        &'w self,
        opened: Opened<'w>,
        planned: &mut Vec<Planned<'w>>,
        planning: &Planning<'_>,
    ) -> Result<(), SessionError> {
        let keeps_order = planning.into_file && !planning.purpose.destroy;
        match opened {
            Opened::Native(mut session) => {
                let stack = if keeps_order { Some(self.one(&session.name)) } else { None };
                let waits = match stack {
                    Some(Ok(stack)) => Planned::awaited_stack(stack, planned).map(|waits| (stack, waits)),
                    Some(Err(_)) | None => None,
                };
                if let Some((stack, waits)) = waits {
                    planned.push(Planned::Deferred { stack, state: session.into_state(), waits });
                    return Ok(());
                }
                match session.plan_or_check(planning.saved).await {
                    Ok(plan) => planned.push(Planned::Native(session, Box::new(plan))),
                    Err(error) => {
                        // The first error is the one to tell.
                        let _ = session.release().await;
                        return Err(error);
                    }
                }
            }
            Opened::Driven(open) => {
                if let Some(waits) = wait_of(&open, planned, planning) {
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
    pub async fn plan_file(&self, planned: &[Planned<'_>], destroy: bool) -> Result<PlanFile, SessionError> {
        let version = env!("CARGO_PKG_VERSION");
        let mut file = PlanFile::new(version, commit(self.root()), self.environment(), destroy);
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

/// What a stack of OpenTofu has to wait for.
fn wait_of(open: &OpenStack<'_>, planned: &[Planned<'_>], planning: &Planning<'_>) -> Option<Wait> {
    if planning.purpose.destroy || planning.saved.is_some() {
        return None;
    }
    let order = || Planned::awaited_stack(open.stack, planned).filter(|_| planning.into_file);
    Planned::awaited_output(open.stack, planned).or_else(order)
}
