//! What roles give: privileges, as far as this version of Proxmox knows them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use strata_engine::{Finding, Operation, ProviderError};
use strata_resource::{Spec, Value};
use strata_state::Action;

use crate::api::Params;
use crate::client::{CallError, Client};

/// The built-in role that has everything there is.
const EVERYTHING: &str = "Administrator";

#[derive(Deserialize)]
struct Role {
    roleid: String,
    #[serde(default)]
    privs: Option<String>,
}

/// Every role that is there, with its privileges; anybody may see them.
pub(in crate::kinds) async fn roles(
    client: &Client,
) -> Result<BTreeMap<String, BTreeSet<String>>, ProviderError> {
    let rows: Result<Vec<Role>, CallError> = client.get("/access/roles", Params::new()).await;
    let rows = rows.map_err(|error| error.explain("list the roles"))?;
    let privileges = |role: &Role| -> BTreeSet<String> {
        let all = role.privs.as_deref().unwrap_or_default();
        all.split([',', ' ', ';']).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    Ok(rows.iter().map(|role| (role.roleid.clone(), privileges(role))).collect())
}

pub(in crate::kinds) fn privileges_of(spec: &Spec) -> BTreeSet<String> {
    let list = spec.get("privileges").and_then(Value::as_list).unwrap_or_default();
    list.iter().filter_map(|privilege| privilege.as_text().map(str::to_owned)).collect()
}

/// Privileges that this version does not know: an apply would be refused.
pub(super) async fn preconditions(
    client: &Client,
    own: &[&Operation],
) -> Result<Vec<Finding>, ProviderError> {
    let stays = |operation: &&Operation| operation.action != Action::Delete;
    let made: Vec<&Operation> = own.iter().copied().filter(stays).collect();
    if made.is_empty() {
        return Ok(Vec::new());
    }
    let roles = roles(client).await?;
    let Some(known) = roles.get(EVERYTHING) else { return Ok(Vec::new()) };
    let unknown = |operation: &Operation| -> Vec<String> {
        privileges_of(&operation.spec).into_iter().filter(|privilege| !known.contains(privilege)).collect()
    };
    Ok(made
        .into_iter()
        .filter_map(|operation| {
            let unknown = unknown(operation);
            if unknown.is_empty() {
                return None;
            }
            let named: Vec<String> = unknown.iter().map(|privilege| format!("`{privilege}`")).collect();
            Some(Finding::precondition(
                operation,
                format!("this version of Proxmox VE does not know the privilege {}", named.join(", ")),
                "take it out of the role; `pveum role list` shows those that there are",
            ))
        })
        .collect())
}
