//! Making a guest: created or cloned in one call that carries the mark, then brought to its spec.

use strata_engine::{Dispute, ErrorClass, Outcome, ProviderError, Unmanaged};
use strata_resource::{FieldChange, FieldPath, Spec, Value, diff_specs};

use super::update::Target;
use super::work::{Call, StepError, Work};
use super::{Patience, calls, update};
use crate::absence;
use crate::api::ApiErrorKind;
use crate::client::CallError;
use crate::codec::{GuestKind, is_strata_cidata};
use crate::guest::{Guest, locate};
use crate::interrupted_tasks::leftover;
use crate::interrupted_tasks::quiet_guest;
use crate::observe::{Covers, observed_guest};
use crate::ownership::{Claim, describe, unmanaged};
use crate::review::PlannedGuest;

/// How often a create is sent whose answers get lost.
const ATTEMPTS: usize = 4;

/// What has the VMID.
enum Holder {
    Nobody,
    Us,
    Unmanaged(Unmanaged),
}

pub(super) async fn create(work: &Work<'_>) -> Result<Outcome, ProviderError> {
    let guest = Guest { kind: work.guest_kind(), node: work.text("node")?.to_owned(), vmid: work.vmid()? };
    let source = calls::clone_source(&work.operation.spec);
    let fresh = make(work, &guest, source).await?;
    finish(work, guest, source.is_some(), fresh).await
}

/// What the step carries. Where nobody could say before where the template would be, it is looked for now.
async fn first_call(work: &Work<'_>, guest: &Guest, source: Option<u32>) -> Result<Call, ProviderError> {
    if let Some(planned) = PlannedGuest::of(work.operation) {
        return Ok(planned.call.clone());
    }
    let spec = &work.operation.spec;
    let call = match (source, calls::template_node(spec)) {
        (Some(source), None) => {
            let from = template_node(work, guest, source).await?;
            calls::clone(guest, spec, source, &from)
        }
        (Some(source), Some(from)) => calls::clone(guest, spec, source, from),
        (None, _) => calls::create(guest, spec),
    };
    call.map_err(update::bad_field)
}

/// Sends the create until the guest is there and ours. Says whether this run made it, and not one before.
async fn make(work: &Work<'_>, guest: &Guest, source: Option<u32>) -> Result<bool, ProviderError> {
    let kind = if source.is_some() { Patience::Clone } else { Patience::Create };
    let patience = kind.of(&work.operation.spec);
    let mut lost = None;
    for _ in 0..ATTEMPTS {
        let call = first_call(work, guest, source).await?;
        let error = match work.run(Call { patience, ..call }).await {
            Ok(()) => return Ok(true),
            Err(error) => error,
        };
        match &error {
            StepError::Refused { error: cause, .. } if cause.leaves_a_lock() => {
                // The VMID is claimed by us, and nothing else of it is there: known for ever, then taken away and tried again.
                work.context.task_started(&leftover::unstarted(guest)).await?;
                let config = guest.config_if_any(work.client).await;
                let lock = config.map_err(|error| error.explain(&format!("look at {guest}")))?;
                let lock = lock.and_then(|config| config.lock);
                leftover::clear(work.client, guest, lock.as_deref(), true, work.context).await?;
                lost = Some(error);
                continue;
            }
            StepError::Refused { error: cause, .. } if error.kind() != Some(&ApiErrorKind::AlreadyExists) => {
                return Err(work.point_to_field(error.clone().into(), cause));
            }
            StepError::Refused { .. } | StepError::Lost { .. } => {}
            StepError::Stop(_) | StepError::Task(_) => return Err(error.into()),
        }
        // Something has the VMID, or our own request got through without an answer: wait for what runs, then look.
        quiet_guest(work.client, guest, source, patience, work.context).await?;
        match holder(work, guest).await? {
            Holder::Us => return Ok(false),
            Holder::Unmanaged(who) => return Err(taken(guest, &who)),
            Holder::Nobody => lost = Some(error),
        }
    }
    Err(lost.map_or_else(|| work.internal("it was not tried"), ProviderError::from))
}

fn taken(guest: &Guest, who: &Unmanaged) -> ProviderError {
    let mut error = ProviderError::new(ErrorClass::Conflict, format!("VMID {} is taken: {who}", guest.vmid))
        .hint("it was not touched; choose another `vmId`, or move the other guest away");
    error.nothing_done = true;
    error
}

async fn holder(work: &Work<'_>, guest: &Guest) -> Result<Holder, ProviderError> {
    let failed = |error: CallError| error.explain(&format!("look at {guest}"));
    let operation = work.operation;
    if let Some(config) = guest.config_if_any(work.client).await.map_err(failed)? {
        let claim =
            Claim::new(&operation.lineage, &operation.address, operation.recorded.as_ref(), guest.vmid);
        return Ok(match claim.dispute(guest, &config) {
            None => Holder::Us,
            Some(why) => Holder::Unmanaged(unmanaged(guest, &config, why)),
        });
    }
    let Some(row) = locate(work.client, guest.vmid).await.map_err(failed)? else {
        return match absence::is_free(work.client, guest.vmid).await.map_err(failed)? {
            true => Ok(Holder::Nobody),
            false => Err(absence::hidden_guest_error(guest.vmid)),
        };
    };
    let kind = if row.kind.as_deref() == Some("lxc") { GuestKind::Lxc } else { GuestKind::Qemu };
    let node = row.node.as_deref().unwrap_or_default().to_owned();
    let what = describe(&Guest { kind, node, vmid: guest.vmid }, row.name.as_deref());
    Ok(Holder::Unmanaged(Unmanaged::new(what, Dispute::Unclaimed)))
}

async fn template_node(work: &Work<'_>, guest: &Guest, source: u32) -> Result<String, ProviderError> {
    let failed = |error: CallError| error.explain(&format!("look at template {source}"));
    let here = Guest { kind: guest.kind, node: guest.node.clone(), vmid: source };
    if here.config_if_any(work.client).await.map_err(failed)?.is_some() {
        return Ok(here.node);
    }
    let row = locate(work.client, source).await.map_err(failed)?;
    row.and_then(|row| row.node).map(String::from).ok_or_else(|| {
        let mut error = ProviderError::new(
            ErrorClass::Missing,
            format!("cannot clone {guest}: template {source} does not exist"),
        )
        .field("clone.template");
        error.nothing_done = true;
        error
    })
}

/// Brings a new guest from what the create made of it to its spec.
async fn finish(work: &Work<'_>, guest: Guest, cloned: bool, fresh: bool) -> Result<Outcome, ProviderError> {
    let failed = |error: CallError| error.explain(&format!("read {guest}"));
    let spec = &work.operation.spec;
    let mut config = guest.config(work.client).await.map_err(failed)?;
    if fresh && matches!(config.lock.as_deref(), Some("create" | "clone")) {
        // Its task is forgotten and has not ended it: it has no mark yet, and is ours all the same.
        let patience = Patience::Create.of(spec);
        quiet_guest(work.client, &guest, calls::clone_source(spec), patience, work.context).await?;
        config = guest.config(work.client).await.map_err(failed)?;
    }
    let operation = work.operation;
    let claim = Claim::new(&operation.lineage, &operation.address, operation.recorded.as_ref(), guest.vmid);
    if let Some(why) = claim.dispute(&guest, &config) {
        return Err(taken(&guest, &unmanaged(&guest, &config, why)));
    }
    let running = !fresh && guest.is_running(work.client).await.map_err(failed)?;
    let pool = spec.get("pool").and_then(Value::as_text);
    let covers = Covers::specs(&[spec]);
    let live = observed_guest(&guest, &config, running, pool, None, &covers).spec;
    // What was sent with the create need not be sent again; a clone got nothing but its name and notes.
    let sent = (!cloned && fresh).then_some(spec);
    let mut changes = diff_specs(operation.address.kind().rules(), spec, sent, &live).changes;
    changes.extend(left_by_the_template(&guest, spec, &live));
    update::carry_out(work, Target { guest, config, running }, changes, false).await
}

/// What a clone has from its template and its spec does not: networks, where the spec says which there are, and Proxmox' own
/// cloud-init drive, where the guest gets its data from an ISO of ours. Nothing for a guest that is no clone.
pub(super) fn left_by_the_template(guest: &Guest, spec: &Spec, live: &Spec) -> Vec<FieldChange> {
    if !spec.contains_key("clone") {
        return Vec::new();
    }
    let slots = |spec: &Spec, name: &str| spec.get(name).and_then(Value::as_map).cloned();
    let gone = |path: FieldPath, before: Value| FieldChange {
        path,
        before: Some(before),
        after: None,
        drift: false,
    };
    let mut changes = Vec::new();
    if let (Some(wanted), Some(there)) = (slots(spec, "networks"), slots(live, "networks")) {
        let extra = there.into_iter().filter(|(slot, _)| !wanted.contains_key(slot));
        changes.extend(extra.map(|(slot, net)| gone(FieldPath::root().child("networks").child(&slot), net)));
    }
    let own_iso = slots(spec, "cdroms").is_some_and(|cdroms| {
        let volumes = cdroms.values().filter_map(|cdrom| cdrom.as_map()?.get("volume")?.as_text());
        volumes.into_iter().any(|volume| is_strata_cidata(volume, guest.vmid))
    });
    let drive = slots(live, "cloudinit").and_then(|cloudinit| cloudinit.get("drive").cloned());
    if let Some(drive) = drive.filter(|_| own_iso) {
        changes.push(gone(FieldPath::dotted("cloudinit.drive"), drive));
    }
    changes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(json: serde_json::Value) -> Spec {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_clone_loses_what_its_template_had_too_much() {
        let guest = Guest { kind: GuestKind::Qemu, node: "pve1".into(), vmid: 9100 };
        let live = spec(json!({
            "networks": {"net0": {"bridge": "vmbr0"}, "net1": {"bridge": "vmbr1"}},
            "cloudinit": {"drive": {"slot": "ide0", "storage": "local"}}, "disks": {"scsi1": {}}
        }));
        let paths = |wanted: serde_json::Value| {
            let mut wanted = spec(wanted);
            wanted.insert("clone".to_owned(), Value::Map(Spec::new()));
            let changes = left_by_the_template(&guest, &wanted, &live);
            changes.iter().map(|change| change.path.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(paths(json!({"networks": {"net0": {}}})), ["networks.net1"]);
        assert!(paths(json!({})).is_empty());
        let iso = "local:iso/strata-0123456789ab-9100-fedcba987654.iso";
        assert_eq!(paths(json!({"cdroms": {"ide2": {"volume": iso}}})), ["cloudinit.drive"]);
        assert!(paths(json!({"cdroms": {"ide2": {"volume": "local:iso/debian.iso"}}})).is_empty());
    }
}
