//! What the kernel and the services of a machine wrote down.

use prost::Message as _;
use tokio::sync::mpsc;

use super::{Call, Outcome, Reply, done, machine, services};
use crate::grpc::Status;
use crate::wire::system::{DmesgRequest, LogsContainer, LogsRequest};
use crate::wire::{Data, Nothing};
use crate::world::World;
use crate::world::gone;

/// A moment as logs write it.
fn stamp(ms: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    moment.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

fn data(text: String) -> Vec<u8> {
    Data { bytes: text.into_bytes() }.encode_to_vec()
}

/// What there is, and for those who follow, nothing more until the machine goes down.
fn lines(call: &Call<'_>, text: String, follow: bool) -> Outcome {
    if !follow {
        return Ok(Reply::one(data(text)));
    }
    let (to, from) = mpsc::channel(1);
    let (machines, presence) = (std::sync::Arc::clone(call.machines), call.presence.clone());
    tokio::spawn(async move {
        if to.send(Ok(data(text))).await.is_err() {
            return;
        }
        tokio::select! {
            () = gone(&machines, &presence) => {}
            () = to.closed() => {}
        }
    });
    Ok(Reply::Stream(from))
}

pub(super) fn dmesg(call: &Call<'_>) -> Outcome {
    let asked: DmesgRequest = call.request()?;
    let text = {
        let world = call.machines.world();
        let (_, boot) = machine(&world, call.key)?;
        let at = stamp(boot.running_since.unwrap_or_else(|| world.now_ms()));
        let version = boot.version();
        let mut lines = vec![
            format!("kern:  notice: [{at}]: Linux version 6.12.0-talos (strata-sim)"),
            format!("kern:    info: [{at}]: Command line: talos.platform=nocloud console=tty1"),
            format!("user: warning: [{at}]: [talos] starting Talos {version}"),
            format!("user: warning: [{at}]: [talos] boot id {}", boot.id),
        ];
        for address in boot.addresses() {
            lines.push(format!(
                "user: warning: [{at}]: [talos] assigned address {{\"address\": \"{address}\"}}"
            ));
        }
        match &boot.config {
            None => lines.push(format!(
                "user: warning: [{at}]: [talos] this machine is reachable in maintenance mode"
            )),
            Some(config) => {
                let role = if config.is_control_plane() { "controlplane" } else { "worker" };
                lines.push(format!("user: warning: [{at}]: [talos] machine is running as {role}"));
                for service in services::services(&world, call.key)? {
                    lines.push(format!(
                        "user: warning: [{at}]: [talos] service[{}]({}): {}",
                        service.id, service.state, service.message
                    ));
                }
            }
        }
        lines.join("\n") + "\n"
    };
    lines(call, if asked.tail { String::new() } else { text }, asked.follow)
}

/// The containers of Kubernetes' pods on a machine: its pod with the namespace, its name, its image.
pub(super) fn containers(world: &World, key: &str) -> Vec<(String, String, String)> {
    let hostname = world.talos_hostname(key);
    let Some((cluster, _)) = world.kubernetes_of(key) else { return Vec::new() };
    let mut all = Vec::new();
    for pod in world.kubernetes.list(&cluster, "pods") {
        if pod["spec"]["nodeName"] != hostname.as_str() {
            continue;
        }
        let text =
            |pointer: &str| pod.pointer(pointer).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        let id = format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"));
        for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
            let text = |name: &str| container[name].as_str().unwrap_or_default().to_owned();
            all.push((id.clone(), text("name"), text("image")));
        }
    }
    all
}

pub(super) fn logs(call: &Call<'_>) -> Outcome {
    let asked: LogsRequest = call.request()?;
    let text = {
        let world = call.machines.world();
        let (_, boot) = machine(&world, call.key)?;
        let at = stamp(boot.running_since.unwrap_or_else(|| world.now_ms()));
        let mut lines = if asked.namespace == "k8s.io" {
            let found = containers(&world, call.key).into_iter().find(|(pod, name, _)| {
                asked.id == format!("{pod}:{name}") || asked.id.starts_with(&format!("{pod}:{name}:"))
            });
            let Some((_, name, image)) = found else {
                return Err(Status::unknown(format!("container {:?} not found", asked.id)));
            };
            vec![format!("{at} stdout F {name} of {image} started")]
        } else {
            let service =
                services::services(&world, call.key)?.into_iter().find(|service| service.id == asked.id);
            let Some(service) = service else {
                return Err(Status::unknown(format!("log {:?} was not registered", asked.id)));
            };
            vec![
                format!("{{\"ts\":\"{at}\",\"caller\":\"{}\",\"msg\":\"starting\"}}", service.id),
                format!("{{\"ts\":\"{at}\",\"caller\":\"{}\",\"msg\":\"{}\"}}", service.id, service.message),
            ]
        };
        if let Ok(tail) = usize::try_from(asked.tail) {
            lines.drain(..lines.len().saturating_sub(tail));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    };
    lines(call, text, asked.follow)
}

pub(super) fn names(call: &Call<'_>) -> Outcome {
    call.request::<Nothing>()?;
    let world = call.machines.world();
    let ids = services::services(&world, call.key)?.into_iter().map(|service| service.id.to_owned());
    done(&LogsContainer { ids: ids.collect() })
}
