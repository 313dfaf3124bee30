//! A template with linked clones cannot be deleted: their disks are differences to its own.

use std::collections::BTreeSet;

use strata_engine::{Finding, FindingKind, Operation, ProviderError};
use strata_resource::{Spec, Value};
use strata_state::Action;

use crate::api::{ContentRow, Params};
use crate::client::{CallError, Client};
use crate::guest::cluster_guests;
use crate::kinds;

pub(super) async fn preconditions(
    client: &Client,
    own: &[&Operation],
    all: &[Operation],
) -> Result<Vec<Finding>, ProviderError> {
    let deleted: BTreeSet<i64> = all
        .iter()
        .filter(|operation| operation.action == Action::Delete && kinds::is_guest(operation.address.kind()))
        .filter_map(|operation| operation.spec.get("vmid")?.as_int())
        .collect();
    let templates = own.iter().copied().filter(|operation| operation.action == Action::Delete);
    let mut found = Vec::new();
    for template in templates {
        let clones: Vec<i64> =
            clones_of(client, template).await?.into_iter().filter(|clone| !deleted.contains(clone)).collect();
        if clones.is_empty() {
            continue;
        }
        let vmid = template.spec.get("vmid").and_then(Value::as_int).unwrap_or_default();
        let named: Vec<String> = clones.iter().map(i64::to_string).collect();
        let named = named.join(", ");
        let doing = if template.replacement { "recreated" } else { "deleted" };
        let hint = match free_above(client, vmid, all).await? {
            Some(free) if template.replacement => format!(
                "write another `vmId` for it, such as {free}: the new template is made beside this one, which goes when its last linked clone is gone"
            ),
            _ => "make its clones full ones first, or destroy them".to_owned(),
        };
        let kind = FindingKind::InUse {
            identity: template.address.kind().table().identity_of(&template.spec),
            stays: format!("template {vmid} stays for its linked clones: VMID {named}"),
            message: format!("template {vmid} has linked clones and cannot be {doing}: VMID {named}"),
            hint,
        };
        found.push(Finding::new(template, kind));
    }
    Ok(found)
}

/// The next VMID that neither a guest nor this plan has, as far as this login sees.
async fn free_above(client: &Client, vmid: i64, all: &[Operation]) -> Result<Option<i64>, ProviderError> {
    let listed = cluster_guests(client).await.map_err(|error| error.explain("list the guests"))?;
    let planned = all.iter().filter_map(|operation| operation.spec.get("vmid")?.as_int());
    let taken: BTreeSet<i64> = listed.iter().map(|row| i64::from(row.vmid)).chain(planned).collect();
    Ok((vmid + 1..vmid + 1000).find(|candidate| !taken.contains(candidate)))
}

/// VMIDs whose volumes are differences to a volume of the template.
async fn clones_of(client: &Client, template: &Operation) -> Result<BTreeSet<i64>, ProviderError> {
    let Some(observed) = &template.observed else { return Ok(BTreeSet::new()) };
    let node = observed.facts.get("node").and_then(Value::as_text).unwrap_or_default();
    let vmid = template.spec.get("vmid").and_then(Value::as_int).unwrap_or_default();
    let mut clones = BTreeSet::new();
    for storage in storages(&observed.spec) {
        let path = format!("/nodes/{node}/storage/{storage}/content");
        let rows: Result<Vec<ContentRow>, CallError> =
            client.get(&path, Params::new().with("content", "images")).await;
        // What may not be seen is told by the preflight.
        let Ok(rows) = rows else { continue };
        clones.extend(rows.iter().filter_map(|row| clone_of(&row.volid, vmid)));
    }
    Ok(clones)
}

fn storages(spec: &Spec) -> BTreeSet<&str> {
    let disks = spec.get("disks").and_then(Value::as_map).into_iter().flat_map(|disks| disks.values());
    disks.filter_map(|disk| disk.as_map()?.get("storage")?.as_text()).collect()
}

/// `local:9000/base-9000-disk-0.qcow2/9100/vm-9100-disk-0.qcow2`, `tank:base-9000-disk-0/vm-9100-disk-0`: whose it is, if it hangs on
/// a volume of the template.
fn clone_of(volid: &str, template: i64) -> Option<i64> {
    let (_, name) = volid.split_once(':')?;
    let (above, own) = name.rsplit_once('/')?;
    let base = format!("base-{template}-");
    above.split('/').any(|part| part.starts_with(&base)).then_some(())?;
    own.split('-').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::clone_of;

    #[test]
    fn a_linked_clone_is_known_by_its_volume() {
        for volid in [
            "local:9000/base-9000-disk-0.qcow2/9100/vm-9100-disk-0.qcow2",
            "tank:base-9000-disk-0/vm-9100-disk-0",
        ] {
            assert_eq!(clone_of(volid, 9000), Some(9100), "{volid}");
            assert_eq!(clone_of(volid, 900), None, "{volid}");
        }
        assert_eq!(clone_of("tank:base-9000-disk-0", 9000), None);
        assert_eq!(clone_of("local:9000/base-9000-disk-0.qcow2", 9000), None);
    }
}
