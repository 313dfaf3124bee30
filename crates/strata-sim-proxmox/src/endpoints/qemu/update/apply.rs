//! Carries out a change that passed its checks: first into the pending values, then as far as it can be applied.

use std::collections::BTreeSet;

use super::super::disks::Maker;
use super::super::drive::{self, Drive};
use super::super::{boot, hotplug};
use super::Change;
use crate::api::{Refusal, no};
use crate::endpoints::guest::{check_protection, unique_tags};
use crate::world::guest::{Config, Pending};
use crate::world::{GuestKind, World};

/// Writes the change to the pending values, then applies what can be applied.
pub fn apply(world: &mut World, mut change: Change, log: &mut Vec<String>) -> Result<(), Refusal> {
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
        if drive::is_slot(key) {
            check_protection(guest, &format!("can't remove drive '{key}'"))?;
        }
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
            if drive::is_slot(key)
                && let Some(drive) = pending.and_then(|p| Drive::parse(key, &p))
            {
                hotplug::keep_unused(guest, &drive);
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
