//! The controllers of Flux.

use async_trait::async_trait;
use strata_engine::{Operation, OperationContext, Outcome, ProviderError, Sighting, Wanted};
use strata_resource::{KindTable, Shown, kind};

use super::managed::{Asks, ManagedKind};
use super::{BY_FLUX, REMOVING_FROM_STATE, with_the_cluster};
use crate::cluster::Cluster;
use crate::flux as steps;
use crate::observe::{Look, with_facts};

kind! {
    /// The controllers of Flux.
    "flux" {
        called: "Flux {version}",
        identity: &["flux"],
        no_tofu: BY_FLUX,
        proof: "the API server is the cluster's, and server-side apply records Strata's fields",
        digest_on: "resourceVersion, by the server",
        recovery: "applied again, which changes nothing",
        seen_by_record: true,
        shown: Shown {
            // Nothing is missing of what is made.
            in_headline: &["missing"],
            removal: |_, ends| with_the_cluster(ends, "removed from state: its controllers stay"),
            removing: REMOVING_FROM_STATE,
            ..Shown::USUAL
        },
    }
    /// its namespace
    "flux": Text => InPlace;
    /// its version
    "version": Text => InPlace;
    /// where its manifests are: a URL, or `file:…`
    "source": Text => CreateOnly;
    /// what they must add up to: `sha256:…`
    "checksum": Text => InPlace [write_only];
    /// the digest of the file's content
    "manifests": Text => InPlace [write_only];
    /// controllers that were installed, and are gone
    "missing": List => InPlace [set];
}

pub(crate) struct Flux;

#[async_trait]
impl ManagedKind for Flux {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn asks(&self) -> Asks {
        Asks { flux: true, ..Asks::default() }
    }

    async fn observe(&self, look: &Look<'_>, wanted: &Wanted<'_>) -> Result<Sighting, ProviderError> {
        if let Some(sighting) = look.without_kubernetes() {
            return Ok(sighting);
        }
        // Some controllers may be there without the others: what was begun and not ended is done again from its start.
        if wanted.recorded.is_none_or(|recorded| recorded.partial) {
            return Ok(Sighting::Absent);
        }
        let live = steps::observed_controllers(&look.flux, wanted.recorded);
        Ok(live.map_or(Sighting::Absent, |(spec, facts)| with_facts(spec, facts)))
    }

    async fn execute(
        &self,
        cluster: &Cluster,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError> {
        steps::controllers(cluster, operation, context).await
    }
}
