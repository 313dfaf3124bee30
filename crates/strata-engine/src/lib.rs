//! Refresh, plan, apply, recovery and drift, over the traits [`Provider`] and `Store`.
//!
//! In the order of a run: [`refresh()`] looks; [`draft_plan`] decides, without IO and with the same answer for the same question; the providers
//! review the draft; [`make_plan`] takes their [`Finding`]s in and gives the [`Plan`]; [`LockedRun`] does what it says, write-ahead, and
//! recovery closes what an interrupted run left open. The engine prints nothing: it emits [`Event`]s. It names no kind.
//!
//! No remote write without a durable journal entry: only apply writes, and it begins entries before it starts work. A plan has one author and
//! cannot be changed; a step carries what is sent ([`Payload`]), and apply makes no choice.
//!
//! ```
//! use std::collections::{BTreeMap, BTreeSet};
//! use strata_engine::{Live, PlanRequest, draft_plan, make_plan};
//! use strata_resource::{Lineage, ResourceGraph};
//! use strata_state::StateDocument;
//!
//! let lineage = Lineage::derive("repository", "dev/web");
//! let (graph, state) = (ResourceGraph::default(), StateDocument::new(lineage.clone(), "dev/web"));
//! let (live, deferred, protected) = (Live::default(), BTreeMap::new(), BTreeSet::new());
//! let (origins, replace, known_as) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
//! let request = PlanRequest {
//!     graph: &graph, state: &state, open: &[], lineage: &lineage, live: &live,
//!     deferred: &deferred, at_work: None, protected: &protected, removed_stack: None,
//!     moves: &[], unmovable: &[], origins: &origins, selected: None, replace: &replace,
//!     known_as: &known_as, file: "stacks/web/stack.yaml",
//! };
//! let plan = make_plan(draft_plan(&request), Vec::new());
//! assert!(!plan.has_changes() && plan.lint().is_empty());
//! ```

mod adoption;
mod apply;
mod binding;
mod capacity;
mod drift;
mod events;
mod journal;
mod known_as;
mod look;
mod moves;
mod object_key;
mod plan;
mod planner;
mod provider;
mod recovery;
mod refresh;
mod reporting;
mod retrieval;
mod review;
mod run;
mod schedule;
mod stop;

pub use adoption::{Adoption, Proofs, claim_mark};
pub use apply::{ApplyOptions, ApplyReport, StepFailure};
pub use binding::{DrivenPlan, PlanFile, PlannedStack, StalePlan};
pub use capacity::{Capacity, Limits};
pub use drift::{Drift, DriftKind};
pub use events::{Event, EventSink};
pub use known_as::{Home, KnownAs};
pub use look::Look;
pub use moves::{
    Move, PlannedMove, is_known_twice, is_same_but_for_lineage, is_same_object, keep_origin, made_again,
};
pub use plan::{IgnoredChange, Plan, PlanContent, Problem, ProblemKind, Step, StepAction, Summary};
pub use planner::{Draft, PlanRequest, draft_plan, make_plan};
pub use provider::{
    Behind, Dispute, ErrorClass, Observed, Obstacle, Operation, OperationContext, Outcome, Provider,
    ProviderError, Reported, Sighting, Unmanaged, Unseen, Wanted,
};
pub use recovery::{Resolution, ResolvedEntry};
pub use refresh::{Live, refresh};
pub use reporting::{inputs, with_outputs};
pub use retrieval::Retrieval;
pub use review::{Evidence, Finding, FindingKind, Payload, Review};
pub use run::{Clock, EarlierOperations, EngineError, LockedRun, Providers, Run, Sealing, StackView};
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
