//! A VM from a backup.

use super::create::tidy;
use super::disks::target_format;
use super::drive::{self, Drive};
use super::{net, power, schema};
use crate::api::format::parse_volume_id;
use crate::api::{Call, Refusal, Reply, no, wrong};
use crate::endpoints::guest::{check_lock, check_protection, check_unused, check_volume};
use crate::endpoints::lxc::restore::inner;
use crate::task::{Job, LockKey, Step, work};
use crate::world::guest::Config;
use crate::world::{Guest, GuestKind, Volume, World};

/// What was asked for.
struct RestoreRequest {
    node: String,
    vmid: u32,
    archive: String,
    storage: Option<String>,
    pool: Option<String>,
    unique: bool,
    force: bool,
    start: bool,
    /// Options that replace those in the backup.
    options: Config,
    user: String,
}

/// Restores; the caller may make the VM. `options` are those of the request.
pub fn restore(call: &mut Call<'_>, archive: String, options: Config) -> Reply {
    if let Some(slot) = options.keys().find(|key| drive::is_slot(key)) {
        return Err(wrong(slot, "option conflicts with option 'archive'"));
    }
    let order = RestoreRequest {
        node: call.node(),
        vmid: call.vmid(),
        archive,
        storage: call.args.owned("storage"),
        pool: call.args.owned("pool"),
        unique: call.args.is_set("unique"),
        force: call.args.is_set("force"),
        start: call.args.is_set("start"),
        options,
        user: call.user().to_owned(),
    };
    check_volume(call, Some(order.vmid), &order.archive)?;
    if call.world.volume(&order.archive, &order.node).is_none() {
        return Err(no(format!("volume '{}' does not exist", order.archive)));
    }
    claim(call.world, &order)
        .map_err(|e| no(format!("unable to restore VM {} - {}", order.vmid, e.text())))?;
    let (node, vmid) = (order.node.clone(), order.vmid);
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |_, _| {
            Ok(Step::wait(2.0, move |world, job| {
                // What is left after a failure stays, for someone to look at.
                extract(world, job, &order).inspect_err(|_| {
                    if let Some(guest) = world.guests.get_mut(&vmid) {
                        guest.config.remove("lock");
                    }
                })?;
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "qmrestore", vmid.to_string(), work).into())
}

/// Takes the VMID: a new one, or with force the VM that has it.
fn claim(world: &mut World, order: &RestoreRequest) -> Result<(), Refusal> {
    let vmid = order.vmid;
    if !order.force || !world.guests.contains_key(&vmid) {
        check_unused(world, vmid)?;
        let guest = Guest::new(vmid, &order.node, GuestKind::Qemu, &order.user, world.now_ms());
        world.guests.insert(vmid, guest);
    }
    let guest = world.guest_mut(&order.node, vmid, GuestKind::Qemu)?;
    check_lock(guest)?;
    check_protection(guest, &format!("unable to restore VM {vmid}"))?;
    if guest.power.running {
        return Err(no("vm is running"));
    }
    guest.config.insert("lock".into(), "create".into());
    Ok(())
}

fn extract(world: &mut World, job: &Job, order: &RestoreRequest) -> Result<(), Refusal> {
    let (node, vmid) = (order.node.as_str(), order.vmid);
    let id = vmid.to_string();
    let Some(archive) = world.volume(&order.archive, node) else {
        return Err(no(format!("volume '{}' does not exist", order.archive)));
    };
    let mut config = inner(archive);
    config.retain(|key, _| !matches!(key.as_str(), "lock" | "parent") && !drive::is_unused(key));
    let drives: Vec<(Drive, bool)> = drive::drives(&config)
        .filter(|d| !d.is_plain_cdrom())
        .map(|d| {
            // Whether there is a system on it can still be seen if the original is there; else it is likely.
            let bootable = world.volume(d.file(), node).is_none_or(|v| v.bootable);
            (d, bootable)
        })
        .collect();
    let kept = remove_old_disks(world, node, vmid, &drives);
    for (mut drive, bootable) in drives {
        if drive.props.get("backup") == Some("0") {
            // It was not in the backup.
            config.remove(&drive.slot);
            continue;
        }
        let volid = restore_disk(world, order, &drive, bootable)?;
        job.log(world, format!("map 'drive-{}' to '{volid}' (write zeros = 0)", drive.slot));
        drive.props.remove("format");
        drive.props.set("file", volid);
        config.insert(drive.slot.clone(), drive.print());
    }
    if config.get("vmgenid").is_some_and(|g| g != "0") {
        config.insert("vmgenid".into(), world.uuid(&["vmgenid", &id, &order.user]));
    }
    if order.unique {
        for (key, value) in &mut config {
            if key.starts_with("net") && schema::exists(key) {
                let mut card = net::parse(value);
                card.set("macaddr", world.mac(&[&id, key, &order.user]));
                *value = net::print(&card);
            }
        }
        let uuid = world.uuid(&["smbios1", &id, &order.user]);
        let smbios1 = config.get("smbios1").cloned().unwrap_or_default();
        config.insert("smbios1".into(), schema::with_uuid(&smbios1, &uuid));
    }
    config.extend(order.options.clone());
    for (number, volid) in kept.into_iter().enumerate() {
        config.insert(format!("unused{number}"), volid);
    }
    tidy(&mut config);
    let guest = world.guest_mut(node, vmid, GuestKind::Qemu)?;
    guest.config = config;
    guest.pending.clear();
    guest.snapshots.clear();
    if let Some(pool) = &order.pool {
        world.join_pool(vmid, pool);
    }
    if order.start {
        job.log(world, "Execute autostart");
        power::spawn_start(world, node, vmid, &order.user);
    }
    Ok(())
}

/// Frees the disks of a VM that is written over, where the backup has the slot. Gives the others: they stay, attached to nothing.
fn remove_old_disks(world: &mut World, node: &str, vmid: u32, restored: &[(Drive, bool)]) -> Vec<String> {
    let Some(guest) = world.guests.get(&vmid) else { return Vec::new() };
    let is_restored = |slot: &str| {
        restored.iter().any(|(drive, _)| drive.slot == slot && drive.props.get("backup") != Some("0"))
    };
    let old = drive::drives(&guest.config).filter(|d| !d.is_plain_cdrom());
    let (gone, mut kept): (Vec<Drive>, Vec<Drive>) =
        old.partition(|d| is_restored(&d.slot) || d.is_cloudinit());
    for drive in gone {
        if world.volume(drive.file(), node).is_some_and(|v| v.vmid == Some(vmid)) {
            world.free(drive.file(), node);
        }
    }
    kept.retain(|d| world.volume(d.file(), node).is_some_and(|v| v.vmid == Some(vmid)));
    let unused = guest_unused(world, vmid);
    kept.iter().map(|d| d.file().to_owned()).chain(unused).collect()
}

/// What the VM has had attached to nothing all along.
fn guest_unused(world: &World, vmid: u32) -> Vec<String> {
    let Some(guest) = world.guests.get(&vmid) else { return Vec::new() };
    guest.config.iter().filter(|(key, _)| drive::is_unused(key)).map(|(_, volid)| volid.clone()).collect()
}

fn restore_disk(
    world: &mut World,
    order: &RestoreRequest,
    drive: &Drive,
    bootable: bool,
) -> Result<String, Refusal> {
    let (original, name) = parse_volume_id(drive.file()).unwrap_or_default();
    let storage_id = order.storage.as_deref().unwrap_or(original).to_owned();
    let storage = world.storage_on(&storage_id, &order.node)?.clone();
    let format = name.rsplit_once('.').map_or("raw", |(_, ext)| ext);
    let format = target_format(&storage, None, format);
    let file = if drive.is_cloudinit() {
        format!("vm-{}-cloudinit", order.vmid)
    } else {
        world.free_disk_name(&storage, &order.node, order.vmid)
    };
    let volume = Volume {
        content: "images".into(),
        format,
        size: drive.size().unwrap_or(super::disks::CLOUDINIT_SIZE),
        vmid: Some(order.vmid),
        ctime: world.now(),
        bootable,
        ..Volume::default()
    };
    world.allocate(&storage_id, &order.node, volume, &file)
}
