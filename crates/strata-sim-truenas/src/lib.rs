//! A simulated TrueNAS: pools and datasets behind its JSON-RPC over WebSocket, with its checks, errors and property format.
//!
//! # Main types
//! - [`StorageServer`]: answers at [`TRUENAS_HOST`] of the simulated network.
//! - [`TrueNas`]: everything that is on it, as it is kept across runs.
//!
//! # Invariants
//! - A call is carried out under the lock of the server, from start to end, without waiting.
//! - Like the original it deletes a dataset with files in it; only child datasets and snapshots stop it.
//!
//! ```
//! use std::sync::Arc;
//! use strata_sim_core::{Pace, Seed, Shared};
//! use strata_sim_truenas::{StorageServer, TrueNas};
//!
//! let shared = Arc::new(Shared::new(Seed(1), Pace::INSTANT));
//! let nas = StorageServer::open(&shared, TrueNas::default());
//! nas.change(&serde_json::json!({ "dataset": { "name": "tank/media" } })).unwrap();
//! assert_eq!(nas.export()["datasets"][1]["name"], "tank/media");
//! ```

// The modules are private: `pub` in them means "for the rest of this crate".
#![allow(unreachable_pub)]

mod control;
mod dataset;
mod error;
mod filter;
mod rpc;
mod server;
mod settings;
mod view;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strata_sim_core::Shared;
use strata_sim_core::network::{Listener, listener};

/// Where it answers, on port 443, from the beginning.
pub const TRUENAS_HOST: &str = "192.0.2.20";
/// The API key of the user `truenas_admin`.
pub const TRUENAS_API_KEY: &str = "1-SimulatedKeyOfTheSimulatedStorageServerForTestsOnly0000000000000";
const PORT: u16 = 443;
const USER: &str = "truenas_admin";
const VERSION: &str = "TrueNAS-25.10.2";

/// Everything that is on it. The first dataset of each pool is the pool's own.
#[derive(Debug, Serialize, Deserialize)]
pub struct TrueNas {
    /// By name; the size in bytes.
    pub pools: BTreeMap<String, u64>,
    /// By their full names.
    pub datasets: BTreeMap<String, Dataset>,
}

/// A file system or a block device, with what was set on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Dataset {
    /// Not a file system but a block device of this many bytes.
    pub volume: Option<u64>,
    /// Properties that were set here, by their ZFS names and in ZFS' words.
    pub properties: BTreeMap<String, String>,
    /// What others noted on it.
    pub user_properties: BTreeMap<String, String>,
    /// Names of its snapshots, in their order.
    pub snapshots: Vec<String>,
    /// Files at its top, by name, with their sizes.
    pub files: BTreeMap<String, u64>,
    /// Seconds since 1970.
    pub created: i64,
}

impl Default for TrueNas {
    fn default() -> Self {
        let root = Dataset {
            properties: BTreeMap::from([("compression".to_owned(), "lz4".to_owned())]),
            created: 1_735_689_600,
            ..Dataset::default()
        };
        Self {
            pools: BTreeMap::from([("tank".to_owned(), 4 << 40)]),
            datasets: BTreeMap::from([("tank".to_owned(), root)]),
        }
    }
}

/// The server: what is on it behind its lock, and what it shares with the rest of the simulator.
pub struct StorageServer {
    shared: Arc<Shared>,
    content: Mutex<TrueNas>,
}

impl StorageServer {
    /// From now on it answers at its address.
    pub fn open(shared: &Arc<Shared>, content: TrueNas) -> Arc<Self> {
        let server = Arc::new(Self { shared: Arc::clone(shared), content: Mutex::new(content) });
        shared.network.register(TRUENAS_HOST, PORT, server.listener());
        server
    }

    fn listener(self: &Arc<Self>) -> Listener {
        listener(self, server::serve)
    }

    /// What is on it, for as long as the guard lives.
    pub fn content(&self) -> MutexGuard<'_, TrueNas> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out `{"truenas": …}` of a change.
    pub fn change(self: &Arc<Self>, change: &Value) -> Result<Value, String> {
        control::apply(self, change)
    }

    /// Pools and datasets, without times.
    pub fn export(&self) -> Value {
        self.content().export()
    }
}

impl TrueNas {
    /// The datasets below one, at any depth.
    fn below<'t>(&'t self, name: &str) -> impl Iterator<Item = (&'t str, &'t Dataset)> + use<'t> {
        let prefix = format!("{name}/");
        let all = self.datasets.iter().filter(move |(other, _)| other.starts_with(&prefix));
        all.map(|(name, dataset)| (name.as_str(), dataset))
    }

    /// The datasets directly below one.
    fn children<'t>(&'t self, name: &str) -> Vec<&'t str> {
        let depth = name.matches('/').count() + 1;
        self.below(name).map(|(child, _)| child).filter(|child| child.matches('/').count() == depth).collect()
    }

    fn export(&self) -> Value {
        let datasets: Vec<Value> = self
            .datasets
            .iter()
            .map(|(name, dataset)| {
                json!({
                    "name": name, "volume": dataset.volume, "properties": dataset.properties,
                    "user-properties": dataset.user_properties, "snapshots": dataset.snapshots, "files": dataset.files,
                })
            })
            .collect();
        json!({ "pools": self.pools, "datasets": datasets })
    }
}
