//! Changing a VM's configuration, at once (PUT) or in a task (POST).

use std::collections::BTreeSet;

use super::create::options;
use super::disks::Maker;
use super::drive::{self, Drive};
use super::{boot, hotplug, net, permit, schema};
use crate::api::param::usual;
use crate::api::permission::on_any;
use crate::api::{Call, Param, Refusal, Reply, Route, flag, format, int, no, post, put, text, wrong};
use crate::endpoints::guest::{check_bridge, check_lock, check_protection, check_tags, unique_tags};
use crate::task::{LockKey, Step, work};
use crate::world::guest::{Config, Pending};
use crate::world::{GuestKind, World};

const OWN: &[&str] = &[
    "node",
    "vmid",
    "digest",
    "background_delay",
    "import-working-storage",
    "skiplock",
    "delete",
    "revert",
    "force",
];

const ANY_CONFIG: &[&str] = &[
    "VM.Config.Disk",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.HWType",
    "VM.Config.Options",
    "VM.Config.Cloudinit",
];

pub fn routes() -> Vec<Route> {
    let perm = || on_any("/vms/{vmid}", ANY_CONFIG);
    let later = [int("background_delay").min(1.0).max(30.0).opt()];
    let unlink =
        vec![usual::node(), usual::vmid(), text("idlist").each(format::configid), flag("force").opt()];
    let disk = crate::api::permission::on("/vms/{vmid}", &["VM.Config.Disk"]);
    vec![
        put("/nodes/{node}/qemu/{vmid}/config", perm(), params().collect(), update_now),
        post("/nodes/{node}/qemu/{vmid}/config", perm(), params().chain(later).collect(), update_later),
        put("/nodes/{node}/qemu/{vmid}/unlink", disk, unlink, unlink_disks),
    ]
}

fn params() -> impl Iterator<Item = Param> {
    let own = [
        usual::node(),
        usual::vmid(),
        flag("skiplock").opt(),
        usual::delete(),
        text("revert").each(format::configid).opt(),
        flag("force").needs("delete").opt(),
        text("digest").max_len(40).opt(),
        text("import-working-storage").format(format::storage_id).opt(),
    ];
    own.into_iter().chain(schema::params())
}

/// A change that passed every check that needs no lock.
#[derive(Debug, Clone)]
struct Change {
    node: String,
    vmid: u32,
    set: Config,
    drives: Vec<Drive>,
    delete: Vec<String>,
    revert: Vec<String>,
    force: bool,
    digest: Option<String>,
    skiplock: bool,
    /// For the task's log.
    text: String,
}

fn update_now(call: &mut Call<'_>) -> Reply {
    let change = prepare(call)?;
    check_state(call.world, &change)?;
    call.lock(LockKey::Qemu(change.vmid))?;
    apply(call.world, change, &mut Vec::new())?;
    Ok(().into())
}

fn update_later(call: &mut Call<'_>) -> Reply {
    let change = prepare(call)?;
    check_state(call.world, &change)?;
    let (node, vmid) = (change.node.clone(), change.vmid);
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |_, _| {
            Ok(Step::wait(0.5, move |world, job| {
                check_state(world, &change)?;
                job.log(world, format!("update VM {vmid}: {}", change.text));
                let mut log = Vec::new();
                let result = apply(world, change, &mut log);
                for line in log {
                    job.log(world, line);
                }
                result?;
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "qmconfig", vmid.to_string(), work).into())
}

fn unlink_disks(call: &mut Call<'_>) -> Reply {
    let list = call.args.take("idlist").unwrap_or_default();
    call.args.set("delete", list);
    update_now(call)
}

/// Checks everything that does not depend on the VM's current state.
fn prepare(call: &mut Call<'_>) -> Result<Change, Refusal> {
    let (node, vmid) = (call.node(), call.vmid());
    let words: BTreeSet<String> = call
        .args
        .0
        .iter()
        .filter(|(key, _)| !["node", "vmid", "digest", "background_delay"].contains(&key.as_str()))
        .map(|(key, arg)| {
            let value = if key == "cipassword" { "<hidden>" } else { arg.as_text().unwrap_or_default() };
            format!("-{key} {value}")
        })
        .collect();
    let skiplock = call.args.is_set("skiplock");
    if skiplock && !call.caller.is_root() {
        return Err(wrong("skiplock", "Only root may use this option."));
    }
    if let Some(keys) = call.args.text("sshkeys") {
        permit::check_ssh_keys(keys)?;
    }
    let mut set = options(call, OWN)?;
    let (delete, revert) = (call.args.list("delete"), call.args.list("revert"));
    if delete.is_empty() && revert.is_empty() && set.is_empty() {
        return Err(no("no options specified"));
    }
    let delete: Vec<String> =
        delete.into_iter().map(|key| if key == "cdrom" { "ide2".to_owned() } else { key }).collect();
    check_lists(&set, &delete, &revert)?;
    let drives = permit::parse_drives(call, &set)?;
    let user = call.user().to_owned();
    for (key, value) in &mut set {
        if key.starts_with("net") && schema::exists(key) {
            *value = net::with_mac(call.world, vmid, key, &user, value);
        } else if key == "vmgenid" && value == "1" {
            *value = call.world.uuid(&["vmgenid", &vmid.to_string(), &user]);
        }
    }
    permit::check_keys(call, vmid, None, delete.iter().map(String::as_str))?;
    permit::check_keys(call, vmid, None, set.keys().map(String::as_str))?;
    permit::check_storages(call, vmid, &drives, &set, None)?;
    permit::check_devices(call, vmid, None, &set)?;
    let change = Change {
        node,
        vmid,
        set,
        drives,
        delete,
        revert,
        force: call.args.is_set("force"),
        digest: call.args.owned("digest"),
        skiplock,
        text: words.into_iter().collect::<Vec<_>>().join(" "),
    };
    check_values(call, &change)?;
    Ok(change)
}

fn check_lists(set: &Config, delete: &[String], revert: &[String]) -> Result<(), Refusal> {
    for key in revert {
        if !schema::exists(key) {
            return Err(wrong("revert", format!("unknown option '{key}'")));
        }
        if set.contains_key(key) {
            return Err(wrong(
                "delete",
                format!("you can't use '-{key}' and -revert {key}' at the same time"),
            ));
        }
    }
    for key in delete {
        if set.contains_key(key) {
            return Err(wrong(
                "delete",
                format!("you can't use '-{key}' and -delete {key}' at the same time"),
            ));
        }
        if revert.contains(key) {
            let text = format!("you can't use '-delete {key}' and -revert {key}' at the same time");
            return Err(wrong("revert", text));
        }
        if !schema::exists(key) {
            return Err(wrong("delete", format!("unknown option '{key}'")));
        }
    }
    Ok(())
}

/// Permissions that depend on what is there now.
fn check_values(call: &Call<'_>, change: &Change) -> Result<(), Refusal> {
    let vmid = change.vmid;
    let Ok(guest) = call.world.guest(&change.node, vmid, GuestKind::Qemu) else { return Ok(()) };
    for drive in &change.drives {
        permit::check_drive(call, vmid, drive)?;
    }
    for key in change.delete.iter().chain(change.set.keys()) {
        let Some(old) = guest.get(key) else { continue };
        if let Some(drive) = Drive::parse(key, old).filter(|_| drive::is_slot(key)) {
            permit::check_drive(call, vmid, &drive)?;
        } else if drive::is_unused(key) {
            call.check_vm(vmid, None, &["VM.Config.Disk"])?;
        } else if key.starts_with("net") && schema::exists(key) {
            check_bridge(call, &net::parse(old))?;
        } else {
            permit::check_device(call, vmid, None, key, old)?;
        }
    }
    let old = guest.get("tags").unwrap_or_default();
    if let Some(tags) = change.set.get("tags") {
        check_tags(call, vmid, None, old, tags)?;
    }
    if change.delete.iter().any(|key| key == "tags") {
        check_tags(call, vmid, None, old, "")?;
    }
    Ok(())
}

/// Checks against the VM as it is: made before the lock is taken, and again under it.
fn check_state(world: &World, change: &Change) -> Result<(), Refusal> {
    let guest = world.guest(&change.node, change.vmid, GuestKind::Qemu)?;
    if change.digest.as_ref().is_some_and(|digest| *digest != guest.digest()) {
        return Err(no("checksum mismatch (file change by other user?)"));
    }
    if !change.skiplock {
        check_lock(guest)?;
    }
    let pending = |key: &str| match guest.pending.get(key) {
        Some(Pending::Set(value)) => Some(value.as_str()),
        _ => None,
    };
    if change.set.contains_key("memory") || change.set.contains_key("balloon") {
        let memory =
            change.set.get("memory").map(String::as_str).or(pending("memory")).or(guest.get("memory"));
        let balloon =
            change.set.get("balloon").map(String::as_str).or(pending("balloon")).or(guest.get("balloon"));
        let balloon: u64 = balloon.and_then(|b| b.parse().ok()).unwrap_or_default();
        if balloon > schema::parse_memory(memory) {
            return Err(no("balloon value too large (must be smaller than assigned memory)"));
        }
    }
    Ok(())
}

/// Writes the change to the pending values, then applies what can be applied.
fn apply(world: &mut World, mut change: Change, log: &mut Vec<String>) -> Result<(), Refusal> {
    let (node, vmid) = (change.node.clone(), change.vmid);
    let guest = world.guest_mut(&node, vmid, GuestKind::Qemu)?;
    for key in std::mem::take(&mut change.revert) {
        if let Some(value) = guest.get(&key) {
            change.set.insert(key.clone(), value.to_owned());
            if drive::is_slot(&key) {
                // Going back to what is there makes no disk.
                guest.pending.remove(&key);
                change.set.remove(&key);
            }
        } else if guest.pending.contains_key(&key) {
            change.delete.push(key);
        }
    }
    let mut modified: BTreeSet<String> = BTreeSet::new();
    delete_options(world, &change, &mut modified, log)?;
    set_options(world, &change, &mut modified, log)?;
    let guest = world.guest_mut(&node, vmid, GuestKind::Qemu)?;
    hotplug::forget_idle(guest);
    if guest.pending.is_empty() {
        return Ok(());
    }
    if guest.power.running {
        hotplug::apply_running(world, &node, vmid, &modified)
    } else {
        hotplug::apply_stopped(world, &node, vmid);
        Ok(())
    }
}

fn delete_options(
    world: &mut World,
    change: &Change,
    modified: &mut BTreeSet<String>,
    log: &mut Vec<String>,
) -> Result<(), Refusal> {
    let (node, vmid) = (change.node.as_str(), change.vmid);
    for key in &change.delete {
        let guest = world.guest_mut(node, vmid, GuestKind::Qemu)?;
        let pending = match guest.pending.get(key) {
            Some(Pending::Set(value)) => Some(value.clone()),
            _ => None,
        };
        let Some(value) = guest.get(key).map(str::to_owned).or_else(|| pending.clone()) else {
            log.push(format!("cannot delete '{key}' - not set in current configuration!"));
            continue;
        };
        modified.insert(key.clone());
        guest.pending.remove(key);
        let mut order = boot::order(guest.get("boot"));
        if order.contains(key) && !change.delete.iter().any(|k| k == "boot") {
            order.retain(|device| device != key);
            guest.pending.insert("boot".into(), Pending::Set(boot::print_order(order)));
            modified.insert("boot".into());
        }
        if drive::is_unused(key) {
            check_protection(guest, &format!("can't remove unused disk '{value}'"))?;
            remove_unused(world, node, vmid, key, &value)?;
        } else if key == "tags" {
            guest.config.remove(key);
        } else {
            if drive::is_slot(key) {
                check_protection(guest, &format!("can't remove drive '{key}'"))?;
                if let Some(drive) = pending.and_then(|p| Drive::parse(key, &p)) {
                    hotplug::keep_unused(guest, &drive);
                }
            }
            guest.pending.insert(key.clone(), Pending::Delete { force: change.force });
        }
    }
    Ok(())
}

/// Frees the volume of an `unusedN`, unless a snapshot still has it.
fn remove_unused(world: &mut World, node: &str, vmid: u32, key: &str, value: &str) -> Result<(), Refusal> {
    let guest = world.guest(node, vmid, GuestKind::Qemu)?;
    let volid = value.split(',').next().unwrap_or_default().to_owned();
    let in_use = |config: &Config| drive::drives(config).any(|d| d.file() == volid && !d.is_cdrom());
    if in_use(&guest.config) || guest.snapshots.values().any(in_use) {
        return Err(no(format!("unable to delete '{volid}' - volume is still in use (snapshot?)")));
    }
    if world.volume(&volid, node).is_some_and(|v| v.vmid == Some(vmid)) {
        world.free(&volid, node);
    }
    world.guest_mut(node, vmid, GuestKind::Qemu)?.config.remove(key);
    Ok(())
}

fn set_options(
    world: &mut World,
    change: &Change,
    modified: &mut BTreeSet<String>,
    log: &mut Vec<String>,
) -> Result<(), Refusal> {
    let (node, vmid) = (change.node.as_str(), change.vmid);
    for (key, value) in &change.set {
        modified.insert(key.clone());
        let tags = if key == "tags" { Some(unique_tags(world, value)) } else { None };
        let guest = world.guest(node, vmid, GuestKind::Qemu)?;
        if guest.pending.get(key) == Some(&Pending::Set(value.clone())) {
            continue;
        }
        let new = if let Some(drive) = change.drives.iter().find(|d| d.slot == *key) {
            make_drive(world, change, drive, modified, log)?
        } else if let Some(tags) = tags {
            tags
        } else if key == "boot" {
            explicit_boot(world, change, value, modified)?
        } else if key == "cipassword" {
            let hashed = hash_password(world, vmid, value, guest.get("ostype"));
            world.guest_mut(node, vmid, GuestKind::Qemu)?.config.insert(key.clone(), hashed);
            continue;
        } else if key == "ostype" && !change.set.contains_key("machine") {
            pin_machine(world, node, vmid, value)?;
            value.clone()
        } else {
            value.clone()
        };
        world.guest_mut(node, vmid, GuestKind::Qemu)?.pending.insert(key.clone(), Pending::Set(new));
    }
    Ok(())
}

fn make_drive(
    world: &mut World,
    change: &Change,
    drive: &Drive,
    modified: &mut BTreeSet<String>,
    log: &mut Vec<String>,
) -> Result<String, Refusal> {
    let (node, vmid, slot) = (change.node.as_str(), change.vmid, drive.slot.as_str());
    let guest = world.guest_mut(node, vmid, GuestKind::Qemu)?;
    if slot == "tpmstate0"
        && let Some(old) = guest.get(slot).and_then(|v| Drive::parse(slot, v))
        && old.file() == drive.file()
        && old.props.get("version").unwrap_or("v1.2") != drive.props.get("version").unwrap_or("v1.2")
    {
        return Err(no("cannot change TPM state version after creation"));
    }
    if let Some(Pending::Set(old)) = guest.pending.get(slot)
        && let Some(old) = Drive::parse(slot, old)
    {
        hotplug::keep_unused(guest, &old);
    }
    let config = guest.config.clone();
    let mut maker =
        Maker { world, node, vmid, config: &config, default: None, made: Vec::new(), log: Vec::new() };
    let made = maker.make_all(std::slice::from_ref(drive));
    log.append(&mut maker.log);
    let value = made?.remove(slot).unwrap_or_default();
    let guest = world.guest_mut(node, vmid, GuestKind::Qemu)?;
    let mut order = boot::order(guest.get("boot"));
    if !order.is_empty() && drive.is_plain_cdrom() && !order.iter().any(|device| device == slot) {
        // With an explicit order a new CD drive would otherwise not be bootable.
        order.push(slot.to_owned());
        guest.pending.insert("boot".into(), Pending::Set(boot::print_order(order)));
        modified.insert("boot".into());
    }
    Ok(value)
}

fn explicit_boot(
    world: &mut World,
    change: &Change,
    value: &str,
    modified: &mut BTreeSet<String>,
) -> Result<String, Refusal> {
    let order = boot::order(Some(value));
    if order.is_empty() {
        return Ok(value.to_owned());
    }
    let guest = world.guest_mut(&change.node, change.vmid, GuestKind::Qemu)?;
    for device in &order {
        let pending = matches!(guest.pending.get(device), Some(Pending::Set(_)));
        let there = guest.config.contains_key(device) || pending || change.set.contains_key(device);
        if !there || change.delete.contains(device) {
            return Err(no(format!("invalid bootorder: device '{device}' does not exist'")));
        }
    }
    if guest.config.contains_key("bootdisk") {
        guest.pending.insert("bootdisk".into(), Pending::Delete { force: false });
        modified.insert("bootdisk".into());
    }
    Ok(boot::print_order(order))
}

fn pin_machine(world: &mut World, node: &str, vmid: u32, ostype: &str) -> Result<(), Refusal> {
    let guest = world.guest_mut(node, vmid, GuestKind::Qemu)?;
    if guest.pending.contains_key("machine") {
        return Ok(());
    }
    let machine = guest.config.get("machine").cloned();
    if let Some(pinned) = boot::pinned_machine(machine.as_ref(), Some(&ostype.to_owned())) {
        guest.pending.insert("machine".into(), Pending::Set(pinned));
    }
    Ok(())
}

/// Passwords are kept hashed unless they are already, or Windows needs them plain.
fn hash_password(world: &World, vmid: u32, password: &str, ostype: Option<&str>) -> String {
    let hashed = ["$1$", "$5$", "$6$", "$2a$", "$2y$"].iter().any(|prefix| password.starts_with(prefix));
    if hashed || ostype.is_some_and(|os| os.starts_with('w')) {
        return password.to_owned();
    }
    let derive = |what: &str| hex::encode(world.derive(&["cipassword", what, &vmid.to_string(), password]));
    format!("$5${}${}", &derive("salt")[..8], &derive("hash")[..43])
}
