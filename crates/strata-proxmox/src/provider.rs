//! The provider: looks, acts and settles, by way of the modules of those names.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use strata_engine::{
    Consequence, Objection, Operation, OperationContext, Outcome, Provider, ProviderError, Sighting, Wanted,
};
use strata_state::OpenEntry;

use crate::client::{Client, ConnectError};
use crate::datacenter::{self, Promises};
use crate::marked::{self, MarkedGuests};
use crate::{ProxmoxOptions, execute, media, observe, preflight, review, settle, storages};

/// A Proxmox cluster, as the engine sees it.
pub struct ProxmoxProvider {
    client: Client,
    /// What lower layers will have made.
    promises: Mutex<Promises>,
    /// Entries of the access control that a look showed to be ours.
    known: Mutex<BTreeSet<String>>,
}

impl ProxmoxProvider {
    /// Checks the settings. Nothing is sent yet.
    pub fn connect(options: ProxmoxOptions) -> Result<Self, ConnectError> {
        Ok(Self { client: Client::new(options)?, promises: Mutex::default(), known: Mutex::default() })
    }

    /// The storages that every node sees the same content of. One request.
    pub async fn shared_storages(&self) -> Result<BTreeSet<String>, ProviderError> {
        storages::shared(&self.client).await
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

    pub fn client(&self) -> &Client {
        &self.client
    }
}

#[async_trait]
impl Provider for ProxmoxProvider {
    async fn observe_all(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Sighting>, ProviderError> {
        let sightings = observe::observe_all(&self.client, wanted).await?;
        let known = datacenter::known_entries(wanted, &sightings);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).extend(known);
        Ok(sightings)
    }

    async fn objections(&self, operations: &[Operation]) -> Result<Vec<Objection>, ProviderError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut found = datacenter::objections(&self.client, operations, &known).await?;
        found.extend(review::objections(&self.client, operations).await?);
        Ok(found)
    }

    async fn consequences(&self, operations: &[Operation]) -> Result<Vec<Consequence>, ProviderError> {
        review::consequences(&self.client, operations).await
    }

    async fn preflight(&self, operations: &[Operation]) -> Result<Vec<ProviderError>, ProviderError> {
        let promises = self.promises.lock().unwrap_or_else(PoisonError::into_inner).clone();
        preflight::preflight(&self.client, operations, &promises).await
    }

    fn notices(&self, operation: &Operation) -> Vec<String> {
        datacenter::notices(operation).into_iter().chain(review::notices(operation)).collect()
    }

    fn promise(&self, operations: &[Operation]) {
        self.promises.lock().unwrap_or_else(PoisonError::into_inner).extend(operations);
    }

    async fn execute(
        &self,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError> {
        execute::execute(&self.client, operation, context).await
    }

    async fn settle(&self, entry: &OpenEntry, context: &dyn OperationContext) -> Result<(), ProviderError> {
        settle::settle(&self.client, entry, context).await
    }
}
