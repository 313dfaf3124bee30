//! Resources: what a machine knows about itself, to get, list and watch.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use prost::Message;
use tokio::sync::mpsc;

use super::{Call, Outcome, Reply, machine};
use crate::shared::Shared;
use crate::talos::config::Role;
use crate::talos::grpc::{Code, Status};
use crate::talos::machine::Stage;
use crate::talos::version::Version;
use crate::talos::wire::cosi::{self, Event, Metadata, Resource, ResourceReply, Spec, WatchReply};
use crate::world::World;

const MACHINE_CONFIG: &str = "MachineConfigs.config.talos.dev";
const MACHINE_TYPE: &str = "MachineTypes.config.talos.dev";
const MACHINE_STATUS: &str = "MachineStatuses.runtime.talos.dev";
const BOOT_ID: &str = "BootIDs.runtime.talos.dev";
const MEMBER: &str = "Members.cluster.talos.dev";
const HOSTNAME: &str = "HostnameStatuses.net.talos.dev";
/// Events of one watch that a slow reader may be behind.
const BEHIND: usize = 256;

fn resource(namespace: &str, kind: &str, id: &str, content: &impl Message, yaml: String) -> Resource {
    let annotations = match kind {
        MACHINE_CONFIG => BTreeMap::from([("talos.dev/yaml-spec".to_owned(), "1".to_owned())]),
        _ => BTreeMap::new(),
    };
    let proto = content.encode_to_vec();
    // The version moves with the content, as it would; the number itself means nothing.
    let sum = proto.iter().fold(1_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)));
    Resource {
        metadata: Some(Metadata {
            namespace: namespace.to_owned(),
            kind: kind.to_owned(),
            id: id.to_owned(),
            version: (sum % 100_000 + 1).to_string(),
            phase: "running".to_owned(),
            annotations,
            ..Metadata::default()
        }),
        spec: Some(Spec { proto, yaml }),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

/// A text as a block, which keeps its lines.
fn block(text: &str) -> String {
    text.lines().fold("|\n".to_owned(), |out, line| format!("{out}    {line}\n"))
}

/// Every resource of a type on a machine.
fn all(world: &World, key: &str, kind: &str, version: Version, admin: bool) -> Result<Vec<Resource>, Status> {
    let (machine, boot) = machine(world, key)?;
    let hostname = world.talos_hostname(key);
    Ok(match kind {
        MACHINE_CONFIG => {
            if !admin {
                return Err(Status::new(Code::PermissionDenied, "not authorized"));
            }
            let disk = world.talos_disk(key).and_then(|disk| disk.config.as_ref());
            let entries = [("v1alpha1", boot.config.as_ref()), ("persistent", disk)];
            let present = entries.into_iter().filter_map(|(id, config)| Some((id, config?)));
            present
                .map(|(id, config)| {
                    let content = cosi::MachineConfigSpec { yaml: config.text().as_bytes().to_vec() };
                    resource("config", kind, id, &content, block(config.text()))
                })
                .collect()
        }
        MACHINE_TYPE => {
            let number = match boot.config.as_ref().and_then(|config| config.role()) {
                Some(Role::ControlPlane) => 2,
                Some(Role::Worker) => 3,
                None => return Ok(Vec::new()),
            };
            let name = if number == 2 { "controlplane" } else { "worker" };
            let content = cosi::MachineTypeSpec { machine_type: number };
            vec![resource("config", kind, "machine-type", &content, format!("{name}\n"))]
        }
        MACHINE_STATUS => vec![status(world, key, machine.stage())],
        BOOT_ID if version.never_reboots() => {
            let content = cosi::BootIdSpec { boot_id: boot.id.clone() };
            vec![resource("runtime", kind, "boot-id", &content, format!("bootID: {}\n", boot.id))]
        }
        HOSTNAME => {
            let yaml = format!("hostname: {}\ndomainname: \"\"\n", quoted(&hostname));
            let content = cosi::HostnameSpec { hostname, domainname: String::new() };
            vec![resource("network", kind, "hostname", &content, yaml)]
        }
        MEMBER => members(world, key),
        _ => {
            // Nothing is known of it, as of a type that this version does not have.
            return Err(Status::new(
                Code::NotFound,
                format!(
                    "resource ResourceDefinitions.meta.cosi.dev(meta/{}@undefined) doesn't exist",
                    kind.to_lowercase()
                ),
            ));
        }
    })
}

fn status(world: &World, key: &str, stage: Option<&Stage>) -> Resource {
    let control_plane =
        world.talos.machines.get(key).and_then(|m| m.config()).is_some_and(|c| c.is_control_plane());
    let joined = world.etcd_of(key).is_some_and(|(cluster, member)| {
        !member.learner && world.etcd_up(cluster, member) && world.has_quorum(cluster)
    });
    let mut unmet = Vec::new();
    let mut number = match stage {
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
    let kubelet =
        world.talos.machines.get(key).and_then(|machine| machine.boot.as_ref()).is_some_and(|boot| {
            let since = boot.running_since.unwrap_or(i64::MAX / 2);
            since + world.scaled_ms(crate::talos::kubernetes::READY) <= world.now_ms()
        });
    if number == 4 && !kubelet {
        unmet.push(("services", "service \"kubelet\" not healthy"));
    }
    let name = ["unknown", "booting", "installing", "maintenance", "running", "rebooting", "shutting down"];
    let ready = unmet.is_empty() && matches!(number, 3 | 4);
    let yaml = format!("stage: {}\nstatus:\n    ready: {ready}\n", name[number as usize]);
    let unmet = unmet
        .into_iter()
        .map(|(name, reason)| cosi::UnmetCondition { name: name.to_owned(), reason: reason.to_owned() })
        .collect();
    let content =
        cosi::MachineStatusSpec { stage: number, status: Some(cosi::MachineStatusStatus { ready, unmet }) };
    resource("runtime", MACHINE_STATUS, "machine", &content, yaml)
}

/// Machines of the same cluster that discovery knows: those that run and share its identity and secret.
fn members(world: &World, key: &str) -> Vec<Resource> {
    let Some(own) = world.talos.machines.get(key).and_then(|machine| machine.config()) else {
        return Vec::new();
    };
    let mut found: Vec<Resource> = world
        .talos
        .machines
        .iter()
        .filter_map(|(other, machine)| {
            let config = machine.config().filter(|_| machine.is_running())?;
            let same = config.cluster_id() == own.cluster_id() && config.cluster_secret() == own.cluster_secret();
            let boot = machine.boot.as_ref().filter(|_| same)?;
            let hostname = world.talos_hostname(other);
            let version = boot.image.as_ref().map(|image| image.version.clone()).unwrap_or_default();
            let role = if config.is_control_plane() { 2 } else { 3 };
            let addresses = boot.addresses();
            let bytes = addresses.iter().filter_map(|address| match address.parse().ok()? {
                IpAddr::V4(v4) => Some(cosi::NetIp { ip: v4.octets().to_vec() }),
                IpAddr::V6(v6) => Some(cosi::NetIp { ip: v6.octets().to_vec() }),
            });
            let node_id = world.talos_disk(other).map(|disk| disk.identity.clone()).unwrap_or_default();
            let content = cosi::MemberSpec {
                node_id: node_id.clone(),
                addresses: bytes.collect(),
                hostname: hostname.clone(),
                machine_type: role,
                operating_system: format!("Talos ({version})"),
            };
            let role = if role == 2 { "controlplane" } else { "worker" };
            let yaml = format!(
                "nodeId: {node_id}\naddresses: [{}]\nhostname: {}\nmachineType: {role}\noperatingSystem: Talos ({version})\n",
                addresses.join(", "),
                quoted(&hostname)
            );
            Some(resource("cluster", MEMBER, &hostname, &content, yaml))
        })
        .collect();
    found.sort_by(|a, b| id_of(a).cmp(id_of(b)));
    found
}

fn id_of(resource: &Resource) -> &str {
    resource.metadata.as_ref().map_or("", |metadata| metadata.id.as_str())
}

pub(super) fn get(call: &Call<'_>) -> Outcome {
    let asked: cosi::GetRequest = call.request()?;
    let found = all(&call.shared.world(), call.key, &asked.kind, call.version, call.admin)?;
    let found = found.into_iter().find(|resource| id_of(resource) == asked.id);
    match found {
        Some(resource) => Ok(Reply::one(ResourceReply { resource: Some(resource) }.encode_to_vec())),
        None => {
            let text =
                format!("resource {}({}/{}@undefined) doesn't exist", asked.kind, asked.namespace, asked.id);
            Err(Status::new(Code::NotFound, text))
        }
    }
}

pub(super) fn list(call: &Call<'_>) -> Outcome {
    let asked: cosi::GetRequest = call.request()?;
    let found = all(&call.shared.world(), call.key, &asked.kind, call.version, call.admin)?;
    let replies =
        found.into_iter().map(|resource| ResourceReply { resource: Some(resource) }.encode_to_vec());
    Ok(Reply::Messages(replies.collect()))
}

/// One watch, for as long as its client listens and the machine runs.
struct Watch {
    shared: Arc<Shared>,
    key: String,
    asked: cosi::WatchRequest,
    version: Version,
    admin: bool,
    to: mpsc::Sender<Vec<u8>>,
}

pub(super) fn watch(call: &Call<'_>) -> Outcome {
    let asked: cosi::WatchRequest = call.request()?;
    // A type that does not exist is refused at once.
    all(&call.shared.world(), call.key, &asked.kind, call.version, call.admin)?;
    let (to, from) = mpsc::channel(BEHIND);
    let watch = Watch {
        shared: Arc::clone(call.shared),
        key: call.key.to_owned(),
        asked,
        version: call.version,
        admin: call.admin,
        to,
    };
    tokio::spawn(watch.run());
    Ok(Reply::Stream(from))
}

impl Watch {
    fn look(&self) -> Option<Vec<Resource>> {
        let world = self.shared.world();
        let found = all(&world, &self.key, &self.asked.kind, self.version, self.admin).ok()?;
        let wanted = |resource: &Resource| self.asked.id.as_deref().is_none_or(|id| id == id_of(resource));
        Some(found.into_iter().filter(wanted).collect())
    }

    async fn send(&self, events: Vec<Event>) -> bool {
        let aggregated = self.asked.options.as_ref().is_some_and(|options| options.aggregated);
        let batches: Vec<Vec<Event>> =
            if aggregated { vec![events] } else { events.into_iter().map(|e| vec![e]).collect() };
        for events in batches.into_iter().filter(|events| !events.is_empty()) {
            if self.to.send(WatchReply { events }.encode_to_vec()).await.is_err() {
                return false;
            }
        }
        true
    }

    async fn run(self) {
        let event = |kind: i32, resource: Resource, old: Option<Resource>| Event {
            resource: Some(resource),
            kind,
            old,
        };
        let Some(mut known) = self.look() else { return };
        let contents = self.asked.options.as_ref().is_some_and(|options| options.bootstrap_contents);
        let mut first: Vec<Event> = Vec::new();
        if self.asked.id.is_some() || contents {
            first = known.iter().map(|resource| event(cosi::CREATED, resource.clone(), None)).collect();
        }
        if let (Some(id), true) = (&self.asked.id, known.is_empty()) {
            // A watch of one resource that is not there begins with its absence.
            let gone = Resource {
                metadata: Some(Metadata {
                    namespace: self.asked.namespace.clone(),
                    kind: self.asked.kind.clone(),
                    id: id.clone(),
                    version: "undefined".to_owned(),
                    phase: "running".to_owned(),
                    ..Metadata::default()
                }),
                spec: Some(Spec::default()),
            };
            first.push(event(cosi::DESTROYED, gone, None));
        }
        if contents && self.asked.id.is_none() {
            first.push(Event { resource: Some(Resource::default()), kind: cosi::BOOTSTRAPPED, old: None });
        }
        if !self.send(first).await {
            return;
        }
        loop {
            let changed = self.shared.until_changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let Some(now) = self.look() else { return };
            let mut events = Vec::new();
            for resource in &now {
                match known.iter().find(|old| id_of(old) == id_of(resource)) {
                    None => events.push(event(cosi::CREATED, resource.clone(), None)),
                    Some(old) if old != resource => {
                        events.push(event(cosi::UPDATED, resource.clone(), Some(old.clone())));
                    }
                    Some(_) => {}
                }
            }
            for old in known.iter().filter(|old| !now.iter().any(|resource| id_of(resource) == id_of(old))) {
                events.push(event(cosi::DESTROYED, old.clone(), None));
            }
            known = now;
            if !self.send(events).await {
                return;
            }
            tokio::select! {
                () = changed => {}
                () = self.to.closed() => return,
            }
        }
    }
}
