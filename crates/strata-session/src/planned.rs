//! A stack with its plan, whoever makes it: Strata itself, or OpenTofu.

use strata_engine::{Plan, Summary};
use strata_resource::Layer;
use strata_source::EffectiveStack;

use crate::error::{ErrorKind, SessionError};
use crate::stack_session::{HeldState, StackSession};
use crate::tofu::{Driven, DrivenPlan};
use crate::workspace::{KnownOutputs, key, layer};

pub enum Planned<'w> {
    Native(Box<StackSession>, Box<Plan>),
    Driven(Box<PlannedTofu<'w>>),
    /// What it is made from is known when what is planned here is applied.
    Deferred {
        stack: &'w EffectiveStack,
        state: HeldState,
        waits: Wait,
    },
    /// It cannot be planned. Its lock is given back; the others of the run are as if it were not in it.
    Unplanned {
        stack: &'w EffectiveStack,
        reason: Unplanned,
    },
}

/// Why a stack has no plan.
pub enum Unplanned {
    Failed(SessionError),
    /// This one failed, and it is needed, or something moves between the two.
    Needs(String),
}

/// A stack of OpenTofu with its plan.
pub struct PlannedTofu<'w> {
    pub driven: Box<Driven<'w>>,
    pub plan: DrivenPlan,
    pub(crate) state: HeldState,
}

/// What a stack cannot be planned, or not be saved, before.
pub enum Wait {
    /// An output that becomes another, and nobody knows which.
    Output(String),
    /// A stack that has to wait itself, and that goes first.
    Stack(String),
}

impl<'w> Planned<'w> {
    /// What a stack has to wait for, if it takes an output that one of these plans changes to what only its apply tells.
    pub(crate) fn awaited_output(stack: &EffectiveStack, planned: &[Self]) -> Option<Wait> {
        let mut inputs = stack.tofu().into_iter().flat_map(|tofu| tofu.inputs.values());
        let moving = inputs.find(|input| {
            planned.iter().filter(|one| one.name() == input.stack).any(|one| match one {
                Self::Native(session, plan) => session.awaits(&input.output, plan),
                Self::Unplanned { .. } => false,
                Self::Driven(tofu) => {
                    let changes = tofu.plan.changes.outputs.iter().any(|output| output.name == input.output);
                    changes && !tofu.plan.outputs().contains_key(&input.output)
                }
                Self::Deferred { .. } => true,
            })
        });
        moving.map(|input| Wait::Output(input.to_string()))
    }

    /// What these plans know of outputs of OpenTofu's stacks.
    pub(crate) fn outputs(planned: &[Self]) -> KnownOutputs {
        let of = |one: &Self| match one {
            Self::Driven(tofu) => Some((tofu.driven.name.clone(), tofu.plan.outputs())),
            Self::Native(..) | Self::Deferred { .. } | Self::Unplanned { .. } => None,
        };
        planned.iter().filter_map(of).collect()
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Native(session, _) => &session.name,
            Self::Driven(tofu) => &tofu.driven.name,
            Self::Deferred { stack, .. } | Self::Unplanned { stack, .. } => &stack.name,
        }
    }

    pub fn layer(&self) -> Layer {
        match self {
            Self::Native(session, _) => session.layer,
            Self::Driven(tofu) => layer(tofu.driven.stack),
            Self::Deferred { stack, .. } | Self::Unplanned { stack, .. } => layer(stack),
        }
    }

    pub fn key(&self) -> String {
        match self {
            Self::Native(_, plan) => plan.key.clone(),
            Self::Driven(tofu) => tofu.driven.key.clone(),
            Self::Deferred { stack, .. } | Self::Unplanned { stack, .. } => key(stack),
        }
    }

    pub fn summary(&self) -> Summary {
        match self {
            Self::Native(_, plan) => plan.summary(),
            Self::Driven(tofu) => tofu.plan.summary(),
            Self::Deferred { .. } | Self::Unplanned { .. } => Summary::default(),
        }
    }

    /// How many steps it has.
    pub fn steps(&self) -> usize {
        match self {
            Self::Native(_, plan) => plan.steps.len(),
            Self::Driven(tofu) => tofu.plan.changes.resources.len(),
            Self::Deferred { .. } | Self::Unplanned { .. } => 0,
        }
    }

    /// Whether it would destroy something of a stack that is not in the source any more.
    pub fn removes_stack(&self) -> bool {
        matches!(self, Self::Native(session, plan) if session.removed && plan.has_changes())
    }

    /// Whether it is about a part of the stack.
    pub fn is_selected(&self) -> bool {
        matches!(self, Self::Native(session, _) if session.view().selected.is_some())
    }

    pub fn is_deferred(&self) -> bool {
        matches!(self, Self::Deferred { .. })
    }

    /// Whether it keeps the whole run from being done: a guard said no.
    pub fn is_blocked(&self) -> bool {
        match self {
            Self::Native(session, plan) => !plan.problems.is_empty() || !session.obstacles.is_empty(),
            Self::Unplanned { reason: Unplanned::Failed(error), .. } => error.kind == ErrorKind::Refused,
            Self::Driven(_) | Self::Deferred { .. } | Self::Unplanned { .. } => false,
        }
    }

    pub fn is_unplanned(&self) -> bool {
        matches!(self, Self::Unplanned { .. })
    }

    /// The error, where every stack failed with the same one: then there is nothing to show beside it.
    pub(crate) fn only_error(planned: &[Self]) -> Option<SessionError> {
        let mut errors: Vec<&SessionError> = Vec::new();
        for one in planned {
            match one {
                Self::Unplanned { reason: Unplanned::Failed(error), .. } => errors.push(error),
                Self::Unplanned { reason: Unplanned::Needs(_), .. } => {}
                Self::Native(..) | Self::Driven(_) | Self::Deferred { .. } => return None,
            }
        }
        let first = *errors.first()?;
        let same = |other: &&SessionError| other.message == first.message && other.origin == first.origin;
        errors.iter().all(same).then(|| first.clone())
    }

    /// What cannot be seen, and is left as it is.
    pub fn unknown(&self) -> usize {
        match self {
            Self::Native(_, plan) => plan.unknown.len(),
            Self::Driven(..) | Self::Deferred { .. } | Self::Unplanned { .. } => 0,
        }
    }

    /// Whether an interrupted run left something open, which the next apply looks at first.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Native(_, plan) if !plan.open.is_empty())
    }

    pub fn has_changes(&self) -> bool {
        match self {
            Self::Native(_, plan) => plan.has_changes(),
            Self::Driven(tofu) => tofu.plan.changes.any(),
            Self::Deferred { .. } => true,
            Self::Unplanned { .. } => false,
        }
    }

    /// Gives its lock back, where it has one.
    pub async fn release(self) -> Result<(), SessionError> {
        match self {
            Self::Native(session, _) => session.release().await,
            Self::Driven(tofu) => tofu.state.release().await,
            Self::Deferred { state, .. } => state.release().await,
            Self::Unplanned { .. } => Ok(()),
        }
    }
}
