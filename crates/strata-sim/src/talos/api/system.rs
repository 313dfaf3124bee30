//! Version, hostname, time, and the few files that are read.

use super::{Call, Outcome, Reply, done, machine};
use crate::talos::grpc::{Code, Status};
use crate::talos::wire;
use prost::Message as _;

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

pub(super) fn read(call: &Call<'_>) -> Outcome {
    let asked: wire::ReadRequest = call.request()?;
    let world = call.shared.world();
    let (_, boot) = machine(&world, call.key)?;
    if asked.path != "/proc/sys/kernel/random/boot_id" {
        let text = format!("stat {}: no such file or directory", asked.path);
        return Err(Status::new(Code::Unknown, text));
    }
    let data = wire::Data { bytes: format!("{}\n", boot.id).into_bytes() };
    Ok(Reply::one(data.encode_to_vec()))
}
