//! Upgrades, the old way and the new one.

use super::{Call, Outcome, Reply, done, machine};
use crate::grpc::{Code, Status};
use crate::image::Image;
use crate::wire::{self, LifecycleReply, Progress, ProgressKind};
use crate::world::World;
use prost::Message as _;

/// An installer that exists: its reference names a version, and nothing says that it is missing.
fn installer(reference: &str) -> Option<Image> {
    Image::from_installer(reference).filter(|_| !reference.contains("/missing/"))
}

/// What is checked before a control plane may go down.
fn check_etcd(world: &World, key: &str) -> Result<(), String> {
    let control_plane = machine(world, key)
        .is_ok_and(|(_, boot)| boot.config.as_ref().is_some_and(|config| config.is_control_plane()));
    if !control_plane {
        return Ok(());
    }
    let cluster = world.etcd_near(key).ok_or("context deadline exceeded")?;
    if cluster.members.len() == 2 {
        return Err("etcd member count(2) is insufficient to maintain quorum if upgrade commences".to_owned());
    }
    match cluster.members.iter().find(|member| !world.etcd_up(cluster, member)) {
        Some(member) => Err(format!(
            "etcd member {:016x} is not healthy; all members must be healthy to perform an upgrade: context deadline exceeded",
            member.id
        )),
        None => Ok(()),
    }
}

pub(super) fn upgrade(call: &Call<'_>) -> Outcome {
    let asked: wire::UpgradeRequest = call.request()?;
    let mut world = call.machines.world();
    if world.talos_disk(call.key).is_none() {
        return Err(Status::new(Code::FailedPrecondition, "Talos is not installed"));
    }
    let image = installer(&asked.image).ok_or_else(|| {
        Status::unknown(format!("error validating installer image {:?}: not found", asked.image))
    })?;
    if !asked.force && !call.maintenance {
        check_etcd(&world, call.key)
            .map_err(|why| Status::unknown(format!("error validating etcd for upgrade: {why}")))?;
    }
    let boots = machine(&world, call.key)?.0.boots;
    let actor = world.uuid(&["actor", call.key, "upgrade", &boots.to_string()]);
    world.edit_talos_disk(call.key, |disk| disk.staged = Some(image));
    world.begin_reboot(call.key, "upgrade");
    done(&wire::Upgraded { ack: "Upgrade request received".to_owned(), actor })
}

pub(super) fn streamed_upgrade(call: &Call<'_>) -> Outcome {
    let asked: wire::LifecycleRequest = call.request()?;
    let reference = asked.source.map(|source| source.image).unwrap_or_default();
    let mut world = call.machines.world();
    if world.talos_disk(call.key).is_none() {
        return Err(Status::new(Code::FailedPrecondition, "Talos is not installed"));
    }
    let Some(image) = installer(&reference) else {
        return Err(Status::new(Code::NotFound, format!("image {reference:?} not found")));
    };
    let version = image.version.clone();
    world.edit_talos_disk(call.key, |disk| disk.staged = Some(image));
    let says = |text: String| Progress { kind: Some(ProgressKind::Message(text)) };
    let steps = [
        says(format!("installing Talos {version}")),
        says("installation of the boot loader complete".to_owned()),
        Progress { kind: Some(ProgressKind::ExitCode(0)) },
    ];
    let replies = steps.map(|progress| LifecycleReply { progress: Some(progress) }.encode_to_vec());
    Ok(Reply::Messages(replies.to_vec()))
}

/// Back to what ran before the last upgrade.
pub(super) fn rollback(call: &Call<'_>) -> Outcome {
    let mut world = call.machines.world();
    let disk = world.talos_disk(call.key);
    let Some(previous) = disk.and_then(|disk| disk.previous.clone()) else {
        return Err(Status::unknown("previous boot entry not found"));
    };
    world.edit_talos_disk(call.key, |disk| disk.staged = Some(previous));
    world.begin_reboot(call.key, "rollback");
    done(&wire::Nothing {})
}

fn pulled(reference: &str) -> Result<(), Status> {
    let named = reference.contains('/') && !reference.contains("/missing/");
    named.then_some(()).ok_or_else(|| Status::new(Code::NotFound, format!("{reference}: not found")))
}

pub(super) fn pull(call: &Call<'_>) -> Outcome {
    let asked: wire::PullRequest = call.request()?;
    pulled(&asked.image)?;
    Ok(Reply::one(wire::Pulled { name: asked.image }.encode_to_vec()))
}

pub(super) fn old_pull(call: &Call<'_>) -> Outcome {
    let asked: wire::OldPullRequest = call.request()?;
    pulled(&asked.reference)?;
    done(&wire::Nothing {})
}
