//! Moving a disk to another storage, or giving it to another VM.

use std::sync::LazyLock;

use super::copy::{self, Target};
use super::drive::{self, Drive};
use super::{boot, hotplug, template};
use crate::api::format::parse_volume_id;
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Refusal, Reply, Route, flag, int, no, post, text, wrong, wrong_many};
use crate::endpoints::guest::{check_lock, parse_name};
use crate::task::{Job, LockKey, Step, work};
use crate::world::{Guest, GuestKind, World};

static ALL_SLOTS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let unused = (0..256).map(|n| &*Box::leak(format!("unused{n}").into_boxed_str()));
    drive::SLOT_NAMES.iter().copied().chain(unused).collect()
});

pub fn routes() -> Vec<Route> {
    let params = vec![
        usual::node(),
        usual::vmid(),
        usual::vmid_as("target-vmid").opt(),
        text("disk").one_of(&ALL_SLOTS),
        usual::storage().opt(),
        text("format").one_of(&["raw", "qcow2", "vmdk"]).opt(),
        flag("delete").opt(),
        text("digest").max_len(40).opt(),
        int("bwlimit").min(0.0).opt(),
        text("target-disk").one_of(&ALL_SLOTS).opt(),
        text("target-digest").max_len(40).opt(),
    ];
    vec![post(
        "/nodes/{node}/qemu/{vmid}/move_disk",
        on("/vms/{vmid}", &["VM.Config.Disk"]),
        params,
        move_disk,
    )]
}

fn move_disk(call: &mut Call<'_>) -> Reply {
    let target = call.args.int("target-vmid").and_then(|id| u32::try_from(id).ok());
    let storage = call.args.owned("storage");
    let both = |text: &str| {
        let error = serde_json::json!(text);
        let errors = [("target-vmid", error.clone()), ("storage", error)];
        wrong_many(errors.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
    };
    match (target, storage) {
        (Some(_), Some(_)) => Err(both("either set 'storage' or 'target-vmid', but not both")),
        (None, None) => Err(both("both 'storage' and 'target-vmid' missing, either needs to be set")),
        (None, Some(storage)) => to_storage(call, storage),
        (Some(target), None) => to_guest(call, target),
    }
}

#[derive(Clone)]
struct Move {
    node: String,
    vmid: u32,
    disk: String,
    storage: String,
    format: Option<String>,
    delete: bool,
    digest: Option<String>,
}

impl Move {
    /// The drive to move, if it can be.
    fn check(&self, world: &World) -> Result<Drive, Refusal> {
        let guest = world.guest(&self.node, self.vmid, GuestKind::Qemu)?;
        check_lock(guest)?;
        assert_digest(self.digest.as_deref(), guest)?;
        let disk = &self.disk;
        let Some(value) = guest.get(disk) else { return Err(no(format!("disk '{disk}' does not exist"))) };
        let drive = Drive::parse(disk, value).ok_or_else(|| no("unable to parse drive options"))?;
        if drive.is_plain_cdrom() {
            return Err(no("you can't move a cdrom"));
        }
        let Some((old, name)) = parse_volume_id(drive.file()) else {
            return Err(no(format!("disk '{disk}' has no associated volume")));
        };
        let format = parse_name(world, old, name)?.format;
        if old == self.storage && self.format.as_ref().is_none_or(|f| *f == format) {
            return Err(no("you can't move to the same storage with same format"));
        }
        if !world.storage_on(&self.storage, &self.node)?.holds("images") {
            return Err(wrong("storage", format!("storage '{}' does not support vm images", self.storage)));
        }
        let snapshotted =
            guest.snapshots.values().any(|s| drive::drives(s).any(|d| d.file() == drive.file()));
        if snapshotted && self.delete {
            return Err(no("you can't move a disk with snapshots and delete the source"));
        }
        Ok(drive)
    }

    fn run(&self, world: &mut World, job: &Job) -> Result<(), String> {
        let drive = self.check(world)?;
        let old = drive.file().to_owned();
        let old_storage = parse_volume_id(&old).map(|(storage, _)| storage.to_owned()).unwrap_or_default();
        job.log(
            world,
            format!(
                "copying volume '{old}' from current storage '{old_storage}' to target storage '{}'",
                self.storage
            ),
        );
        let target = Target {
            node: &self.node,
            vmid: self.vmid,
            storage: Some(&self.storage),
            format: self.format.as_deref(),
        };
        let mut log = Vec::new();
        let new = copy::copy(world, &drive, &target, &mut log);
        for line in log {
            job.log(world, line);
        }
        let new = new.map_err(|e| format!("storage migration failed: {}", e.text()))?;
        let guest = world.guest_mut(&self.node, self.vmid, GuestKind::Qemu)?;
        guest.config.insert(self.disk.clone(), new.print());
        let is_template = guest.flag("template");
        if self.delete {
            job.log(world, format!("removing source volume '{old}' after successful copy"));
            world.free(&old, &self.node);
        } else if old.contains("-cloudinit") {
            // It is made again wherever it is needed.
            job.log(world, format!("found unused cloudinit disk '{old}', removing it"));
            world.free(&old, &self.node);
        } else if let Some(key) = hotplug::add_unused(guest, &old) {
            job.log(world, format!("adding source volume '{old}' as '{key}' to config"));
        }
        if is_template {
            template::make_bases(world, &self.node, self.vmid, Some(&self.disk))?;
        }
        Ok(())
    }
}

fn assert_digest(digest: Option<&str>, guest: &Guest) -> Result<(), Refusal> {
    match digest {
        Some(digest) if digest != guest.digest() => {
            Err(no("detected modified configuration - file changed by other user? Try again."))
        }
        _ => Ok(()),
    }
}

fn to_storage(call: &mut Call<'_>, storage: String) -> Reply {
    call.check(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    let order = Move {
        node: call.node(),
        vmid: call.vmid(),
        disk: call.args.must("disk").to_owned(),
        storage,
        format: call.args.owned("format"),
        delete: call.args.is_set("delete"),
        digest: call.args.owned("digest"),
    };
    let drive = order.check(call.world)?;
    let seconds = copy::copy_seconds(call.world, &drive, &order.node);
    let (node, vmid) = (order.node.clone(), order.vmid);
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |world, _| {
            order.check(world)?;
            Ok(Step::wait(seconds, move |world, job| {
                order.run(world, job)?;
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "qmmove", vmid.to_string(), work).into())
}

#[derive(Clone)]
struct Reassign {
    node: String,
    vmid: u32,
    disk: String,
    target: u32,
    target_disk: String,
    digest: Option<String>,
    target_digest: Option<String>,
}

impl Reassign {
    fn check(&self, world: &World) -> Result<Drive, Refusal> {
        let Self { vmid, disk, target, target_disk, .. } = self;
        let source = world.guests.get(vmid).ok_or_else(|| no(format!("could not find VM {vmid}")))?;
        let into =
            world.guests.get(target).ok_or_else(|| no(format!("could not find target VM {target}")))?;
        if source.node != into.node {
            return Err(no(format!(
                "Both VMs need to be on the same node ({} != {})",
                source.node, into.node
            )));
        }
        let source = world.guest(&self.node, *vmid, GuestKind::Qemu)?;
        check_lock(source)?;
        let into = world.guest(&self.node, *target, GuestKind::Qemu)?;
        check_lock(into)?;
        if source.flag("template") || into.flag("template") {
            return Err(no("Can't move disks from or to template VMs"));
        }
        for (guest, digest) in [(source, &self.digest), (into, &self.target_digest)] {
            assert_digest(digest.as_deref(), guest)
                .map_err(|e| no(format!("VM {}: {}", guest.vmid, e.text())))?;
        }
        let Some(value) = source.get(disk) else {
            return Err(no(format!("Disk '{disk}' for VM '{vmid}' does not exist")));
        };
        if into.get(target_disk).is_some() {
            return Err(no(format!("Target disk key '{target_disk}' is already in use for VM '{target}'")));
        }
        let drive = Drive::parse(disk, value).ok_or_else(|| no("failed to parse source disk"))?;
        if drive.is_plain_cdrom() {
            return Err(no("CD drive contents can't be moved to another VM"));
        }
        if drive.volid().is_none() {
            return Err(no(format!("Volume '{}' not managed by PVE", drive.file())));
        }
        if source.snapshots.values().any(|s| drive::drives(s).any(|d| d.file() == drive.file())) {
            return Err(no("Can't move disk used by a snapshot to another VM"));
        }
        if source.power.running && !drive::is_unused(disk) {
            return Err(no("Cannot move disk to another VM while the source VM is running - detach first"));
        }
        let value = if drive::is_unused(target_disk) { drive.file() } else { value };
        Drive::parse(target_disk, value)
            .ok_or_else(|| no("failed to parse source disk for target disk format"))
    }

    fn run(&self, world: &mut World, job: &Job) -> Result<(), String> {
        let Self { node, vmid, disk, target, target_disk, .. } = self;
        let mut drive = self.check(world)?;
        job.log(
            world,
            format!("reassign disk '{disk}' from VM '{vmid}' as '{target_disk}' to VM '{target}'"),
        );
        let place = world.place(drive.file(), node).ok_or("volume is gone")?;
        let mut volume = world.volumes.remove(&place).ok_or("volume is gone")?;
        let storage = world.storage(&place.0)?.clone();
        let file = world.free_disk_name(&storage, node, *target);
        volume.vmid = Some(*target);
        let name = storage.image_name(*target, &file, &volume.format);
        let renamed = (place.0, place.1, name);
        world.volumes.insert(renamed.clone(), volume);
        drive.props.set("file", world.volid(&renamed));
        let source = world.guest_mut(node, *vmid, GuestKind::Qemu)?;
        let mut order = boot::order(source.get("boot"));
        let ordered = order.contains(disk);
        if ordered {
            order.retain(|device| device != disk);
            source.config.insert("boot".into(), boot::print_order(order));
        }
        source.config.remove(disk);
        super::create::tidy(&mut source.config);
        let into = world.guest_mut(node, *target, GuestKind::Qemu)?;
        into.config.insert(target_disk.clone(), drive.print());
        if ordered {
            job.log(world, format!("removing disk '{disk}' from boot order config"));
        }
        job.log(world, format!("removing disk '{disk}' from VM '{vmid}' config"));
        job.log(world, format!("update VM {target}: -{target_disk} {}", drive.print()));
        Ok(())
    }
}

fn to_guest(call: &mut Call<'_>, target: u32) -> Reply {
    let disk = call.args.must("disk").to_owned();
    let order = Reassign {
        node: call.node(),
        vmid: call.vmid(),
        target,
        target_disk: call.args.owned("target-disk").unwrap_or_else(|| disk.clone()),
        disk,
        digest: call.args.owned("digest"),
        target_digest: call.args.owned("target-digest"),
    };
    call.check_vm(target, None, &["VM.Config.Disk"])?;
    if order.vmid == target {
        return Err(wrong("target-vmid", "must be different than source VMID to reassign disk"));
    }
    let drive = order.check(call.world)?;
    let storage = parse_volume_id(drive.file()).map(|(storage, _)| storage.to_owned()).unwrap_or_default();
    call.check(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    let id = format!("{}-{}>{target}-{}", order.vmid, order.disk, order.target_disk);
    let (node, vmid) = (order.node.clone(), order.vmid);
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |_, _| {
            Ok(Step::lock(LockKey::Qemu(target), move |world, job| {
                order.run(world, job)?;
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "qmmove", id, work).into())
}
