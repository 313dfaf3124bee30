//! Resources: what a machine knows about itself, to get, list and watch.

mod block;
mod kinds;
mod kube;
mod network;
mod status;
mod watch;

use std::collections::BTreeMap;
use std::net::IpAddr;

use prost::Message;
use serde_json::json;

use super::{Call, Outcome, Reply, machine};
use crate::config::Role;
use crate::grpc::{Code, Status};
use crate::machine::Boot;
use crate::version::Version;
use crate::wire::cosi::{self, Metadata, Resource, ResourceReply, Spec};
use crate::wire::{Nothing, Timestamp};
use crate::world::World;
use kinds::{
    BOOT_ID, DEFINITION, DIAGNOSTIC, ETCD_MEMBER, EXTENSION, HOSTNAME, IDENTITY, INFO, MACHINE_CONFIG,
    MACHINE_STATUS, MACHINE_TYPE, MEMBER, PLATFORM, SECURITY, SERVICE, TIME, VERSION,
};
use strata_sim_core::yaml;
use strata_sim_kubernetes::content_version;

pub(super) use status::machine_status;

fn resource(namespace: &str, kind: &str, id: &str, content: &impl Message, yaml: String) -> Resource {
    let annotations = match kind {
        MACHINE_CONFIG => BTreeMap::from([("talos.dev/yaml-spec".to_owned(), "1".to_owned())]),
        _ => BTreeMap::new(),
    };
    let proto = content.encode_to_vec();
    Resource {
        metadata: Some(Metadata {
            namespace: namespace.to_owned(),
            kind: kind.to_owned(),
            id: id.to_owned(),
            // It moves with the content, as it would; the number itself means nothing.
            version: content_version(&proto).to_string(),
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

/// A text as a block, which keeps its lines.
fn block_text(text: &str) -> String {
    text.lines().fold("|\n".to_owned(), |out, line| format!("{out}    {line}\n"))
}

/// A resource that only people look at: its content is what they are shown.
fn shown(kind: &str, id: &str, spec: serde_json::Value) -> Resource {
    let namespace = kinds::find(kind, u32::MAX).map_or("", |known| known.namespace);
    let text = yaml::write(&spec);
    let version = content_version(text.as_bytes());
    versioned(resource(namespace, kind, id, &Nothing {}, text), version)
}

fn versioned(mut resource: Resource, version: u32) -> Resource {
    if let Some(metadata) = &mut resource.metadata {
        metadata.version = version.to_string();
    }
    resource
}

/// Every resource of a type on a machine.
fn all(world: &World, key: &str, name: &str, version: Version, admin: bool) -> Result<Vec<Resource>, Status> {
    let (machine, boot) = machine(world, key)?;
    let Some(kind) = kinds::find(name, version.minor) else {
        let id = name.to_lowercase();
        let text = format!("resource {DEFINITION}(meta/{id}@undefined) doesn't exist");
        return Err(Status::new(Code::NotFound, text));
    };
    if kind.sensitive && !admin {
        return Err(Status::new(Code::PermissionDenied, "not authorized"));
    }
    Ok(match kind.name {
        DEFINITION => kinds::definitions(version.minor),
        MACHINE_CONFIG => {
            let disk = world.talos_disk(key).and_then(|disk| disk.config.as_ref());
            let entries = [("v1alpha1", boot.config.as_ref()), ("persistent", disk)];
            let present = entries.into_iter().filter_map(|(id, config)| Some((id, config?)));
            present
                .map(|(id, config)| {
                    let content = cosi::MachineConfigSpec { yaml: config.text().as_bytes().to_vec() };
                    resource("config", MACHINE_CONFIG, id, &content, block_text(config.text()))
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
            vec![resource("config", MACHINE_TYPE, "machine-type", &content, format!("{name}\n"))]
        }
        MACHINE_STATUS => vec![status::resource(world, key)],
        SERVICE => status::services(world, key)?,
        BOOT_ID => {
            let content = cosi::BootIdSpec { boot_id: boot.id.clone() };
            vec![resource("runtime", BOOT_ID, "boot-id", &content, format!("bootID: {}\n", boot.id))]
        }
        // A simulated machine has nothing to complain about.
        DIAGNOSTIC => Vec::new(),
        VERSION => {
            let version = boot.version();
            let yaml = yaml::write(&json!({ "name": "Talos", "version": version }));
            let content = cosi::VersionSpec { version, name: "Talos".to_owned() };
            vec![resource("runtime", VERSION, "version", &content, yaml)]
        }
        EXTENSION => extensions(world, boot),
        PLATFORM => {
            let platform = boot.image.as_ref().map_or("metal", |image| image.platform.as_str());
            let spec = json!({ "platform": platform, "hostname": world.talos_hostname(key) });
            vec![shown(PLATFORM, "platformmetadata", spec)]
        }
        SECURITY => {
            let secure = boot.image.as_ref().is_some_and(|image| image.secure_boot);
            vec![shown(SECURITY, "securitystate", json!({ "secureBoot": secure }))]
        }
        TIME => vec![shown(
            TIME,
            "node",
            json!({ "synced": machine.skew == 0, "epoch": 0, "syncDisabled": false }),
        )],
        INFO => {
            let info = |config: &crate::config::MachineConfig| {
                let spec = json!({ "clusterId": config.cluster_id(), "clusterName": config.cluster_name() });
                shown(INFO, "current", spec)
            };
            boot.config.as_ref().map(info).into_iter().collect()
        }
        IDENTITY => {
            let identity = world.talos_disk(key).map(|disk| json!({ "nodeId": disk.identity }));
            identity.map(|spec| shown(IDENTITY, "local", spec)).into_iter().collect()
        }
        ETCD_MEMBER => {
            let up = world.etcd_of(key).filter(|(cluster, member)| world.etcd_up(cluster, member));
            let entry = |id: u64| {
                let member_id = format!("{id:016x}");
                let yaml = yaml::write(&json!({ "memberID": member_id }));
                resource("etcd", ETCD_MEMBER, "local", &cosi::EtcdMemberSpec { member_id }, yaml)
            };
            up.map(|(_, member)| entry(member.id)).into_iter().collect()
        }
        HOSTNAME => {
            let hostname = world.talos_hostname(key);
            let yaml = yaml::write(&json!({ "hostname": hostname, "domainname": "" }));
            let content = cosi::HostnameSpec { hostname, domainname: String::new() };
            vec![resource("network", HOSTNAME, "hostname", &content, yaml)]
        }
        MEMBER => members(world, key),
        _ => match kind.namespace {
            "network" => network::all(world, key, boot, kind.name),
            "k8s" | "controlplane" => kube::all(world, key, boot, kind),
            _ => block::all(world, key, kind.name),
        },
    })
}

/// What was built into the image: the schematic itself, and each extension that it names.
fn extensions(world: &World, boot: &Boot) -> Vec<Resource> {
    let Some(image) = &boot.image else { return Vec::new() };
    let written = world.talos.schematics.get(&image.schematic).and_then(|text| yaml::documents(text).ok());
    let named = written.iter().flatten().filter_map(|schematic| {
        schematic.pointer("/customization/systemExtensions/officialExtensions")?.as_array().cloned()
    });
    let named: Vec<String> =
        named.flatten().filter_map(|name| Some(name.as_str()?.rsplit('/').next()?.to_owned())).collect();
    let one = |id: usize, name: &str, version: &str| {
        let spec = json!({ "image": format!("{id}.sqsh"), "metadata": { "name": name, "version": version } });
        shown(EXTENSION, &id.to_string(), spec)
    };
    let extensions = named.iter().enumerate().map(|(number, name)| one(number, name, &image.version));
    extensions.chain([one(named.len(), "schematic", &image.schematic)]).collect()
}

impl World<'_> {
    /// Machines of the same cluster that discovery knows: those that run and share its identity and secret. Each with its
    /// address, itself, and whether it is a control plane.
    pub fn talos_members(&self, key: &str) -> Vec<(String, String, bool)> {
        let Some(own) = self.talos.machines.get(key).and_then(|machine| machine.config()) else {
            return Vec::new();
        };
        let members = self.talos.machines.iter().filter_map(|(other, machine)| {
            let config = machine.config().filter(|_| machine.is_running())?;
            let same =
                config.cluster_id() == own.cluster_id() && config.cluster_secret() == own.cluster_secret();
            let boot = machine.boot.as_ref().filter(|_| same)?;
            let address = boot.addresses().first().cloned().unwrap_or_default();
            Some((address, other.clone(), config.is_control_plane()))
        });
        members.collect()
    }
}

fn members(world: &World, key: &str) -> Vec<Resource> {
    let member = |other: &str, control_plane: bool| {
        let boot = world.talos.machines.get(other)?.boot.as_ref()?;
        let hostname = world.talos_hostname(other);
        let version = boot.version();
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
            machine_type: if control_plane { 2 } else { 3 },
            operating_system: format!("Talos ({version})"),
        };
        let yaml = yaml::write(&json!({
            "nodeId": node_id, "addresses": addresses, "hostname": hostname,
            "machineType": if control_plane { "controlplane" } else { "worker" },
            "operatingSystem": format!("Talos ({version})"),
        }));
        Some(resource("cluster", MEMBER, &hostname, &content, yaml))
    };
    let found = world.talos_members(key);
    let mut found: Vec<Resource> =
        found.iter().filter_map(|(_, other, control)| member(other, *control)).collect();
    found.sort_by(|a, b| id_of(a).cmp(id_of(b)));
    found
}

fn id_of(resource: &Resource) -> &str {
    resource.metadata.as_ref().map_or("", |metadata| metadata.id.as_str())
}

pub(super) fn get(call: &Call<'_>) -> Outcome {
    let asked: cosi::GetRequest = call.request()?;
    let found = all(&call.machines.world(), call.key, &asked.kind, call.version, call.admin)?;
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
    let found = all(&call.machines.world(), call.key, &asked.kind, call.version, call.admin)?;
    let replies =
        found.into_iter().map(|resource| ResourceReply { resource: Some(resource) }.encode_to_vec());
    Ok(Reply::Messages(replies.collect()))
}

pub(super) fn watch(call: &Call<'_>) -> Outcome {
    watch::begin(call)
}
