//! What a create of ours left behind that no task works on any more: a VMID that is claimed, with nothing but a lock, or without one
//! after somebody took it away by hand. It carries no ownership mark yet; that it is ours is known by the journal and the list of tasks.

use std::time::Duration;

use http::Method;
use strata_engine::{ErrorClass, OperationContext, ProviderError};

use crate::absence;
use crate::api::{ContentRow, Params, StorageRow, Upid};
use crate::client::{CallError, Client, Permit, Rights};
use crate::codec::{GuestKind, LiveConfig};
use crate::guest::Guest;

/// What the journal says of a create whose task could not be started: that the claimed VMID is ours.
pub(crate) fn unstarted(guest: &Guest) -> String {
    format!("no worker for {guest}")
}

/// Removes it, where it is proven ours and can be removed; says what a person has to do where it cannot. Whatever carries more than a
/// lock is left to the look that follows.
pub(crate) async fn clear(
    client: &Client,
    guest: &Guest,
    lock: Option<&str>,
    ours: bool,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let failed = |error: CallError| error.explain(&format!("remove what is left of {guest}"));
    let Some(config) = guest.config_if_any(client).await.map_err(failed)? else { return Ok(()) };
    if !ours || !is_bare(&config) {
        return lock.map_or(Ok(()), |lock| Err(stale_lock(guest, lock)));
    }
    let mut params = Params::new().with("purge", 1);
    let mut rights = Rights::Usual;
    if let Some(lock) = lock {
        // Only root may, and only for a VM.
        if !client.can_be_root() || guest.kind == GuestKind::Lxc {
            return Err(stale_lock(guest, lock));
        }
        params.set("skiplock", 1);
        rights = Rights::Root;
    }
    context.progress(&format!("removing what an interrupted create left of {guest}"));
    let permit = Permit::ask(&|| context.before_write())?;
    let task =
        client.write(permit, Method::DELETE, &guest.path(""), &params, rights).await.map_err(failed)?;
    if let Some(upid) = task.and_then(|task| task.parse::<Upid>().ok()) {
        const PATIENCE: Duration = Duration::from_secs(600);
        client.follow(&upid, PATIENCE).await.map_err(failed)?;
    }
    match absence::is_free(client, guest.vmid).await.map_err(failed)? {
        true => {
            name_volumes(client, guest, context).await;
            Ok(())
        }
        false => {
            let message =
                format!("what an interrupted create left of {guest} is still there after it was deleted");
            Err(ProviderError::new(ErrorClass::TaskFailed, message).hint("apply again"))
        }
    }
}

/// A clone or an import that died had made volumes that its configuration does not name yet. Whether one of them was there before cannot
/// be told, so none is deleted: they are named.
async fn name_volumes(client: &Client, guest: &Guest, context: &dyn OperationContext) {
    let (node, mut left) = (&guest.node, Vec::new());
    let path = format!("/nodes/{node}/storage");
    // What this login cannot list it cannot have made volumes on.
    let storages: Vec<StorageRow> = client.get(&path, Params::new()).await.unwrap_or_default();
    let holds = |row: &&StorageRow| {
        row.enabled && row.active && ["images", "rootdir"].iter().any(|kind| row.content.contains(kind))
    };
    for StorageRow { storage, .. } in storages.iter().filter(holds) {
        let query = Params::new().with("vmid", guest.vmid);
        let rows: Result<Vec<ContentRow>, _> = client.get(&format!("{path}/{storage}/content"), query).await;
        let disk = |row: &ContentRow| matches!(row.content.as_deref(), Some("images" | "rootdir"));
        left.extend(rows.unwrap_or_default().into_iter().filter(disk).map(|row| row.volid));
    }
    if !left.is_empty() {
        let (count, names) = (left.len(), left.join("`, `"));
        let them = if count == 1 { "it" } else { "them" };
        context.warning(&format!(
            "an interrupted create left volumes of {guest} on `{node}` that no guest refers to: `{names}`; where nobody needs {them}, \
             `pvesm free` on `{node}` removes {them}"
        ));
    }
}

/// Nothing but what claims the VMID: there is nothing in it that anybody could lose.
fn is_bare(config: &LiveConfig) -> bool {
    config.keys().all(|(key, value)| key == "description" && value.trim() == "qmclone temporary file")
}

/// No task works on it, and nobody will take the lock away.
pub(crate) fn stale_lock(guest: &Guest, lock: &str) -> ProviderError {
    let tool = match guest.kind {
        GuestKind::Qemu => "qm",
        GuestKind::Lxc => "pct",
    };
    let (node, vmid) = (&guest.node, guest.vmid);
    let message = format!(
        "{guest} on `{node}` is locked ({lock}) and no task works on it: its task was not started, or died with its hypervisor"
    );
    ProviderError::new(ErrorClass::Conflict, message).hint(format!(
        "run `{tool} unlock {vmid}` on `{node}`, then apply again: what was begun is still known and is finished or removed"
    ))
}
