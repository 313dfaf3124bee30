//! The task that moves a VM: what speaks against it, the copy of its volumes, the change of its node.

use std::collections::BTreeMap;

use super::super::drive::{self, Drive};
use super::super::{net, schema};
use super::{MigrateRequest, local_resources, volumes};
use crate::api::format::parse_volume_id;
use crate::api::{Refusal, no};
use crate::endpoints::guest::{check_lock, parse_name};
use crate::task::{Job, Step};
use crate::world::{GuestKind, World};

const ABORTED: &str = "migration aborted";

pub fn begin(world: &mut World, job: &Job, order: MigrateRequest) -> Result<Step, String> {
    let MigrateRequest { node, vmid, target, .. } = order.clone();
    let prepared = prepare(world, &order);
    let moves = match prepared {
        Ok(moves) => moves,
        Err(lines) => {
            let last = lines.last().cloned().unwrap_or_default();
            for line in lines {
                job.log(world, line);
            }
            job.log(world, format!("ERROR: migration aborted (duration 00:00:00): {last}"));
            return Err(ABORTED.to_owned());
        }
    };
    job.log(
        world,
        format!("starting migration of VM {vmid} to node '{target}' ({})", world.nodes[&target].ip.clone()),
    );
    world.guest_mut(&node, vmid, GuestKind::Qemu)?.config.insert("lock".into(), "migrate".into());
    let size: u64 = moves.iter().filter_map(|m| world.volume(&m.0, &node)).map(|v| v.size).sum();
    let seconds = 2.0 + (size as f64 / (1_u64 << 30) as f64 * 0.25).min(20.0);
    let back = node.clone();
    Ok(Step::wait(seconds, move |world, job| finish(world, job, &order, moves)).or_undo(move |world| {
        if let Ok(guest) = world.guest_mut(&back, vmid, GuestKind::Qemu) {
            guest.config.remove("lock");
        }
    }))
}

/// Local volumes with the storage they go to, or everything that speaks against it.
fn prepare(world: &World, order: &MigrateRequest) -> Result<Vec<(String, String)>, Vec<String>> {
    let guest = world.guest(&order.node, order.vmid, GuestKind::Qemu).map_err(|e| vec![e.text()])?;
    check_lock(guest).map_err(|e| vec![e.text()])?;
    let resources = local_resources(guest);
    if !resources.is_empty() && (guest.power.running || !order.force) {
        return Err(vec![format!("can't migrate VM which uses local devices: {}", resources.join(", "))]);
    }
    let mut moves = Vec::new();
    let mut lines = Vec::new();
    let mut problems = Vec::new();
    for (drive, unused) in volumes(guest) {
        let volid = drive.file().to_owned();
        let Some((id, name)) = parse_volume_id(&volid) else { continue };
        let Some(storage) = world.storages.get(id) else { continue };
        let to = if storage.is_shared() { id } else { order.map.to(id) };
        if let Err(refusal) = world.storage_on(to, &order.target) {
            problems.push(format!("can't migrate local disk '{volid}': {}", refusal.text()));
            continue;
        }
        if storage.is_shared() {
            continue;
        }
        let mut problem = |text: &str| problems.push(format!("can't migrate local disk '{volid}': {text}"));
        let named = parse_name(world, id, name).map_err(|e| vec![e.text()])?;
        if drive.is_plain_cdrom() {
            problem("local cdrom image");
        } else if named.vmid != Some(order.vmid) {
            problem(&format!("owned by other VM (owner = VM {})", named.vmid.unwrap_or_default()));
        } else if order.online && !unused && !drive.is_cloudinit() && !order.with_local_disks {
            problem("can't live migrate attached local disks without with-local-disks option");
        } else if world.place(&volid, &order.node).is_some_and(|p| world.clones_of(&p).next().is_some()) {
            problem("referenced by linked clone(s)");
        } else if let Some(parent) = world.volume(&volid, &order.node).and_then(|v| v.parent.clone()) {
            let base = parent.rsplit('/').next().unwrap_or_default();
            return Err(vec![format!(
                "Problem found while scanning volumes - can't migrate '{volid}' as it's a clone of '{base}'"
            )]);
        }
        lines.push(format!("found local disk '{volid}' ({})", if unused { "unused" } else { "attached" }));
        moves.push((volid.clone(), to.to_owned()));
    }
    if problems.is_empty() {
        return Ok(moves);
    }
    lines.extend(problems);
    lines.push("Problem found while scanning volumes - can't migrate VM - check log".to_owned());
    Err(lines)
}

fn finish(
    world: &mut World,
    job: &Job,
    order: &MigrateRequest,
    moves: Vec<(String, String)>,
) -> Result<Step, String> {
    let MigrateRequest { node, vmid, target, .. } = order;
    let mut renamed: BTreeMap<String, String> = BTreeMap::new();
    for (volid, to) in &moves {
        match move_volume(world, volid, to, order) {
            Ok(new) => {
                renamed.insert(volid.clone(), new);
            }
            Err(refusal) => {
                for (old, new) in renamed {
                    // What was moved goes back.
                    if let (Some(from), Some(to)) = (world.place(&new, target), world.place(&old, node))
                        && let Some(volume) = world.volumes.remove(&from)
                    {
                        world.volumes.insert(to, volume);
                    }
                }
                world.guest_mut(node, *vmid, GuestKind::Qemu)?.config.remove("lock");
                job.log(world, format!("ERROR: {}", refusal.text()));
                return Err(ABORTED.to_owned());
            }
        }
    }
    let bridges_missing = order.online && !bridges_there(world, node, *vmid, target);
    if bridges_missing {
        job.log(world, "ERROR: online migrate failure - remote command failed with exit code 255");
        world.guest_mut(node, *vmid, GuestKind::Qemu)?.config.remove("lock");
        return Err(ABORTED.to_owned());
    }
    let guest = world.guest_mut(node, *vmid, GuestKind::Qemu)?;
    guest.config.remove("lock");
    for config in guest.snapshots.values_mut().chain(std::iter::once(&mut guest.config)) {
        for (key, value) in config.iter_mut().filter(|(k, _)| drive::is_slot(k) || drive::is_unused(k)) {
            let file = Drive::parse(key, value).map(|d| d.file().to_owned()).unwrap_or_default();
            if let Some(new) = renamed.get(&file) {
                *value = value.replacen(&file, new, 1);
            }
        }
    }
    guest.node = target.clone();
    job.log(world, "migration finished successfully (duration 00:00:02)");
    Ok(Step::Done)
}

fn bridges_there(world: &World, node: &str, vmid: u32, target: &str) -> bool {
    let Ok(guest) = world.guest(node, vmid, GuestKind::Qemu) else { return false };
    guest
        .config
        .iter()
        .filter(|(key, _)| key.starts_with("net") && schema::exists(key))
        .filter_map(|(_, value)| net::parse(value).get("bridge").map(str::to_owned))
        .all(|bridge| world.nodes.get(target).is_some_and(|n| n.has_bridge(&bridge)))
}

fn move_volume(world: &mut World, volid: &str, to: &str, order: &MigrateRequest) -> Result<String, Refusal> {
    let place =
        world.place(volid, &order.node).ok_or_else(|| no(format!("volume '{volid}' does not exist")))?;
    let Some(mut volume) = world.volumes.get(&place).cloned() else {
        return Err(no(format!("volume '{volid}' does not exist")));
    };
    let storage = world.storage_on(to, &order.target)?.clone();
    if !storage.takes_format(&volume.format) {
        volume.format = storage.default_format().to_owned();
    }
    let stem = place.2.rsplit('/').next().unwrap_or_default();
    let stem = stem.split('.').next().unwrap_or_default().to_owned();
    let wanted =
        (to.to_owned(), storage.scope(&order.target), storage.image_name(order.vmid, &stem, &volume.format));
    let file = if world.volumes.get(&wanted).is_some() {
        world.free_disk_name(&storage, &order.target, order.vmid)
    } else {
        stem
    };
    let new = world.allocate(to, &order.target, volume, &file)?;
    world.volumes.remove(&place);
    Ok(new)
}
