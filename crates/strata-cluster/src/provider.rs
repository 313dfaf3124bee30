//! The provider of a cluster's own resources.

use std::sync::Arc;

use async_trait::async_trait;
use strata_engine::{
    Finding, Operation, OperationContext, Outcome, Provider, ProviderError, Review, Sighting, Wanted,
};
use strata_state::OpenEntry;

use crate::cluster::Cluster;
use crate::evidence::PlannedStep;
use crate::kinds;
use crate::{observe, review};

pub struct ClusterProvider {
    cluster: Arc<Cluster>,
}

impl ClusterProvider {
    pub fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster }
    }
}

#[async_trait]
impl Provider for ClusterProvider {
    async fn observe_all(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Sighting>, ProviderError> {
        observe::observe_all(&self.cluster, wanted).await
    }

    async fn review(&self, review: Review<'_>) -> Result<Vec<Finding>, ProviderError> {
        review::review(&self.cluster, review).await
    }

    async fn execute(
        &self,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError> {
        let cluster = self.cluster.as_ref();
        if PlannedStep::of(operation).is_some_and(|planned| planned.etcd_runs) {
            cluster.now_alive();
        }
        let kind = operation.address.kind();
        let managed = kinds::of(kind).ok_or_else(|| kinds::unknown(kind))?;
        managed.execute(cluster, operation, context).await
    }

    /// Nothing runs on after a call of ours has ended: what is live can be judged at once.
    async fn wait_for_tasks(&self, _: &OpenEntry, _: &dyn OperationContext) -> Result<(), ProviderError> {
        Ok(())
    }
}
