//! Snapshots of VMs.

use serde_json::Value;

use super::config::{show, snapname};
use super::drive::{self, Drive};
use super::{hotplug, power};
use crate::api::format::parse_volume_id;
use crate::api::param::usual;
use crate::api::permission::{on, on_any};
use crate::api::{Call, Param, Perm, Refusal, Reply, Route, delete, flag, get, no, post, put, text};
use crate::endpoints::guest::parse_name;
use crate::endpoints::snapshot::{SnapshotRequest, config_of, rows};
use crate::task::{Job, Step};
use crate::world::guest::Config;
use crate::world::{GuestKind, Volume, World};

pub fn routes() -> Vec<Route> {
    let with = |extra: Vec<Param>| [vec![usual::node(), usual::vmid()], extra].concat();
    let one = |extra: Vec<Param>| [vec![usual::node(), usual::vmid(), snapname("snapname")], extra].concat();
    let manage = || on("/vms/{vmid}", &["VM.Snapshot"]);
    vec![
        get("/nodes/{node}/qemu/{vmid}/snapshot", on("/vms/{vmid}", &["VM.Audit"]), with(vec![]), list),
        post(
            "/nodes/{node}/qemu/{vmid}/snapshot",
            manage(),
            one(vec![flag("vmstate").opt(), text("description").opt()]),
            create,
        ),
        get("/nodes/{node}/qemu/{vmid}/snapshot/{snapname}", Perm::Anyone, one(vec![]), |_| {
            crate::endpoints::index::listing("cmd", &["rollback", "config"])
        }),
        delete(
            "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}",
            manage(),
            one(vec![flag("force").opt()]),
            remove,
        ),
        get(
            "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}/config",
            on_any("/vms/{vmid}", &["VM.Snapshot", "VM.Snapshot.Rollback", "VM.Audit"]),
            one(vec![]),
            read,
        ),
        put(
            "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}/config",
            manage(),
            one(vec![text("description").opt()]),
            edit,
        ),
        post(
            "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}/rollback",
            on_any("/vms/{vmid}", &["VM.Snapshot", "VM.Snapshot.Rollback"]),
            one(vec![flag("start").opt()]),
            rollback,
        ),
    ]
}

fn list(call: &mut Call<'_>) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Qemu)?;
    Ok(rows(guest, true).into())
}

fn read(call: &mut Call<'_>) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Qemu)?;
    let name = call.args.must("snapname");
    Ok(Value::Object(show(config_of(guest, name)?, None, false)).into())
}

fn edit(call: &mut Call<'_>) -> Reply {
    let Some(description) = call.args.owned("description") else { return Ok(().into()) };
    SnapshotRequest::of(call, GuestKind::Qemu).edit(call, |config| {
        config.insert("description".into(), description);
    })
}

/// Whether every disk can be snapshotted.
pub fn is_possible(world: &World, config: &Config) -> bool {
    drive::drives(config).filter(|d| !d.is_cdrom()).all(|drive| {
        let Some((storage, name)) = parse_volume_id(drive.file()) else { return false };
        let format = parse_name(world, storage, name).map(|n| n.format).unwrap_or_default();
        world.storages.get(storage).is_some_and(|s| s.snapshots(&format))
    })
}

/// Tells every disk of a configuration about its snapshot.
fn on_disks(
    order: &SnapshotRequest,
    world: &mut World,
    config: &Config,
    change: impl Fn(&mut Volume, &Drive),
) {
    for drive in drive::drives(config).filter(|d| !d.is_cdrom()) {
        if let Some(place) = world.place(drive.file(), &order.node) {
            world.volumes.edit(&place, |volume| change(volume, &drive));
        }
    }
}

fn create(call: &mut Call<'_>) -> Reply {
    let order = SnapshotRequest::of(call, GuestKind::Qemu);
    if order.name == "current" || order.name.eq_ignore_ascii_case("pending") {
        return Err(no(format!("unable to use snapshot name '{}' (reserved name)", order.name)));
    }
    call.world.guest(&order.node, order.vmid, GuestKind::Qemu)?;
    let (description, vmstate) = (call.args.owned("description"), call.args.is_set("vmstate"));
    order.spawn(call, "qmsnapshot", move |order, world| {
        prepare(world, &order, description, vmstate)?;
        Ok(Step::wait(1.0, move |world, job| {
            take(world, job, &order)?;
            Ok(Step::Done)
        }))
    })
}

fn prepare(
    world: &mut World,
    order: &SnapshotRequest,
    description: Option<String>,
    vmstate: bool,
) -> Result<(), Refusal> {
    order.check_new(world)?;
    let config = &world.guest(&order.node, order.vmid, order.kind)?.config;
    if !is_possible(world, config) {
        return Err(no("snapshot feature is not available"));
    }
    let now = world.now();
    let guest = order.guest(world)?;
    let mut config: Config = guest
        .config
        .iter()
        .filter(|(key, _)| !drive::is_unused(key))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    config.remove("description");
    config.insert("snaptime".into(), now.to_string());
    config.insert("snapstate".into(), "prepare".into());
    if let Some(description) = description.filter(|d| !d.is_empty()) {
        config.insert("description".into(), description);
    }
    if vmstate && guest.power.running {
        config.insert("runningmachine".into(), guest.power.machine.clone());
    }
    guest.snapshots.insert(order.name.clone(), config);
    guest.config.insert("lock".into(), "snapshot".into());
    Ok(())
}

fn take(world: &mut World, job: &Job, order: &SnapshotRequest) -> Result<(), Refusal> {
    let guest = world.guest(&order.node, order.vmid, GuestKind::Qemu)?;
    let config = guest.config.clone();
    for drive in drive::drives(&config).filter(|d| !d.is_cdrom()) {
        job.log(world, format!("snapshotting 'drive-{}' ({})", drive.slot, drive.file()));
    }
    on_disks(order, world, &config, |volume, _| volume.snapshots.push(order.name.clone()));
    order.taken(world)
}

fn remove(call: &mut Call<'_>) -> Reply {
    SnapshotRequest::of(call, GuestKind::Qemu).remove(call, "qmdelsnapshot", |order, world, snapshot| {
        on_disks(order, world, snapshot, |volume, _| volume.snapshots.retain(|name| *name != order.name));
    })
}

fn rollback(call: &mut Call<'_>) -> Reply {
    let order = SnapshotRequest::of(call, GuestKind::Qemu);
    let starts = call.args.is_set("start");
    if starts {
        call.check_vm(order.vmid, None, &["VM.PowerMgmt"])?;
    }
    order.roll_back(call, "qmrollback", restore, move |world, order, job| {
        if starts {
            power::spawn_start(world, &order.node, order.vmid, &job.user);
        }
    })
}

fn restore(world: &mut World, order: &SnapshotRequest) -> Result<(), Refusal> {
    let guest = order.guest(world)?;
    let snapshot = config_of(guest, &order.name)?.clone();
    let old = std::mem::take(&mut guest.config);
    let mut config = snapshot.clone();
    for key in ["snaptime", "snapstate", "vmstate", "runningmachine", "runningcpu", "description", "parent"] {
        config.remove(key);
    }
    config.extend(old.iter().filter(|(key, _)| drive::is_unused(key)).map(|(k, v)| (k.clone(), v.clone())));
    if let Some(description) = old.get("description") {
        config.insert("description".into(), description.clone());
    }
    config.insert("parent".into(), order.name.clone());
    guest.config = config;
    guest.pending.clear();
    // Disks that came after the snapshot stay as unused ones.
    let kept: Vec<String> = drive::drives(&snapshot).map(|d| d.file().to_owned()).collect();
    for drive in drive::drives(&old).filter(|d| !kept.iter().any(|file| file == d.file())) {
        hotplug::keep_unused(guest, &drive);
    }
    on_disks(order, world, &snapshot, |volume, drive| {
        if let Some(size) = drive.size() {
            volume.size = size;
        }
    });
    Ok(())
}
