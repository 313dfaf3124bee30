//! A pool that others have members in cannot be deleted.

use std::collections::BTreeSet;

use serde::Deserialize;
use strata_engine::{Finding, Operation, ProviderError};
use strata_resource::{Mark, Value};
use strata_state::Action;

use crate::api::Params;
use crate::client::{CallError, Client};
use crate::codec::GuestKind;
use crate::guest::Guest;
use crate::kinds::storage;

#[derive(Deserialize)]
struct Pool {
    #[serde(default)]
    members: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    vmid: Option<u32>,
    #[serde(default)]
    node: Option<String>,
    #[serde(default)]
    storage: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

pub(super) async fn preconditions(
    client: &Client,
    pools: &[&Operation],
    all: &[Operation],
) -> Result<Vec<Finding>, ProviderError> {
    let is_delete = |operation: &Operation| operation.action == Action::Delete;
    let storages: BTreeSet<&str> = all
        .iter()
        .filter(|operation| is_delete(operation) && operation.address.kind() == storage::KIND)
        .filter_map(|operation| operation.spec.get("storage")?.as_text())
        .collect();
    let mut found = Vec::new();
    for operation in pools.iter().copied().filter(|operation| is_delete(operation)) {
        let Some(name) = operation.spec.get("pool").and_then(Value::as_text) else { continue };
        let mut unmanaged = Vec::new();
        for member in members(client, name).await? {
            if let Some(storage) = member.storage.as_ref().filter(|_| member.kind == "storage") {
                if !storages.contains(storage.as_str()) {
                    unmanaged.push(format!("storage `{storage}`"));
                }
            } else if let Some(vmid) = member.vmid {
                if is_managed(client, &member, vmid).await {
                    continue;
                }
                let named = member.name.as_deref().map(|name| format!(" `{name}`")).unwrap_or_default();
                let kind = if member.kind == "lxc" { "container" } else { "VM" };
                unmanaged.push(format!("{kind} {vmid}{named}"));
            }
        }
        if !unmanaged.is_empty() {
            found.push(Finding::precondition(
                operation,
                format!(
                    "pool `{name}` has members that Strata does not manage, and cannot be deleted: {}",
                    unmanaged.join(", ")
                ),
                "move them to another pool, then plan again",
            ));
        }
    }
    Ok(found)
}

async fn members(client: &Client, pool: &str) -> Result<Vec<Member>, ProviderError> {
    let query = Params::new().with("poolid", pool);
    let pools: Result<Vec<Pool>, CallError> = client.get("/pools", query).await;
    match pools {
        Ok(pools) => Ok(pools.into_iter().flat_map(|pool| pool.members).collect()),
        // It went in the meantime, or may not be seen: the delete itself says so.
        Err(CallError::Api(_)) => Ok(Vec::new()),
        Err(error) => Err(error.explain(&format!("list the members of pool `{pool}`"))),
    }
}

/// A guest with a mark is destroyed with its stack, which a destroy of several stacks comes to before the pool.
async fn is_managed(client: &Client, member: &Member, vmid: u32) -> bool {
    let kind = if member.kind == "lxc" { GuestKind::Lxc } else { GuestKind::Qemu };
    let guest = Guest { kind, node: member.node.clone().unwrap_or_default(), vmid };
    match guest.config_if_any(client).await {
        Ok(Some(config)) => Mark::split_from_notes(config.get("description").unwrap_or_default())
            .0
            .is_some_and(|mark| mark.vmid == vmid),
        Ok(None) => true,
        Err(_) => false,
    }
}
