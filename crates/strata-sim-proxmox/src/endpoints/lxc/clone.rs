//! Cloning a container or a template.

use super::config::snapname;
use super::mount::{self, Mount, Source};
use super::schema;
use crate::api::format::parse_volume_id;
use crate::api::param::usual;
use crate::api::{Call, Check, Perm, Refusal, Reply, Route, flag, format, no, number, post, text};
use crate::endpoints::guest::{check_bridge, check_lock, check_unused};
use crate::task::{Job, LockKey, Step, work};
use crate::world::guest::Config;
use crate::world::storage::own_name;
use crate::world::{Guest, GuestKind, Volume, World};

pub fn routes() -> Vec<Route> {
    let perm = Perm::Check(Check::And(vec![
        Check::All("/vms/{vmid}", &["VM.Clone"]),
        Check::Or(vec![
            Check::All("/vms/{newid}", &["VM.Allocate"]),
            Check::If("pool", "/pool/{pool}", &["VM.Allocate"]),
        ]),
    ]));
    let params = vec![
        usual::node(),
        usual::vmid(),
        usual::vmid_as("newid"),
        text("hostname").format(format::dns_name).opt(),
        text("description").opt(),
        usual::pool().opt(),
        snapname("snapname").opt(),
        usual::storage().opt(),
        flag("full").opt(),
        text("target").format(format::node).opt(),
        number("bwlimit").min(0.0).opt(),
    ];
    vec![post("/nodes/{node}/lxc/{vmid}/clone", perm, params, clone)]
}

struct CloneRequest {
    node: String,
    vmid: u32,
    newid: u32,
    storage: Option<String>,
    target: Option<String>,
    pool: Option<String>,
    full: bool,
    mounts: Vec<Mount>,
}

fn clone(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    let newid = call.args.int("newid").and_then(|id| u32::try_from(id).ok()).unwrap_or_default();
    let pool = call.args.owned("pool");
    if let Some(pool) = &pool {
        call.check_pool(pool)?;
    }
    let target = call.args.owned("target").filter(|target| *target != node && target != "localhost");
    let storage = call.args.owned("storage");
    check_places(call.world, &node, target.as_deref(), storage.as_deref())?;
    call.lock(LockKey::Lxc(vmid))?;
    let source = call.world.guest(&node, vmid, GuestKind::Lxc)?.clone();
    check_lock(&source)?;
    check_unused(call.world, newid)?;
    let full = call.args.flag("full").unwrap_or(!source.flag("template"));
    let (config, mounts) = parts(call, &source, newid, full)?;
    if let Some(target) = &target
        && !mounts.iter().all(|m| on_shared(call.world, m, storage.as_deref()))
    {
        return Err(no(format!("can't clone CT to node '{target}' (CT uses local storage)")));
    }
    // The clone shows everything but its volumes from here on, and both are locked.
    let mut guest = Guest::new(newid, &node, GuestKind::Lxc, call.user(), call.world.now_ms());
    guest.config = config;
    guest.config.insert("lock".into(), "create".into());
    call.world.guests.insert(newid, guest);
    if let Ok(source) = call.world.guest_mut(&node, vmid, GuestKind::Lxc) {
        source.config.insert("lock".into(), "disk".into());
    }
    if let Some(rules) = call.world.firewall.get(&format!("guest/{vmid}")).cloned() {
        call.world.firewall.insert(format!("guest/{newid}"), rules);
    }
    let order = CloneRequest { node: node.clone(), vmid, newid, storage, target, pool, full, mounts };
    let work = work(move |world, job| Ok(begin(world, job, order)));
    Ok(call.spawn(&node, "vzclone", vmid.to_string(), work).into())
}

fn check_places(
    world: &World,
    node: &str,
    target: Option<&str>,
    storage: Option<&str>,
) -> Result<(), Refusal> {
    if let Some(target) = target.filter(|target| !world.nodes.contains_key(*target)) {
        return Err(no(format!("no such cluster node '{target}'")));
    }
    let Some(id) = storage else { return Ok(()) };
    let storage = world.storage_on(id, node)?;
    if let Some(target) = target {
        world.storage_on(id, target)?;
        if !storage.is_shared() {
            return Err(no(format!("can't clone to non-shared storage '{id}'")));
        }
    }
    Ok(())
}

fn on_shared(world: &World, m: &Mount, storage: Option<&str>) -> bool {
    let own = parse_volume_id(m.volume()).map(|(storage, _)| storage);
    storage.or(own).and_then(|id| world.storages.get(id)).is_some_and(|s| s.is_shared())
}

/// The options of the clone, and the mount points to copy.
fn parts(call: &Call<'_>, source: &Guest, newid: u32, full: bool) -> Result<(Config, Vec<Mount>), Refusal> {
    if call.args.has("storage") && !full {
        return Err(no("parameter 'storage' not allowed for linked clones"));
    }
    let snapshot = call.args.text("snapname");
    let from = match snapshot {
        None => &source.config,
        Some(name) => {
            let snapshot = source.snapshots.get(name);
            snapshot.ok_or_else(|| no(format!("snapshot '{name}' does not exist")))?
        }
    };
    let mut config = Config::new();
    let dropped = ["parent", "snaptime", "snapstate", "template", "lock"];
    for (key, value) in from.iter().filter(|(key, _)| !dropped.contains(&key.as_str())) {
        if schema::is_unused(key) || schema::is_mount(key) {
            continue;
        }
        if schema::is_net(key) {
            let mut net = schema::parse_net(value);
            net.set("hwaddr", call.world.mac(&[&newid.to_string(), key, call.user()]));
            check_bridge(call, &net)?;
            config.insert(key.clone(), schema::net().print(&net));
        } else {
            config.insert(key.clone(), value.clone());
        }
    }
    let mounts = mount::mounts(from);
    for m in &mounts {
        check_mount(call, source, m, full, snapshot.is_some())?;
    }
    if let Some(hostname) = call.args.filled("hostname") {
        config.insert("hostname".into(), hostname.to_owned());
    }
    if let Some(description) = call.args.filled("description") {
        config.insert("description".into(), schema::whole_lines(description));
    }
    Ok((config, mounts))
}

fn check_mount(
    call: &Call<'_>,
    source: &Guest,
    m: &Mount,
    full: bool,
    of_snapshot: bool,
) -> Result<(), Refusal> {
    if m.source() != Source::Volume {
        let kind = m.source().name();
        return Err(no(format!("unable to clone mountpoint '{}' (type {kind})", m.key)));
    }
    let (own, _) = parse_volume_id(m.volume())
        .ok_or_else(|| no(format!("unable to parse volume ID '{}'", m.volume())))?;
    let storage = call.args.text("storage").unwrap_or(own);
    call.world.storage(storage)?;
    call.check(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    if full && source.power.running && !of_snapshot {
        return Err(no("Full clone of a running container is only possible from a snapshot"));
    }
    if !full && !mount::can_link(call.world, m.volume()) {
        return Err(no(format!("Linked clone feature for '{}' is not available", m.volume())));
    }
    Ok(())
}

fn begin(world: &mut World, job: &Job, order: CloneRequest) -> Step {
    let CloneRequest { vmid, newid, .. } = order;
    job.log(world, format!("creating a clone of container {vmid} with ID {newid}"));
    let seconds: f64 = if order.full {
        order.mounts.iter().map(|m| mount::copy_seconds(world, m.volume(), &order.node)).sum()
    } else {
        0.5
    };
    let node = order.node.clone();
    Step::wait(seconds, move |world, job| {
        let made = copies(world, job, &order);
        unlock(world, &order.node, vmid);
        match made {
            Ok(mounts) => {
                finish(world, &order, mounts);
                Ok(Step::Done)
            }
            Err(text) => {
                world.forget_guest(newid);
                Err(format!("clone failed: {text}"))
            }
        }
    })
    .or_undo(move |world| {
        unlock(world, &node, vmid);
        world.forget_guest(newid);
    })
}

fn unlock(world: &mut World, node: &str, vmid: u32) {
    if let Ok(source) = world.guest_mut(node, vmid, GuestKind::Lxc) {
        source.config.remove("lock");
    }
}

fn copies(world: &mut World, job: &Job, order: &CloneRequest) -> Result<Vec<Mount>, String> {
    let mut made: Vec<Mount> = Vec::new();
    for m in &order.mounts {
        let verb = if order.full { "full" } else { "linked" };
        job.log(world, format!("create {verb} clone of mountpoint {} ({})", m.key, m.volume()));
        let mut log = Vec::new();
        let own = parse_volume_id(m.volume()).map_or("", |(storage, _)| storage);
        let storage = order.storage.as_deref().unwrap_or(own);
        let new = match order.full {
            true => mount::copy(world, &order.node, m, order.newid, storage, &mut log),
            false => link(world, &order.node, m, order.newid),
        };
        for line in log {
            job.log(world, line);
        }
        match new {
            Ok(new) => made.push(new),
            Err(refusal) => {
                for m in made {
                    world.free(m.volume(), &order.node);
                }
                return Err(refusal.text());
            }
        }
    }
    Ok(made)
}

fn link(world: &mut World, node: &str, m: &Mount, newid: u32) -> Result<Mount, Refusal> {
    let base = mount::existing(world, m.volume(), node)?;
    let (id, name) = parse_volume_id(m.volume()).unwrap_or_default();
    let storage = world.storage_on(id, node)?.clone();
    let prefix = if base.format == "subvol" { "subvol" } else { "vm" };
    let file = mount::free_name(world, &storage, node, newid, prefix);
    let size = base.size;
    let volume = Volume {
        vmid: Some(newid),
        parent: Some(own_name(name).to_owned()),
        snapshots: Vec::new(),
        ctime: world.now(),
        ..base
    };
    let volid = world.allocate(id, node, volume, &file)?;
    let mut new = m.clone();
    new.set_volume(&volid, size);
    Ok(new)
}

fn finish(world: &mut World, order: &CloneRequest, mounts: Vec<Mount>) {
    if let Some(guest) = world.guests.get_mut(&order.newid) {
        guest.config.remove("lock");
        guest.config.extend(mounts.iter().map(|m| (m.key.clone(), m.print())));
        if let Some(target) = &order.target {
            guest.node = target.clone();
        }
    }
    if let Some(pool) = &order.pool {
        world.join_pool(order.newid, pool);
    }
}
