//! Resources: what a machine knows about itself, to get, list and watch.

mod watch;

use std::collections::BTreeMap;
use std::net::IpAddr;

use prost::Message;

use super::{Call, Outcome, Reply, machine};
use crate::talos::config::Role;
use crate::talos::grpc::{Code, Status};
use crate::talos::machine::Stage;
use crate::talos::version::Version;
use crate::talos::wire::cosi::{self, Metadata, Resource, ResourceReply, Spec};
use crate::talos::wire::{Nothing, Timestamp};
use crate::world::World;

const MACHINE_CONFIG: &str = "MachineConfigs.config.talos.dev";
const MACHINE_TYPE: &str = "MachineTypes.config.talos.dev";
const MACHINE_STATUS: &str = "MachineStatuses.runtime.talos.dev";
const BOOT_ID: &str = "BootIDs.runtime.talos.dev";
const MEMBER: &str = "Members.cluster.talos.dev";
const HOSTNAME: &str = "HostnameStatuses.net.talos.dev";
const NODENAME: &str = "Nodenames.kubernetes.talos.dev";
const VERSION: &str = "Versions.runtime.talos.dev";
const ETCD_MEMBER: &str = "EtcdMembers.etcd.talos.dev";
const STATIC_POD: &str = "StaticPodStatuses.kubernetes.talos.dev";
const VOLUME: &str = "VolumeStatuses.block.talos.dev";
const DIAGNOSTIC: &str = "Diagnostics.runtime.talos.dev";
const DEFINITION: &str = "ResourceDefinitions.meta.cosi.dev";

/// A kind of resources: its type, where it is, how one is called, who may see it, and since which minor it is there.
struct Kind {
    name: &'static str,
    namespace: &'static str,
    display: &'static str,
    sensitive: bool,
    since: u32,
}

const KINDS: &[Kind] = &[
    Kind { name: MACHINE_CONFIG, namespace: "config", display: "MachineConfig", sensitive: true, since: 0 },
    Kind { name: MACHINE_TYPE, namespace: "config", display: "MachineType", sensitive: false, since: 0 },
    Kind { name: MACHINE_STATUS, namespace: "runtime", display: "MachineStatus", sensitive: false, since: 0 },
    Kind { name: BOOT_ID, namespace: "runtime", display: "BootID", sensitive: false, since: 14 },
    Kind { name: MEMBER, namespace: "cluster", display: "Member", sensitive: false, since: 0 },
    Kind { name: HOSTNAME, namespace: "network", display: "HostnameStatus", sensitive: false, since: 0 },
    Kind { name: NODENAME, namespace: "k8s", display: "Nodename", sensitive: false, since: 0 },
    Kind { name: VERSION, namespace: "runtime", display: "Version", sensitive: false, since: 0 },
    Kind { name: ETCD_MEMBER, namespace: "etcd", display: "EtcdMember", sensitive: false, since: 0 },
    Kind { name: STATIC_POD, namespace: "k8s", display: "StaticPodStatus", sensitive: false, since: 0 },
    Kind { name: VOLUME, namespace: "runtime", display: "VolumeStatus", sensitive: false, since: 0 },
    Kind { name: DIAGNOSTIC, namespace: "runtime", display: "Diagnostic", sensitive: false, since: 0 },
    Kind { name: DEFINITION, namespace: "meta", display: "ResourceDefinition", sensitive: false, since: 0 },
];

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
            // Nobody reads when; programs only insist that it is there.
            created: Some(Timestamp { seconds: 1_700_000_000, nanos: 0 }),
            updated: Some(Timestamp { seconds: 1_700_000_000, nanos: 0 }),
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
    let (_, boot) = machine(world, key)?;
    let hostname = world.talos_hostname(key);
    let known = KINDS.iter().find(|known| known.name == kind && version.minor >= known.since);
    if known.is_some_and(|known| known.sensitive) && !admin {
        return Err(Status::new(Code::PermissionDenied, "not authorized"));
    }
    Ok(match kind {
        _ if known.is_none() => {
            let id = kind.to_lowercase();
            let text =
                format!("resource ResourceDefinitions.meta.cosi.dev(meta/{id}@undefined) doesn't exist");
            return Err(Status::new(Code::NotFound, text));
        }
        DEFINITION => KINDS.iter().filter(|known| version.minor >= known.since).map(definition).collect(),
        MACHINE_CONFIG => {
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
        MACHINE_STATUS => vec![status(world, key)],
        BOOT_ID => {
            let content = cosi::BootIdSpec { boot_id: boot.id.clone() };
            vec![resource("runtime", kind, "boot-id", &content, format!("bootID: {}\n", boot.id))]
        }
        // A simulated machine has nothing to complain about.
        DIAGNOSTIC => Vec::new(),
        VERSION => {
            let version = boot.image.as_ref().map(|image| image.version.clone()).unwrap_or_default();
            let yaml = format!("version: {version}\n");
            vec![resource(
                "runtime",
                kind,
                "version",
                &cosi::VersionSpec { version, name: "Talos".to_owned() },
                yaml,
            )]
        }
        ETCD_MEMBER => {
            let up = world.etcd_of(key).filter(|(cluster, member)| world.etcd_up(cluster, member));
            let entry = |id: u64| {
                let member_id = format!("{id:016x}");
                let yaml = format!("memberID: {}\n", quoted(&member_id));
                resource("etcd", kind, "local", &cosi::EtcdMemberSpec { member_id }, yaml)
            };
            up.map(|(_, member)| entry(member.id)).into_iter().collect()
        }
        STATIC_POD => {
            let up = world.api_server_up(key);
            let pods = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
            let pods = pods.into_iter().filter(|_| up).map(|pod| {
                let yaml = "podStatus:\n    conditions:\n        - status: \"True\"\n          type: Ready\n    phase: Running\n";
                resource("k8s", kind, &format!("kube-system/{pod}-{hostname}"), &Nothing {}, yaml.to_owned())
            });
            pods.collect()
        }
        VOLUME => {
            let volumes = ["EPHEMERAL", "STATE"].into_iter().filter(|_| world.talos_disk(key).is_some());
            let volumes = volumes.map(|id| {
                let content = cosi::VolumeSpec { phase: 6, location: "/dev/sda4".to_owned(), size: 30 << 30 };
                resource(
                    "runtime",
                    kind,
                    id,
                    &content,
                    "phase: ready\nlocation: /dev/sda4\nsize: 32212254720\n".to_owned(),
                )
            });
            volumes.collect()
        }
        NODENAME if boot.config.is_none() => Vec::new(),
        NODENAME => {
            let yaml = format!("nodename: {}\n", quoted(&hostname));
            let content = cosi::NodenameSpec { nodename: hostname };
            vec![resource("k8s", kind, "nodename", &content, yaml)]
        }
        HOSTNAME => {
            let yaml = format!("hostname: {}\ndomainname: \"\"\n", quoted(&hostname));
            let content = cosi::HostnameSpec { hostname, domainname: String::new() };
            vec![resource("network", kind, "hostname", &content, yaml)]
        }
        _ => members(world, key),
    })
}

/// What the resource API says about a kind of resources.
fn definition(kind: &Kind) -> Resource {
    let (plural, suffix) = kind.name.split_once('.').unwrap_or((kind.name, ""));
    let single = kind.display.to_lowercase();
    let capitals: String = plural.chars().filter(char::is_ascii_uppercase).collect::<String>().to_lowercase();
    let mut aliases = vec![single];
    if kind.name == HOSTNAME {
        aliases.push("hostname".to_owned());
    }
    if capitals.len() > 1 {
        aliases.extend([capitals.clone(), format!("{capitals}s")]);
    }
    let plural = plural.to_lowercase();
    let mut all = vec![plural.clone()];
    let parts: Vec<&str> = suffix.split('.').collect();
    all.extend((1..parts.len()).map(|n| format!("{plural}.{}", parts[..n].join("."))));
    all.extend(aliases.iter().cloned());
    let yaml = format!(
        "type: {}\ndisplayType: {}\naliases: [{}]\nallAliases: [{}]\nprintColumns: []\ndefaultNamespace: {}\n",
        kind.name,
        kind.display,
        aliases.join(", "),
        all.join(", "),
        kind.namespace
    );
    let content = cosi::DefinitionSpec {
        kind: kind.name.to_owned(),
        display: kind.display.to_owned(),
        namespace: kind.namespace.to_owned(),
        aliases,
        all_aliases: all,
        sensitivity: i32::from(kind.sensitive),
    };
    resource("meta", DEFINITION, &kind.name.to_lowercase(), &content, yaml)
}

/// Stage and readiness of a machine, and what is missing.
pub(super) fn condition(world: &World, key: &str) -> (i32, bool, Vec<(&'static str, &'static str)>) {
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
        since + world.scaled_ms(crate::talos::kubernetes::READY) <= world.now_ms()
    });
    if number == 4 && !kubelet {
        unmet.push(("services", "service \"kubelet\" not healthy"));
    }
    let ready = unmet.is_empty() && matches!(number, 3 | 4);
    (number, ready, unmet)
}

/// The same as the resource has it, and as events do.
pub(super) fn machine_status(world: &World, key: &str) -> cosi::MachineStatusSpec {
    let (stage, ready, unmet) = condition(world, key);
    let unmet = unmet
        .into_iter()
        .map(|(name, reason)| cosi::UnmetCondition { name: name.to_owned(), reason: reason.to_owned() })
        .collect();
    cosi::MachineStatusSpec { stage, status: Some(cosi::MachineStatusStatus { ready, unmet }) }
}

fn status(world: &World, key: &str) -> Resource {
    let name = ["unknown", "booting", "installing", "maintenance", "running", "rebooting", "shutting down"];
    let content = machine_status(world, key);
    let ready = content.status.as_ref().is_some_and(|status| status.ready);
    let stage = usize::try_from(content.stage).ok().and_then(|stage| name.get(stage)).unwrap_or(&"unknown");
    let unmet = content.status.as_ref().map(|status| status.unmet.as_slice()).unwrap_or_default();
    let lines = unmet.iter().map(|unmet| {
        format!("        - name: {}\n          reason: {}\n", unmet.name, quoted(&unmet.reason))
    });
    let lines: String = lines.collect();
    let unmet = if lines.is_empty() { " []\n".to_owned() } else { format!("\n{lines}") };
    let yaml = format!("stage: {stage}\nstatus:\n    ready: {ready}\n    unmetConditions:{unmet}");
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

pub(super) fn watch(call: &Call<'_>) -> Outcome {
    watch::begin(call)
}
