//! The etcd of a cluster, bootstrapped once.

use async_trait::async_trait;
use strata_engine::{Operation, OperationContext, Outcome, ProviderError, Sighting, Wanted};
use strata_resource::{KindTable, Rollout, Shown, kind};

use super::managed::{Asks, ManagedKind};
use super::{BY_TALOS, REMOVING_FROM_STATE, goes_with_its_machines};
use crate::bootstrap as steps;
use crate::cluster::Cluster;
use crate::observe::{Look, ours};

kind! {
    /// The etcd of a cluster, bootstrapped once.
    "bootstrap" {
        called: "etcd, bootstrapped once",
        identity: &["etcd"],
        no_tofu: BY_TALOS,
        proof: "its members answer to the certificate authority of the cluster",
        recovery: "every control plane must say that it holds no data of etcd; docs/clusters.md",
        shown: Shown { removal: goes_with_its_machines, removing: REMOVING_FROM_STATE, ..Shown::USUAL },
        gone: "etcd was bootstrapped once, and is lost",
        rollout: Rollout::Gate,
        lost: Some((
            "etcd has lost its majority, and control planes of it are gone: {what}",
            "start control planes that are only stopped; else `strata talos snapshot {stack}` saves what is left, and `strata talos restore {stack} --snapshot FILE` brings etcd back from a snapshot",
        )),
    }
    /// the cluster's name
    "etcd": Text => InPlace;
    /// the cluster's id
    "id": Text => Replace [because("other secrets are another cluster")];
}

pub(crate) struct Bootstrap;

#[async_trait]
impl ManagedKind for Bootstrap {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn asks(&self) -> Asks {
        Asks { nodes: true, etcd: true, ..Asks::default() }
    }

    async fn observe(&self, look: &Look<'_>, wanted: &Wanted<'_>) -> Result<Sighting, ProviderError> {
        if look.etcd.is_some() {
            return Ok(ours(wanted.spec.clone()));
        }
        if wanted.recorded.is_some() && !look.cluster.may_begin_again() {
            return lost_or_unreachable(look.cluster).await;
        }
        Ok(Sighting::Absent)
    }

    async fn execute(
        &self,
        cluster: &Cluster,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError> {
        steps::execute(cluster, operation, context).await
    }
}

/// Etcd was bootstrapped, and nobody answers for it: is it gone, without a majority, or only out of sight?
async fn lost_or_unreachable(cluster: &Cluster) -> Result<Sighting, ProviderError> {
    let survey = cluster.survey().await?;
    let name = cluster.name();
    if !survey.survivors.is_empty() {
        let verb = if survey.survivors.len() == 1 { "holds" } else { "hold" };
        let what = format!("the etcd of `{name}` has no majority: {} still {verb} its data", survey.names());
        return Ok(Sighting::Unreachable(what));
    }
    match survey.unknown.first() {
        // Perhaps only the network is away.
        Some((_, why)) => Ok(Sighting::Unreachable(format!("the etcd of `{name}` does not answer: {why}"))),
        None => Err(steps::lost(cluster)),
    }
}
