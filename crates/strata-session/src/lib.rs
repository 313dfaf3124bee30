//! A run on the stacks of a repository: lock → read → keys → draw → connect → plan → apply.
//!
//! The command line, a server and tests run stacks through this crate. It prints nothing and asks nobody; variables, time, randomness, listeners and
//! the providers are given to it ([`Surroundings`]).
//!
//! # Main types
//!
//! - [`Workspace`]: a repository, its store and its connections by target. It holds no lock.
//! - [`OpenStack`]: a stack whose state was read, and locked if something is to be changed.
//! - [`StackSession`]: the same stack with its keys, drawn and connected. It plans, recovers, applies.
//! - [`Planned`]: a stack with its plan, whoever makes it: Strata itself, or OpenTofu ([`tofu`]).
//! - [`ProviderSet`]: what a session asks of those who know kinds and reach remotes. `strata-providers` has all of them.
//! - [`Observer`] hears what happens; [`Reviewer`] sees a plan and agrees to it or not.
//!
//! # Invariants
//!
//! - The state of a stack is read once: under the lock by whoever changes something, without it for a plan.
//! - Keys of a cluster are made under the lock. A key of the digests comes into a state under the lock.
//! - Of a list of stacks all states are locked, in the order of their keys, before anything is drawn or recovered.
//! - Stacks that do not depend on each other are planned and applied at the same time; all plans are made from one look, which begins when nothing
//!   is left to recover. A failure, while it is planned or applied, stops what needs its stack, and nothing else. A plan that was saved runs whole or
//!   not at all, and what a guard refuses stops the run.
//! - Whatever fails gives the locks back, and the first error is the one that is returned.
//! - A target is connected once for a run, however many stacks use it.
//! - No kind and no field of one is named here.
//!
//! # Use
//!
//! ```no_run
//! # use strata_session::*;
//! # async fn run(surroundings: Surroundings, reviewer: &dyn Reviewer) -> Result<(), SessionError> {
//! let (workspace, diagnostics) = Workspace::load(surroundings)?;
//! if diagnostics.has_errors() {
//!     return Err(SessionError::failed("the source is not valid"));
//! }
//! let stacks = ["web".to_owned()];
//! let look = Planning { purpose: Purpose::LOOK, access: StateAccess::Look, into_file: false, saved: None };
//! for planned in workspace.plan(&stacks, &look).await? {
//!     assert_eq!(planned.name(), "web");
//! }
//! let executed = workspace.execute(&stacks, &Job::default(), reviewer).await?;
//! assert!(executed.outcomes.iter().all(StackOutcome::is_success));
//! # Ok(())
//! # }
//! ```

mod connections;
mod error;
mod execute;
pub mod generated;
mod moving;
mod observer;
mod planned;
mod planning;
mod providers;
pub mod secrets;
mod selection;
mod stack_graph;
mod stack_session;
mod surroundings;
pub mod tofu;
mod workspace;

pub use connections::Connections;
pub use error::{ErrorKind, SessionError};
pub use execute::{Executed, Job, Report, Reviewer, StackOutcome, StackResult, Totals, interrupted};
pub use observer::{NoObserver, Observer, SessionEvent, TofuProgress};
pub use planned::{Planned, PlannedTofu, Unplanned, Wait};
pub use planning::Planning;
pub use providers::{Capacity, DrawnStack, Measure, ProviderSet};
pub use stack_session::{HeldState, Keys, OpenStack, Purpose, StackSession, StateAccess};
pub use surroundings::{Process, Random, Surroundings};
pub use workspace::{
    Before, KnownOutputs, OWN_FOLDER, Opened, RemovedStack, Workspace, counted, find_root, key, layer,
    own_name, plannable,
};
