//! The Kubernetes of a cluster.

use async_trait::async_trait;
use strata_engine::{Operation, OperationContext, Outcome, ProviderError, Sighting, Wanted};
use strata_resource::{KindTable, Shown, Value, kind};

use super::managed::{Asks, ManagedKind};
use super::{BY_TALOS, REMOVING_FROM_STATE, goes_with_its_machines};
use crate::cluster::Cluster;
use crate::kubernetes as steps;
use crate::node::Contact;
use crate::observe::{Api, Look, ours};

kind! {
    /// The Kubernetes of a cluster: the version of its components.
    "kubernetes" {
        called: "Kubernetes {version}",
        identity: &["kubernetes"],
        no_tofu: BY_TALOS,
        proof: "it answers to the certificate authority of the cluster",
        recovery: "the oldest component of all nodes is what there is; the rollout begins there again",
        seen_by_record: true,
        shown: Shown { removal: goes_with_its_machines, removing: REMOVING_FROM_STATE, ..Shown::USUAL },
        gone: "it went with its etcd",
    }
    /// the cluster's name
    "kubernetes": Text => InPlace;
    /// the version of its components: `v1.36.3`
    "version": Text => InPlace;
}

pub(crate) struct Kubernetes;

#[async_trait]
impl ManagedKind for Kubernetes {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn asks(&self) -> Asks {
        Asks { nodes: true, ..Asks::default() }
    }

    async fn observe(&self, look: &Look<'_>, wanted: &Wanted<'_>) -> Result<Sighting, ProviderError> {
        if let Api::Unreachable(why) = &look.api {
            return Ok(Sighting::Unreachable(why.clone()));
        }
        let configs = look.contacts.values().filter_map(|contact| match contact {
            Contact::Running(running) => Some(&running.config),
            _ => None,
        });
        let Some(version) = steps::version_of(configs).filter(|_| wanted.recorded.is_some()) else {
            return Ok(Sighting::Absent);
        };
        let mut spec = wanted.spec.clone();
        spec.insert("version".to_owned(), Value::Text(version));
        Ok(ours(spec))
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
