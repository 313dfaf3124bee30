//! Copies of disks: full ones, and linked ones that keep reading from a base.

use super::disks::{CLOUDINIT_SIZE, formatting, progress, round_up, target_format};
use super::drive::Drive;
use crate::api::format::parse_volume_id;
use crate::api::{Refusal, no};
use crate::endpoints::guest::parse_name;
use crate::world::storage::own_name;
use crate::world::{Volume, World};

/// Where a copy goes.
pub struct Target<'t> {
    pub node: &'t str,
    pub vmid: u32,
    /// The storage of the source if none.
    pub storage: Option<&'t str>,
    pub format: Option<&'t str>,
}

/// Copies a drive; gives it with its new volume, and what the log says.
pub fn copy(
    world: &mut World,
    drive: &Drive,
    target: &Target<'_>,
    log: &mut Vec<String>,
) -> Result<Drive, Refusal> {
    let source = drive.file().to_owned();
    log.push(format!("create full clone of drive {} ({source})", drive.slot));
    let volume = existing(world, &source, target.node)?;
    let (source_storage, _) = parse_volume_id(&source).unwrap_or_default();
    let storage_id = target.storage.unwrap_or(source_storage).to_owned();
    let storage = world.storage_on(&storage_id, target.node)?.clone();
    let format = target_format(&storage, target.format, &volume.format);
    let cloudinit = drive.is_cloudinit();
    let size = if cloudinit { CLOUDINIT_SIZE } else { round_up(volume.size) };
    let file = if cloudinit {
        format!("vm-{}-cloudinit", target.vmid)
    } else {
        world.free_disk_name(&storage, target.node, target.vmid)
    };
    let copy = Volume {
        content: "images".into(),
        format: format.clone(),
        size,
        vmid: Some(target.vmid),
        ctime: world.now(),
        bootable: volume.bootable,
        ..Volume::default()
    };
    let volid = world.allocate(&storage_id, target.node, copy, &file)?;
    if storage.is_file_based() {
        let path = storage.path(volid.split_once(':').map_or("", |(_, name)| name));
        log.push(format!("Formatting '{path}', {}", formatting(&format, size)));
    }
    log.push(format!("allocated target volume '{volid}'"));
    if !cloudinit {
        log.extend(progress(size));
    }
    let size = world.volume(&volid, target.node).map_or(size, |v| v.size);
    Ok(moved(drive, volid, size))
}

/// A linked clone of a base image.
pub fn link(
    world: &mut World,
    drive: &Drive,
    target: &Target<'_>,
    log: &mut Vec<String>,
) -> Result<Drive, Refusal> {
    let source = drive.file().to_owned();
    log.push(format!("create linked clone of drive {} ({source})", drive.slot));
    let volume = existing(world, &source, target.node)?;
    let (storage_id, name) = parse_volume_id(&source).unwrap_or_default();
    let storage = world.storage_on(storage_id, target.node)?.clone();
    let file = world.free_disk_name(&storage, target.node, target.vmid);
    let size = volume.size;
    let format = if storage.is_file_based() { "qcow2" } else { "raw" };
    let clone = Volume {
        content: "images".into(),
        format: format.into(),
        size,
        vmid: Some(target.vmid),
        parent: storage.names_base().then(|| own_name(name).to_owned()),
        ctime: world.now(),
        bootable: volume.bootable,
        ..Volume::default()
    };
    let volid = world.allocate(storage_id, target.node, clone, &file)?;
    Ok(moved(drive, volid, size))
}

fn existing(world: &World, volid: &str, node: &str) -> Result<Volume, Refusal> {
    let storage = parse_volume_id(volid).map(|(storage, _)| storage).unwrap_or_default();
    world.storage_on(storage, node)?;
    world.volume(volid, node).cloned().ok_or_else(|| no(format!("volume '{volid}' does not exist")))
}

fn moved(drive: &Drive, volid: String, size: u64) -> Drive {
    let mut new = drive.clone();
    new.props.remove("format");
    new.props.set("file", volid);
    new.set_size(size);
    new
}

/// Whether a linked clone can be made of a volume: only of a base image, or of anything on some storages.
pub fn can_link(world: &World, volid: &str) -> bool {
    let Some((storage, name)) = parse_volume_id(volid) else { return false };
    parse_name(world, storage, name).is_ok_and(|named| named.is_base)
}

/// Roughly how long copying takes, in seconds.
pub fn copy_seconds(world: &World, drive: &Drive, node: &str) -> f64 {
    let gib = world.volume(drive.file(), node).map_or(0, |v| v.size) as f64 / (1_u64 << 30) as f64;
    0.5 + (gib * 0.25).min(8.0)
}
