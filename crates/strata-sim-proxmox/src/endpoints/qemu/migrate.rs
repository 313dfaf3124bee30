//! Moving a VM to another node.

mod run;

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
use crate::task::{Cont, LockKey, Step, work};
use crate::world::guest::Config;
use crate::world::ha::Command;
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
    let mut answer = json!({
        "running": u8::from(guest.power.running), "allowed_nodes": allowed, "not_allowed_nodes": not_allowed,
        "local_disks": disks, "local_resources": local_resources(guest),
        "mapped-resources": [], "mapped-resource-info": {}, "has-dbus-vmstate": 1,
    });
    // Others that rules tie to it; rules are not acted on here.
    if world.is_ha_managed(guest.vmid) {
        answer["dependent-ha-resources"] = json!([]);
    }
    Ok(answer.into())
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
struct MigrateRequest {
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
    if call.world.is_ha_managed(vmid) {
        let user = call.user().to_owned();
        let command = Command::Migrate { target, online: true };
        return Ok(Value::String(call.world.request_ha(&node, "vm", vmid, &user, command)).into());
    }
    let order = MigrateRequest {
        node: node.clone(),
        vmid,
        target,
        online: online && guest.power.running,
        with_local_disks: call.args.is_set("with-local-disks"),
        force: call.args.is_set("force"),
        map,
    };
    let work = moving(order);
    Ok(call.spawn(&node, "qmigrate", vmid.to_string(), work).into())
}

fn moving(order: MigrateRequest) -> Cont {
    let vmid = order.vmid;
    work(move |_, _| Ok(Step::lock(LockKey::Qemu(vmid), move |world, job| run::begin(world, job, order))))
}

/// A move by the agent of high availability, with everything that is local. Gives the task.
pub fn spawn(world: &mut World, node: &str, vmid: u32, target: &str, online: bool) -> String {
    let order = MigrateRequest {
        node: node.to_owned(),
        vmid,
        target: target.to_owned(),
        online,
        with_local_disks: true,
        force: true,
        map: StorageMap::default(),
    };
    world.start_task(node, "qmigrate", &vmid.to_string(), "root@pam", moving(order))
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
