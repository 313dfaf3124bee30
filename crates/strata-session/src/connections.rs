//! Connections by target: made once for a run, shared by all its stacks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strata_engine::{Provider, Providers};

/// What is connected, and which storages of each target every node of it sees.
#[derive(Clone, Default)]
pub struct Connections {
    providers: Providers,
    connected: BTreeSet<String>,
    shared: BTreeMap<String, BTreeSet<String>>,
}

impl Connections {
    /// Whether a target has to be connected; from now on it counts as connected.
    pub fn claim(&mut self, target: &str) -> bool {
        self.connected.insert(target.to_owned())
    }

    /// A target that did not answer is asked again by whoever needs it next.
    pub fn give_up(&mut self, target: &str) {
        self.connected.remove(target);
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
