//! Moving a guest to another hypervisor, or saying why that cannot be.

use std::sync::{Mutex, PoisonError};

use http::Method;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::{FieldChange, Value};

use super::Patience;
use super::configure::{put_back, reread};
use super::power;
use super::update::Target;
use super::work::{Call, Work};
use crate::api::{GuestStatus, MigrationCheck, Params};
use crate::client::Client;
use crate::codec::GuestKind;
use crate::guest::Guest;
use crate::maintenance::{self, Movable, Stage};

/// Moves the guest. Answers with what had to be ejected for the move and is to be put back.
pub(super) async fn migrate(
    work: &Work<'_>,
    target: &mut Target,
    node: &str,
) -> Result<Vec<FieldChange>, ProviderError> {
    let guest = target.guest.clone();
    // Whoever may not read the notes of hosts cannot know.
    if let Some(mark) = maintenance::notes(work.client, node).await.ok().and_then(|notes| notes.mark())
        && matches!(mark.stage, Stage::Leaving | Stage::Empty | Stage::Rebooting(_))
    {
        let why = format!("`{node}` is being maintained ({} of `{}`)", mark.verb, mark.by);
        return Err(cannot(&guest, node, &why)
            .hint(format!("`strata hypervisor return {node}` ends that, and brings its guests back")));
    }
    let query = Params::new().with("target", node);
    let check: MigrationCheck =
        work.client.get(&guest.path("/migrate"), query).await.map_err(|error| {
            error.explain(&format!("ask whether {guest} can move to `{node}`")).field("node")
        })?;
    if let Some(why) = check.obstacle(node) {
        return Err(cannot(&guest, node, &why));
    }
    let ejected = eject_local_cdroms(work, target, node, &check).await?;
    let local_disks = check.local_disks.iter().any(|disk| !disk.cdrom);
    let mut params = Params::new().with("target", node);
    match guest.kind {
        GuestKind::Qemu if target.running => {
            params.set("online", 1);
            if local_disks {
                params.set("with-local-disks", 1);
            }
        }
        // A container cannot move while it runs: it is restarted on the other side.
        GuestKind::Lxc if target.running => params.set("restart", 1),
        _ => {}
    }
    let patience = Patience::Migrate.of(&work.operation.spec);
    let there = Guest { node: node.to_owned(), ..guest.clone() };
    let doing = format!("move {guest} from `{}` to `{node}`", guest.node);
    let since = Mutex::new(None);
    work.ensure(
        &guest,
        &doing,
        patience,
        || async {
            let call = work.call(Method::POST, guest.path("/migrate"), params.clone(), doing.clone());
            let task = work.run_task(Call { patience, ..call }).await?;
            *since.lock().unwrap_or_else(PoisonError::into_inner) = task.map(|upid| upid.started);
            Ok(())
        },
        || async { Ok(there.config_if_any(work.client).await?.is_some()) },
    )
    .await
    .map_err(|error| error.field("node"))?;
    target.guest = there;
    if guest.kind == GuestKind::Lxc && target.running {
        let since = since.into_inner().unwrap_or_else(PoisonError::into_inner);
        power::come_up(work, &target.guest, &GuestStatus::default(), since).await?;
    }
    reread(work, target).await?;
    Ok(ejected)
}

/// What keeps a guest on its host, and from which others.
pub(crate) async fn movable(client: &Client, guest: &Guest) -> Result<Movable, ProviderError> {
    let check: MigrationCheck = client
        .get(&guest.path("/migrate"), Params::new())
        .await
        .map_err(|error| error.explain(&format!("ask whether {guest} can move")))?;
    let resources = (!check.local_resources.is_empty())
        .then(|| format!("it uses {} of its host", check.local_resources.join(", ")));
    let iso = check.local_disks.iter().find(|disk| disk.cdrom && !disk.volid.contains("cloudinit"));
    let bound =
        resources.or_else(|| iso.map(|iso| format!("`{}` in a drive of it is only there", iso.volid)));
    Ok(Movable { bound, not: check.not_allowed_nodes.keys().cloned().collect() })
}

fn cannot(guest: &Guest, node: &str, why: &str) -> ProviderError {
    let message = format!("{guest} cannot move from `{}` to `{node}`: {why}", guest.node);
    let mut error = ProviderError::new(ErrorClass::BadInput, message)
        .field("node")
        .hint("it is never deleted and recreated for this; remove the obstacle, or leave it where it is");
    error.nothing_done = true;
    error
}

impl MigrationCheck {
    /// Why the guest cannot go there.
    fn obstacle(&self, node: &str) -> Option<String> {
        if !self.local_resources.is_empty() {
            return Some(format!("it uses {} of its hypervisor", self.local_resources.join(", ")));
        }
        if let Some(reason) = self.not_allowed_nodes.get(node) {
            let storages: Vec<&str> = reason
                .get("unavailable_storages")
                .and_then(|list| list.as_array())
                .map_or_else(Vec::new, |list| list.iter().filter_map(serde_json::Value::as_str).collect());
            if storages.is_empty() {
                return Some("the cluster does not allow it".to_owned());
            }
            return Some(format!("the storage {} is not there", storages.join(", ")));
        }
        None
    }
}

/// An ISO on a local storage keeps a VM where it is: it is ejected, and put back on the other side.
async fn eject_local_cdroms(
    work: &Work<'_>,
    target: &mut Target,
    node: &str,
    check: &MigrationCheck,
) -> Result<Vec<FieldChange>, ProviderError> {
    let wanted = work.operation.spec.get("cdroms").and_then(Value::as_map);
    let mut ejected = Vec::new();
    for disk in check.local_disks.iter().filter(|disk| disk.cdrom && !disk.volid.contains("cloudinit")) {
        let holds = |text: &str| text.split(',').next() == Some(disk.volid.as_str());
        let slot = target.config.keys().find(|(_, text)| holds(text)).map(|(slot, _)| slot.to_owned());
        let Some(slot) = slot else { continue };
        let ours = wanted.and_then(|cdroms| cdroms.get(&slot)?.as_map()?.get("volume")?.as_text());
        let Some(volume) = ours else {
            let why = format!(
                "`{slot}` holds `{}`, which is on a local storage and is not managed by this repository",
                disk.volid
            );
            return Err(cannot(&target.guest, node, &why));
        };
        let params = Params::new().with(&slot, "none,media=cdrom").with("digest", &target.config.digest);
        let doing = format!("take the local ISO out of `{slot}` of {}", target.guest);
        let call = work.call(Method::PUT, target.guest.path("/config"), params, doing);
        work.run(call).await.map_err(ProviderError::from)?;
        reread(work, target).await?;
        ejected.push(put_back(&slot, volume));
    }
    Ok(ejected)
}
