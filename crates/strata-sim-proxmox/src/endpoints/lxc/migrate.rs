//! Moving a container to another node.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::mount::{self, Source};
use super::{power, schema};
use crate::api::args::split_list;
use crate::api::format::parse_volume_id;
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Refusal, Reply, Route, flag, format, get, int, no, number, post, text, wrong};
use crate::endpoints::guest::check_lock;
use crate::task::{Cont, Job, LockKey, Step, work};
use crate::world::ha::Command;
use crate::world::{GuestKind, World};

const PATH: &str = "/nodes/{node}/lxc/{vmid}/migrate";

pub fn routes() -> Vec<Route> {
    let perm = || on("/vms/{vmid}", &["VM.Migrate"]);
    let target = || text("target").format(format::node);
    let params = vec![
        usual::node(),
        usual::vmid(),
        target(),
        text("target-storage").opt(),
        flag("online").opt(),
        flag("restart").opt(),
        int("timeout").opt(),
        number("bwlimit").min(0.0).opt(),
    ];
    vec![
        get(PATH, perm(), vec![usual::node(), usual::vmid(), target().opt()], preview),
        post(PATH, perm(), params, migrate),
    ]
}

fn preview(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let guest = call.world.guest(&node, call.vmid(), GuestKind::Lxc)?;
    check_lock(guest)?;
    let others: Vec<&String> = call.world.nodes.keys().filter(|name| **name != node).collect();
    Ok(json!({
        "running": u8::from(guest.power.running), "allowed-nodes": others, "not-allowed-nodes": {},
    })
    .into())
}

#[derive(Clone)]
struct MigrateRequest {
    node: String,
    vmid: u32,
    target: String,
    online: bool,
    restart: bool,
    /// Where volumes of each storage go; the empty name stands for all others.
    map: BTreeMap<String, String>,
    user: String,
}

impl MigrateRequest {
    fn storage_for<'o>(&'o self, storage: &'o str) -> &'o str {
        self.map.get(storage).or_else(|| self.map.get("")).map_or(storage, String::as_str)
    }
}

fn migrate(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    let target = call.args.must("target").to_owned();
    if target == node {
        return Err(wrong("target", "target is local node."));
    }
    if !call.world.nodes.contains_key(&target) {
        return Err(no(format!("no such cluster node '{target}'")));
    }
    let running = call.world.guest(&node, vmid, GuestKind::Lxc)?.power.running;
    let (online, restart) = (call.args.is_set("online"), call.args.is_set("restart"));
    if running && !online && !restart {
        return Err(no("can't migrate running container without --online or --restart"));
    }
    let mut map = BTreeMap::new();
    if let Some(given) = call.args.text("target-storage") {
        for entry in split_list(given).filter(|entry| *entry != "1") {
            let (from, to) = entry.split_once(':').unwrap_or(("", entry));
            map.insert(from.to_owned(), to.to_owned());
        }
        if !map.is_empty() {
            call.check_vm(vmid, None, &["VM.Config.Disk"])?;
        }
        for id in map.values() {
            let storage = call.world.storage_on(id, &target)?;
            if !storage.holds("rootdir") {
                return Err(no(format!("storage '{id}' does not support CT rootdirs")));
            }
            call.check(&format!("/storage/{id}"), &["Datastore.AllocateSpace"])?;
        }
    }
    let user = call.user().to_owned();
    if call.world.is_ha_managed(vmid) {
        let command = Command::Migrate { target, online: false };
        return Ok(Value::String(call.world.request_ha(&node, "ct", vmid, &user, command)).into());
    }
    let order = MigrateRequest { node: node.clone(), vmid, target, online, restart, map, user };
    Ok(call.spawn(&node, "vzmigrate", vmid.to_string(), moving(order)).into())
}

fn moving(order: MigrateRequest) -> Cont {
    let vmid = order.vmid;
    work(move |_, _| Ok(Step::lock(LockKey::Lxc(vmid), move |world, job| begin(world, job, order))))
}

/// A move by the agent of high availability; what runs is restarted on the other side. Gives the task.
pub fn spawn(world: &mut World, node: &str, vmid: u32, target: &str) -> String {
    let order = MigrateRequest {
        node: node.to_owned(),
        vmid,
        target: target.to_owned(),
        online: false,
        restart: true,
        map: BTreeMap::new(),
        user: "root@pam".to_owned(),
    };
    world.start_task(node, "vzmigrate", &vmid.to_string(), "root@pam", moving(order))
}

const ABORTED: &str = "migration aborted";

/// What the original says and how its task then ends.
fn abort(world: &mut World, job: &Job, why: &str) -> String {
    job.log(world, format!("ERROR: migration aborted (duration 00:00:00): {why}"));
    ABORTED.to_owned()
}

fn begin(world: &mut World, job: &Job, order: MigrateRequest) -> Result<Step, String> {
    let moves = match prepare(world, &order) {
        Ok(moves) => moves,
        Err(refusal) => return Err(abort(world, job, &refusal.text())),
    };
    let MigrateRequest { node, vmid, target, .. } = order.clone();
    let was_running = world.guest(&node, vmid, GuestKind::Lxc)?.power.running;
    if was_running {
        job.log(world, format!("shutdown CT {vmid}"));
        power::halt(world, &node, vmid)?;
    }
    let ip = world.nodes.get(&target).map(|n| n.ip.clone()).unwrap_or_default();
    job.log(world, format!("starting migration of CT {vmid} to node '{target}' ({ip})"));
    for (volid, _) in &moves {
        job.log(world, format!("found local volume '{volid}' (in current VM config)"));
    }
    world.guest_mut(&node, vmid, GuestKind::Lxc)?.config.insert("lock".into(), "migrate".into());
    let size: u64 = moves.iter().filter_map(|m| world.volume(&m.0, &node)).map(|v| v.size).sum();
    let seconds = 2.0 + (size as f64 / (1_u64 << 30) as f64 * 0.25).min(20.0);
    let back = node.clone();
    Ok(Step::wait(seconds, move |world, job| finish(world, job, &order, moves, was_running)).or_undo(
        move |world| {
            if let Ok(guest) = world.guest_mut(&back, vmid, GuestKind::Lxc) {
                guest.config.remove("lock");
            }
        },
    ))
}

/// Local volumes with the storage they go to.
fn prepare(world: &World, order: &MigrateRequest) -> Result<Vec<(String, String)>, Refusal> {
    let guest = world.guest(&order.node, order.vmid, GuestKind::Lxc)?;
    check_lock(guest)?;
    if guest.power.running && order.online {
        return Err(no("lxc live migration is currently not implemented"));
    }
    if guest.power.running && !order.restart {
        return Err(no("running container can only be migrated in restart mode"));
    }
    for m in mount::mounts(&guest.config) {
        if m.source() != Source::Volume && !m.props.is_set("shared") {
            let kind = m.source().name();
            return Err(no(format!("cannot migrate local {kind} mount point '{}'", m.key)));
        }
    }
    let mut moves = Vec::new();
    for volid in mount::volumes(&guest.config) {
        let (id, _) = parse_volume_id(&volid)
            .ok_or_else(|| no(format!("can't determine assigned storage for '{volid}'")))?;
        let storage = world.storage_on(id, &order.node)?;
        if storage.is_shared() {
            world.storage_on(id, &order.target)?;
            continue;
        }
        let to = order.storage_for(id);
        let found = world.storage_on(to, &order.target)?;
        if !found.holds("rootdir") {
            return Err(no(format!("{volid}: content type 'rootdir' is not available on storage '{to}'")));
        }
        let place = world.place(&volid, &order.node);
        let volume = place.as_ref().and_then(|place| world.volumes.get(place));
        let in_snapshot = guest.snapshots.values().any(|config| mount::is_mounted(config, &volid));
        if in_snapshot && storage.kind != "zfspool" && storage.kind != "btrfs" {
            return Err(no("can't migrate CT - check log"));
        }
        if volume.is_some_and(|v| v.parent.is_some()) {
            return Err(no("can't migrate CT - check log"));
        }
        moves.push((volid.clone(), to.to_owned()));
    }
    Ok(moves)
}

fn finish(
    world: &mut World,
    job: &Job,
    order: &MigrateRequest,
    moves: Vec<(String, String)>,
    was_running: bool,
) -> Result<Step, String> {
    let MigrateRequest { node, vmid, target, .. } = order;
    let mut renamed: BTreeMap<String, String> = BTreeMap::new();
    for (volid, to) in &moves {
        match carry(world, order, volid, to) {
            Ok(new) => drop(renamed.insert(volid.clone(), new)),
            Err(refusal) => {
                for (old, new) in renamed {
                    // What was moved goes back.
                    if let (Some(from), Some(to)) = (world.place(&new, target), world.place(&old, node))
                        && let Some(volume) = world.volumes.remove(&from)
                    {
                        world.volumes.insert(to, volume);
                    }
                }
                world.guest_mut(node, *vmid, GuestKind::Lxc)?.config.remove("lock");
                let text =
                    format!("storage migration for '{volid}' to storage '{to}' failed - {}", refusal.text());
                return Err(abort(world, job, &text));
            }
        }
    }
    let guest = world.guest_mut(node, *vmid, GuestKind::Lxc)?;
    guest.config.remove("lock");
    for config in guest.snapshots.values_mut().chain(std::iter::once(&mut guest.config)) {
        for (key, value) in config.iter_mut() {
            if !schema::is_mount(key) && !schema::is_unused(key) {
                continue;
            }
            let volid = value.split(',').next().unwrap_or_default().to_owned();
            if let Some(new) = renamed.get(&volid) {
                *value = value.replacen(&volid, new, 1);
            }
        }
    }
    guest.node.clone_from(target);
    job.log(world, "start final cleanup");
    if was_running && order.restart {
        job.log(world, "start container on target node");
        power::spawn_start(world, target, *vmid, &order.user);
    }
    job.log(world, "migration finished successfully (duration 00:00:02)");
    Ok(Step::Done)
}

fn carry(world: &mut World, order: &MigrateRequest, volid: &str, to: &str) -> Result<String, Refusal> {
    let place = world.place(volid, &order.node);
    let place = place.ok_or_else(|| no(format!("volume '{volid}' does not exist")))?;
    let volume = mount::existing(world, volid, &order.node)?;
    let storage = world.storage_on(to, &order.target)?.clone();
    let stem = place.2.rsplit('/').next().unwrap_or_default();
    let stem = stem.split('.').next().unwrap_or_default().to_owned();
    let wanted =
        (to.to_owned(), storage.scope(&order.target), storage.image_name(order.vmid, &stem, &volume.format));
    let file = if world.volumes.get(&wanted).is_some() {
        let prefix = if volume.format == "subvol" { "subvol" } else { "vm" };
        mount::free_name(world, &storage, &order.target, order.vmid, prefix)
    } else {
        stem
    };
    let new = world.allocate(to, &order.target, volume, &file)?;
    world.volumes.remove(&place);
    Ok(new)
}
