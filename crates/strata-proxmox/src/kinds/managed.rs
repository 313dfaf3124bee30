//! What a kind is to the provider, beside its table: how its objects are seen, made, changed and deleted, and what that needs.
//!
//! The provider goes through these methods and names no kind. Most have an answer that fits most kinds.

use async_trait::async_trait;
use strata_engine::{Finding, Operation, Outcome, ProviderError, Review, Sighting, Wanted};
use strata_resource::{KindTable, Spec};

use super::access::AccessKind;
use super::guest;
use crate::client::Client;
use crate::codec::GuestKind;
use crate::datacenter::{Family, LiveObject, PlannedPlaces, ShownBy, converge, ownership};
use crate::execute::{self, Work};
use crate::preflight::{NamedPlaces, Needs};

#[async_trait]
pub(crate) trait ManagedKind: Sync {
    fn table(&self) -> &'static KindTable;

    /// How its objects are listed and written, where it is part of the datacenter itself.
    fn family(&self) -> Option<&'static dyn Family> {
        None
    }

    /// Which part of the API it is in, where it is a guest.
    fn guest(&self) -> Option<GuestKind> {
        None
    }

    /// Whether it is a volume on a storage.
    fn is_volume(&self) -> bool {
        false
    }

    /// What decides whether an object is listed for a login; none where the list is complete, or refused as a whole.
    fn shown_by(&self, _spec: &Spec) -> Option<ShownBy> {
        None
    }

    /// Whose a live object is.
    fn judge(&self, wanted: &Wanted<'_>, live: Option<&LiveObject>) -> Sighting {
        match self.family() {
            Some(family) => ownership::judge(family, wanted, live),
            None => Sighting::Absent,
        }
    }

    /// Whether nothing is in an object but parts of what an interrupted run was to make.
    fn is_on_the_way(&self, _begun: &Spec, _live: &LiveObject) -> bool {
        false
    }

    /// The privileges that an operation takes.
    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>);

    /// Adds to the operations what only the server knows and the needs of some of them depend on.
    async fn complete_needs(
        &self,
        _client: &Client,
        _operations: &mut [Operation],
    ) -> Result<(), ProviderError> {
        Ok(())
    }

    /// The nodes, storages, bridges and pools that an operation presumes.
    fn places<'a>(&self, operation: &'a Operation, places: &mut NamedPlaces<'a>) {
        if let Some(guest) = self.guest() {
            places.add_guest(operation, guest);
        }
    }

    /// What there will be of these, once an object is made.
    fn provides(&self, _spec: &Spec, _planned: &mut PlannedPlaces) {}

    /// Why an operation cannot be done, as far as that is known before anything is begun.
    fn refusals(&self, client: &Client, operation: &Operation, all: &[Operation]) -> Vec<ProviderError> {
        self.guest().map(|guest| guest::refusals(client, operation, guest, all)).unwrap_or_default()
    }

    /// The same, of what only the server knows; `earlier` is what is done before it by other stacks of the run.
    async fn obstacle(
        &self,
        _client: &Client,
        _operation: &Operation,
        _earlier: &[Operation],
    ) -> Result<Option<ProviderError>, ProviderError> {
        Ok(None)
    }

    /// What a plan says about an operation besides its changes.
    fn remark(&self, _operation: &Operation) -> Option<String> {
        None
    }

    /// What must hold, since nobody could make good what follows. `own` are the operations on objects of the kind.
    async fn preconditions(
        &self,
        _client: &Client,
        _own: &[&Operation],
        _review: Review<'_>,
    ) -> Result<Vec<Finding>, ProviderError> {
        Ok(Vec::new())
    }

    /// Whether it says who may do what.
    fn access(&self) -> Option<&'static dyn AccessKind> {
        None
    }

    async fn execute(&self, work: &Work<'_>) -> Result<Outcome, ProviderError> {
        match self.family() {
            Some(family) => converge::converge(work, family).await,
            None => execute::guest(work).await,
        }
    }
}
