//! The provider: observes, executes and resolves what was interrupted, by way of the modules of those names.

use std::collections::BTreeSet;

use async_trait::async_trait;
use strata_engine::{
    Finding, Look, Obstacle, Operation, OperationContext, Outcome, Provider, ProviderError, Reported, Review,
    Sighting, Wanted,
};
use strata_resource::{Address, Kind};
use strata_state::{OpenEntry, StateResource};

use crate::client::{Client, ConnectError};
use crate::live_guest::{self, LiveGuest};
use crate::live_object::{self, DatacenterObject};
use crate::marked::{self, MarkedGuests};
use crate::marked_objects::{self, Found, MarkedObject, NamedVolume};
use crate::{
    ProxmoxOptions, addresses, capacity, execute, hosts, interrupted_tasks, media, observe, preflight,
    review, storages,
};

/// A Proxmox cluster, as the engine sees it.
pub struct ProxmoxProvider {
    client: Client,
}

impl ProxmoxProvider {
    /// Checks the settings. Nothing is sent yet.
    pub fn connect(options: ProxmoxOptions) -> Result<Self, ConnectError> {
        Ok(Self { client: Client::new(options)? })
    }

    /// The storages that every node sees the same content of. One request.
    pub async fn shared_storages(&self) -> Result<BTreeSet<String>, ProviderError> {
        storages::shared(&self.client).await
    }

    /// The hypervisors that are online and the guests on them, for whoever chooses a place for a guest.
    pub async fn hosts(&self) -> Result<hosts::Hosts, ProviderError> {
        hosts::hosts(&self.client).await
    }

    /// What its hypervisors have, and how much of it is given to guests. One request.
    pub async fn capacity(&self) -> Result<capacity::Capacity, ProviderError> {
        capacity::capacity(&self.client).await
    }

    /// The address of its API: by it two targets are known as the same place.
    pub fn endpoint(&self) -> &str {
        self.client.endpoint()
    }

    /// The volume in a VM's drive; none if it is empty, or there is no such VM.
    pub async fn inserted(&self, vmid: u32, slot: &str) -> Result<Option<String>, ProviderError> {
        media::inserted(&self.client, vmid, slot).await
    }

    /// Empties a VM's drive. Done already, it does nothing.
    pub async fn eject(
        &self,
        vmid: u32,
        slot: &str,
        before_write: &(dyn Fn() -> Result<(), ProviderError> + Sync),
    ) -> Result<(), ProviderError> {
        media::eject(&self.client, vmid, slot, before_write).await
    }

    /// Guests with an ownership mark among those that are not `known`, the nearest VMIDs first and at most `limit` of them.
    pub async fn marked_guests(
        &self,
        known: &BTreeSet<u32>,
        limit: usize,
    ) -> Result<MarkedGuests, ProviderError> {
        marked::marked_guests(&self.client, known, limit).await
    }

    /// Every object of the datacenter with an ownership mark in its comment.
    pub async fn marked_objects(&self) -> Found<MarkedObject> {
        marked_objects::marked_objects(&self.client).await
    }

    /// Every volume that is named after one of these lineages, in their short form.
    pub async fn named_volumes(
        &self,
        lineages: &BTreeSet<String>,
    ) -> Result<Found<NamedVolume>, ProviderError> {
        marked_objects::named_volumes(&self.client, lineages).await
    }

    /// The guests with these VMIDs, or all of them, whoever made them. One that cannot be read is an error of its own.
    pub async fn live_guests(
        &self,
        only: Option<&BTreeSet<u32>>,
    ) -> Result<Vec<Result<LiveGuest, (u32, ProviderError)>>, ProviderError> {
        live_guest::live_guests(&self.client, only).await
    }

    /// Every object of the datacenter, whoever made it; or those of some kinds.
    pub async fn live_objects(&self, only: Option<&BTreeSet<Kind>>) -> Found<DatacenterObject> {
        live_object::live_objects(&self.client, only).await
    }

    pub fn client(&self) -> &Client {
        &self.client
    }
}

#[async_trait]
impl Provider for ProxmoxProvider {
    async fn observe_all(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Sighting>, ProviderError> {
        observe::observe_all(&self.client, &Look::default(), wanted).await
    }

    async fn observe_in(&self, look: &Look, wanted: &[Wanted<'_>]) -> Result<Vec<Sighting>, ProviderError> {
        observe::observe_all(&self.client, look, wanted).await
    }

    async fn review(&self, review: Review<'_>) -> Result<Vec<Finding>, ProviderError> {
        review::review(&self.client, review).await
    }

    async fn preflight(
        &self,
        look: &Look,
        operations: &[Operation],
        earlier: &[Operation],
    ) -> Result<Vec<Obstacle>, ProviderError> {
        preflight::preflight(&self.client, look, operations, earlier).await
    }

    async fn execute(
        &self,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError> {
        execute::execute(&self.client, operation, context).await
    }

    async fn report(&self, objects: &[(&Address, &StateResource)]) -> Vec<Reported> {
        addresses::report(&self.client, objects).await
    }

    async fn wait_for_tasks(
        &self,
        entry: &OpenEntry,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        interrupted_tasks::wait_for_tasks(&self.client, entry, context).await
    }
}
