//! What is built into Talos images, given to the image factory.

use async_trait::async_trait;
use strata_engine::{Operation, OperationContext, Outcome, ProviderError, Sighting, Wanted};
use strata_resource::{KindTable, Shown, kind};

use super::managed::ManagedKind;
use super::{BY_TALOS, REMOVING_FROM_STATE};
use crate::cluster::Cluster;
use crate::observe::{Look, as_recorded};
use crate::schematic as steps;

kind! {
    /// What is built into Talos images, given to the image factory.
    "schematic" {
        called: "schematic {schematic:12}",
        identity: &["schematic"],
        no_tofu: BY_TALOS,
        proof: "its id is the digest of its content: it belongs to everybody who writes the same",
        recovery: "posted again, which changes nothing",
        seen_by_record: true,
        shown: Shown { in_headline: &["content"], removal: |_, _| "removed from state: the image factory keeps it", removing: REMOVING_FROM_STATE, ..Shown::USUAL },
    }
    /// its id: 64 hex digits
    "schematic": Text => InPlace;
    /// what is in it, as YAML
    "content": Text => CreateOnly;
    /// where the image factory is
    "factory": Text => CreateOnly;
}

pub(crate) struct Schematic;

#[async_trait]
impl ManagedKind for Schematic {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    /// The image factory keeps what it was given once.
    async fn observe(&self, _: &Look<'_>, wanted: &Wanted<'_>) -> Result<Sighting, ProviderError> {
        Ok(as_recorded(wanted))
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
