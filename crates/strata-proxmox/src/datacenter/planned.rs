//! What a lower layer of the same repository will have made: preflight must not miss it.

use std::collections::BTreeSet;

use strata_engine::Operation;
use strata_resource::{Spec, Value};
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
}

impl PlannedPlaces {
    pub(crate) fn of(operations: &[Operation]) -> Self {
        let mut planned = Self::default();
        for operation in operations.iter().filter(|operation| operation.action != Action::Delete) {
            let (spec, text) = (&operation.spec, |field: &str| text(&operation.spec, field));
            match operation.address.kind() {
                kinds::POOL => planned.pools.extend(text("pool")),
                kinds::STORAGE => planned.storages.extend(contents(spec)),
                kinds::NETWORK => {
                    let names =
                        spec.get("interfaces").and_then(Value::as_map).into_iter().flat_map(Spec::keys);
                    let node = text("network").unwrap_or_default();
                    planned.interfaces.extend(names.map(|name| (node.clone(), name.clone())));
                }
                _ => {}
            }
        }
        planned
    }

    pub(crate) fn has_pool(&self, pool: &str) -> bool {
        self.pools.contains(pool)
    }

    pub(crate) fn has_interface(&self, node: &str, name: &str) -> bool {
        self.interfaces.contains(&(node.to_owned(), name.to_owned()))
    }

    /// Whether a storage will be there, perhaps with more content than now.
    pub(crate) fn has_storage(&self, storage: &str) -> bool {
        self.storages.iter().any(|(name, _)| name == storage)
    }

    pub(crate) fn takes(&self, storage: &str, content: &str) -> bool {
        self.storages.contains(&(storage.to_owned(), content.to_owned()))
    }
}

fn text(spec: &Spec, field: &str) -> Option<String> {
    spec.get(field).and_then(Value::as_text).map(str::to_owned)
}

fn contents(spec: &Spec) -> Vec<(String, String)> {
    let name = text(spec, "storage").unwrap_or_default();
    let listed = spec.get("content").and_then(Value::as_list).into_iter().flatten();
    listed.filter_map(Value::as_text).map(|content| (name.clone(), content.to_owned())).collect()
}
