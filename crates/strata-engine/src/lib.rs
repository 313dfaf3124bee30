//! Refresh, plan, apply, destroy, drift, journal and recovery, over the traits Provider and Store.

mod provider;

pub use provider::{
    ErrorClass, Observed, Operation, OperationContext, Outcome, Provider, ProviderError, Sighting, Wanted,
};
pub use strata_state::{Action, OpenEntry};
