//! How a machine is: its stage, whether it is ready, what is missing, and its services.

use serde_json::{Value, json};

use super::kinds::{MACHINE_STATUS, SERVICE};
use crate::api::services;
use crate::grpc::Status;
use crate::machine::Stage;
use crate::wire::cosi::{self, Resource};
use crate::world::World;
use strata_sim_core::yaml;

/// Stage and readiness of a machine, and what is missing.
fn condition(world: &World, key: &str) -> (i32, bool, Vec<(&'static str, &'static str)>) {
    let machine = world.talos.machines.get(key);
    let control_plane = machine.and_then(|m| m.config()).is_some_and(|c| c.is_control_plane());
    let joined = world.etcd_of(key).is_some_and(|(cluster, member)| {
        !member.learner && world.etcd_up(cluster, member) && world.has_quorum(cluster)
    });
    let mut unmet = Vec::new();
    let mut number = match machine.and_then(|machine| machine.stage()) {
        Some(Stage::Maintenance) => 3,
        Some(Stage::Installing) => 2,
        Some(Stage::Running) => 4,
        Some(Stage::Rebooting(_)) => 5,
        Some(Stage::ShuttingDown) => 6,
        _ => 1,
    };
    if number == 4 && control_plane && !joined {
        // The boot sequence waits for etcd.
        number = 1;
        unmet.push(("services", "service \"etcd\" not healthy"));
    }
    let kubelet = machine.and_then(|machine| machine.boot.as_ref()).is_some_and(|boot| {
        let since = boot.running_since.unwrap_or(i64::MAX / 2);
        since + world.scaled_ms(crate::kubernetes::READY) <= world.now_ms()
    });
    if number == 4 && !kubelet {
        unmet.push(("services", "service \"kubelet\" not healthy"));
    }
    let ready = unmet.is_empty() && matches!(number, 3 | 4);
    (number, ready, unmet)
}

/// The same as the resource has it, and as events do.
pub(in crate::api) fn machine_status(world: &World, key: &str) -> cosi::MachineStatusSpec {
    let (stage, ready, unmet) = condition(world, key);
    let unmet = unmet
        .into_iter()
        .map(|(name, reason)| cosi::UnmetCondition { name: name.to_owned(), reason: reason.to_owned() })
        .collect();
    cosi::MachineStatusSpec { stage, status: Some(cosi::MachineStatusStatus { ready, unmet }) }
}

pub(super) fn resource(world: &World, key: &str) -> Resource {
    let name = ["unknown", "booting", "installing", "maintenance", "running", "rebooting", "shutting down"];
    let content = machine_status(world, key);
    let ready = content.status.as_ref().is_some_and(|status| status.ready);
    let stage = usize::try_from(content.stage).ok().and_then(|stage| name.get(stage)).unwrap_or(&"unknown");
    let unmet = content.status.as_ref().map(|status| status.unmet.as_slice()).unwrap_or_default();
    let unmet: Vec<Value> = unmet.iter().map(|u| json!({ "name": u.name, "reason": u.reason })).collect();
    let spec = json!({ "stage": stage, "status": { "ready": ready, "unmetConditions": unmet } });
    super::resource("runtime", MACHINE_STATUS, "machine", &content, yaml::write(&spec))
}

/// The services as resources: those that run. One that was restarted is another one than before.
pub(super) fn services(world: &World, key: &str) -> Result<Vec<Resource>, Status> {
    let restarts = world.talos.machines.get(key).map_or(0, |machine| machine.kubelet_restarts);
    let running = services::services(world, key)?.into_iter().filter(|service| service.state == "Running");
    let shown = running.map(|service| {
        let (healthy, unknown) = (service.healthy == Some(true), service.healthy.is_none());
        let spec = json!({ "running": true, "healthy": healthy, "unknown": unknown });
        let content = cosi::ServiceSpec { running: true, healthy, unknown };
        let mut shown = super::resource("runtime", SERVICE, service.id, &content, yaml::write(&spec));
        if service.id == "kubelet"
            && let Some(created) = shown.metadata.as_mut().and_then(|metadata| metadata.created.as_mut())
        {
            created.seconds += i64::from(restarts);
        }
        shown
    });
    Ok(shown.collect())
}
