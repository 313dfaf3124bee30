//! Refresh, plan, apply, destroy, drift, journal and recovery, over the traits Provider and Store.
//!
//! Reading order: [`Provider`] is what the engine asks of a remote; `refresh` looks; `planner` decides, without IO and with the
//! same answer for the same question; `apply` does what the plan says, write-ahead; `recovery` closes what an interrupted run left
//! open. The engine prints nothing: it emits [`Event`]s.
//!
//! Invariant: no remote write without a durable journal entry. Only `apply` writes, and it begins entries before it starts work.

mod adoption;
mod apply;
mod binding;
mod drift;
mod events;
mod journal;
mod place;
mod plan;
mod planner;
mod provider;
mod recovery;
mod refresh;
mod review;
mod run;
mod schedule;
mod stop;

pub use adoption::{Adoption, Proofs};
pub use apply::{ApplyOptions, ApplyReport, StepFailure};
pub use binding::{DrivenPlan, PlanFile, PlannedStack, StalePlan};
pub use drift::{Drift, DriftKind};
pub use events::{Event, EventSink};
pub use plan::{Plan, PlanContent, Problem, ProblemKind, Step, StepAction, Summary};
pub use planner::{Draft, PlanRequest, draft_plan, make_plan};
pub use provider::{
    ErrorClass, Observed, Operation, OperationContext, Outcome, Provider, ProviderError, Sighting, Unseen,
    Wanted,
};
pub use recovery::{Resolution, ResolvedEntry};
pub use refresh::{Live, refresh};
pub use review::{Evidence, Finding, FindingKind, Payload, Review};
pub use run::{Clock, EngineError, LockedRun, Providers, Run, StackView};
pub use schedule::Limits;
pub use stop::StopSignal;
pub use strata_state::{Action, OpenEntry};

#[cfg(test)]
mod test_kinds {
    /// An address of a kind of the real providers.
    pub(crate) fn address(text: &str) -> strata_resource::Address {
        strata_proxmox::kinds::register();
        strata_cluster::kinds::register();
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }
}
