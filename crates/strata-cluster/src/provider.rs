//! The provider of a cluster's own resources.

use std::sync::Arc;

use async_trait::async_trait;
use strata_engine::{
    ErrorClass, Forecast, Objection, Operation, OperationContext, Outcome, Provider, ProviderError, Sighting,
    Wanted,
};
use strata_state::{Action, OpenEntry};

use crate::cluster::Cluster;
use crate::kinds;
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

    /// That etcd begins again costs everything that is in it.
    fn notices(&self, operation: &Operation) -> Vec<String> {
        let options = &self.cluster.options;
        if operation.address.kind() != kinds::BOOTSTRAP
            || operation.action != Action::Create
            || !options.bootstrapped
        {
            return Vec::new();
        }
        let saved = "what control planes still hold of the old etcd is saved as a snapshot and then wiped";
        match (&options.restoring, options.new_cluster) {
            (Some(_), _) => {
                vec![format!("etcd begins from the snapshot: what was changed since then is lost; {saved}")]
            }
            (None, true) => vec![format!(
                "`--new-cluster`: all data of the cluster `{}` is lost, every object of its Kubernetes; {saved}",
                self.cluster.name()
            )],
            (None, false) => Vec::new(),
        }
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

    /// Workers get their certificates from control planes: they must not wait for one that does not come.
    fn skipped(&self, operation: &Operation) {
        if operation.address.kind() == kinds::MACHINE {
            self.cluster.gave_up(operation.address.name());
        }
    }

    fn forecast(&self, operation: &Operation) -> Option<Forecast> {
        if operation.address.kind() != kinds::MACHINE {
            return None;
        }
        forecast::of(&self.cluster, operation)
    }

    /// Nothing runs on after a call of ours has ended: what is live can be judged at once.
    async fn settle(&self, _: &OpenEntry, _: &dyn OperationContext) -> Result<(), ProviderError> {
        Ok(())
    }
}
