//! The VMs of a cluster's nodes: what restarts or removes one waits for its turn, as everything else that disturbs a node.

use std::sync::Arc;

use async_trait::async_trait;
use strata_engine::{
    Consequence, Forecast, Objection, Operation, OperationContext, Outcome, Provider, ProviderError,
    Sighting, Wanted,
};
use strata_resource::Kind;
use strata_state::{Action, OpenEntry};

use crate::cluster::Cluster;
use crate::rolling::Disturbance;
use crate::{moving, objections};

/// A provider of VMs that knows which of them are nodes.
pub struct GuardedProvider {
    inner: Arc<dyn Provider>,
    clusters: Vec<(String, Arc<Cluster>)>,
}

impl GuardedProvider {
    /// `clusters` by the names of their stacks.
    pub fn new(inner: Arc<dyn Provider>, clusters: Vec<(String, Arc<Cluster>)>) -> Self {
        Self { inner, clusters }
    }

    /// The cluster whose node a VM is, if the operation takes it down for a while.
    fn disturbed(&self, operation: &Operation) -> Option<&Arc<Cluster>> {
        let disturbs = match operation.action {
            Action::Update => operation.restart || operation.touches("power"),
            // Its machine has left the cluster before.
            Action::Create | Action::Delete => false,
        };
        let (_, cluster) = self.clusters.iter().find(|(stack, _)| operation.address.stack() == stack)?;
        (operation.address.kind() == Kind::Vm && disturbs && !cluster.options.ending).then_some(cluster)
    }
}

/// What is down disturbs nobody by coming back.
fn is_stopped(operation: &Operation) -> bool {
    operation.observed.as_ref().is_some_and(|observed| {
        observed.spec.get("power").and_then(strata_resource::Value::as_text) == Some("stopped")
    })
}

#[async_trait]
impl Provider for GuardedProvider {
    async fn observe_all(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Sighting>, ProviderError> {
        self.inner.observe_all(wanted).await
    }

    async fn objections(&self, operations: &[Operation]) -> Result<Vec<Objection>, ProviderError> {
        let mut found = self.inner.objections(operations).await?;
        for (stack, cluster) in &self.clusters {
            let nodes = operations.iter().filter(|one| one.address.stack() == stack);
            let nodes = nodes.filter(|one| cluster.place(one.address.name()).is_some() && !is_stopped(one));
            let nodes: Vec<Operation> = nodes.cloned().collect();
            if !cluster.options.ending {
                found.extend(objections::alarmed(cluster, &nodes).await?);
            }
        }
        Ok(found)
    }

    async fn consequences(&self, operations: &[Operation]) -> Result<Vec<Consequence>, ProviderError> {
        self.inner.consequences(operations).await
    }

    fn notices(&self, operation: &Operation) -> Vec<String> {
        self.inner.notices(operation)
    }

    fn promise(&self, operations: &[Operation]) {
        self.inner.promise(operations);
    }

    async fn preflight(&self, operations: &[Operation]) -> Result<Vec<ProviderError>, ProviderError> {
        self.inner.preflight(operations).await
    }

    async fn execute(
        &self,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError> {
        let place = self
            .disturbed(operation)
            .and_then(|cluster| Some((cluster, cluster.place(operation.address.name())?)));
        let Some((cluster, node)) = place.filter(|(cluster, _)| cluster.is_alive()) else {
            return self.inner.execute(operation, context).await;
        };
        let wanted = cluster.wanted(&node);
        if is_stopped(operation) {
            // What is down disturbs nobody by coming back, and may be what etcd waits for.
            let outcome = self.inner.execute(operation, context).await?;
            cluster.wait_answer(&wanted, context).await?;
            return Ok(outcome);
        }
        let turn = cluster.begin_turn(&node, Disturbance::Restart, context).await?;
        if moving::rewrites_drive(operation) {
            moving::tell_ahead(cluster, &wanted, context).await?;
        }
        let outcome = self.inner.execute(operation, context).await?;
        let node = moving::comes_up(cluster, &wanted, context).await?;
        cluster.end_turn(&node, context).await?;
        drop(turn);
        Ok(outcome)
    }

    fn skipped(&self, operation: &Operation) {
        self.inner.skipped(operation);
    }

    fn forecast(&self, operation: &Operation) -> Option<Forecast> {
        self.inner.forecast(operation)
    }

    async fn settle(&self, entry: &OpenEntry, context: &dyn OperationContext) -> Result<(), ProviderError> {
        self.inner.settle(entry, context).await
    }
}
