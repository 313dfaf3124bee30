//! Reboot, shutdown, reset.

use super::{Call, Outcome, done, etcd};
use crate::grpc::Status;
use crate::wire::{Actor, ResetRequest};
use crate::world::World;

const USER_DISKS: i32 = 2;

fn actor(world: &World, key: &str, what: &str) -> Actor {
    let boots = world.talos.machines.get(key).map_or(0, |machine| machine.boots);
    Actor { id: world.uuid(&["actor", key, what, &boots.to_string()]) }
}

pub(super) fn reboot(call: &Call<'_>) -> Outcome {
    let mut world = call.machines.world();
    let actor = actor(&world, call.key, "reboot");
    world.begin_reboot(call.key, "api");
    done(&actor)
}

pub(super) fn shutdown(call: &Call<'_>) -> Outcome {
    let mut world = call.machines.world();
    let actor = actor(&world, call.key, "shutdown");
    world.begin_shutdown(call.key);
    done(&actor)
}

pub(super) fn reset(call: &Call<'_>) -> Outcome {
    let asked: ResetRequest = call.request()?;
    let mut world = call.machines.world();
    if !asked.user_disks.is_empty() && asked.mode == 1 {
        return Err(Status::unknown(
            "reset failed: invalid input, wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter",
        ));
    }
    if !asked.partitions.is_empty() && asked.mode == USER_DISKS {
        return Err(Status::unknown(
            "reset failed: invalid input, wipe mode USER_DISKS doesn't support SystemPartitionsToWipe parameter",
        ));
    }
    let known = ["EFI", "BIOS", "BOOT", "META", "STATE", "EPHEMERAL"];
    if let Some(part) = asked.partitions.iter().find(|part| !known.contains(&part.label.as_str())) {
        return Err(Status::unknown(format!(
            "failed to get volume status with label {:?}: not found",
            part.label
        )));
    }
    let actor = actor(&world, call.key, "reset");
    let member = world.etcd_of(call.key).is_some();
    if asked.graceful && member && etcd::leave_cluster(&mut world, call.key).is_err() {
        // The sequence fails after the call was answered: the machine reboots as it was.
        world.begin_reboot(call.key, "reset-failed");
        return done(&actor);
    }
    if asked.mode != USER_DISKS {
        if asked.partitions.is_empty() {
            world.wipe_talos_disk(call.key);
        }
        for part in asked.partitions.iter().filter(|part| part.wipe) {
            world.edit_talos_disk(call.key, |disk| match part.label.as_str() {
                "STATE" => {
                    disk.config = None;
                    // Which of the two was wiped matters only where one of them was not: both are made again by what comes next.
                    disk.encryption = None;
                }
                "EPHEMERAL" => disk.etcd = None,
                _ => {}
            });
        }
    }
    match asked.reboot {
        true => world.begin_reboot(call.key, "reset"),
        false => world.begin_shutdown(call.key),
    }
    done(&actor)
}
