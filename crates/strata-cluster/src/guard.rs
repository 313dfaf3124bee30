//! The VMs of a cluster's nodes: what restarts or removes one waits for its turn, as everything else that disturbs a node.

use std::sync::Arc;

use async_trait::async_trait;
use strata_engine::{
    Consequence, Forecast, Objection, Operation, OperationContext, Outcome, Provider, ProviderError,
    Sighting, Wanted,
};
use strata_state::{Action, OpenEntry};

use crate::cluster::Cluster;
use crate::kinds;
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

    /// The cluster whose node a VM is, if the node feels the operation, and how.
    fn disturbed(&self, operation: &Operation) -> Option<(&Arc<Cluster>, Disturbance)> {
        let rules = operation.address.kind().rules();
        let disturbance = match operation.action {
            Action::Update if operation.restart || operation.touches("power") => Disturbance::Restart,
            // Unplugged and plugged in elsewhere, moved to another hypervisor or storage: it should stay up, and may not.
            Action::Update if operation.changes.iter().any(|change| rules.is_felt(&change.path)) => {
                Disturbance::Jolt
            }
            // Its machine has left the cluster before.
            Action::Update | Action::Create | Action::Delete => return None,
        };
        let (_, cluster) = self.clusters.iter().find(|(stack, _)| operation.address.stack() == stack)?;
        let is_node = operation.address.kind() == kinds::VM && !cluster.options.ending;
        is_node.then_some((cluster, disturbance))
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
            .and_then(|(cluster, what)| Some((cluster, what, cluster.place(operation.address.name())?)));
        let Some((cluster, disturbance, node)) = place.filter(|(cluster, ..)| cluster.is_alive()) else {
            return self.inner.execute(operation, context).await;
        };
        let wanted = cluster.wanted(&node);
        if is_stopped(operation) {
            // What is down disturbs nobody by coming back, and may be what etcd waits for.
            let outcome = self.inner.execute(operation, context).await?;
            cluster.wait_answer(&wanted, context).await?;
            return Ok(outcome);
        }
        let turn = cluster.begin_turn(&node, disturbance, context).await?;
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

#[cfg(test)]
mod tests;
