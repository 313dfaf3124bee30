//! Snapshots of containers.

use serde_json::Value;

use super::config::{show, snapname};
use super::mount::{self, Mount, Source};
use super::{power, schema};
use crate::api::param::usual;
use crate::api::permission::{on, on_any};
use crate::api::{Call, Param, Perm, Refusal, Reply, Route, delete, flag, get, no, post, put, text};
use crate::endpoints::snapshot::{SnapshotRequest, config_of, rows};
use crate::task::Step;
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

fn read(call: &mut Call<'_>) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Lxc)?;
    let name = call.args.must("snapname");
    Ok(Value::Object(show(config_of(guest, name)?, None)).into())
}

fn edit(call: &mut Call<'_>) -> Reply {
    let Some(description) = call.args.owned("description") else { return Ok(().into()) };
    SnapshotRequest::of(call, GuestKind::Lxc).edit(call, |config| describe(config, &description))
}

fn describe(config: &mut Config, description: &str) {
    if description.is_empty() {
        config.remove("description");
    } else {
        config.insert("description".into(), schema::whole_lines(description));
    }
}

fn on_volumes(
    order: &SnapshotRequest,
    world: &mut World,
    config: &Config,
    change: impl Fn(&mut Volume, &Mount),
) {
    for m in mount::mounts(config).iter().filter(|m| m.source() == Source::Volume) {
        if let Some(place) = world.place(m.volume(), &order.node) {
            world.volumes.edit(&place, |volume| change(volume, m));
        }
    }
}

fn create(call: &mut Call<'_>) -> Reply {
    let order = SnapshotRequest::of(call, GuestKind::Lxc);
    if matches!(order.name.as_str(), "current" | "vzdump") {
        return Err(no(format!("unable to use snapshot name '{}' (reserved name)", order.name)));
    }
    let description = call.args.owned("description").unwrap_or_default();
    order.spawn(call, "vzsnapshot", move |order, world| {
        prepare(world, &order, &description)?;
        Ok(Step::wait(1.0, move |world, _| {
            take(world, &order)?;
            Ok(Step::Done)
        }))
    })
}

fn prepare(world: &mut World, order: &SnapshotRequest, description: &str) -> Result<(), Refusal> {
    order.check_new(world)?;
    let config = &world.guest(&order.node, order.vmid, order.kind)?.config;
    if !mount::mounts(config).iter().all(|m| mount::can_snapshot(world, m.volume())) {
        return Err(no("snapshot feature is not available"));
    }
    let now = world.now();
    let guest = order.guest(world)?;
    let kept = guest.config.iter().filter(|(key, _)| !schema::is_unused(key) && *key != "description");
    let mut config: Config = kept.map(|(k, v)| (k.clone(), v.clone())).collect();
    config.insert("snaptime".into(), now.to_string());
    config.insert("snapstate".into(), "prepare".into());
    describe(&mut config, description);
    guest.snapshots.insert(order.name.clone(), config);
    guest.config.insert("lock".into(), "snapshot".into());
    Ok(())
}

fn take(world: &mut World, order: &SnapshotRequest) -> Result<(), Refusal> {
    let config = world.guest(&order.node, order.vmid, GuestKind::Lxc)?.config.clone();
    on_volumes(order, world, &config, |volume, _| volume.snapshots.push(order.name.clone()));
    order.taken(world)
}

fn remove(call: &mut Call<'_>) -> Reply {
    SnapshotRequest::of(call, GuestKind::Lxc).remove(call, "vzdelsnapshot", |order, world, snapshot| {
        on_volumes(order, world, snapshot, |volume, _| volume.snapshots.retain(|name| *name != order.name));
    })
}

fn rollback(call: &mut Call<'_>) -> Reply {
    let starts = call.args.is_set("start");
    SnapshotRequest::of(call, GuestKind::Lxc).roll_back(
        call,
        "vzrollback",
        restore,
        move |world, order, job| {
            if starts {
                power::spawn_start(world, &order.node, order.vmid, &job.user);
            }
        },
    )
}

fn restore(world: &mut World, order: &SnapshotRequest) -> Result<(), Refusal> {
    let guest = order.guest(world)?;
    let snapshot = config_of(guest, &order.name)?.clone();
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
    on_volumes(order, world, &snapshot, |volume, m| {
        if let Some(size) = m.size() {
            volume.size = size;
        }
    });
    Ok(())
}
