//! Version, hostname, time, memory, mounts.

use super::{Call, Outcome, done, machine};
use crate::talos::grpc::Status;
use crate::talos::{boot, wire};
use crate::world::World;

pub(super) fn version(call: &Call<'_>) -> Outcome {
    let world = call.shared.world();
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
    let hostname = call.shared.world().talos_hostname(call.key);
    done(&wire::Hostname { hostname })
}

pub(super) fn time(call: &Call<'_>) -> Outcome {
    let world = call.shared.world();
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
    let guest = world.talos_guest(key);
    let configured = guest.and_then(|guest| guest.get("memory")?.split(',').next()?.parse().ok());
    configured.unwrap_or(8192_u64) * 1024
}

pub(super) fn memory(call: &Call<'_>) -> Outcome {
    let total = memory_of(&call.shared.world(), call.key);
    done(&wire::Memory { meminfo: Some(wire::MemInfo { total, free: total / 2, available: total / 2 }) })
}

pub(super) fn mounts(call: &Call<'_>) -> Outcome {
    let world = call.shared.world();
    let disk = world.talos_guest(call.key).and_then(|guest| {
        let drive = boot::in_boot_order(&guest.config).into_iter().find(|drive| !drive.is_cdrom())?;
        Some(world.volume(drive.volid()?, &guest.node)?.size)
    });
    let size = disk.unwrap_or(32 << 30);
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
    let world = call.shared.world();
    let installed = world.talos_disk(call.key).is_some();
    let drives = match world.talos_guest(call.key) {
        Some(guest) => boot::in_boot_order(&guest.config)
            .into_iter()
            .filter(|drive| !drive.is_cdrom())
            .filter_map(|drive| Some(world.volume(drive.volid()?, &guest.node)?.size))
            .collect(),
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
    let boots = machine(&call.shared.world(), call.key)?.0.boots;
    done(&wire::SystemStat { boot_time: 1_700_000_000 + boots * 60 })
}
