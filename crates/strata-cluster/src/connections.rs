//! The connections to the nodes of a cluster: one for each address, and at which address each node was reached last.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use strata_talos_client::{TalosClient, TalosError};

/// A pool: what is in it can be had again by asking, so nothing that is decided rests on it.
#[derive(Default)]
pub(crate) struct Connections {
    pool: Mutex<Pool>,
}

#[derive(Default)]
struct Pool {
    clients: BTreeMap<String, TalosClient>,
    /// By name: a node that moves is not at its address yet.
    reached_at: BTreeMap<String, String>,
}

impl Connections {
    /// Nodes that were there before, with the address at which each is asked first.
    pub(crate) fn to(known: impl IntoIterator<Item = (String, String)>) -> Self {
        let pool = Pool { clients: BTreeMap::new(), reached_at: known.into_iter().collect() };
        Self { pool: Mutex::new(pool) }
    }

    /// The client of an address, connected once.
    pub(crate) fn client(
        &self,
        address: &str,
        connect: impl FnOnce() -> Result<TalosClient, TalosError>,
    ) -> Result<TalosClient, TalosError> {
        let mut pool = self.pool();
        if let Some(client) = pool.clients.get(address) {
            return Ok(client.clone());
        }
        let client = connect()?;
        pool.clients.insert(address.to_owned(), client.clone());
        Ok(client)
    }

    /// After a reboot the old connection leads nowhere.
    pub(crate) fn hang_up(&self, address: &str) {
        self.pool().clients.remove(address);
    }

    pub(crate) fn reached_at(&self, name: &str) -> Option<String> {
        self.pool().reached_at.get(name).cloned()
    }

    pub(crate) fn reached(&self, name: &str, address: &str) {
        self.pool().reached_at.insert(name.to_owned(), address.to_owned());
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
