//! Datasets on a TrueNAS.

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use strata_engine::{
    ErrorClass, Observed, Operation, OperationContext, Outcome, Provider, ProviderError, Sighting, Wanted,
};
use strata_resource::{Spec, Value};
use strata_state::{Action, OpenEntry};
