//! Cloning a VM or a template.

use strata_sim_core::TaskFault;

use super::copy::{self, Target};
use super::create::tidy;
use super::drive::{self, Drive};
use super::{config::snapname, net, permit, schema};
use crate::api::format::parse_volume_id;
use crate::api::param::usual;
use crate::api::{Call, Check, Perm, Refusal, Reply, Route, flag, format, int, no, post, text, wrong};
use crate::endpoints::guest::{check_bridge, check_lock};
use crate::task::{Job, LockKey, Step, work};
use crate::world::guest::Config;
use crate::world::{Guest, GuestKind, World};

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
        text("name").format(format::dns_name).opt(),
        text("description").opt(),
        usual::pool().opt(),
        snapname("snapname").opt(),
        usual::storage().opt(),
        text("format").one_of(&["raw", "qcow2", "vmdk"]).opt(),
        flag("full").opt(),
        text("target").format(format::node).opt(),
        int("bwlimit").min(0.0).opt(),
    ];
    vec![post("/nodes/{node}/qemu/{vmid}/clone", perm, params, clone)]
}

/// What was asked for.
#[derive(Debug, Clone)]
struct CloneRequest {
    node: String,
    vmid: u32,
    newid: u32,
    name: Option<String>,
    description: Option<String>,
    pool: Option<String>,
    snapshot: Option<String>,
    storage: Option<String>,
    format: Option<String>,
    full: Option<bool>,
    target: Option<String>,
    user: String,
}

/// What a clone consists of: options to copy, and drives with whether they are copied in full.
struct Parts {
    config: Config,
    drives: Vec<(Drive, bool)>,
    source: Config,
}

fn clone(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let order = CloneRequest {
        node: node.clone(),
        vmid: call.vmid(),
        newid: call.args.int("newid").and_then(|id| u32::try_from(id).ok()).unwrap_or_default(),
        name: call.args.owned("name"),
        description: call.args.owned("description"),
        pool: call.args.owned("pool"),
        snapshot: call.args.owned("snapname"),
        storage: call.args.owned("storage"),
        format: call.args.owned("format"),
        full: call.args.flag("full"),
        target: call.args.owned("target").filter(|target| *target != node && target != "localhost"),
        user: call.user().to_owned(),
    };
    if let Some(pool) = &order.pool {
        call.check_pool(pool)?;
    }
    if let Some(target) = &order.target
        && !call.world.nodes.contains_key(target)
    {
        return Err(no(format!("no such cluster node '{target}'")));
    }
    check_storage(call.world, &order)?;
    let parts = parts(call.world, &order)?;
    check_access(call, &order, &parts)?;
    let (vmid, newid) = (order.vmid, order.newid);
    if call.effects.task.is_some_and(TaskFault::is_death) && !call.world.guests.contains_key(&newid) {
        // The VMID is claimed before the task begins, and stays so.
        let on = order.target.as_ref().unwrap_or(&node);
        let mut claimed = Guest::new(newid, on, GuestKind::Qemu, call.user(), call.world.now_ms());
        claimed.config.insert("lock".to_owned(), "clone".to_owned());
        call.world.guests.insert(newid, claimed);
    }
    let work =
        work(move |_, _| Ok(Step::lock(LockKey::Qemu(newid), move |world, job| begin(world, job, order))));
    Ok(call.spawn(&node, "qmclone", vmid.to_string(), work).into())
}

fn check_storage(world: &World, order: &CloneRequest) -> Result<(), Refusal> {
    let Some(id) = &order.storage else { return Ok(()) };
    let storage = world.storage_on(id, &order.node)?;
    if !storage.holds("images") {
        return Err(wrong("storage", format!("storage '{id}' does not support vm images")));
    }
    if let Some(target) = &order.target {
        world.storage_on(id, target)?;
        if !storage.is_shared() {
            return Err(no(format!("can't clone to non-shared storage '{id}'")));
        }
    }
    Ok(())
}

/// Takes the source apart, with the checks that are made before the task and again in it.
fn parts(world: &World, order: &CloneRequest) -> Result<Parts, Refusal> {
    let guest = super::power::find(world, &order.node, order.vmid)?;
    check_lock(guest)?;
    let source = match &order.snapshot {
        None => guest.config.clone(),
        Some(name) => {
            let snapshot = guest.snapshots.get(name);
            snapshot.ok_or_else(|| no(format!("snapshot '{name}' does not exist")))?.clone()
        }
    };
    let full = order.full.unwrap_or(!guest.flag("template"));
    for (param, given) in [("storage", &order.storage), ("format", &order.format)] {
        if given.is_some() && !full {
            return Err(no(format!("parameter '{param}' not allowed for linked clones")));
        }
    }
    if let Some(target) = &order.target
        && !is_shared(world, &source)
    {
        return Err(no(format!("can't clone VM to node '{target}' (VM uses local storage)")));
    }
    // A container of that number is noticed when the file is put in place.
    if world.guests.get(&order.newid).is_some_and(|guest| guest.kind == GuestKind::Qemu) {
        return Err(no(format!("unable to create VM {}: config file already exists", order.newid)));
    }
    let mut config = Config::new();
    let mut drives = Vec::new();
    for (key, value) in &source {
        let skipped =
            ["parent", "snaptime", "vmstate", "snapstate", "runningcpu", "runningmachine", "template"];
        if skipped.contains(&key.as_str()) || drive::is_unused(key) {
            continue;
        }
        let Some(drive) = Drive::parse(key, value).filter(|_| drive::is_slot(key)) else {
            config.insert(key.clone(), value.clone());
            continue;
        };
        if drive.is_plain_cdrom() {
            config.insert(key.clone(), value.clone());
            continue;
        }
        if full && guest.power.running && order.snapshot.is_none() && key == "tpmstate0" {
            return Err(no("cannot clone TPM state while VM is running"));
        }
        let in_full = full || drive.is_cloudinit() || key == "tpmstate0";
        if !in_full && !copy::can_link(world, drive.file()) {
            let what = if order.snapshot.is_some() { " a snapshot of" } else { "" };
            return Err(no(format!(
                "Linked clone feature is not supported for{what} '{}' ({key})",
                drive.file()
            )));
        }
        drives.push((drive, in_full));
    }
    Ok(Parts { config, drives, source })
}

/// Whether every volume is on a shared storage.
fn is_shared(world: &World, config: &Config) -> bool {
    drive::drives(config).filter_map(|d| d.volid().map(str::to_owned)).all(|volid| {
        let storage = parse_volume_id(&volid).and_then(|(storage, _)| world.storages.get(storage));
        storage.is_some_and(|s| s.is_shared())
    })
}

fn check_access(call: &Call<'_>, order: &CloneRequest, parts: &Parts) -> Result<(), Refusal> {
    for drive in drive::drives(&parts.source).filter(|d| !d.is_cdrom()) {
        let own = parse_volume_id(drive.file()).map(|(storage, _)| storage.to_owned());
        if let Some(storage) = order.storage.clone().or(own) {
            call.check(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
        }
    }
    for (key, value) in &parts.source {
        let device = ["usb", "hostpci", "rng", "virtiofs"].iter().any(|p| key.starts_with(p));
        if device {
            permit::check_device(call, order.vmid, None, key, value)?;
        } else if key.starts_with("net") && schema::exists(key) {
            check_bridge(call, &net::parse(value))?;
        }
    }
    Ok(())
}

/// The target exists from here on, but shows nothing but its lock.
fn begin(world: &mut World, job: &Job, order: CloneRequest) -> Result<Step, String> {
    let parts = parts(world, &order)?;
    let newid = order.newid;
    if world.guests.contains_key(&newid) {
        let file = format!("/etc/pve/nodes/{}/qemu-server/{newid}.conf", order.node);
        return Err(format!("close (rename) atomic file '{file}' failed: File exists"));
    }
    job.log(world, format!("creating a clone of VM {} with ID {newid}", order.vmid));
    let mut guest = Guest::new(newid, &order.node, GuestKind::Qemu, &order.user, world.now_ms());
    guest.config.insert("description".into(), " qmclone temporary file".into());
    guest.config.insert("lock".into(), "clone".into());
    world.guests.insert(newid, guest);
    if let Some(rules) = world.firewall.get(&format!("guest/{}", order.vmid)).cloned() {
        world.firewall.insert(format!("guest/{newid}"), rules);
    }
    let seconds: f64 = 0.5
        + parts
            .drives
            .iter()
            .map(|(drive, full)| if *full { copy::copy_seconds(world, drive, &order.node) } else { 0.2 })
            .sum::<f64>();
    Ok(Step::wait(seconds, move |world, job| {
        finish(world, job, &order, parts).inspect_err(|_| world.forget_guest(newid))
    })
    .or_undo(move |world| world.forget_guest(newid)))
}

fn finish(world: &mut World, job: &Job, order: &CloneRequest, parts: Parts) -> Result<Step, String> {
    let Parts { mut config, drives, source } = parts;
    let newid = order.newid.to_string();
    let target = Target {
        node: &order.node,
        vmid: order.newid,
        storage: order.storage.as_deref(),
        format: order.format.as_deref(),
    };
    let mut made: Vec<String> = Vec::new();
    let mut log = Vec::new();
    for (drive, full) in &drives {
        let new = match full {
            true => copy::copy(world, drive, &target, &mut log),
            false => copy::link(world, drive, &target, &mut log),
        };
        for line in log.drain(..) {
            job.log(world, line);
        }
        match new {
            Ok(new) => {
                made.push(new.file().to_owned());
                config.insert(new.slot.clone(), new.print());
            }
            Err(refusal) => {
                for volid in made {
                    world.free(&volid, &order.node);
                }
                return Err(format!("clone failed: {}", refusal.text()));
            }
        }
    }
    for (key, value) in &mut config {
        if key.starts_with("net") && schema::exists(key) {
            let mut card = net::parse(value);
            card.set("macaddr", world.mac(&[&newid, key, &order.user]));
            *value = net::print(&card);
        }
    }
    let uuid = world.uuid(&["smbios1", &newid, &order.user]);
    let smbios1 = config.get("smbios1").cloned().unwrap_or_default();
    config.insert("smbios1".into(), schema::with_uuid(&smbios1, &uuid));
    if config.contains_key("vmgenid") {
        config.insert("vmgenid".into(), world.uuid(&["vmgenid", &newid, &order.user]));
    }
    let name = order.name.clone().unwrap_or_else(|| {
        format!("Copy-of-VM-{}", source.get("name").cloned().unwrap_or_else(|| order.vmid.to_string()))
    });
    config.insert("name".into(), name);
    if let Some(description) = order.description.clone().filter(|d| !d.is_empty()) {
        config.insert("description".into(), description);
    }
    tidy(&mut config);
    let Some(guest) = world.guests.get_mut(&order.newid) else { return Err("clone failed: gone".into()) };
    guest.config = config;
    if let Some(node) = &order.target {
        guest.node = node.clone();
    }
    if let Some(pool) = &order.pool {
        world.join_pool(order.newid, pool);
    }
    Ok(Step::Done)
}
