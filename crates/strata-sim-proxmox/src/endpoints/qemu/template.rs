//! Turning a VM into a template: its disks become base images that nothing writes to.

use super::drive::{self, Drive};
use crate::api::format::parse_volume_id;
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Refusal, Reply, Route, no, post, text};
use crate::endpoints::guest::{check_lock, parse_name};
use crate::task::{LockKey, Step, work};
use crate::world::{GuestKind, World};

pub fn routes() -> Vec<Route> {
    let params = vec![usual::node(), usual::vmid(), text("disk").one_of(&drive::SLOT_NAMES).opt()];
    vec![post("/nodes/{node}/qemu/{vmid}/template", on("/vms/{vmid}", &["VM.Allocate"]), params, template)]
}

fn check(world: &World, node: &str, vmid: u32, disk: Option<&str>) -> Result<(), Refusal> {
    let guest = world.guest(node, vmid, GuestKind::Qemu)?;
    check_lock(guest)?;
    if !guest.snapshots.is_empty() {
        return Err(no("unable to create template, because VM contains snapshots"));
    }
    if guest.flag("template") && disk.is_none() {
        return Err(no("you can't convert a template to a template"));
    }
    if guest.power.running {
        return Err(no("you can't convert a VM to template if VM is running"));
    }
    Ok(())
}

fn template(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    let disk = call.args.owned("disk");
    check(call.world, &node, vmid, disk.as_deref())?;
    let at = node.clone();
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |world, _| {
            check(world, &at, vmid, disk.as_deref())?;
            world.guest_mut(&at, vmid, GuestKind::Qemu)?.config.insert("template".into(), "1".into());
            Ok(Step::wait(0.5, move |world, _| {
                make_bases(world, &at, vmid, disk.as_deref())?;
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "qmtemplate", vmid.to_string(), work).into())
}

/// Renames the disks of a VM to base images.
pub fn make_bases(world: &mut World, node: &str, vmid: u32, only: Option<&str>) -> Result<(), Refusal> {
    let guest = world.guest(node, vmid, GuestKind::Qemu)?;
    let drives: Vec<Drive> = drive::drives(&guest.config)
        .filter(|d| !d.is_cdrom() && only.is_none_or(|slot| slot == d.slot))
        .collect();
    for mut drive in drives {
        let Some(volid) = make_base(world, node, drive.file())? else { continue };
        drive.props.set("file", volid);
        world.guest_mut(node, vmid, GuestKind::Qemu)?.config.insert(drive.slot.clone(), drive.print());
    }
    Ok(())
}

/// The id of a volume after it became a base image; none if it cannot become one.
fn make_base(world: &mut World, node: &str, volid: &str) -> Result<Option<String>, Refusal> {
    let Some((storage, name)) = parse_volume_id(volid) else { return Ok(None) };
    if parse_name(world, storage, name)?.is_base {
        return Ok(None);
    }
    let Some(place) = world.place(volid, node) else { return Ok(None) };
    let Some(volume) = world.volumes.remove(&place) else {
        return Err(no(format!("volume '{volid}' does not exist")));
    };
    let base = (place.0.clone(), place.1, place.2.replacen("vm-", "base-", 1));
    world.volumes.insert(base.clone(), volume);
    Ok(Some(world.volid(&base)))
}
