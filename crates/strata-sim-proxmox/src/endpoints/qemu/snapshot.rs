//! Snapshots of VMs.

use serde_json::{Map, Value, json};

use super::config::{show, snapname};
use super::drive::{self, Drive};
use super::{hotplug, power};
use crate::api::format::parse_volume_id;
use crate::api::param::usual;
use crate::api::permission::{on, on_any};
use crate::api::{Call, Param, Perm, Refusal, Reply, Route, delete, flag, get, no, post, put, text};
use crate::endpoints::guest::{check_lock, parse_name};
use crate::task::{Job, LockKey, Step, work};
use crate::world::guest::Config;
use crate::world::{Guest, GuestKind, Volume, World};

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

/// The snapshots and, last, the current state. Containers show no `vmstate`.
pub fn rows(guest: &Guest, vmstate: bool) -> Value {
    let mut rows: Vec<Value> = guest
        .snapshots
        .iter()
        .map(|(name, config)| {
            let get = |key: &str| config.get(key);
            let mut row = Map::new();
            row.insert("name".into(), json!(name));
            row.insert("description".into(), json!(get("description").map_or("", String::as_str)));
            let time = get("snaptime").and_then(|t| t.parse::<i64>().ok()).unwrap_or_default();
            row.insert("snaptime".into(), json!(time));
            if vmstate {
                row.insert("vmstate".into(), json!(u8::from(get("vmstate").is_some())));
            }
            for key in ["parent", "snapstate"] {
                if let Some(value) = get(key) {
                    row.insert(key.into(), json!(value));
                }
            }
            Value::Object(row)
        })
        .collect();
    let mut current = json!({
        "name": "current", "description": "You are here!", "digest": guest.digest(),
        "running": u8::from(guest.power.running),
    });
    if let Some(parent) = guest.get("parent") {
        current["parent"] = json!(parent);
    }
    rows.push(current);
    Value::Array(rows)
}

fn missing(name: &str) -> Refusal {
    no(format!("snapshot '{name}' does not exist"))
}

fn read(call: &mut Call<'_>) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Qemu)?;
    let name = call.args.must("snapname");
    let config = guest.snapshots.get(name).ok_or_else(|| missing(name))?;
    Ok(Value::Object(show(config, None, false)).into())
}

fn edit(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    let name = call.args.must("snapname").to_owned();
    let Some(description) = call.args.owned("description") else { return Ok(().into()) };
    call.lock(LockKey::Qemu(vmid))?;
    let guest = call.world.guest_mut(&node, vmid, GuestKind::Qemu)?;
    check_lock(guest)?;
    let config = guest.snapshots.get_mut(&name).ok_or_else(|| missing(&name))?;
    config.insert("description".into(), description);
    Ok(().into())
}

/// Whether every disk can be snapshotted.
pub fn is_possible(world: &World, config: &Config) -> bool {
    drive::drives(config).filter(|d| !d.is_cdrom()).all(|drive| {
        let Some((storage, name)) = parse_volume_id(drive.file()) else { return false };
        let format = parse_name(world, storage, name).map(|n| n.format).unwrap_or_default();
        world.storages.get(storage).is_some_and(|s| s.snapshots(&format))
    })
}

struct SnapshotRequest {
    node: String,
    vmid: u32,
    name: String,
}

impl SnapshotRequest {
    fn of(call: &Call<'_>) -> Self {
        Self { node: call.node(), vmid: call.vmid(), name: call.args.must("snapname").to_owned() }
    }

    /// Tells every disk of a configuration about its snapshot.
    fn on_disks(&self, world: &mut World, config: &Config, change: impl Fn(&mut Volume, &Drive)) {
        for drive in drive::drives(config).filter(|d| !d.is_cdrom()) {
            if let Some(place) = world.place(drive.file(), &self.node) {
                world.volumes.edit(&place, |volume| change(volume, &drive));
            }
        }
    }
}

fn create(call: &mut Call<'_>) -> Reply {
    let order = SnapshotRequest::of(call);
    if order.name == "current" || order.name.eq_ignore_ascii_case("pending") {
        return Err(no(format!("unable to use snapshot name '{}' (reserved name)", order.name)));
    }
    call.world.guest(&order.node, order.vmid, GuestKind::Qemu)?;
    let (description, vmstate) = (call.args.owned("description"), call.args.is_set("vmstate"));
    let (node, vmid) = (order.node.clone(), order.vmid);
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |world, _| {
            prepare(world, &order, description, vmstate)?;
            Ok(Step::wait(1.0, move |world, job| {
                take(world, job, &order)?;
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "qmsnapshot", vmid.to_string(), work).into())
}

fn prepare(
    world: &mut World,
    order: &SnapshotRequest,
    description: Option<String>,
    vmstate: bool,
) -> Result<(), Refusal> {
    let SnapshotRequest { node, vmid, name } = order;
    let guest = world.guest(node, *vmid, GuestKind::Qemu)?;
    if guest.flag("template") {
        return Err(no("you can't take a snapshot if it's a template"));
    }
    check_lock(guest)?;
    if guest.snapshots.contains_key(name) {
        return Err(no(format!("snapshot name '{name}' already used")));
    }
    if !is_possible(world, &guest.config) {
        return Err(no("snapshot feature is not available"));
    }
    let now = world.now();
    let guest = world.guest_mut(node, *vmid, GuestKind::Qemu)?;
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
    guest.snapshots.insert(name.clone(), config);
    guest.config.insert("lock".into(), "snapshot".into());
    Ok(())
}

fn take(world: &mut World, job: &Job, order: &SnapshotRequest) -> Result<(), Refusal> {
    let guest = world.guest(&order.node, order.vmid, GuestKind::Qemu)?;
    let config = guest.config.clone();
    for drive in drive::drives(&config).filter(|d| !d.is_cdrom()) {
        job.log(world, format!("snapshotting 'drive-{}' ({})", drive.slot, drive.file()));
    }
    order.on_disks(world, &config, |volume, _| volume.snapshots.push(order.name.clone()));
    let guest = world.guest_mut(&order.node, order.vmid, GuestKind::Qemu)?;
    guest.config.remove("lock");
    guest.config.insert("parent".into(), order.name.clone());
    if let Some(snapshot) = guest.snapshots.get_mut(&order.name) {
        snapshot.remove("snapstate");
    }
    Ok(())
}

fn remove(call: &mut Call<'_>) -> Reply {
    let order = SnapshotRequest::of(call);
    let (node, vmid) = (order.node.clone(), order.vmid);
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |world, _| {
            let guest = world.guest_mut(&order.node, vmid, GuestKind::Qemu)?;
            if !guest.snapshots.contains_key(&order.name) {
                return Err(missing(&order.name).text());
            }
            check_lock(guest)?;
            guest.config.insert("lock".into(), "snapshot-delete".into());
            Ok(Step::wait(0.5, move |world, _| {
                forget(world, &order)?;
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "qmdelsnapshot", vmid.to_string(), work).into())
}

fn forget(world: &mut World, order: &SnapshotRequest) -> Result<(), Refusal> {
    let guest = world.guest_mut(&order.node, order.vmid, GuestKind::Qemu)?;
    let name = &order.name;
    let snapshot = guest.snapshots.shift_remove(name).ok_or_else(|| missing(name))?;
    let parent = snapshot.get("parent").cloned();
    for config in guest.snapshots.values_mut().chain(std::iter::once(&mut guest.config)) {
        if config.get("parent") == Some(name) {
            match &parent {
                Some(parent) => config.insert("parent".into(), parent.clone()),
                None => config.remove("parent"),
            };
        }
    }
    guest.config.remove("lock");
    order.on_disks(world, &snapshot, |volume, _| volume.snapshots.retain(|s| s != name));
    Ok(())
}

fn rollback(call: &mut Call<'_>) -> Reply {
    let order = SnapshotRequest::of(call);
    let start = call.args.is_set("start");
    if start {
        call.check_vm(order.vmid, None, &["VM.PowerMgmt"])?;
    }
    let (node, vmid) = (order.node.clone(), order.vmid);
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |world, _| {
            let guest = world.guest_mut(&order.node, vmid, GuestKind::Qemu)?;
            if guest.flag("template") {
                return Err("you can't rollback if vm is a template".to_owned());
            }
            if !guest.snapshots.contains_key(&order.name) {
                return Err(missing(&order.name).text());
            }
            check_lock(guest)?;
            guest.power = Default::default();
            guest.config.insert("lock".into(), "rollback".into());
            Ok(Step::wait(1.0, move |world, job| {
                restore(world, &order)?;
                if start {
                    power::spawn_start(world, &order.node, vmid, &job.user);
                }
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "qmrollback", vmid.to_string(), work).into())
}

fn restore(world: &mut World, order: &SnapshotRequest) -> Result<(), Refusal> {
    let guest = world.guest_mut(&order.node, order.vmid, GuestKind::Qemu)?;
    let snapshot = guest.snapshots.get(&order.name).cloned().ok_or_else(|| missing(&order.name))?;
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
    order.on_disks(world, &snapshot, |volume, drive| {
        if let Some(size) = drive.size() {
            volume.size = size;
        }
    });
    Ok(())
}
