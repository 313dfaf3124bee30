//! What a lower layer of the same repository will have made: preflight must not miss it.

use std::collections::BTreeSet;

use strata_engine::Operation;
use strata_state::Action;

use crate::kinds;

/// Pools, storages and bridges that are planned and not there yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlannedPlaces {
    pools: BTreeSet<String>,
    /// Storage, and its content.
    storages: BTreeSet<(String, String)>,
    /// Node and interface.
    interfaces: BTreeSet<(String, String)>,
    /// Interfaces that every node will have.
    everywhere: BTreeSet<String>,
}

impl PlannedPlaces {
    pub(crate) fn of(operations: &[Operation]) -> Self {
        let mut planned = Self::default();
        for operation in operations.iter().filter(|operation| operation.action != Action::Delete) {
            if let Some(managed) = kinds::of(operation.address.kind()) {
                managed.provides(&operation.spec, &mut planned);
            }
        }
        planned
    }

    pub(crate) fn add_pool(&mut self, pool: &str) {
        self.pools.insert(pool.to_owned());
    }

    pub(crate) fn add_storage(&mut self, storage: &str, content: &str) {
        self.storages.insert((storage.to_owned(), content.to_owned()));
    }

    pub(crate) fn add_interface(&mut self, node: &str, name: &str) {
        self.interfaces.insert((node.to_owned(), name.to_owned()));
    }

    pub(crate) fn add_interface_everywhere(&mut self, name: &str) {
        self.everywhere.insert(name.to_owned());
    }

    pub(crate) fn has_pool(&self, pool: &str) -> bool {
        self.pools.contains(pool)
    }

    pub(crate) fn has_interface(&self, node: &str, name: &str) -> bool {
        self.everywhere.contains(name) || self.interfaces.contains(&(node.to_owned(), name.to_owned()))
    }

    /// Whether a storage will be there, perhaps with more content than now.
    pub(crate) fn has_storage(&self, storage: &str) -> bool {
        self.storages.iter().any(|(name, _)| name == storage)
    }

    pub(crate) fn takes(&self, storage: &str, content: &str) -> bool {
        self.storages.contains(&(storage.to_owned(), content.to_owned()))
    }
}
