//! Refresh, plan, apply, destroy, drift, journal and recovery, over the traits Provider and Store.

mod provider;

pub use provider::{
    Action, ErrorClass, Observed, OpenEntry, Operation, OperationContext, Outcome, Provider, ProviderError,
    Sighting, Wanted,
};
