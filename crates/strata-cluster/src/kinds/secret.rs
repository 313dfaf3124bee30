//! Secrets that are there before Flux is.

use async_trait::async_trait;
use strata_engine::{Operation, OperationContext, Outcome, ProviderError, Sighting, Wanted};
use strata_resource::{KindTable, Shape, Shown, Spec, kind};

use super::managed::ManagedKind;
use super::{BY_FLUX, with_the_cluster};
use crate::cluster::Cluster;
use crate::error::kube;
use crate::observe::{Look, sealed};
use crate::secret as steps;

kind! {
    /// A Kubernetes secret that is there before Flux is.
    "secret" {
        called: "Kubernetes secret {namespace}/{secret}",
        identity: &["namespace", "secret"],
        no_tofu: BY_FLUX,
        proof: "the API server is the cluster's, and server-side apply records Strata's fields",
        digest_on: "resourceVersion, by the server",
        recovery: "applied again, which changes nothing",
        shown: Shown { removal: |_, ends| with_the_cluster(ends, "deleted"), shape: Shape::Secret, ..Shown::USUAL },
    }
    /// its namespace
    "namespace": Text => InPlace;
    /// its name
    "secret": Text => InPlace;
    /// its type
    "type": Text => Replace [because("the type of a secret is fixed when it is made")];
    /// what is in it
    "data.*": Text => InPlace;
}

pub(crate) struct Secret;

#[async_trait]
impl ManagedKind for Secret {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    async fn observe(&self, look: &Look<'_>, wanted: &Wanted<'_>) -> Result<Sighting, ProviderError> {
        if let Some(sighting) = look.without_kubernetes() {
            return Ok(sighting);
        }
        let found = look.cluster.kube().get(&steps::reference(wanted.spec)).await.map_err(kube)?;
        let asked: Vec<&Spec> = [Some(wanted.spec), wanted.recorded.map(|recorded| &recorded.spec)]
            .into_iter()
            .flatten()
            .collect();
        Ok(found.map_or(Sighting::Absent, |object| {
            sealed(look.cluster, wanted, steps::observed(&object, &asked))
        }))
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
