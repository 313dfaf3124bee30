//! Proof that something is not there. A listing shows only what this login may see: what is not in it is unknown until a second,
//! independent look says that it is absent.

use serde::de::IgnoredAny;
use strata_engine::{ErrorClass, ProviderError, Unseen};
use strata_resource::{Spec, Value};

use crate::api::{ApiErrorKind, NodeRow, Params};
use crate::client::{CallError, Client};

/// Whether no guest at all has the VMID. The whole cluster answers, and it answers everybody, whatever they may see.
pub(crate) async fn is_free(client: &Client, vmid: u32) -> Result<bool, CallError> {
    match client.get::<IgnoredAny>("/cluster/nextid", Params::new().with("vmid", vmid)).await {
        Ok(_) => Ok(true),
        Err(CallError::Api(error)) if error.says_taken(vmid) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A guest has the VMID and is not shown to this login.
pub(crate) fn hidden_guest(vmid: u32) -> Unseen {
    Unseen::new(
        format!("a guest with VMID {vmid} exists, and this login cannot see it"),
        format!(
            "give the login `VM.Audit` on `/vms/{vmid}` (a guest that left its pool takes the permissions of the pool with it), then plan again"
        ),
    )
}

/// The same in the middle of an operation.
pub(crate) fn hidden_guest_error(vmid: u32) -> ProviderError {
    let Unseen { what, hint } = hidden_guest(vmid);
    let mut error = ProviderError::new(ErrorClass::Refused, what).hint(hint);
    error.nothing_done = true;
    error
}

/// The hypervisor with the guest, the volume or the setting does not answer.
pub(crate) fn unreachable_node(node: &str) -> Unseen {
    Unseen::new(
        format!("the hypervisor `{node}` is unreachable: what is on it cannot be seen"),
        format!(
            "bring `{node}` back into its cluster, then plan again; what is elsewhere is planned all the same"
        ),
    )
}

/// What a failed look says about single objects, where it says nothing about the others. `named` is what was looked for.
pub(crate) fn unseen(error: &CallError, node: &str, named: &str) -> Option<Unseen> {
    match error.kind()? {
        ApiErrorKind::NodeUnreachable => Some(unreachable_node(node)),
        ApiErrorKind::Denied { path, privileges } if !privileges.is_empty() => {
            let named_privileges: Vec<String> = privileges.iter().map(|one| format!("`{one}`")).collect();
            Some(Unseen::new(
                format!("whether {named} is there cannot be seen: a privilege is missing on `{path}`"),
                format!("give the login {} on `{path}`, then plan again", named_privileges.join(" or ")),
            ))
        }
        ApiErrorKind::Denied { .. } => Some(Unseen::new(
            format!("whether {named} is there cannot be seen: {error}"),
            "`strata doctor --role` prints a role with everything that is needed",
        )),
        _ => None,
    }
}

/// Whether a call failed because the cluster has no member of this name, and not because its name did not resolve for a moment.
pub(crate) async fn is_no_member(client: &Client, error: &CallError, node: &str) -> Result<bool, CallError> {
    if !error.says_no_node(node) && error.kind() != Some(&ApiErrorKind::NoSuchNode) {
        return Ok(false);
    }
    let rows: Vec<NodeRow> = client.get("/nodes", Params::new()).await?;
    Ok(rows.iter().all(|row| row.node != node))
}

/// A spec for each member of the cluster, with its name in this field.
pub(crate) async fn each_host(client: &Client, field: &str) -> Result<Vec<Spec>, CallError> {
    let rows: Vec<NodeRow> = client.get("/nodes", Params::new()).await?;
    Ok(rows.into_iter().map(|row| Spec::from([(field.to_owned(), Value::text(row.node))])).collect())
}
