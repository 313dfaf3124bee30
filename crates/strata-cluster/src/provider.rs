//! The provider of a cluster's own resources.

use std::sync::Arc;

use async_trait::async_trait;
use strata_engine::{
    ErrorClass, Finding, Operation, OperationContext, Outcome, Provider, ProviderError, Review, Sighting,
    Wanted,
};
use strata_state::OpenEntry;

use crate::cluster::Cluster;
use crate::evidence::PlannedStep;
use crate::kinds;
use crate::{bootstrap, flux, kubernetes, machine, observe, review, schematic, secret};

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

    /// Whoever has the cluster's keys may do everything.
    async fn preflight(&self, _: &[Operation], _: &[Operation]) -> Result<Vec<ProviderError>, ProviderError> {
        Ok(Vec::new())
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
        match operation.address.kind() {
            kinds::MACHINE => machine::execute(cluster, operation, context).await,
            kinds::BOOTSTRAP => bootstrap::execute(cluster, operation, context).await,
            kinds::KUBERNETES => kubernetes::execute(cluster, operation, context).await,
            kinds::SECRET => secret::execute(cluster, operation, context).await,
            kinds::FLUX => flux::controllers(cluster, operation, context).await,
            kinds::SYNC => flux::sync(cluster, operation, context).await,
            kinds::SCHEMATIC => schematic::execute(cluster, operation, context).await,
            other => Err(ProviderError::new(ErrorClass::Internal, format!("a cluster has no {other}"))),
        }
    }

    /// Nothing runs on after a call of ours has ended: what is live can be judged at once.
    async fn settle(&self, _: &OpenEntry, _: &dyn OperationContext) -> Result<(), ProviderError> {
        Ok(())
    }
}
