//! Moving a VM to another node.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::drive::{self, Drive};
use super::schema;
use crate::api::args::split_list;
use crate::api::format::parse_volume_id;
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Refusal, Reply, Route, flag, format, get, int, no, post, text, wrong};
use crate::endpoints::guest::{check_lock, parse_name};
use crate::task::{Job, LockKey, Step, work};
use crate::world::guest::Config;
use crate::world::{Guest, GuestKind, World};

pub fn routes() -> Vec<Route> {
    let perm = || on("/vms/{vmid}", &["VM.Migrate"]);
    let target = || text("target").format(format::node);
    let params = vec![
        usual::node(),
        usual::vmid(),
        target(),
        flag("online").opt(),
        flag("force").opt(),
        text("migration_type").one_of(&["secure", "insecure"]).opt(),
        text("migration_network").format(format::cidr).opt(),
        flag("with-local-disks").opt(),
        text("targetstorage").opt(),
        int("bwlimit").min(0.0).opt(),
        flag("with-conntrack-state").opt(),
    ];
    vec![
        get(
            "/nodes/{node}/qemu/{vmid}/migrate",
            perm(),
            vec![usual::node(), usual::vmid(), target().opt()],
            preview,
        ),
        post("/nodes/{node}/qemu/{vmid}/migrate", perm(), params, migrate),
    ]
}

/// Volumes of a configuration with the slot they are in: attached, unused, and those of snapshots.
fn volumes(guest: &Guest) -> Vec<(Drive, bool)> {
    let from = |config: &Config| -> Vec<(Drive, bool)> {
        config
            .iter()
            .filter(|(key, _)| drive::is_slot(key) || drive::is_unused(key))
            .filter_map(|(key, value)| Drive::parse(key, value).map(|d| (d, drive::is_unused(key))))
            .filter(|(d, _)| d.volid().is_some())
            .collect()
    };
    let mut all = from(&guest.config);
    for (drive, unused) in guest.snapshots.values().flat_map(from) {
        if !all.iter().any(|(d, _)| d.file() == drive.file()) {
            all.push((drive, unused));
        }
    }
    all
}

/// Devices that only this host has.
fn local_resources(guest: &Guest) -> Vec<String> {
    let local = |key: &str, value: &str| {
        (key.starts_with("usb")
            && schema::parse_usb(value).get("host").is_some_and(|h| !h.eq_ignore_ascii_case("spice")))
            || (key.starts_with("hostpci") && schema::parse_hostpci(value).get("host").is_some())
            || (key.starts_with("serial") && value != "socket")
            || (key == "ivshmem")
            || key.starts_with("parallel")
    };
    guest.config.iter().filter(|(k, v)| local(k, v)).map(|(k, _)| k.clone()).collect()
}

fn preview(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let guest = call.world.guest(&node, call.vmid(), GuestKind::Qemu)?;
    check_lock(guest)?;
    let world = &*call.world;
    let mut disks: Vec<Value> = Vec::new();
    let mut storages: BTreeMap<&str, ()> = BTreeMap::new();
    for (drive, unused) in volumes(guest) {
        let Some((id, _)) = parse_volume_id(drive.file()) else { continue };
        let Some(storage) = world.storages.get(id) else { continue };
        if storage.is_shared() {
            continue;
        }
        storages.insert(&storage.id, ());
        let attached = guest.config.contains_key(&drive.slot) && !unused;
        let number = |b: bool| json!(u8::from(b));
        disks.push(json!({
            "volid": drive.file(), "drivename": drive.slot, "size": drive.size().unwrap_or(0),
            "cdrom": number(drive.is_cdrom()), "shared": number(drive.props.is_set("shared")),
            "replicate": number(drive.props.get("replicate") != Some("0")),
            "is_attached": number(attached), "is_unused": number(unused), "is_vmstate": 0,
            "is_cloudinit": number(drive.is_cloudinit()), "is_tpmstate": number(drive.slot == "tpmstate0"),
        }));
    }
    let mut allowed: Vec<&str> = Vec::new();
    let mut not_allowed = serde_json::Map::new();
    for other in world.nodes.keys().filter(|name| **name != node) {
        let missing: Vec<&str> =
            storages.keys().copied().filter(|id| world.storage_on(id, other).is_err()).collect();
        if missing.is_empty() {
            allowed.push(other);
        } else {
            not_allowed.insert(other.clone(), json!({ "unavailable_storages": missing }));
        }
    }
    Ok(json!({
        "running": u8::from(guest.power.running), "allowed_nodes": allowed, "not_allowed_nodes": not_allowed,
        "local_disks": disks, "local_resources": local_resources(guest),
        "mapped-resources": [], "mapped-resource-info": {}, "has-dbus-vmstate": 1,
    })
    .into())
}

/// Where volumes of each storage go.
#[derive(Debug, Clone, Default)]
struct StorageMap {
    default: Option<String>,
    entries: BTreeMap<String, String>,
    /// `1`: each to a storage of the same name.
    identity: bool,
}

impl StorageMap {
    fn parse(text: &str) -> Result<Self, String> {
        let mut map = Self::default();
        for entry in split_list(text) {
            if entry == "1" {
                map.identity = true;
            } else if let Some((from, to)) = entry.split_once(':') {
                map.entries.insert(from.to_owned(), to.to_owned());
            } else if map.default.replace(entry.to_owned()).is_some() {
                return Err("default target ID can only be provided once\n".to_owned());
            }
        }
        Ok(map)
    }

    fn to<'m>(&'m self, storage: &'m str) -> &'m str {
        self.entries.get(storage).or(self.default.as_ref()).map_or(storage, String::as_str)
    }
}

#[derive(Clone)]
struct Order {
    node: String,
    vmid: u32,
    target: String,
    online: bool,
    with_local_disks: bool,
    force: bool,
    map: StorageMap,
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
    for name in ["force", "migration_type", "migration_network"] {
        if call.args.text(name).is_some_and(|v| v != "0") && !call.caller.is_root() {
            return Err(wrong(name, "Only root may use this option."));
        }
    }
    let guest = call.world.guest(&node, vmid, GuestKind::Qemu)?;
    check_lock(guest)?;
    let online = call.args.is_set("online");
    if guest.power.running && !online {
        return Err(no("can't migrate running VM without --online"));
    }
    let mut map = StorageMap::default();
    let given = call.args.owned("targetstorage");
    if let Some(text) = &given {
        map = StorageMap::parse(text)
            .map_err(|e| wrong("targetstorage", format!("failed to parse storage map: {e}")))?;
        if !map.identity {
            call.check_vm(vmid, None, &["VM.Config.Disk"])?;
        }
        for storage in map.entries.values().chain(&map.default) {
            let found = call.world.storage_on(storage, &target)?;
            if !found.holds("images") {
                return Err(no(format!("storage '{storage}' does not support vm images")));
            }
            call.check(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
        }
    }
    if given.is_none() || map.identity {
        check_available(call.world, guest, &node, &target)?;
    }
    let order = Order {
        node: node.clone(),
        vmid,
        target,
        online: online && guest.power.running,
        with_local_disks: call.args.is_set("with-local-disks"),
        force: call.args.is_set("force"),
        map,
    };
    let work =
        work(move |_, _| Ok(Step::lock(LockKey::Qemu(vmid), move |world, job| begin(world, job, order))));
    Ok(call.spawn(&node, "qmigrate", vmid.to_string(), work).into())
}

/// Every storage of the VM must also be on the target.
fn check_available(world: &World, guest: &Guest, node: &str, target: &str) -> Result<(), Refusal> {
    for drive in drive::drives(&guest.config) {
        let Some((id, name)) = parse_volume_id(drive.file()) else { continue };
        let storage = world.storage_on(id, node)?;
        world.storage_on(id, target)?;
        let content = parse_name(world, id, name)?.content;
        if !storage.holds(content) {
            return Err(no(format!(
                "{}: content type '{content}' is not available on storage '{id}'",
                drive.file()
            )));
        }
    }
    Ok(())
}

const ABORTED: &str = "migration aborted";

fn begin(world: &mut World, job: &Job, order: Order) -> Result<Step, String> {
    let Order { node, vmid, target, .. } = order.clone();
    let prepared = prepare(world, &order);
    let moves = match prepared {
        Ok(moves) => moves,
        Err(lines) => {
            let last = lines.last().cloned().unwrap_or_default();
            for line in lines {
                job.log(world, line);
            }
            job.log(world, format!("ERROR: migration aborted (duration 00:00:00): {last}"));
            return Err(ABORTED.to_owned());
        }
    };
    job.log(
        world,
        format!("starting migration of VM {vmid} to node '{target}' ({})", world.nodes[&target].ip.clone()),
    );
    world.guest_mut(&node, vmid, GuestKind::Qemu)?.config.insert("lock".into(), "migrate".into());
    let size: u64 = moves.iter().filter_map(|m| world.volume(&m.0, &node)).map(|v| v.size).sum();
    let seconds = 2.0 + (size as f64 / (1_u64 << 30) as f64 * 0.25).min(20.0);
    let back = node.clone();
    Ok(Step::wait(seconds, move |world, job| finish(world, job, &order, moves)).or_undo(move |world| {
        if let Ok(guest) = world.guest_mut(&back, vmid, GuestKind::Qemu) {
            guest.config.remove("lock");
        }
    }))
}

/// Local volumes with the storage they go to, or everything that speaks against it.
fn prepare(world: &World, order: &Order) -> Result<Vec<(String, String)>, Vec<String>> {
    let guest = world.guest(&order.node, order.vmid, GuestKind::Qemu).map_err(|e| vec![e.text()])?;
    check_lock(guest).map_err(|e| vec![e.text()])?;
    let resources = local_resources(guest);
    if !resources.is_empty() && (guest.power.running || !order.force) {
        return Err(vec![format!("can't migrate VM which uses local devices: {}", resources.join(", "))]);
    }
    let mut moves = Vec::new();
    let mut lines = Vec::new();
    let mut problems = Vec::new();
    for (drive, unused) in volumes(guest) {
        let volid = drive.file().to_owned();
        let Some((id, name)) = parse_volume_id(&volid) else { continue };
        let Some(storage) = world.storages.get(id) else { continue };
        let to = if storage.is_shared() { id } else { order.map.to(id) };
        if let Err(refusal) = world.storage_on(to, &order.target) {
            problems.push(format!("can't migrate local disk '{volid}': {}", refusal.text()));
            continue;
        }
        if storage.is_shared() {
            continue;
        }
        let mut problem = |text: &str| problems.push(format!("can't migrate local disk '{volid}': {text}"));
        let named = parse_name(world, id, name).map_err(|e| vec![e.text()])?;
        if drive.is_plain_cdrom() {
            problem("local cdrom image");
        } else if named.vmid != Some(order.vmid) {
            problem(&format!("owned by other VM (owner = VM {})", named.vmid.unwrap_or_default()));
        } else if order.online && !unused && !drive.is_cloudinit() && !order.with_local_disks {
            problem("can't live migrate attached local disks without with-local-disks option");
        } else if world.place(&volid, &order.node).is_some_and(|p| world.clones_of(&p).next().is_some()) {
            problem("referenced by linked clone(s)");
        } else if let Some(parent) = world.volume(&volid, &order.node).and_then(|v| v.parent.clone()) {
            let base = parent.rsplit('/').next().unwrap_or_default();
            return Err(vec![format!(
                "Problem found while scanning volumes - can't migrate '{volid}' as it's a clone of '{base}'"
            )]);
        }
        lines.push(format!("found local disk '{volid}' ({})", if unused { "unused" } else { "attached" }));
        moves.push((volid.clone(), to.to_owned()));
    }
    if problems.is_empty() {
        return Ok(moves);
    }
    lines.extend(problems);
    lines.push("Problem found while scanning volumes - can't migrate VM - check log".to_owned());
    Err(lines)
}

fn finish(world: &mut World, job: &Job, order: &Order, moves: Vec<(String, String)>) -> Result<Step, String> {
    let Order { node, vmid, target, .. } = order;
    let mut renamed: BTreeMap<String, String> = BTreeMap::new();
    for (volid, to) in &moves {
        match move_volume(world, volid, to, order) {
            Ok(new) => {
                renamed.insert(volid.clone(), new);
            }
            Err(refusal) => {
                for (old, new) in renamed {
                    // What was moved goes back.
                    if let (Some(from), Some(to)) = (world.place(&new, target), world.place(&old, node))
                        && let Some(volume) = world.volumes.remove(&from)
                    {
                        world.volumes.insert(to, volume);
                    }
                }
                world.guest_mut(node, *vmid, GuestKind::Qemu)?.config.remove("lock");
                job.log(world, format!("ERROR: {}", refusal.text()));
                return Err(ABORTED.to_owned());
            }
        }
    }
    let bridges_missing = order.online && !bridges_there(world, node, *vmid, target);
    if bridges_missing {
        job.log(world, "ERROR: online migrate failure - remote command failed with exit code 255");
        world.guest_mut(node, *vmid, GuestKind::Qemu)?.config.remove("lock");
        return Err(ABORTED.to_owned());
    }
    let guest = world.guest_mut(node, *vmid, GuestKind::Qemu)?;
    guest.config.remove("lock");
    for config in guest.snapshots.values_mut().chain(std::iter::once(&mut guest.config)) {
        for (key, value) in config.iter_mut().filter(|(k, _)| drive::is_slot(k) || drive::is_unused(k)) {
            let file = Drive::parse(key, value).map(|d| d.file().to_owned()).unwrap_or_default();
            if let Some(new) = renamed.get(&file) {
                *value = value.replacen(&file, new, 1);
            }
        }
    }
    guest.node = target.clone();
    job.log(world, "migration finished successfully (duration 00:00:02)");
    Ok(Step::Done)
}

fn bridges_there(world: &World, node: &str, vmid: u32, target: &str) -> bool {
    let Ok(guest) = world.guest(node, vmid, GuestKind::Qemu) else { return false };
    guest
        .config
        .iter()
        .filter(|(key, _)| key.starts_with("net") && schema::exists(key))
        .filter_map(|(_, value)| super::net::parse(value).get("bridge").map(str::to_owned))
        .all(|bridge| world.nodes.get(target).is_some_and(|n| n.has_bridge(&bridge)))
}

fn move_volume(world: &mut World, volid: &str, to: &str, order: &Order) -> Result<String, Refusal> {
    let place =
        world.place(volid, &order.node).ok_or_else(|| no(format!("volume '{volid}' does not exist")))?;
    let Some(mut volume) = world.volumes.get(&place).cloned() else {
        return Err(no(format!("volume '{volid}' does not exist")));
    };
    let storage = world.storage_on(to, &order.target)?.clone();
    if !storage.takes_format(&volume.format) {
        volume.format = storage.default_format().to_owned();
    }
    let stem = place.2.rsplit('/').next().unwrap_or_default();
    let stem = stem.split('.').next().unwrap_or_default().to_owned();
    let wanted =
        (to.to_owned(), storage.scope(&order.target), storage.image_name(order.vmid, &stem, &volume.format));
    let file = if world.volumes.get(&wanted).is_some() {
        world.free_disk_name(&storage, &order.target, order.vmid)
    } else {
        stem
    };
    let new = world.allocate(to, &order.target, volume, &file)?;
    world.volumes.remove(&place);
    Ok(new)
}
