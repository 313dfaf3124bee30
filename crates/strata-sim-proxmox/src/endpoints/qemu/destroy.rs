//! Removing a VM and what belongs to it.

use super::drive::{self, Drive};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Refusal, Reply, Route, delete, flag, no, wrong};
use crate::endpoints::guest::{check_lock, check_protection};
use crate::endpoints::ha;
use crate::task::{Job, LockKey, Step, work};
use crate::world::guest::{Config, Pending};
use crate::world::{GuestKind, World, replication};

pub fn routes() -> Vec<Route> {
    let params = vec![
        usual::node(),
        usual::vmid(),
        flag("skiplock").opt(),
        flag("purge").opt(),
        flag("destroy-unreferenced-disks").opt(),
    ];
    vec![delete("/nodes/{node}/qemu/{vmid}", on("/vms/{vmid}", &["VM.Allocate"]), params, destroy)]
}

fn check(world: &World, node: &str, vmid: u32, purge: bool) -> Result<(), Refusal> {
    let guest = world.guest(node, vmid, GuestKind::Qemu)?;
    check_protection(guest, &format!("can't remove VM {vmid}"))?;
    if !purge && world.cluster.section("ha/resources", &format!("vm:{vmid}")).is_some() {
        return Err(no(format!(
            "unable to remove VM {vmid} - used in HA resources and purge parameter not set."
        )));
    }
    if !purge {
        check_replication(world, vmid)?;
    }
    if guest.power.running {
        return Err(no(format!("VM {vmid} is running - destroy failed")));
    }
    Ok(())
}

/// A guest that is copied elsewhere stays, unless its jobs go as well.
pub fn check_replication(world: &World, vmid: u32) -> Result<(), Refusal> {
    match world.replication_of(vmid) {
        Some(id) => Err(no(format!(
            "There is a replication job '{id}' for guest '{vmid}' - Please remove that first."
        ))),
        None => Ok(()),
    }
}

fn destroy(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    let skiplock = call.args.is_set("skiplock");
    if skiplock && !call.caller.is_root() {
        return Err(wrong("skiplock", "Only root may use this option."));
    }
    let purge = call.args.is_set("purge");
    let unreferenced = call.args.is_set("destroy-unreferenced-disks");
    check(call.world, &node, vmid, purge)?;
    let at = node.clone();
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |world, _| {
            check(world, &at, vmid, purge)?;
            let guest = world.guest(&at, vmid, GuestKind::Qemu)?;
            if !skiplock && guest.lock() != Some("suspended") {
                check_lock(guest)?;
            }
            check_bases(world, &at, vmid)?;
            Ok(Step::wait(0.5, move |world, job| Ok(remove(world, job, &at, vmid, purge, unreferenced))))
        }))
    });
    Ok(call.spawn(&node, "qmdestroy", vmid.to_string(), work).into())
}

/// A template whose base images are still read from cannot go.
fn check_bases(world: &World, node: &str, vmid: u32) -> Result<(), Refusal> {
    let guest = world.guest(node, vmid, GuestKind::Qemu)?;
    if !guest.flag("template") {
        return Ok(());
    }
    for drive in volumes(&guest.config).filter(|d| !d.is_cdrom()) {
        let place = world.place(drive.file(), node);
        if place.is_some_and(|place| world.clones_of(&place).next().is_some()) {
            return Err(no(format!("base volume '{}' is still in use by linked cloned", drive.file())));
        }
    }
    Ok(())
}

/// The drives of a configuration, unused ones included.
fn volumes(config: &Config) -> impl Iterator<Item = Drive> {
    config
        .iter()
        .filter(|(key, _)| drive::is_slot(key) || drive::is_unused(key))
        .filter_map(|(key, value)| Drive::parse(key, value))
}

fn remove(world: &mut World, job: &Job, node: &str, vmid: u32, purge: bool, unreferenced: bool) -> Step {
    let mut doomed: Vec<String> = Vec::new();
    if let Some(guest) = world.guests.get(&vmid) {
        doomed.extend(volumes(&guest.config).filter(|d| !d.is_plain_cdrom()).map(|d| d.file().to_owned()));
        doomed.extend(guest.snapshots.values().filter_map(|s| s.get("vmstate").cloned()));
        for (key, change) in &guest.pending {
            if let Pending::Set(value) = change {
                doomed.extend(
                    Drive::parse(key, value).filter(|d| !d.is_plain_cdrom()).map(|d| d.file().to_owned()),
                );
            }
        }
    }
    if unreferenced {
        let enabled = world.storages.values().filter(|s| !s.is_disabled() && s.is_on(node));
        for storage in enabled {
            let on_it = world.volumes.on(&storage.id, &storage.scope(node));
            let own = on_it
                .filter(|(_, v)| v.vmid == Some(vmid) && matches!(v.content.as_str(), "images" | "rootdir"));
            doomed.extend(own.map(|(name, _)| format!("{}:{name}", storage.id)));
        }
    }
    let mut warnings = 0;
    for volid in doomed {
        let Some(place) = world.place(&volid, node) else { continue };
        if world.volumes.get(&place).is_none_or(|v| v.vmid != Some(vmid)) {
            continue;
        }
        if world.clones_of(&place).next().is_some() {
            warnings += 1;
            let text = format!("base volume '{}' is still in use by linked clones", place.2);
            job.log(world, format!("WARN: Could not remove disk '{volid}', check manually: {text}"));
            continue;
        }
        world.volumes.remove(&place);
    }
    if purge {
        job.log(world, format!("purging VM {vmid} from related configurations.."));
        purge_from_jobs(world, vmid);
        if ha::purge(world, &format!("vm:{vmid}")) {
            job.log(world, format!("NOTE: removed VM {vmid} from HA resource configuration."));
        }
    }
    world.forget_guest(vmid);
    if warnings > 0 { Step::Warned(warnings) } else { Step::Done }
}

/// Removes a guest from backup jobs, and its replication. A job that was about nothing else goes.
pub fn purge_from_jobs(world: &mut World, vmid: u32) {
    let id = vmid.to_string();
    let own = format!("{vmid}-");
    world.cluster.file_mut(replication::FILE).retain(|job, _| !job.starts_with(&own));
    world.cluster.file_mut("backup").retain(|_, job| {
        let named = job.props.contains_key("vmid");
        for key in ["vmid", "exclude"] {
            let Some(list) = job.props.get_mut(key) else { continue };
            *list = list.split(',').filter(|v| *v != id).collect::<Vec<_>>().join(",");
            if list.is_empty() {
                job.props.shift_remove(key);
            }
        }
        !named || job.props.contains_key("vmid")
    });
}
