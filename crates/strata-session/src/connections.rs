//! Connections by target: made once for a run, shared by all its stacks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strata_engine::{Provider, Providers};

use crate::error::SessionError;

/// What is connected, and which storages of each target every node of it sees.
#[derive(Clone, Default)]
pub struct Connections {
    providers: Providers,
    claimed: BTreeSet<String>,
    /// What could not be connected, and why: it is not asked again by every stack of a run.
    failed: BTreeMap<String, SessionError>,
    shared: BTreeMap<String, BTreeSet<String>>,
}

impl Connections {
    /// Whether a target has to be connected; from now on somebody has tried.
    pub fn claim(&mut self, target: &str) -> bool {
        self.claimed.insert(target.to_owned())
    }

    /// A target cannot be connected: whoever needs it fails with this.
    pub fn fail(&mut self, target: &str, error: SessionError) {
        self.failed.insert(target.to_owned(), error);
    }

    /// Whether these are connected.
    pub(crate) fn require<'t>(&self, mut targets: impl Iterator<Item = &'t str>) -> Result<(), SessionError> {
        targets.find_map(|target| self.failed.get(target)).map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Whether everything is connected that somebody tried to.
    pub(crate) fn complete(&self) -> Result<(), SessionError> {
        self.failed.values().next().map_or(Ok(()), |error| Err(error.clone()))
    }

    pub fn insert(&mut self, target: &str, provider: Arc<dyn Provider>) {
        self.providers.insert(target, provider);
    }

    /// The storages that every node of a target sees.
    pub fn share(&mut self, target: &str, storages: BTreeSet<String>) {
        self.shared.insert(target.to_owned(), storages);
    }

    pub fn providers(&self) -> &Providers {
        &self.providers
    }

    /// By target.
    pub fn shared_storages(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.shared
    }

    /// Adds what the source says to what there is: a storage that a lower layer is about to make is shared from the start.
    pub(crate) fn expect_shared(&mut self, written: BTreeMap<String, BTreeSet<String>>) {
        for (target, storages) in written {
            self.shared.entry(target).or_default().extend(storages);
        }
    }
}
