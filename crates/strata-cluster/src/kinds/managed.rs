//! What a kind is to the provider, beside its table: how its objects are seen in a look at the cluster, and what is done about them.

use async_trait::async_trait;
use strata_engine::{Operation, OperationContext, Outcome, ProviderError, Sighting, Wanted};
use strata_resource::KindTable;

use crate::cluster::Cluster;
use crate::observe::Look;

/// What a look has to include where objects of a kind are asked about.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asks {
    /// Every node, whichever machines are asked about.
    pub(crate) nodes: bool,
    pub(crate) etcd: bool,
    pub(crate) flux: bool,
}

#[async_trait]
pub(crate) trait ManagedKind: Sync {
    fn table(&self) -> &'static KindTable;

    fn asks(&self) -> Asks {
        Asks::default()
    }

    async fn observe(&self, look: &Look<'_>, wanted: &Wanted<'_>) -> Result<Sighting, ProviderError>;

    async fn execute(
        &self,
        cluster: &Cluster,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError>;
}
