//! Version, hostname, time, memory, mounts.

use super::{Call, Outcome, done, machine};
use crate::grpc::Status;
use crate::hypervisor::vmid;
use crate::wire;
use crate::world::World;

pub(super) fn version(call: &Call<'_>) -> Outcome {
    let world = call.machines.world();
    let (_, boot) = machine(&world, call.key)?;
    let image = boot.image.as_ref().ok_or_else(|| Status::unknown("no system"))?;
    let mode = if image.platform == "metal" { "metal" } else { "cloud" };
    done(&wire::Version {
        version: Some(wire::VersionInfo {
            tag: image.version.clone(),
            sha: "00000000".to_owned(),
            built: String::new(),
            go_version: "go1.25".to_owned(),
            os: "linux".to_owned(),
            arch: "amd64".to_owned(),
        }),
        platform: Some(wire::PlatformInfo { name: image.platform.clone(), mode: mode.to_owned() }),
        features: (!call.maintenance).then_some(wire::FeaturesInfo { rbac: true }),
    })
}

pub(super) fn hostname(call: &Call<'_>) -> Outcome {
    let hostname = call.machines.world().talos_hostname(call.key);
    done(&wire::Hostname { hostname })
}

pub(super) fn time(call: &Call<'_>) -> Outcome {
    let world = call.machines.world();
    let skew = machine(&world, call.key)?.0.skew;
    let at = |seconds| Some(wire::Timestamp { seconds, nanos: 0 });
    let now = world.now();
    done(&wire::Time {
        server: "time.cloudflare.com".to_owned(),
        localtime: at(now + skew),
        remotetime: at(now),
    })
}

/// The memory of a machine in kB.
pub(super) fn memory_of(world: &World, key: &str) -> u64 {
    let configured = vmid(key).and_then(|vmid| world.hypervisor.memory(vmid));
    configured.unwrap_or(8192) * 1024
}

pub(super) fn memory(call: &Call<'_>) -> Outcome {
    let total = memory_of(&call.machines.world(), call.key);
    done(&wire::Memory { meminfo: Some(wire::MemInfo { total, free: total / 2, available: total / 2 }) })
}

pub(super) fn mounts(call: &Call<'_>) -> Outcome {
    let world = call.machines.world();
    let drives = vmid(call.key).map(|vmid| world.hypervisor.boot_drives(vmid)).unwrap_or_default();
    let disk = drives.iter().find(|drive| !drive.cdrom);
    let size = disk.and_then(|drive| drive.size()).unwrap_or(32 << 30);
    let var = wire::MountStat {
        filesystem: "/dev/sda4".to_owned(),
        size,
        available: size / 2,
        mounted_on: "/var".to_owned(),
    };
    done(&wire::Mounts { stats: vec![var] })
}

/// The disks in the order in which they are tried. Clients ask this to see whether anybody answers without certificates.
pub(super) fn disks(call: &Call<'_>) -> Outcome {
    let world = call.machines.world();
    let installed = world.talos_disk(call.key).is_some();
    let drives = match vmid(call.key) {
        Some(vmid) => {
            let drives = world.hypervisor.boot_drives(vmid).into_iter();
            drives.filter(|drive| !drive.cdrom).filter_map(|drive| drive.size()).collect()
        }
        None => vec![32 << 30],
    };
    let disk = |(index, size): (usize, u64)| wire::DiskInfo {
        size,
        device_name: format!("/dev/sd{}", char::from(b'a' + u8::try_from(index % 26).unwrap_or_default())),
        system_disk: installed && index == 0,
    };
    done(&wire::Disks { disks: drives.into_iter().enumerate().map(disk).collect() })
}

/// When the machine booted. Two boots at a fast pace may be in one second, so that the number of boots is what counts.
pub(super) fn statistics(call: &Call<'_>) -> Outcome {
    let boots = machine(&call.machines.world(), call.key)?.0.boots;
    done(&wire::SystemStat { boot_time: 1_700_000_000 + boots * 60 })
}
