//! What must be true for a VM to start, and what starting does.

use super::drive::{self, Wanted};
use super::{hotplug, net, schema};
use crate::api::format::parse_volume_id;
use crate::api::{Refusal, no};
use crate::endpoints::guest::check_lock;
use crate::task::Job;
use crate::world::guest::{Config, Power};
use crate::world::{GuestKind, World};

/// What is checked as soon as the VM's lock is held.
pub fn check(world: &World, node: &str, vmid: u32, skiplock: bool) -> Result<(), Refusal> {
    let guest = world.guest(node, vmid, GuestKind::Qemu)?;
    if guest.flag("template") {
        return Err(no("you can't start a vm if it's a template"));
    }
    if !skiplock && guest.lock() != Some("suspended") {
        check_lock(guest)?;
    }
    if guest.power.running {
        return Err(no(format!("VM {vmid} already running")));
    }
    Ok(())
}

/// Applies pending changes and switches on, if everything the VM needs is there.
pub fn start(world: &mut World, job: &Job, node: &str, vmid: u32) -> Result<(), Refusal> {
    hotplug::apply_stopped(world, node, vmid);
    check_machine(world, node, vmid)?;
    check_devices(world, job, node, vmid)?;
    check_volumes(world, node, vmid)?;
    check_bridges(world, job, node, vmid)?;
    let (now, pid) = (world.now(), world.new_pid());
    let guest = world.guest_mut(node, vmid, GuestKind::Qemu)?;
    if guest.lock() == Some("suspended") {
        guest.config.remove("lock");
    }
    let machine = running_machine(&guest.config);
    guest.starts += 1;
    guest.power = Power { running: true, paused: false, since: now, machine, pid };
    let has_cloudinit = drive::drives(&guest.config).any(|d| d.is_cloudinit());
    if has_cloudinit {
        job.log(world, "generating cloud-init ISO");
    }
    Ok(())
}

/// The machine that a VM with this configuration is started with, as the monitor reports it.
pub fn running_machine(config: &Config) -> String {
    let machine = schema::parse_machine(config.get("machine").map_or("", String::as_str));
    let newest = super::cpu::MACHINES[0];
    match machine.get("type") {
        None | Some("pc") => format!("pc-i440fx-{newest}+pve0"),
        Some("q35") => format!("pc-q35-{newest}+pve0"),
        Some(exact) => exact.to_owned(),
    }
}

/// A machine of a version that this QEMU does not have.
fn check_machine(world: &World, node: &str, vmid: u32) -> Result<(), Refusal> {
    let guest = world.guest(node, vmid, GuestKind::Qemu)?;
    let machine = schema::parse_machine(guest.get("machine").unwrap_or_default());
    let kind = machine.get("type").unwrap_or_default();
    let wanted = kind.rsplit('-').next().unwrap_or_default().split('+').next().unwrap_or_default();
    let number = |text: &str| {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.split('.').next()?.parse::<u32>().ok()?))
    };
    let (Some(wanted), Some(newest)) = (number(wanted), number(super::cpu::MACHINES[0])) else {
        return Ok(());
    };
    if wanted <= newest {
        return Ok(());
    }
    Err(no(format!(
        "Installed QEMU version '{}' is too old to run machine type '{kind}', please upgrade node '{node}'",
        super::cpu::QEMU_VERSION
    )))
}

fn check_devices(world: &mut World, job: &Job, node: &str, vmid: u32) -> Result<(), Refusal> {
    let guest = world.guest(node, vmid, GuestKind::Qemu)?;
    let mut missing: Vec<String> = Vec::new();
    for (_, value) in guest.config.iter().filter(|(key, _)| key.starts_with("hostpci")) {
        let device = schema::parse_hostpci(value);
        if let Some(mapping) = device.get("mapping") {
            if world.cluster.section("mapping/pci", mapping).is_none() {
                return Err(no(format!("PCI device mapping not found for '{mapping}'")));
            }
            continue;
        }
        // No host of a simulated datacenter has devices to pass through.
        let hosts = device.get("host").unwrap_or_default();
        missing.extend(hosts.split(';').take(1).map(|host| format!("no PCI device found for '{host}'")));
    }
    let Some(first) = missing.first().cloned() else { return Ok(()) };
    for line in missing.iter().skip(1) {
        job.log(world, line.clone());
    }
    Err(no(first))
}

fn check_volumes(world: &World, node: &str, vmid: u32) -> Result<(), Refusal> {
    let guest = world.guest(node, vmid, GuestKind::Qemu)?;
    for drive in drive::drives(&guest.config) {
        let Some((storage, _)) = parse_volume_id(drive.file()) else { continue };
        if drive.wanted() != Wanted::Existing {
            continue;
        }
        world.storage_on(storage, node)?;
        if world.volume(drive.file(), node).is_none() {
            return Err(no(format!("volume '{}' does not exist", drive.file())));
        }
    }
    Ok(())
}

fn check_bridges(world: &mut World, job: &Job, node: &str, vmid: u32) -> Result<(), Refusal> {
    let guest = world.guest(node, vmid, GuestKind::Qemu)?;
    let missing = guest
        .config
        .iter()
        .filter(|(key, _)| key.starts_with("net") && schema::exists(key))
        .filter_map(|(key, value)| {
            net::parse(value).get("bridge").map(|bridge| (key.clone(), bridge.to_owned()))
        })
        .find(|(_, bridge)| !world.nodes.get(node).is_some_and(|n| n.has_bridge(bridge)));
    let Some((key, bridge)) = missing else { return Ok(()) };
    let slot = key.trim_start_matches("net");
    job.log(world, format!("bridge '{bridge}' does not exist"));
    job.log(
        world,
        format!(
            "kvm: -netdev type=tap,id={key},ifname=tap{vmid}i{slot},script=/usr/libexec/qemu-server/pve-bridge: \
             network script /usr/libexec/qemu-server/pve-bridge failed with status 512"
        ),
    );
    Err(no("start failed: QEMU exited with code 1"))
}
