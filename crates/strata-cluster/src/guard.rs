//! The VMs of a cluster's nodes: what restarts or removes one waits for the rollout slot, as everything else that disturbs a node.

use std::sync::Arc;

use async_trait::async_trait;
use strata_engine::{
    Finding, Look, Obstacle, Operation, OperationContext, Outcome, Provider, ProviderError, Review, Sighting,
    Wanted,
};
use strata_resource::{FieldChange, Value};
use strata_state::{Action, OpenEntry};

use crate::cluster::Cluster;
use crate::evidence::{ClusterReview, PlannedStep};
use crate::kinds;
use crate::rolling::Disturbance;
use crate::{moving, preconditions, review};

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
    operation
        .observed
        .as_ref()
        .is_some_and(|observed| observed.spec.get("power").and_then(Value::as_text) == Some("stopped"))
}

/// It is meant to stay down: nobody waits for it, and it stays cordoned until it is started.
fn goes_down(operation: &Operation) -> bool {
    let is_stop = |change: &FieldChange| {
        change.path.first() == Some("power")
            && change.after.as_ref().and_then(Value::as_text) == Some("stopped")
    };
    operation.changes.iter().any(is_stop)
}

#[async_trait]
impl Provider for GuardedProvider {
    async fn observe_all(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Sighting>, ProviderError> {
        self.inner.observe_all(wanted).await
    }

    async fn observe_in(&self, look: &Look, wanted: &[Wanted<'_>]) -> Result<Vec<Sighting>, ProviderError> {
        self.inner.observe_in(look, wanted).await
    }

    async fn review(&self, review: Review<'_>) -> Result<Vec<Finding>, ProviderError> {
        let mut found = self.inner.review(review).await?;
        for (stack, cluster) in self.clusters.iter().filter(|(_, cluster)| !cluster.options.ending) {
            let of_stack = review.operations.iter().filter(|one| one.address.stack() == stack);
            let operations: Vec<Operation> = of_stack.cloned().collect();
            let review = ClusterReview::new(cluster, review.of(&operations));
            found.extend(review::of_vms(review));
            let nodes = operations.iter().filter(|one| cluster.place(one.address.name()).is_some());
            let nodes: Vec<Operation> = nodes.filter(|one| !is_stopped(one)).cloned().collect();
            found.extend(preconditions::alarmed(review.of(&nodes)).await?);
        }
        Ok(found)
    }

    async fn preflight(
        &self,
        look: &Look,
        operations: &[Operation],
        earlier: &[Operation],
    ) -> Result<Vec<Obstacle>, ProviderError> {
        self.inner.preflight(look, operations, earlier).await
    }

    async fn execute(
        &self,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError> {
        let place = self
            .disturbed(operation)
            .and_then(|(cluster, what)| Some((cluster, what, cluster.place(operation.address.name())?)));
        let planned = PlannedStep::of(operation);
        let etcd_runs =
            |cluster: &Cluster| cluster.is_alive() || planned.is_some_and(|planned| planned.etcd_runs);
        let Some((cluster, disturbance, node)) = place.filter(|(cluster, ..)| etcd_runs(cluster)) else {
            return self.inner.execute(operation, context).await;
        };
        let alive = cluster.is_alive();
        cluster.now_alive();
        let wanted = cluster.wanted(&node);
        if is_stopped(operation) {
            // What is down disturbs nobody by coming back, and may be what etcd waits for.
            let outcome = self.inner.execute(operation, context).await?;
            cluster.wait_answer(&wanted, context).await?;
            // It may have been drained for the time that it was down; the others answer for Kubernetes.
            if alive && let Err(error) = cluster.uncordon(&wanted.name, context).await {
                context.warning(&format!("`{}` may still be cordoned: {error}", wanted.name));
            }
            return Ok(outcome);
        }
        let slot = cluster.enter_rollout_slot(&node, disturbance, context).await?;
        if let Some(write) = planned.and_then(|planned| planned.config_write(&wanted.name)) {
            moving::configure_ahead(cluster, &wanted, &write, context).await?;
        }
        let outcome = self.inner.execute(operation, context).await?;
        if goes_down(operation) {
            return Ok(outcome);
        }
        let node = moving::comes_up(cluster, &wanted, context).await?;
        cluster.leave_rollout_slot(&node, context).await?;
        drop(slot);
        Ok(outcome)
    }

    async fn wait_for_tasks(
        &self,
        entry: &OpenEntry,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        self.inner.wait_for_tasks(entry, context).await
    }
}

#[cfg(test)]
mod tests;
