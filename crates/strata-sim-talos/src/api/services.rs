//! Services of a machine and how they are.

use super::{Call, Outcome, done, machine};
use crate::grpc::{Code, Status};
use crate::wire::{self, ServiceEvent, ServiceEvents, ServiceHealth, ServiceInfo};
use crate::world::World;

/// A service, its state and health; no health where nothing checks it.
pub(super) struct Service {
    pub(super) id: &'static str,
    pub(super) state: &'static str,
    pub(super) message: String,
    pub(super) healthy: Option<bool>,
}

fn running(id: &'static str, healthy: bool) -> Service {
    Service { id, state: "Running", message: "Health check successful".to_owned(), healthy: Some(healthy) }
}

fn etcd(world: &World, key: &str, stopped: bool) -> Service {
    let waiting = |message: &str| Service {
        id: "etcd",
        state: "Preparing",
        message: message.to_owned(),
        healthy: None,
    };
    if stopped {
        return Service {
            id: "etcd",
            state: "Finished",
            message: "Service finished successfully".to_owned(),
            healthy: None,
        };
    }
    let data = world.talos_disk(key).and_then(|disk| disk.etcd.as_ref());
    match (data, world.etcd_of(key)) {
        (None, _) => waiting("Running pre state"),
        // It has data of a cluster that does not know it any more: etcd ends as soon as it hears that, and Talos starts it again for ever.
        (Some(_), None) => Service {
            id: "etcd",
            state: "Waiting",
            message: "Runner Containerd(etcd) exited without error, going to restart it".to_owned(),
            healthy: Some(false),
        },
        (Some(_), Some((cluster, _))) => running("etcd", world.has_quorum(cluster)),
    }
}

pub(super) fn services(world: &World, key: &str) -> Result<Vec<Service>, Status> {
    let (_, boot) = machine(world, key)?;
    let Some(config) = &boot.config else {
        return Ok(vec![running("machined", true), running("apid", true), running("containerd", true)]);
    };
    let is_stopped = |id: &str| boot.stopped.iter().any(|service| service == id);
    let since = boot.running_since.unwrap_or(i64::MAX / 2);
    let kubelet = since + world.scaled_ms(crate::kubernetes::READY) <= world.now_ms();
    let mut all = vec![
        running("apid", true),
        running("auditd", true),
        running("containerd", true),
        running("cri", true),
        running("dashboard", true),
    ];
    if config.is_control_plane() {
        all.push(etcd(world, key, is_stopped("etcd")));
    }
    all.push(running("kubelet", kubelet));
    all.extend([running("machined", true), running("syslogd", true)]);
    if config.is_control_plane() {
        all.push(running("trustd", true));
    }
    all.push(running("udevd", true));
    for service in all.iter_mut().filter(|service| service.id != "etcd" && is_stopped(service.id)) {
        service.state = "Finished";
        service.healthy = None;
    }
    Ok(all)
}

pub(super) fn list(call: &Call<'_>) -> Outcome {
    let world = call.machines.world();
    let now = Some(wire::Timestamp { seconds: world.now(), nanos: 0 });
    let services = services(&world, call.key)?
        .into_iter()
        .map(|service| ServiceInfo {
            id: service.id.to_owned(),
            state: service.state.to_owned(),
            events: Some(ServiceEvents {
                events: vec![ServiceEvent {
                    msg: service.message.clone(),
                    state: service.state.to_owned(),
                    ts: now.clone(),
                }],
            }),
            health: Some(ServiceHealth {
                unknown: service.healthy.is_none(),
                healthy: service.healthy.unwrap_or(false),
                last_message: if service.healthy == Some(false) {
                    "not healthy".to_owned()
                } else {
                    String::new()
                },
                last_change: now.clone(),
            }),
        })
        .collect();
    done(&wire::ServiceList { services })
}

fn change(call: &Call<'_>, what: &str, stopped: bool) -> Outcome {
    let asked: wire::ServiceRequest = call.request()?;
    let mut world = call.machines.world();
    if !services(&world, call.key)?.iter().any(|service| service.id == asked.id) {
        return Err(Status::new(Code::Unknown, format!("service {:?} not defined", asked.id)));
    }
    if matches!(asked.id.as_str(), "machined" | "apid" | "trustd") {
        let text = format!("service {:?} doesn't support {what} operation via API", asked.id);
        return Err(Status::new(Code::Unknown, text));
    }
    if let Some(boot) = world.talos.machines.get_mut(call.key).and_then(|machine| machine.boot.as_mut()) {
        boot.stopped.retain(|service| *service != asked.id);
        if stopped {
            boot.stopped.push(asked.id.clone());
        }
    }
    done(&wire::ServiceAnswer { resp: format!("Service {:?} {what}ed", asked.id) })
}

pub(super) fn start(call: &Call<'_>) -> Outcome {
    change(call, "start", false)
}

pub(super) fn stop(call: &Call<'_>) -> Outcome {
    change(call, "stop", true)
}

pub(super) fn restart(call: &Call<'_>) -> Outcome {
    let asked: wire::ServiceRequest = call.request()?;
    let restarted = change(call, "restart", false)?;
    if asked.id == "kubelet" {
        let mut world = call.machines.world();
        let hostname = world.talos_hostname(call.key);
        world.kubernetes.kubelet_restarted(&hostname);
        if let Some(machine) = world.talos.machines.get_mut(call.key) {
            machine.kubelet_restarts += 1;
        }
    }
    Ok(restarted)
}
