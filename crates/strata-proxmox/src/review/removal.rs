//! What goes with a guest that is deleted, and what stays: volumes, backup jobs, HA, permissions, replication, its pool.
//!
//! Proxmox always deletes the guest's volumes, its firewall, its permissions and its membership in a pool. Only with `purge` does it
//! also leave backup jobs, HA and replication: a destroy purges, a replacement does not.

use serde::Deserialize;
use strata_engine::{Finding, Operation, ProviderError};
use strata_resource::{Spec, Unit, Value};
use strata_state::Action;

use crate::api::{ApiErrorKind, Params, Scalar};
use crate::client::{CallError, Client};
use crate::codec::GuestKind;

#[derive(Deserialize)]
struct Job {
    id: String,
    #[serde(default)]
    vmid: Option<Scalar>,
    #[serde(default)]
    exclude: Option<Scalar>,
}

#[derive(Deserialize)]
struct Service {
    sid: String,
}

#[derive(Deserialize)]
struct Permission {
    path: String,
    #[serde(default)]
    ugid: String,
    #[serde(default)]
    roleid: String,
}

#[derive(Deserialize)]
struct Replication {
    id: String,
    #[serde(default)]
    guest: Option<Scalar>,
}

/// What is listed once for all guests of a plan; none where the token may not see it.
struct GuestReferences {
    jobs: Option<Vec<Job>>,
    services: Option<Vec<Service>>,
    permissions: Vec<Permission>,
    replications: Vec<Replication>,
}

impl GuestReferences {
    async fn look(client: &Client) -> Result<Self, ProviderError> {
        let (jobs, services, permissions, replications) = futures::future::try_join4(
            list(client, "/cluster/backup", "list the backup jobs"),
            list(client, "/cluster/ha/resources", "list the HA resources"),
            list(client, "/access/acl", "list the permissions"),
            list(client, "/cluster/replication", "list the replication jobs"),
        )
        .await?;
        Ok(Self {
            jobs,
            services,
            permissions: permissions.unwrap_or_default(),
            replications: replications.unwrap_or_default(),
        })
    }
}

async fn list<T: serde::de::DeserializeOwned>(
    client: &Client,
    path: &str,
    doing: &str,
) -> Result<Option<Vec<T>>, ProviderError> {
    match client.get(path, Params::new()).await {
        Ok(rows) => Ok(Some(rows)),
        Err(error) if matches!(error.kind(), Some(ApiErrorKind::Denied { .. })) => Ok(None),
        // A server that does not know the path has none of these.
        Err(CallError::Api(error)) if error.status == 501 || error.status == 404 => Ok(Some(Vec::new())),
        Err(error) => Err(error.explain(doing)),
    }
}

fn deletes(operations: &[Operation]) -> impl Iterator<Item = (&Operation, GuestKind, i64)> {
    operations.iter().filter(|operation| operation.action == Action::Delete).filter_map(|operation| {
        let kind = GuestKind::of(operation.address.kind())?;
        Some((operation, kind, operation.spec.get("vmid")?.as_int()?))
    })
}

/// Without `purge` Proxmox refuses to delete what HA or a replication job names: told before anything is begun.
pub(super) async fn preconditions(
    client: &Client,
    operations: &[Operation],
) -> Result<Vec<Finding>, ProviderError> {
    let replaced: Vec<_> = deletes(operations).filter(|(operation, ..)| operation.replacement).collect();
    if replaced.is_empty() {
        return Ok(Vec::new());
    }
    let around = GuestReferences::look(client).await?;
    let mut found = Vec::new();
    for (operation, kind, vmid) in replaced {
        let sid = sid(kind, vmid);
        let mut object = |message: String, hint: String| {
            found.push(Finding::precondition(operation, message, hint));
        };
        if around.services.iter().flatten().any(|service| service.sid == sid) {
            object(
                format!("HA manages it (`{sid}`): Proxmox does not delete it for a replacement"),
                format!("`ha-manager remove {sid}`, apply, then add it to HA again"),
            );
        }
        for job in around.replications.iter().filter(|job| is_of(job, vmid)) {
            object(
                format!(
                    "replication job `{}` copies it: Proxmox does not delete it for a replacement",
                    job.id
                ),
                format!("`pvesr delete {}`, apply, then make the job again", job.id),
            );
        }
    }
    Ok(found)
}

/// What goes with what is deleted, and what stays.
pub(super) async fn remarks(
    client: &Client,
    operations: &[Operation],
) -> Result<Vec<Finding>, ProviderError> {
    if deletes(operations).next().is_none() {
        return Ok(Vec::new());
    }
    let around = GuestReferences::look(client).await?;
    let mut found = Vec::new();
    for (operation, kind, vmid) in deletes(operations) {
        let live = operation.observed.as_ref();
        let spec = live.map_or(&operation.spec, |observed| &observed.spec);
        let made = operations
            .iter()
            .find(|other| other.action == Action::Create && other.address == operation.address)
            .filter(|_| operation.replacement);
        let mut notes = Vec::new();
        notes.extend(volumes(spec, live.map(|observed| &observed.facts)));
        notes.extend(jobs(&around, operation.replacement, vmid, made.map(|made| &made.spec)));
        if !operation.replacement {
            let sid = sid(kind, vmid);
            if around.services.iter().flatten().any(|service| service.sid == sid) {
                notes.push(format!("HA resource `{sid}` is removed with it"));
            }
            let copied = around.replications.iter().filter(|job| is_of(job, vmid));
            notes.extend(copied.map(|job| format!("replication job `{}` is removed with it", job.id)));
        }
        notes.extend(permissions(&around, vmid));
        let pool = spec.get("pool").and_then(Value::as_text);
        let kept = made.and_then(|made| made.spec.get("pool")).and_then(Value::as_text);
        if let Some(pool) = pool.filter(|pool| Some(*pool) != kept) {
            notes.push(format!("it leaves pool `{pool}`"));
        }
        found.extend(notes.into_iter().map(|note| Finding::remark(operation, note)));
    }
    Ok(found)
}

fn sid(kind: GuestKind, vmid: i64) -> String {
    format!("{}:{vmid}", if kind == GuestKind::Lxc { "ct" } else { "vm" })
}

fn is_of(job: &Replication, vmid: i64) -> bool {
    let guest = job.guest.as_ref().map(|guest| guest.as_str().to_owned());
    let named = job.id.rsplit_once('-').map(|(guest, _)| guest.to_owned());
    guest.or(named).as_deref() == Some(vmid.to_string().as_str())
}

/// `scsi0 20 GiB on local-lvm`; what is detached goes too.
fn volumes(spec: &Spec, facts: Option<&Spec>) -> Option<String> {
    let mut all = Vec::new();
    let slots = ["disks", "mounts"].into_iter().filter_map(|field| spec.get(field)?.as_map());
    let single = ["rootfs", "efidisk", "tpm"].into_iter().filter_map(|field| Some((field, spec.get(field)?)));
    let slots = slots.flatten().map(|(slot, volume)| (slot.as_str(), volume));
    for (slot, volume) in single.chain(slots) {
        let Some(map) = volume.as_map() else { continue };
        // A folder or device of the host is only mounted.
        let Some(storage) = map.get("storage").and_then(Value::as_text) else { continue };
        let size = map.get("size").and_then(Value::as_int).map(|size| format!(" {}", Unit::Bytes.show(size)));
        all.push(format!("{slot}{} on {storage}", size.unwrap_or_default()));
    }
    let unused = facts.and_then(|facts| facts.get("unused")).and_then(Value::as_list).unwrap_or_default();
    all.extend(unused.iter().filter_map(|volume| Some(format!("{} (detached)", volume.as_text()?))));
    (!all.is_empty()).then(|| format!("its volumes are deleted: {}", all.join(", ")))
}

fn jobs(around: &GuestReferences, replacement: bool, vmid: i64, made: Option<&Spec>) -> Vec<String> {
    let Some(jobs) = &around.jobs else {
        return vec!["whether backup jobs name it cannot be seen: `Sys.Audit` is missing on `/`".to_owned()];
    };
    let names = |list: &Option<Scalar>| -> Vec<String> {
        let list = list.as_ref().map(|list| list.as_str().to_owned()).unwrap_or_default();
        list.split([',', ';', ' ']).filter(|id| !id.is_empty()).map(str::to_owned).collect()
    };
    let own = vmid.to_string();
    let moves = made.and_then(|made| made.get("vmid")).and_then(Value::as_int).filter(|new| *new != vmid);
    let mut notes = Vec::new();
    for job in jobs {
        let (named, excluded) = (names(&job.vmid), names(&job.exclude));
        let is_named = named.contains(&own);
        if !is_named && !excluded.contains(&own) {
            continue;
        }
        let id = &job.id;
        notes.push(match (replacement, moves) {
            (true, Some(new)) if is_named => {
                format!("backup job `{id}` names VMID {vmid} and not {new}: it is not backed up until the job is changed")
            }
            (true, _) if is_named => format!("it stays in backup job `{id}`"),
            (true, _) => format!("backup job `{id}` goes on to leave it out"),
            (false, _) if is_named && named.len() == 1 => {
                format!("backup job `{id}` is removed with it: it has no other guest")
            }
            (false, _) => format!("it is removed from backup job `{id}`; its backups stay"),
        });
    }
    notes
}

fn permissions(around: &GuestReferences, vmid: i64) -> Option<String> {
    let path = format!("/vms/{vmid}");
    let own = around.permissions.iter().filter(|entry| entry.path == path);
    let own: Vec<String> = own.map(|entry| format!("{} for {}", entry.roleid, entry.ugid)).collect();
    (!own.is_empty()).then(|| format!("permissions on `{path}` go with it: {}", own.join(", ")))
}
