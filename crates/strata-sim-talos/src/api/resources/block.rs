//! The disks of a machine, and what Talos keeps on the one that it is installed on.

use serde_json::json;

use super::kinds::{DISCOVERED, DISK, SYSTEM_DISK, VOLUME};
use super::{resource, shown};
use crate::hypervisor::{Drive, vmid};
use crate::wire::cosi::{Resource, VolumeSpec};
use crate::world::World;

const USUAL: u64 = 32 << 30;

/// A disk as the machine sees it.
struct Device {
    name: String,
    size: u64,
    cdrom: bool,
    /// Talos is installed on it.
    system: bool,
}

/// Sizes as Talos writes them: in powers of a thousand.
fn pretty(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut size = bytes as f64;
    let mut unit = 0;
    while size >= 1000.0 && unit + 1 < units.len() {
        size /= 1000.0;
        unit += 1;
    }
    if size < 10.0 && unit > 0 {
        format!("{size:.1} {}", units[unit])
    } else {
        format!("{size:.0} {}", units[unit])
    }
}

/// The disks of a machine, the one that it boots from first.
fn devices(world: &World, key: &str) -> Vec<Device> {
    let installed = world.talos_disk(key).is_some();
    let Some(vmid) = vmid(key) else {
        return vec![Device { name: "nvme0n1".to_owned(), size: 512 << 30, cdrom: false, system: installed }];
    };
    let first = world.hypervisor.boot_drives(vmid).into_iter().find(|drive| !drive.cdrom);
    let drives = world.hypervisor.drives(vmid);
    let mut disks: Vec<Device> = Vec::new();
    let mut letters = 'a'..='z';
    let mut name = || letters.next().map(|letter| format!("sd{letter}")).unwrap_or_default();
    if let Some(first) = &first {
        let size = first.size().unwrap_or(USUAL);
        disks.push(Device { name: name(), size, cdrom: false, system: installed });
    }
    let boots = |drive: &Drive<'_>| first.as_ref().is_some_and(|first| first.slot == drive.slot);
    for drive in drives.iter().filter(|drive| drive.is_disk() && !boots(drive)) {
        if let Some(size) = drive.size() {
            disks.push(Device { name: name(), size, cdrom: false, system: false });
        }
    }
    let inserted = drives.iter().filter(|drive| drive.cdrom).filter_map(Drive::size);
    for (number, size) in inserted.enumerate() {
        disks.push(Device { name: format!("sr{number}"), size, cdrom: true, system: false });
    }
    disks
}

/// The parts of the disk that Talos is installed on: name, label, file system and size.
fn parts(device: &Device) -> Vec<(String, &'static str, &'static str, u64)> {
    let fixed: [(&str, &str, u64); 5] = [
        ("EFI", "vfat", 105 << 20),
        ("BIOS", "", 1 << 20),
        ("BOOT", "xfs", 1000 << 20),
        ("META", "talosmeta", 1 << 20),
        ("STATE", "xfs", 100 << 20),
    ];
    let used: u64 = fixed.iter().map(|(_, _, size)| size).sum();
    let rest = ("EPHEMERAL", "xfs", device.size.saturating_sub(used));
    let name = |number: usize| match device.name.ends_with(|last: char| last.is_ascii_digit()) {
        true => format!("{}p{number}", device.name),
        false => format!("{}{number}", device.name),
    };
    let all = fixed.into_iter().chain([rest]).enumerate();
    all.map(|(number, (label, filesystem, size))| (name(number + 1), label, filesystem, size)).collect()
}

pub(super) fn all(world: &World, key: &str, kind: &str) -> Vec<Resource> {
    let devices = devices(world, key);
    let system = devices.iter().find(|device| device.system);
    match kind {
        DISK => devices
            .iter()
            .map(|device| {
                let transport = if device.name.starts_with("nvme") { "nvme" } else { "virtio" };
                let model = if device.cdrom { "QEMU DVD-ROM" } else { "QEMU HARDDISK" };
                let spec = json!({
                    "dev_path": format!("/dev/{}", device.name), "size": device.size, "pretty_size": pretty(device.size),
                    "io_size": 512, "sector_size": 512, "readonly": device.cdrom, "cdrom": device.cdrom,
                    "rotational": !device.cdrom && transport == "virtio", "model": model, "transport": transport,
                });
                shown(DISK, &device.name, spec)
            })
            .collect(),
        SYSTEM_DISK => {
            let disk = |device: &Device| {
                let spec = json!({ "diskID": device.name, "devPath": format!("/dev/{}", device.name) });
                shown(SYSTEM_DISK, "system-disk", spec)
            };
            system.map(disk).into_iter().collect()
        }
        VOLUME => {
            let parts = system.map(parts).unwrap_or_default();
            let volumes = parts.into_iter().filter(|(_, label, ..)| matches!(*label, "META" | "STATE" | "EPHEMERAL"));
            let volume = |(name, label, _, size): (String, &str, &str, u64)| {
                let location = format!("/dev/{name}");
                let spec = json!({
                    "phase": "ready", "type": "partition", "location": location, "size": size, "prettySize": pretty(size),
                });
                let content = VolumeSpec { phase: 6, location, size };
                resource("runtime", VOLUME, label, &content, strata_sim_core::yaml::write(&spec))
            };
            volumes.map(volume).collect()
        }
        DISCOVERED => {
            let whole = devices.iter().map(|device| {
                let name = if device.system { "gpt" } else { "" };
                let spec = json!({
                    "type": "disk", "size": device.size, "pretty_size": pretty(device.size), "name": name,
                    "dev_path": format!("/dev/{}", device.name),
                });
                shown(DISCOVERED, &device.name, spec)
            });
            let parts = system.into_iter().flat_map(|device| {
                parts(device).into_iter().map(|(name, label, filesystem, size)| {
                    let spec = json!({
                        "type": "partition", "size": size, "pretty_size": pretty(size), "name": filesystem, "label": "",
                        "partition_label": label, "parent": device.name, "dev_path": format!("/dev/{name}"),
                    });
                    shown(DISCOVERED, &name, spec)
                })
            });
            whole.chain(parts).collect()
        }
        _ => Vec::new(),
    }
}
