//! A simulated TrueNAS: pools and datasets behind its JSON-RPC over WebSocket, with its checks, errors and property format.

mod control;
mod dataset;
mod error;
mod filter;
mod rpc;
mod server;
mod settings;
mod view;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::gateway::{self, Network};
use crate::world::World;

pub use control::apply as change;

/// Where it answers, on port 443, from the beginning.
pub const TRUENAS_HOST: &str = "192.0.2.20";
/// The API key of the user `truenas_admin`.
pub const TRUENAS_API_KEY: &str = "1-SimulatedKeyOfTheSimulatedStorageServerForTestsOnly0000000000000";
const USER: &str = "truenas_admin";
const VERSION: &str = "TrueNAS-25.10.2";

/// Everything that is on it. The first dataset of each pool is the pool's own.
#[derive(Debug, Serialize, Deserialize)]
pub struct TrueNas {
    /// By name; the size in bytes.
    pub pools: BTreeMap<String, u64>,
    pub datasets: BTreeMap<String, Dataset>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Dataset {
    /// Not a file system but a block device of this many bytes.
    pub volume: Option<u64>,
    /// Properties that were set here, by their ZFS names and in ZFS' words.
    pub properties: BTreeMap<String, String>,
    pub user_properties: BTreeMap<String, String>,
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

/// From now on it answers at its address.
pub fn open(network: &Network) {
    network.register(TRUENAS_HOST, 443, gateway::listener(server::serve));
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
}

impl World {
    pub fn export_truenas(&self) -> Value {
        let datasets: Vec<Value> = self
            .truenas
            .datasets
            .iter()
            .map(|(name, dataset)| {
                json!({
                    "name": name, "volume": dataset.volume, "properties": dataset.properties,
                    "user-properties": dataset.user_properties, "snapshots": dataset.snapshots, "files": dataset.files,
                })
            })
            .collect();
        json!({ "pools": self.truenas.pools, "datasets": datasets })
    }
}
