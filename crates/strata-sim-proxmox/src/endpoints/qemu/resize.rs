//! Growing a disk.

use super::drive::{self, Drive};
use crate::api::format::{parse_size, parse_volume_id};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Refusal, Reply, Route, flag, no, put, text, wrong};
use crate::endpoints::guest::{check_lock, parse_name};
use crate::task::{Job, LockKey, Step, work};
use crate::world::{GuestKind, World};

pub fn routes() -> Vec<Route> {
    let params = vec![
        usual::node(),
        usual::vmid(),
        flag("skiplock").opt(),
        text("disk").one_of(&drive::SLOT_NAMES),
        text("size").pattern(r"\+?\d+(\.\d+)?[KMGT]?"),
        text("digest").max_len(40).opt(),
    ];
    vec![put("/nodes/{node}/qemu/{vmid}/resize", on("/vms/{vmid}", &["VM.Config.Disk"]), params, resize)]
}

struct ResizeRequest {
    node: String,
    vmid: u32,
    disk: String,
    size: String,
    digest: Option<String>,
    skiplock: bool,
    user: String,
}

fn resize(call: &mut Call<'_>) -> Reply {
    let order = ResizeRequest {
        node: call.node(),
        vmid: call.vmid(),
        disk: call.args.must("disk").to_owned(),
        size: call.args.must("size").to_owned(),
        digest: call.args.owned("digest"),
        skiplock: call.args.is_set("skiplock"),
        user: call.user().to_owned(),
    };
    if order.skiplock && !call.caller.is_root() {
        return Err(wrong("skiplock", "Only root may use this option."));
    }
    let (node, vmid) = (order.node.clone(), order.vmid);
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |_, _| {
            Ok(Step::wait(0.5, move |world, job| {
                grow(world, job, &order)?;
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "resize", vmid.to_string(), work).into())
}

fn grow(world: &mut World, job: &Job, order: &ResizeRequest) -> Result<(), Refusal> {
    let ResizeRequest { node, vmid, disk, .. } = order;
    let guest = world.guest(node, *vmid, GuestKind::Qemu)?;
    if order.digest.as_ref().is_some_and(|digest| *digest != guest.digest()) {
        return Err(no("checksum mismatch (file change by other user?)"));
    }
    if !order.skiplock {
        check_lock(guest)?;
    }
    let running = guest.power.running;
    let Some(value) = guest.get(disk) else { return Err(no(format!("disk '{disk}' does not exist"))) };
    let mut drive = Drive::parse(disk, value).ok_or_else(|| no("unable to parse drive options"))?;
    if drive.is_cdrom() {
        return Err(no("you can't resize a cdrom"));
    }
    let volid = drive.file().to_owned();
    let Some((storage_id, name)) = parse_volume_id(&volid) else {
        return Err(no(format!("disk '{disk}' has no associated volume")));
    };
    if order.user != "root@pam" {
        world.access_check(
            &order.user,
            Some(&format!("/storage/{storage_id}")),
            &["Datastore.AllocateSpace"],
            false,
        )?;
    }
    let storage = world.storage_on(storage_id, node)?.clone();
    let named = parse_name(world, storage_id, name)?;
    let place = world.place(&volid, node).ok_or_else(|| no(format!("volume '{volid}' does not exist")))?;
    let Some(size) = world.volumes.get(&place).map(|v| v.size) else {
        return Err(no(format!("volume '{volid}' does not exist")));
    };
    let wanted = parse_size(order.size.trim_start_matches('+')).unwrap_or_default();
    let new = if order.size.starts_with('+') { size.saturating_add(wanted) } else { wanted };
    if new < size {
        return Err(no("shrinking disks is not supported"));
    }
    if new == size {
        return Ok(());
    }
    let path = storage.path(name);
    if named.is_base && storage.is_file_based() {
        let format = &named.format;
        job.log(
            world,
            format!("qemu-img: Could not open '{path}': Could not open '{path}': Operation not permitted"),
        );
        let options = if format == "qcow2" { "'--preallocation=metadata' " } else { "" };
        let command = format!("/usr/bin/qemu-img resize {options}-f {format} {path} {new}");
        return Err(no(format!("command '{command}' failed: exit code 1")));
    }
    if new - size > world.storage_free(&storage, node) {
        return Err(no(format!("unable to resize '{path}': No space left on device")));
    }
    if !running {
        job.log(world, "Image resized.");
    }
    world.volumes.edit(&place, |volume| volume.grow(new, running));
    drive.set_size(new);
    world.guest_mut(node, *vmid, GuestKind::Qemu)?.config.insert(disk.clone(), drive.print());
    Ok(())
}
