//! A cluster that left the source, and its keys with it: what runs in VMs goes with these, and nobody can ask it.

use async_trait::async_trait;
use strata_engine::{
    ErrorClass, Finding, Operation, OperationContext, Outcome, Provider, ProviderError, Review, Sighting,
    Wanted,
};
use strata_state::{Action, OpenEntry};

use crate::kinds;

/// Stands for a cluster whose `cluster.yaml` is gone.
pub struct RemovedCluster {
    stack: String,
}

impl RemovedCluster {
    pub fn new(stack: &str) -> Self {
        Self { stack: stack.to_owned() }
    }
}

#[async_trait]
impl Provider for RemovedCluster {
    async fn observe_all(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Sighting>, ProviderError> {
        let unreachable =
            Sighting::Unreachable(format!("the keys of cluster `{}` left the source", self.stack));
        Ok(vec![unreachable; wanted.len()])
    }

    /// A machine without a VM would go on running with the keys of a cluster that is gone.
    async fn review(&self, review: Review<'_>) -> Result<Vec<Finding>, ProviderError> {
        let stack = &self.stack;
        let bare_metal = review.operations.iter().filter(|operation| {
            operation.address.kind() == kinds::MACHINE && !operation.spec.contains_key("vm")
        });
        Ok(bare_metal
            .map(|operation| Finding::precondition(operation, format!(
                    "it is bare metal and runs with the keys of cluster `{stack}`, which left the source: it cannot be reset"
                ), format!(
                    "put the cluster's folder back and run `strata destroy {stack}`; or reset the machine by hand, then `strata state rm {}`",
                    operation.address
                )))
            .collect())
    }

    async fn execute(
        &self,
        operation: &Operation,
        _: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError> {
        match operation.action {
            Action::Delete => Ok(Outcome::default()),
            Action::Create | Action::Update => {
                let message = format!("cluster `{}` is not in the source any more", self.stack);
                Err(ProviderError::new(ErrorClass::Internal, message))
            }
        }
    }

    async fn wait_for_tasks(&self, _: &OpenEntry, _: &dyn OperationContext) -> Result<(), ProviderError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
