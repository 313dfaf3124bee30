//! What the hypervisors of a Proxmox cluster have, and how much of it is given to guests.

use std::collections::BTreeMap;

use serde::Deserialize;
use strata_engine::ProviderError;

use crate::api::{Params, flag, whole};
use crate::client::Client;

/// Of everything that is online.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capacity {
    pub cores: i64,
    /// In bytes.
    pub memory: i64,
    /// Of all storages, in bytes; one that several nodes share counts once.
    pub disk: i64,
    /// What the configurations of guests ask for, whether they run or not.
    pub given_cores: i64,
    pub given_memory: i64,
    /// What the storages hold.
    pub used_disk: i64,
}

#[derive(Deserialize)]
struct Row {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    node: Option<String>,
    #[serde(default)]
    storage: Option<String>,
    #[serde(default, deserialize_with = "flag")]
    shared: bool,
    #[serde(default, deserialize_with = "flag")]
    template: bool,
    #[serde(default)]
    maxcpu: Option<f64>,
    #[serde(default, deserialize_with = "whole")]
    maxmem: Option<i64>,
    #[serde(default, deserialize_with = "whole")]
    maxdisk: Option<i64>,
    #[serde(default, deserialize_with = "whole")]
    disk: Option<i64>,
}

/// One request.
pub(crate) async fn capacity(client: &Client) -> Result<Capacity, ProviderError> {
    let rows: Vec<Row> = client
        .get("/cluster/resources", Params::new())
        .await
        .map_err(|error| error.explain("list the hypervisors"))?;
    Ok(of(rows))
}

fn of(rows: Vec<Row>) -> Capacity {
    let mut all = Capacity::default();
    // A storage that is shared is listed for each node.
    let mut storages: BTreeMap<(Option<String>, Option<String>), (i64, i64)> = BTreeMap::new();
    for row in rows {
        let cores = row.maxcpu.unwrap_or_default() as i64;
        let memory = row.maxmem.unwrap_or_default();
        match row.kind.as_str() {
            "node" if row.status.as_deref() == Some("online") => {
                all.cores += cores;
                all.memory += memory;
            }
            "storage" if row.status.as_deref() == Some("available") => {
                let place = (row.node.filter(|_| !row.shared), row.storage);
                let size = (row.maxdisk.unwrap_or_default(), row.disk.unwrap_or_default());
                storages.entry(place).or_insert(size);
            }
            // A template never runs.
            "qemu" | "lxc" if !row.template => {
                all.given_cores += cores;
                all.given_memory += memory;
            }
            _ => {}
        }
    }
    all.disk = storages.values().map(|(size, _)| size).sum();
    all.used_disk = storages.values().map(|(_, used)| used).sum();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_storages_count_once_and_templates_not_at_all() {
        let rows = r#"[
            {"type": "node", "node": "a", "status": "online", "maxcpu": 8, "maxmem": 100},
            {"type": "node", "node": "b", "status": "offline", "maxcpu": 8, "maxmem": 100},
            {"type": "qemu", "node": "a", "vmid": 1, "maxcpu": 2, "maxmem": 30, "maxdisk": 7},
            {"type": "lxc", "node": "a", "vmid": 2, "maxcpu": 1.5, "maxmem": 10},
            {"type": "qemu", "node": "a", "vmid": 3, "maxcpu": 4, "maxmem": 50, "template": 1},
            {"type": "storage", "node": "a", "storage": "nfs", "shared": 1, "status": "available", "maxdisk": 500, "disk": 20},
            {"type": "storage", "node": "b", "storage": "nfs", "shared": 1, "status": "available", "maxdisk": 500, "disk": 20},
            {"type": "storage", "node": "a", "storage": "local", "status": "available", "maxdisk": 50, "disk": 5},
            {"type": "storage", "node": "b", "storage": "local", "status": "unknown"},
            {"type": "sdn", "node": "a", "status": "ok"}
        ]"#;
        let expected =
            Capacity { cores: 8, memory: 100, disk: 550, given_cores: 3, given_memory: 40, used_disk: 25 };
        assert_eq!(of(serde_json::from_str(rows).unwrap()), expected);
    }
}
