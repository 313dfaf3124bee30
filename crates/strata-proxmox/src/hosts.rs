//! The hypervisors that a guest could be put on, and the guests that stand there.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use strata_engine::ProviderError;

use crate::api::{ApiErrorKind, NetworkRow, Params, flag, whole};
use crate::client::Client;

/// A hypervisor that is online.
#[derive(Debug, Clone, Default)]
pub struct Host {
    pub name: String,
    /// In bytes; 0 where this login may not see it.
    pub memory: i64,
    /// The storages that are available there.
    pub storages: BTreeSet<String>,
    /// Bridges and virtual networks; none where this login may not see them.
    pub bridges: Option<BTreeSet<String>>,
}

/// A guest and the memory of its configuration in bytes.
#[derive(Debug, Clone)]
pub struct HostedGuest {
    pub vmid: u32,
    pub node: String,
    pub memory: i64,
}

/// What a place for a guest is chosen from.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    pub hosts: Vec<Host>,
    pub guests: Vec<HostedGuest>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    node: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    storage: Option<String>,
    #[serde(default, deserialize_with = "whole")]
    vmid: Option<i64>,
    #[serde(default, deserialize_with = "whole")]
    maxmem: Option<i64>,
    #[serde(default, deserialize_with = "flag")]
    template: bool,
}

/// One request, and one more for each hypervisor.
pub(crate) async fn hosts(client: &Client) -> Result<Hosts, ProviderError> {
    let rows: Vec<Row> = client
        .get("/cluster/resources", Params::new())
        .await
        .map_err(|error| error.explain("list the hypervisors"))?;
    let mut hosts: BTreeMap<String, Host> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.kind == "node" && row.status.as_deref() == Some("online")) {
        let Some(name) = row.node.clone() else { continue };
        let memory = row.maxmem.unwrap_or_default();
        hosts.insert(name.clone(), Host { name, memory, ..Host::default() });
    }
    let mut guests = Vec::new();
    for row in rows {
        let Some(node) = row.node else { continue };
        match row.kind.as_str() {
            "storage" if row.status.as_deref() == Some("available") => {
                if let Some(host) = hosts.get_mut(&node) {
                    host.storages.extend(row.storage);
                }
            }
            // A template never runs.
            "qemu" | "lxc" => {
                let vmid = row.vmid.and_then(|vmid| u32::try_from(vmid).ok());
                let memory = if row.template { 0 } else { row.maxmem.unwrap_or_default() };
                guests.extend(vmid.map(|vmid| HostedGuest { vmid, node, memory }));
            }
            _ => {}
        }
    }
    for host in hosts.values_mut() {
        host.bridges = bridges(client, &host.name).await?;
    }
    Ok(Hosts { hosts: hosts.into_values().collect(), guests })
}

async fn bridges(client: &Client, node: &str) -> Result<Option<BTreeSet<String>>, ProviderError> {
    let query = Params::new().with("type", "any_bridge");
    let rows: Result<Vec<NetworkRow>, _> = client.get(&format!("/nodes/{node}/network"), query).await;
    match rows {
        Ok(rows) => Ok(Some(rows.into_iter().map(|row| row.iface).collect())),
        // What cannot be seen is left to the preflight, and a node that is down to the next run.
        Err(error)
            if error.is_unreachable_node() || matches!(error.kind(), Some(ApiErrorKind::Denied { .. })) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.explain(&format!("list the bridges of `{node}`"))),
    }
}
