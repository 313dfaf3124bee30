//! The disks of a machine, and what Talos keeps on the one that it is installed on.

use serde_json::json;

use super::kinds::{DISCOVERED, DISK, SYSTEM_DISK, VOLUME};
use super::{resource, shown};
use crate::endpoints::qemu::drive;
use crate::talos::boot;
use crate::talos::wire::cosi::{Resource, VolumeSpec};
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
    let Some(guest) = world.talos_guest(key) else {
        return vec![Device { name: "nvme0n1".to_owned(), size: 512 << 30, cdrom: false, system: installed }];
    };
    let size = |drive: &drive::Drive| {
        drive.volid().and_then(|volid| world.volume(volid, &guest.node)).map(|volume| volume.size)
    };
    let first = boot::in_boot_order(&guest.config).into_iter().find(|drive| !drive.is_cdrom());
    let mut disks: Vec<Device> = Vec::new();
    let mut letters = 'a'..='z';
    let mut name = || letters.next().map(|letter| format!("sd{letter}")).unwrap_or_default();
    if let Some(first) = &first {
        disks.push(Device {
            name: name(),
            size: size(first).unwrap_or(USUAL),
            cdrom: false,
            system: installed,
        });
    }
    // What the firmware and the TPM keep is no disk of the machine.
    let is_disk = |drive: &drive::Drive| {
        !drive.is_cdrom() && !drive.is_cloudinit() && !matches!(drive.slot.as_str(), "efidisk0" | "tpmstate0")
    };
    let others = drive::drives(&guest.config).filter(is_disk);
    let boot = first.as_ref().and_then(|first| first.volid().map(str::to_owned));
    for drive in others.filter(|drive| drive.volid().map(str::to_owned) != boot) {
        if let Some(size) = size(&drive) {
            disks.push(Device { name: name(), size, cdrom: false, system: false });
        }
    }
    let inserted = drive::drives(&guest.config).filter(|drive| drive.is_cdrom() && size(drive).is_some());
    for (number, drive) in inserted.enumerate() {
        let size = size(&drive).unwrap_or_default();
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
                resource("runtime", VOLUME, label, &content, crate::yaml::write(&spec))
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
