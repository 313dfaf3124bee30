//! A guest of ours from a backup of it: the same VMID, hardware addresses and ownership mark.

use std::time::Duration;

use http::Method;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::{Spec, Value};
use strata_state::Action;

use super::outcome::Ended;
use super::power::{self, Insist};
use super::update::{Target, check_unchanged_since, find};
use super::work::{Call, Work};
use crate::absence;
use crate::api::Params;
use crate::archives;
use crate::codec::{GuestKind, LiveConfig, attached_now, storage_of};
use crate::guest::{Guest, locate};
use crate::observe::facts_of;

const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Keys that a restore makes up, or that say where a volume went.
const MADE_UP: &[&str] =
    &["vmgenid", "lock", "parent", "digest", "meta", "running-nets-host-mtu", CANNOT_BE_READ];
/// The server shows no password.
const CANNOT_BE_READ: &str = "cipassword";

/// Restores over the guest, or makes it again where it is gone. Gives the facts of what is there then.
pub(crate) async fn restore(work: &Work<'_>, volume: &str) -> Result<Spec, ProviderError> {
    let (kind, vmid) = (work.guest_kind(), work.vmid()?);
    let target = match work.operation.action {
        Action::Create => None,
        Action::Update | Action::Delete => Some(find(work).await?),
    };
    let guest = match &target {
        Some(target) => target.guest.clone(),
        None => free_place(work, kind, vmid).await?,
    };
    let doing = format!("restore {guest} from `{volume}`");
    let archived = archives::config(work.client, &guest.node, volume).await;
    let archived = archived.map_err(|error| {
        error.explain(&format!("read the configuration in `{volume}` on `{}`", guest.node))
    })?;
    if let Some(why) = archives::dispute(work.operation, vmid, &guest.node, &archived) {
        return Err(archives::not_of_this(work.operation, volume, &why));
    }
    refuse_partial(&archived, volume, target.as_ref())?;
    refuse_bind_mounts(kind, &archived, volume)?;
    let started = match &target {
        Some(target) => target.running,
        None => work.operation.spec.get("power").and_then(Value::as_text) == Some("running"),
    };
    if let Some(target) = &target {
        if let Some(lock) = &target.config.lock {
            let message = format!("{guest} is locked ({lock})");
            return Err(ProviderError::new(ErrorClass::Conflict, message)
                .hint("try again when what holds it has ended"));
        }
        if target.running {
            power::shut_down(work, &guest, Insist::No).await?;
        }
        // Directly before its disks are written over: it may have been changed, moved or replaced while it shut down.
        let now = find(work).await?;
        if now.guest != guest || now.running {
            let what = if now.running { "started" } else { "moved" };
            let message = format!("somebody {what} {guest} while it was to be restored");
            return Err(
                ProviderError::new(ErrorClass::Conflict, message).hint("it was not restored; try again")
            );
        }
        check_unchanged_since(&now, &target.config, "restored")?;
    }
    let params = params(work, kind, vmid, volume, &archived, target.is_some());
    let path = format!("/nodes/{}/{}", guest.node, kind.path());
    let call = work.call(Method::POST, path, params, doing.clone());
    let ended = work.follow_through(&guest, Call { patience: PATIENCE, ..call }).await?;
    let restored = find(work).await?;
    prove(&doing, ended, &archived, target.as_ref().map(|target| &target.config), &restored)?;
    if started && !restored.running {
        power::start(work, &restored.guest).await?;
    }
    Ok(facts_of(&restored.guest, &restored.config))
}

/// Where a guest that is gone is made again. Nobody else may have its VMID.
async fn free_place(work: &Work<'_>, kind: GuestKind, vmid: u32) -> Result<Guest, ProviderError> {
    let guest = Guest { kind, node: work.text("node")?.to_owned(), vmid };
    let failed = |error: crate::CallError| error.explain(&format!("look for {guest}"));
    if locate(work.client, vmid).await.map_err(failed)?.is_some() {
        // It may be ours: then it is restored over.
        let mut error = ProviderError::new(ErrorClass::Conflict, format!("VMID {vmid} is taken by now"))
            .hint("nothing was restored; try again");
        error.nothing_done = true;
        return Err(error);
    }
    match absence::is_free(work.client, vmid).await.map_err(failed)? {
        true => Ok(guest),
        false => Err(absence::hidden_guest_error(vmid)),
    }
}

/// A volume of a container that the backup leaves out is deleted by a restore over it, and nothing brings it back. Of a VM it stays,
/// attached to nothing.
fn refuse_partial(archived: &LiveConfig, volume: &str, target: Option<&Target>) -> Result<(), ProviderError> {
    let inside = archives::contents(archived).disks;
    let Some(target) = target.filter(|target| target.guest.kind == GuestKind::Lxc) else { return Ok(()) };
    let lost: Vec<String> = attached_now(&target.config)
        .into_iter()
        .filter(|(slot, _)| !inside.contains(slot))
        .map(|(slot, volume)| format!("`{slot}` (`{volume}`)"))
        .collect();
    if lost.is_empty() {
        return Ok(());
    }
    let message = format!("a restore would delete what `{volume}` does not have: {}", lost.join(", "));
    let mut error = ProviderError::new(ErrorClass::Guard, message).hint(format!(
        "back {} up and detach these volumes first, or restore to another guest by hand",
        target.guest
    ));
    error.nothing_done = true;
    Err(error)
}

/// What a host lends to a container is given back by root alone, and not by a token.
fn refuse_bind_mounts(kind: GuestKind, archived: &LiveConfig, volume: &str) -> Result<(), ProviderError> {
    let volumes = attached_now(archived);
    let is_mount = |key: &str| key.strip_prefix("mp").is_some_and(|number| number.parse::<u32>().is_ok());
    let mut binds = archived.keys().filter(|(key, _)| is_mount(key) && !volumes.contains_key(*key));
    let Some((slot, _)) = binds.next().filter(|_| kind == GuestKind::Lxc) else { return Ok(()) };
    let message = format!("`{slot}` in `{volume}` is lent by the host, which only root restores");
    let mut error = ProviderError::new(ErrorClass::Guard, message)
        .hint("restore it with `pct restore` on the hypervisor; its ownership mark is in the backup");
    error.nothing_done = true;
    Err(error)
}

fn params(
    work: &Work<'_>,
    kind: GuestKind,
    vmid: u32,
    volume: &str,
    archived: &LiveConfig,
    over: bool,
) -> Params {
    let mut params = Params::new().with("vmid", vmid);
    match kind {
        GuestKind::Qemu => params.set("archive", volume),
        GuestKind::Lxc => {
            params.set("ostemplate", volume);
            params.set("restore", 1);
            // Without them Proxmox puts every volume of a container on one storage.
            for (slot, text) in mounts(archived) {
                params.set(&slot, text);
            }
        }
    }
    match (over, work.operation.spec.get("pool").and_then(Value::as_text)) {
        (true, _) => params.set("force", 1),
        (false, Some(pool)) => params.set("pool", pool),
        (false, None) => {}
    }
    params
}

/// The volumes of a container, to be allocated where they were.
fn mounts(archived: &LiveConfig) -> Vec<(String, String)> {
    let volumes = attached_now(archived).into_keys();
    let mount = |slot: String| {
        let text = archived.get(&slot)?;
        let (volume, rest) = text.split_once(',').unwrap_or((text, ""));
        let storage = storage_of(volume.strip_prefix("volume=").unwrap_or(volume))?;
        let gib = crate::codec::volume_size(text).map(crate::codec::to_gib)?;
        let options: Vec<&str> =
            rest.split(',').filter(|part| !part.is_empty() && !part.starts_with("size=")).collect();
        let options: String = options.iter().map(|option| format!(",{option}")).collect();
        Some((slot, format!("{storage}:{gib}{options}")))
    };
    volumes.filter_map(mount).collect()
}

/// The guest is what the backup says. Where it was that before, and nobody knows how the task ended, nothing shows whether its disks are.
fn prove(
    doing: &str,
    ended: Ended,
    archived: &LiveConfig,
    before: Option<&LiveConfig>,
    restored: &Target,
) -> Result<(), ProviderError> {
    let failed = |what: String| {
        ProviderError::new(ErrorClass::TaskFailed, format!("cannot {doing}: {what}"))
            .hint("look at the log of its task on the hypervisor, then restore it again")
    };
    if let Some(lock) = &restored.config.lock {
        return Err(failed(format!("its task has ended, and {} is still locked ({lock})", restored.guest)));
    }
    if let Some(key) = differing(archived, &restored.config) {
        return Err(failed(format!("`{key}` is not what the backup says")));
    }
    let is_new = |before: &LiveConfig| {
        before.get("vmgenid") != restored.config.get("vmgenid")
            || attached_now(before) != attached_now(&restored.config)
            || differing(archived, before).is_some()
    };
    match (ended, before) {
        (Ended::Unknown, Some(before)) if !is_new(before) => {
            Err(failed("nobody knows how its task ended, and the guest looks as it did before".to_owned()))
        }
        _ => Ok(()),
    }
}

/// A key of the backup that the guest has otherwise. Volumes get names of their own.
fn differing(archived: &LiveConfig, live: &LiveConfig) -> Option<String> {
    let volumes = attached_now(archived);
    let mut keys = archived.keys().filter(|(key, _)| {
        !MADE_UP.contains(key)
            && !volumes.contains_key(*key)
            && !key.starts_with("unused")
            && !is_drive(archived, key)
    });
    let same = |key: &str, value: &str| live.get(key).is_some_and(|now| now.trim_end() == value.trim_end());
    keys.find(|(key, value)| !same(key, value)).map(|(key, _)| key.to_owned())
}

/// Drives of cloud-init are made again under a name of their own.
fn is_drive(config: &LiveConfig, key: &str) -> bool {
    config.get(key).is_some_and(|text| text.contains("media=cdrom"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::live;

    #[test]
    fn volumes_of_a_container_go_back_to_their_storages() {
        let config = live(&[
            ("rootfs", "tank:subvol-9200-disk-0,size=4G"),
            ("mp0", "local-lvm:vm-9200-disk-1,mp=/srv,backup=1,size=512M"),
            ("mp1", "/host,mp=/host"),
        ]);
        let expected = [("mp0", "local-lvm:0.5,mp=/srv,backup=1"), ("rootfs", "tank:4")];
        let expected: Vec<(String, String)> = expected.map(|(slot, text)| (slot.into(), text.into())).into();
        assert_eq!(mounts(&config), expected);
    }

    fn target(keys: &[(&str, &str)]) -> Target {
        let guest = Guest { kind: GuestKind::Qemu, node: "pve1".into(), vmid: 9100 };
        Target { guest, config: live(keys), running: false }
    }

    #[test]
    fn what_looks_as_before_is_restored_only_if_its_task_says_so() {
        let archived = live(&[("memory", "512"), ("vmgenid", "a"), ("scsi0", "tank:vm-9100-disk-0,size=4G")]);
        let same = [("memory", "512"), ("vmgenid", "a"), ("scsi0", "tank:vm-9100-disk-0,size=4G")];
        let other = [("memory", "512"), ("vmgenid", "b"), ("scsi0", "tank:vm-9100-disk-0,size=4G")];
        let proof = |ended, before: Option<&LiveConfig>, now: &[(&str, &str)]| {
            prove("restore it", ended, &archived, before, &target(now)).map_err(|error| error.message)
        };
        assert_eq!(proof(Ended::Well, Some(&archived), &same), Ok(()));
        assert!(
            proof(Ended::Unknown, Some(&archived), &same)
                .unwrap_err()
                .contains("nobody knows how its task ended")
        );
        assert_eq!(proof(Ended::Unknown, Some(&archived), &other), Ok(()), "it has another generation");
        let changed = live(&[("memory", "1024"), ("vmgenid", "a")]);
        assert_eq!(
            proof(Ended::Unknown, Some(&changed), &same),
            Ok(()),
            "it has the memory of the backup again"
        );
        assert_eq!(proof(Ended::Unknown, None, &same), Ok(()), "it was gone");
        let wrong = proof(Ended::Well, None, &[("memory", "1024")]).unwrap_err();
        assert!(wrong.contains("`memory` is not what the backup says"), "{wrong}");
        let locked = prove("restore it", Ended::Well, &archived, None, &{
            let mut target = target(&same);
            target.config.lock = Some("create".into());
            target
        });
        assert!(locked.unwrap_err().message.contains("still locked (create)"));
    }

    #[test]
    fn a_disk_that_no_backup_has_is_not_deleted_for_one() {
        let archived = live(&[("rootfs", "tank:a,size=4G"), ("mp1", "tank:b,mp=/b,size=1G")]);
        let mut here = target(&[("rootfs", "tank:a,size=4G"), ("mp1", "tank:b,mp=/b,size=1G")]);
        assert!(refuse_partial(&archived, "local:backup/x", Some(&here)).is_ok(), "those of a VM stay");
        here.guest.kind = GuestKind::Lxc;
        let refused = refuse_partial(&archived, "local:backup/x", Some(&here)).unwrap_err();
        assert!(refused.class == ErrorClass::Guard && refused.message.contains("`mp1` (`tank:b`)"));
        assert!(refuse_partial(&archived, "local:backup/x", None).is_ok());
    }
}
