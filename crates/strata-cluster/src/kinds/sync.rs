//! What Flux follows.

use async_trait::async_trait;
use strata_engine::{Operation, OperationContext, Outcome, ProviderError, Sighting, Wanted};
use strata_resource::{KindTable, Shown, kind};

use super::managed::{Asks, ManagedKind};
use super::{BY_FLUX, REMOVING_FROM_STATE, with_the_cluster};
use crate::cluster::Cluster;
use crate::flux as steps;
use crate::observe::{Look, ours};

kind! {
    /// What Flux follows: a git repository and a folder in it.
    "sync" {
        called: "{path} of {repository}",
        identity: &["namespace", "sync"],
        no_tofu: BY_FLUX,
        proof: "the API server is the cluster's, and server-side apply records Strata's fields",
        digest_on: "resourceVersion, by the server",
        recovery: "applied again, which changes nothing",
        shown: Shown {
            removal: |_, ends| with_the_cluster(ends, "removed from state: what it applied stays"),
            removing: REMOVING_FROM_STATE,
            ..Shown::USUAL
        },
    }
    /// its namespace
    "namespace": Text => InPlace;
    /// its name
    "sync": Text => InPlace;
    /// the repository
    "repository": Text => InPlace;
    /// the branch
    "branch": Text => InPlace;
    /// the folder
    "path": Text => InPlace;
    /// how often it is looked at
    "interval": Text => InPlace;
    /// the secret with the key that decrypts
    "decryption": Text => InPlace;
    /// the secret with what the repository asks for
    "auth": Text => InPlace;
}

pub(crate) struct Sync;

#[async_trait]
impl ManagedKind for Sync {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn asks(&self) -> Asks {
        Asks { flux: true, ..Asks::default() }
    }

    async fn observe(&self, look: &Look<'_>, _: &Wanted<'_>) -> Result<Sighting, ProviderError> {
        if let Some(sighting) = look.without_kubernetes() {
            return Ok(sighting);
        }
        Ok(steps::observed_sync(&look.flux).map_or(Sighting::Absent, ours))
    }

    async fn execute(
        &self,
        cluster: &Cluster,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError> {
        steps::sync(cluster, operation, context).await
    }
}
