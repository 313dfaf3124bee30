//! What `snapshotBefore` does in a plan, and why it cannot.

use serde::Deserialize;
use strata_engine::{Finding, FindingKind, Operation, Payload, ProviderError};
use strata_resource::Value;
use strata_state::Action;

use crate::acts::BackupRequest;
use crate::api::{Params, flag};
use crate::before_change::{BackupBefore, SnapshotBefore, taken_already, too_many};
use crate::client::Client;
use crate::codec::GuestKind;
use crate::execute::{backup, snapshot};
use crate::guest::Guest;

#[derive(Debug, Deserialize)]
struct Feature {
    #[serde(default, rename = "hasFeature", deserialize_with = "flag")]
    has: bool,
}

pub(super) async fn findings(
    client: &Client,
    operations: &[Operation],
) -> Result<Vec<Finding>, ProviderError> {
    let mut found = Vec::new();
    for operation in operations {
        let Some(guest) = guest_of(operation) else { continue };
        match operation.action {
            Action::Update => found.extend(before_update(client, operation, &guest).await?),
            Action::Delete if operation.replacement => {
                found.extend(before_replacement(client, operation, operations, &guest).await?);
            }
            Action::Create | Action::Delete => {}
        }
    }
    Ok(found)
}

/// The guest of an operation, where it was seen last.
fn guest_of(operation: &Operation) -> Option<Guest> {
    let kind = GuestKind::of(operation.address.kind())?;
    let seen = &operation.observed.as_ref()?.facts;
    let node = seen.get("node").and_then(Value::as_text)?.to_owned();
    let vmid = operation.spec.get("vmid").and_then(Value::as_int)?;
    Some(Guest { kind, node, vmid: u32::try_from(vmid).ok()? })
}

async fn before_update(
    client: &Client,
    operation: &Operation,
    guest: &Guest,
) -> Result<Vec<Finding>, ProviderError> {
    let Some(before) = SnapshotBefore::of(&operation.spec) else { return Ok(Vec::new()) };
    let Some(reason) = before.reason(operation) else { return Ok(Vec::new()) };
    let query = Params::new().with("feature", "snapshot");
    let feature: Feature = client
        .get(&guest.path("/feature"), query)
        .await
        .map_err(|error| error.explain(&format!("see whether {guest} can have snapshots")))?;
    if !feature.has {
        return Ok(vec![Finding::precondition(
            operation,
            format!("no snapshot can be taken before {reason}: {}", why_not(operation)),
            "put its volumes on storages that take snapshots (ZFS, LVM-thin, Ceph, qcow2 files), or remove the change from `snapshotBefore`: `strata backup run` keeps what is there",
        )]);
    }
    let moved = operation.changes.iter().find(|change| {
        change.before.is_some() && change.path.keys().len() > 1 && change.path.last() == Some("storage")
    });
    if let Some(moved) = moved {
        return Ok(vec![Finding::precondition(
            operation,
            format!(
                "a snapshot before {reason} would keep `{}` from changing: Proxmox moves no volume that has snapshots",
                moved.path
            ),
            "remove `snapshotBefore` for this one change: `strata backup run` keeps what is there",
        )]);
    }
    let all = snapshot::all(client, &operation.lineage, &operation.address, guest).await?;
    let live = guest.config(client).await.map_err(|error| error.explain(&format!("read {guest}")))?;
    let taken = taken_already(operation, &all, &live);
    let mut remark = match &taken {
        Some(name) => format!("the snapshot `{name}` was taken before {reason}"),
        None => format!("a snapshot of it is taken before {reason}"),
    };
    let goes = too_many(&all, taken.as_deref(), before.keep);
    if !goes.is_empty() {
        let names: Vec<String> = goes.iter().map(|name| format!("`{name}`")).collect();
        remark = format!("{remark}; of those before, {} is deleted ({} stay)", names.join(", "), before.keep);
    }
    Ok(vec![Finding::remark(operation, remark)])
}

/// The storages of its volumes, for people: Proxmox does not say which it is.
fn why_not(operation: &Operation) -> String {
    let live = operation.observed.as_ref().map_or(&operation.spec, |observed| &observed.spec);
    let mut storages: Vec<&str> = Vec::new();
    for field in ["disks", "mounts", "rootfs", "efidisk", "tpm"] {
        let Some(map) = live.get(field).and_then(Value::as_map) else { continue };
        let own = map.get("storage").and_then(Value::as_text);
        let slots = map.values().filter_map(|slot| slot.as_map()?.get("storage")?.as_text());
        storages.extend(own.into_iter().chain(slots));
    }
    storages.sort_unstable();
    storages.dedup();
    match storages.as_slice() {
        [] => "Proxmox says that this guest has none".to_owned(),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("Proxmox says that a volume of it takes none (its volumes are on {})", names.join(", "))
        }
    }
}

async fn before_replacement(
    client: &Client,
    operation: &Operation,
    operations: &[Operation],
    guest: &Guest,
) -> Result<Vec<Finding>, ProviderError> {
    let made =
        operations.iter().find(|other| other.action == Action::Create && other.address == operation.address);
    let wanted = made.and_then(|made| SnapshotBefore::of(&made.spec)).filter(SnapshotBefore::backs_up);
    let Some(before) = wanted else { return Ok(Vec::new()) };
    let request = BackupRequest { storage: before.storage.clone(), ..BackupRequest::default() };
    let storage = match backup::storage(client, &guest.node, request.storage.as_deref()).await {
        Ok(storage) => storage.name,
        Err(error) if error.nothing_done => {
            let hint = "name one that takes backups in `snapshotBefore: {storage: …}`";
            let message = format!("it cannot be backed up before it is replaced: {}", error.message);
            return Ok(vec![Finding::precondition(operation, message, hint)]);
        }
        Err(error) => return Err(error),
    };
    let keep = before.keep;
    let remark = format!(
        "it is shut down and backed up to `{storage}` before it is replaced; {keep} of these backups stay"
    );
    let digest = format!("backup to {storage}, {keep} stay");
    let payload = Payload::new(BackupBefore { storage, keep }, digest);
    Ok(vec![Finding::remark(operation, remark), Finding::new(operation, FindingKind::Sends(payload))])
}
