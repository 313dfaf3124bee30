//! The provider of a cluster's own resources.

use std::sync::Arc;

use async_trait::async_trait;
use strata_engine::{
    ErrorClass, Forecast, Objection, Operation, OperationContext, Outcome, Provider, ProviderError, Sighting,
    Wanted,
};
use strata_resource::Kind;
use strata_state::OpenEntry;

use crate::cluster::Cluster;
use crate::{bootstrap, flux, forecast, kubernetes, machine, objections, observe, schematic, secret};

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

    async fn objections(&self, operations: &[Operation]) -> Result<Vec<Objection>, ProviderError> {
        objections::objections(&self.cluster, operations).await
    }

    /// Whoever has the cluster's keys may do everything.
    async fn preflight(&self, _: &[Operation]) -> Result<Vec<ProviderError>, ProviderError> {
        Ok(Vec::new())
    }

    async fn execute(
        &self,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError> {
        let cluster = self.cluster.as_ref();
        match operation.address.kind() {
            Kind::Machine => machine::execute(cluster, operation, context).await,
            Kind::Bootstrap => bootstrap::execute(cluster, operation, context).await,
            Kind::Kubernetes => kubernetes::execute(cluster, operation, context).await,
            Kind::Secret => secret::execute(cluster, operation, context).await,
            Kind::Flux => flux::controllers(cluster, operation, context).await,
            Kind::Sync => flux::sync(cluster, operation, context).await,
            Kind::Schematic => schematic::execute(cluster, operation, context).await,
            other => Err(ProviderError::new(ErrorClass::Internal, format!("a cluster has no {other}"))),
        }
    }

    fn forecast(&self, operation: &Operation) -> Option<Forecast> {
        if operation.address.kind() != Kind::Machine {
            return None;
        }
        forecast::of(&self.cluster, operation)
    }

    /// Nothing runs on after a call of ours has ended: what is live can be judged at once.
    async fn settle(&self, _: &OpenEntry, _: &dyn OperationContext) -> Result<(), ProviderError> {
        Ok(())
    }
}
