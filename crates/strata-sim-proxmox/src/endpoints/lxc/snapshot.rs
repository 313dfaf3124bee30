//! Snapshots of containers.

use serde_json::Value;

use super::config::{show, snapname};
use super::mount::{self, Mount, Source};
use super::{power, schema};
use crate::api::param::usual;
use crate::api::permission::{on, on_any};
use crate::api::{Call, Param, Perm, Refusal, Reply, Route, delete, flag, get, no, post, put, text};
use crate::endpoints::guest::check_lock;
use crate::endpoints::qemu::snapshot::rows;
use crate::task::{LockKey, Step, work};
use crate::world::guest::Config;
use crate::world::{GuestKind, Volume, World};

const PATH: &str = "/nodes/{node}/lxc/{vmid}/snapshot";
const ONE: &str = "/nodes/{node}/lxc/{vmid}/snapshot/{snapname}";

pub fn routes() -> Vec<Route> {
    let own = || vec![usual::node(), usual::vmid()];
    let one = |extra: Vec<Param>| [vec![usual::node(), usual::vmid(), snapname("snapname")], extra].concat();
    let manage = || on("/vms/{vmid}", &["VM.Snapshot"]);
    let look = on_any("/vms/{vmid}", &["VM.Snapshot", "VM.Snapshot.Rollback", "VM.Audit"]);
    let back = on_any("/vms/{vmid}", &["VM.Snapshot", "VM.Snapshot.Rollback"]);
    vec![
        get(PATH, on("/vms/{vmid}", &["VM.Audit"]), own(), |call| {
            Ok(rows(call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Lxc)?, false).into())
        }),
        post(PATH, manage(), one(vec![text("description").opt()]), create),
        get(ONE, Perm::Anyone, one(vec![]), |_| {
            crate::endpoints::index::listing("cmd", &["rollback", "config"])
        }),
        delete(ONE, manage(), one(vec![flag("force").opt()]), remove),
        get("/nodes/{node}/lxc/{vmid}/snapshot/{snapname}/config", look, one(vec![]), read),
        put(
            "/nodes/{node}/lxc/{vmid}/snapshot/{snapname}/config",
            manage(),
            one(vec![text("description").opt()]),
            edit,
        ),
        post(
            "/nodes/{node}/lxc/{vmid}/snapshot/{snapname}/rollback",
            back,
            one(vec![flag("start").opt()]),
            rollback,
        ),
    ]
}

fn missing(name: &str) -> Refusal {
    no(format!("snapshot '{name}' does not exist"))
}

fn read(call: &mut Call<'_>) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Lxc)?;
    let name = call.args.must("snapname");
    let config = guest.snapshots.get(name).ok_or_else(|| missing(name))?;
    Ok(Value::Object(show(config, None)).into())
}

fn edit(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    let name = call.args.must("snapname").to_owned();
    let Some(description) = call.args.owned("description") else { return Ok(().into()) };
    call.lock(LockKey::Lxc(vmid))?;
    let guest = call.world.guest_mut(&node, vmid, GuestKind::Lxc)?;
    check_lock(guest)?;
    let config = guest.snapshots.get_mut(&name).ok_or_else(|| missing(&name))?;
    describe(config, &description);
    Ok(().into())
}

fn describe(config: &mut Config, description: &str) {
    if description.is_empty() {
        config.remove("description");
    } else {
        config.insert("description".into(), schema::whole_lines(description));
    }
}

/// Which snapshot of which container.
struct SnapshotRequest {
    node: String,
    vmid: u32,
    name: String,
}

impl SnapshotRequest {
    fn of(call: &Call<'_>) -> Self {
        Self { node: call.node(), vmid: call.vmid(), name: call.args.must("snapname").to_owned() }
    }

    fn on_volumes(&self, world: &mut World, config: &Config, change: impl Fn(&mut Volume, &Mount)) {
        for m in mount::mounts(config).iter().filter(|m| m.source() == Source::Volume) {
            if let Some(place) = world.place(m.volume(), &self.node) {
                world.volumes.edit(&place, |volume| change(volume, m));
            }
        }
    }
}

fn create(call: &mut Call<'_>) -> Reply {
    let order = SnapshotRequest::of(call);
    if matches!(order.name.as_str(), "current" | "vzdump") {
        return Err(no(format!("unable to use snapshot name '{}' (reserved name)", order.name)));
    }
    let description = call.args.owned("description").unwrap_or_default();
    let (node, vmid) = (order.node.clone(), order.vmid);
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Lxc(vmid), move |world, _| {
            prepare(world, &order, &description)?;
            Ok(Step::wait(1.0, move |world, _| {
                take(world, &order)?;
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "vzsnapshot", vmid.to_string(), work).into())
}

fn prepare(world: &mut World, order: &SnapshotRequest, description: &str) -> Result<(), Refusal> {
    let SnapshotRequest { node, vmid, name } = order;
    let guest = world.guest(node, *vmid, GuestKind::Lxc)?;
    if guest.flag("template") {
        return Err(no("you can't take a snapshot if it's a template"));
    }
    check_lock(guest)?;
    if guest.snapshots.contains_key(name) {
        return Err(no(format!("snapshot name '{name}' already used")));
    }
    if !mount::mounts(&guest.config).iter().all(|m| mount::can_snapshot(world, m.volume())) {
        return Err(no("snapshot feature is not available"));
    }
    let now = world.now();
    let guest = world.guest_mut(node, *vmid, GuestKind::Lxc)?;
    let kept = guest.config.iter().filter(|(key, _)| !schema::is_unused(key) && *key != "description");
    let mut config: Config = kept.map(|(k, v)| (k.clone(), v.clone())).collect();
    config.insert("snaptime".into(), now.to_string());
    config.insert("snapstate".into(), "prepare".into());
    describe(&mut config, description);
    guest.snapshots.insert(name.clone(), config);
    guest.config.insert("lock".into(), "snapshot".into());
    Ok(())
}

fn take(world: &mut World, order: &SnapshotRequest) -> Result<(), Refusal> {
    let config = world.guest(&order.node, order.vmid, GuestKind::Lxc)?.config.clone();
    order.on_volumes(world, &config, |volume, _| volume.snapshots.push(order.name.clone()));
    let guest = world.guest_mut(&order.node, order.vmid, GuestKind::Lxc)?;
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
        Ok(Step::lock(LockKey::Lxc(vmid), move |world, _| {
            let guest = world.guest_mut(&order.node, vmid, GuestKind::Lxc)?;
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
    Ok(call.spawn(&node, "vzdelsnapshot", vmid.to_string(), work).into())
}

fn forget(world: &mut World, order: &SnapshotRequest) -> Result<(), Refusal> {
    let guest = world.guest_mut(&order.node, order.vmid, GuestKind::Lxc)?;
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
    order.on_volumes(world, &snapshot, |volume, _| volume.snapshots.retain(|s| s != name));
    Ok(())
}

fn rollback(call: &mut Call<'_>) -> Reply {
    let order = SnapshotRequest::of(call);
    let start = call.args.is_set("start");
    let (node, vmid) = (order.node.clone(), order.vmid);
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Lxc(vmid), move |world, _| {
            let guest = world.guest_mut(&order.node, vmid, GuestKind::Lxc)?;
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
    Ok(call.spawn(&node, "vzrollback", vmid.to_string(), work).into())
}

fn restore(world: &mut World, order: &SnapshotRequest) -> Result<(), Refusal> {
    let guest = world.guest_mut(&order.node, order.vmid, GuestKind::Lxc)?;
    let snapshot = guest.snapshots.get(&order.name).cloned().ok_or_else(|| missing(&order.name))?;
    let old = std::mem::take(&mut guest.config);
    let mut config = snapshot.clone();
    for key in ["snaptime", "snapstate", "description", "parent"] {
        config.remove(key);
    }
    let kept = old.iter().filter(|(key, _)| schema::is_unused(key) || *key == "description");
    config.extend(kept.map(|(k, v)| (k.clone(), v.clone())));
    config.insert("parent".into(), order.name.clone());
    guest.config = config;
    guest.pending.clear();
    // Volumes that came after the snapshot stay as unused ones.
    for m in mount::mounts(&old).iter().filter(|m| m.source() == Source::Volume) {
        if !mount::is_mounted(&snapshot, m.volume()) {
            mount::keep_unused(guest, m.volume());
        }
    }
    order.on_volumes(world, &snapshot, |volume, m| {
        if let Some(size) = m.size() {
            volume.size = size;
        }
    });
    Ok(())
}
