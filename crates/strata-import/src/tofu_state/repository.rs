//! A new repository for what OpenTofu built, where there is none: one stack for the machines of the state, a cluster for each Talos.

use crate::output::only;
use crate::records::{
    Cluster, ClusterNode, ClusterSpec, Guest, Kubernetes, Metadata, NodeSettings, ProxmoxTarget,
    SecretSource, Settings, Stack, StackProxmox, State, Talos, Target, Tls,
};
use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use strata_blueprint::kinds;
use strata_secret::SecretString;

use super::cluster::{BuiltCluster, BuiltNode};
use super::image::Images;
use super::{BuiltObjects, CONTAINER, MEMBERSHIPS, StateNote, VMS, container, vm, vm_id};
use crate::host::{self, Hosts};
use crate::name;
use crate::output::{Object, Put};
use crate::parse;
use strata_tofu::{TofuResource, TofuState};
use strata_yaml::plain;

/// The server that OpenTofu spoke to. It is in no state: the user says it, or its variables do.
#[derive(Default)]
pub struct Connection {
    /// `https://pve.example.org:8006`.
    pub endpoint: Option<String>,
    /// Its certificate is not verified.
    pub insecure: bool,
    /// The API token.
    pub token: Option<SecretString>,
}

/// The files of a new repository.
pub struct Repository {
    /// By path from its root.
    pub files: BTreeMap<String, String>,
    /// Values by name, to be encrypted into `secrets.sops.yaml`.
    pub secrets: BTreeMap<String, SecretString>,
    /// Whole files by path, to be encrypted.
    pub sealed: BTreeMap<String, SecretString>,
    /// What was not carried over as it is.
    pub notes: Vec<StateNote>,
}

/// A stack while it is written.
pub(super) struct Writing<'s> {
    pub(super) state: &'s TofuState,
    /// The node of most machines.
    pub(super) node: &'s str,
    pub(super) images: Images<'s>,
    /// Names of templates by their number.
    pub(super) templates: BTreeMap<i64, String>,
    /// Pools that machines are said to be members of.
    pub(super) pools: BTreeMap<u32, String>,
    pub(super) notes: Vec<StateNote>,
    secrets: BTreeMap<String, SecretString>,
}

impl Writing<'_> {
    /// A value that goes to the encrypted file.
    pub(super) fn secret(&mut self, name: &str, value: &str) -> Json {
        self.secrets.insert(name.to_owned(), SecretString::new(value.to_owned()));
        json!({"secret": name})
    }
}

/// Writes a repository with the id `id` and the stack `stack`.
pub fn write_repository(
    state: &TofuState,
    built: &BuiltObjects,
    connection: &Connection,
    id: &str,
    stack: &str,
) -> Repository {
    let mut repository = Repository {
        files: BTreeMap::new(),
        secrets: BTreeMap::new(),
        sealed: BTreeMap::new(),
        notes: built.notes.clone(),
    };
    if !built.guests.is_empty() {
        machines(&mut repository, state, built, stack);
    }
    if !built.objects.is_empty() {
        datacenter(&mut repository, state, built, stack);
    }
    for (index, cluster) in built.clusters.iter().enumerate() {
        write_cluster(&mut repository, cluster, index, stack);
    }
    settings(&mut repository, connection, id, built.is_on_proxmox());
    repository
}

fn machines(repository: &mut Repository, state: &TofuState, built: &BuiltObjects, stack: &str) {
    let node = most_common(built.guests.iter().map(|guest| guest.node.as_str()));
    let names = names(built, &mut repository.notes);
    let templates = built
        .guests
        .iter()
        .filter(|guest| guest.kind == kinds::TEMPLATE)
        .filter_map(|guest| Some((i64::from(guest.vm_id), names.get(&guest.vm_id)?.clone())))
        .collect();
    let mut writing = Writing {
        state,
        node,
        images: Images::of(state),
        templates,
        pools: pools(state),
        notes: Vec::new(),
        secrets: BTreeMap::new(),
    };
    // Templates that cannot be recreated are machines, and nothing can be cloned from those.
    for resource in managed(state, &VMS).filter(|found| found.attributes().flag("template") == Some(true)) {
        let is_template = vm::write(&mut writing, resource).is_some_and(|written| written.is_template);
        if let Some(id) = vm_id(resource.attributes()).filter(|_| !is_template) {
            writing.templates.remove(&i64::from(id));
        }
    }
    writing.notes.clear();
    let (mut templates, mut vms, mut containers) = (Object::new(), Object::new(), Object::new());
    for resource in managed(state, &VMS) {
        let key = vm_id(resource.attributes()).and_then(|id| names.get(&id));
        if let (Some(key), Some(written)) = (key, vm::write(&mut writing, resource)) {
            let own = with_name(written.fields, key, resource.attributes().text("name"));
            let place = if written.is_template { &mut templates } else { &mut vms };
            place.insert(key.clone(), own);
        }
    }
    for resource in managed(state, &[CONTAINER]) {
        let key = vm_id(resource.attributes()).and_then(|id| names.get(&id));
        if let (Some(key), Some(written)) = (key, container::write(&mut writing, resource)) {
            let hostname =
                resource.attributes().block("initialization").and_then(|inner| inner.text("hostname"));
            containers.insert(key.clone(), with_name(written, key, hostname));
        }
    }
    let mut document = Object::new();
    document.set(Stack::metadata, only(Metadata::name, stack));
    let mut proxmox = Object::new();
    proxmox.set(StackProxmox::target, json!("pve"));
    proxmox.set(StackProxmox::node, json!(node));
    document.set(Stack::proxmox, Json::Object(proxmox));
    document.put_full(Stack::images, Json::Object(writing.images.written(&mut writing.notes)));
    document.put_full(Stack::templates, Json::Object(templates));
    document.put_full(Stack::vms, Json::Object(vms));
    document.put_full(Stack::containers, Json::Object(containers));
    repository.files.insert(format!("stacks/{stack}/stack.yaml"), plain::write(&Json::Object(document)));
    repository.notes.extend(writing.notes);
    repository.secrets.extend(writing.secrets);
}

/// One file for what concerns the whole datacenter, and one for each node if there are several.
fn datacenter(repository: &mut Repository, state: &TofuState, built: &BuiltObjects, stack: &str) {
    let secrets = &mut repository.secrets;
    let mut secret = |name: &str, value: &str| {
        secrets.insert(name.to_owned(), SecretString::new(value.to_owned()));
        json!({"secret": name})
    };
    let mut hosts = Hosts::new(&mut secret);
    let is_built =
        |resource: &&TofuResource| built.objects.iter().any(|object| object.address == resource.address);
    for resource in state.resources.iter().filter(is_built) {
        let (body, _) = parse::yaml(&resource.address, &resource.json());
        if !body.is_some_and(|body| hosts.add(&resource.kind, &body)) {
            let message = "it stays as it is: it lacks what Strata needs to know of it";
            repository.notes.push(StateNote::new(&resource.address, message));
        }
    }
    for (node, sections) in hosts.documents() {
        let own = match &node {
            Some(node) => format!("{stack}-{}", name(node)),
            None => format!("{stack}-datacenter"),
        };
        let document = host::document(&own, "pve", node, sections);
        repository.files.insert(format!("hypervisors/{own}.yaml"), plain::write(&Json::Object(document)));
    }
}

fn managed<'s>(state: &'s TofuState, kinds: &'s [&str]) -> impl Iterator<Item = &'s TofuResource> {
    state.resources.iter().filter(move |found| !found.is_data && kinds.contains(&found.kind.as_str()))
}

/// The name is written where it is not the key.
fn with_name(fields: Object, key: &str, own: Option<&str>) -> Json {
    let Some(own) = own.filter(|own| *own != key) else { return Json::Object(fields) };
    let mut named = Object::new();
    for (field, value) in fields {
        named.insert(field.clone(), value);
        if field == "vmId" {
            named.set(Guest::name, json!(own));
        }
    }
    Json::Object(named)
}

/// The keys of machines by their numbers. Proxmox lets several have one name, Strata does not.
fn names(built: &BuiltObjects, notes: &mut Vec<StateNote>) -> BTreeMap<u32, String> {
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    for guest in &built.guests {
        let own = match guest.name.is_empty() {
            true => format!("guest-{}", guest.vm_id),
            false => name(&guest.name),
        };
        let taken = names.values().any(|other| *other == own);
        if taken {
            let message =
                format!("another machine is called `{own}` too: this one becomes `{own}-{}`", guest.vm_id);
            notes.push(StateNote::new(&guest.address, message));
        }
        names.insert(guest.vm_id, if taken { format!("{own}-{}", guest.vm_id) } else { own });
    }
    names
}

fn pools(state: &TofuState) -> BTreeMap<u32, String> {
    let memberships = managed(state, &MEMBERSHIPS).filter_map(|resource| {
        let attributes = resource.attributes();
        let id = u32::try_from(attributes.positive("vm_id")?).ok()?;
        Some((id, attributes.text("pool_id")?.to_owned()))
    });
    memberships.collect()
}

fn most_common<'n>(nodes: impl Iterator<Item = &'n str>) -> &'n str {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for node in nodes {
        *counts.entry(node).or_default() += 1;
    }
    // The first of the most common.
    let most = counts.values().copied().max().unwrap_or_default();
    counts.iter().find(|(_, count)| **count == most).map_or("pve", |(node, _)| node)
}

/// The cluster stands on machines of its own: its VMs are those of the stack.
fn write_cluster(repository: &mut Repository, cluster: &BuiltCluster, index: usize, stack: &str) {
    let wanted = cluster.name.as_deref().map_or_else(|| format!("cluster-{}", index + 1), name);
    let own = if wanted == stack { format!("{wanted}-talos") } else { wanted };
    let folder = format!("clusters/{own}");
    repository.sealed.insert(format!("{folder}/talos.sops.yaml"), cluster.secrets.to_yaml());
    let mut note = |message: &str| repository.notes.push(StateNote::new(&cluster.address, message));
    let (Some(version), false) = (installed(cluster), cluster.nodes.is_empty()) else {
        return note(
            "its secrets are kept; no machine of it is in the state, so its `cluster.yaml` has to be written",
        );
    };
    let mut talos = Object::new();
    talos.set(Talos::version, json!(version));
    talos.put(Talos::cluster_name, cluster.name.as_deref().filter(|name| *name != own));
    talos.put(Talos::factory_schematic, cluster.nodes.iter().find_map(schematic));
    let mut kubernetes = Object::new();
    kubernetes.put(
        Kubernetes::version,
        cluster.kubernetes_version.as_deref().map(|version| format!("v{}", version.trim_start_matches('v'))),
    );
    let mut nodes = Object::new();
    for (index, node) in cluster.nodes.iter().enumerate() {
        let key = node.hostname.as_deref().map_or_else(|| format!("{own}-{}", index + 1), name);
        let mut written = Object::new();
        written.set(ClusterNode::role, json!(if node.control_plane { "controlPlane" } else { "worker" }));
        written.set(ClusterNode::address, json!(node.ip));
        written.put(NodeSettings::install_disk, node.install_disk.as_deref());
        nodes.insert(key, Json::Object(written));
    }
    let mut spec = Object::new();
    spec.set(ClusterSpec::talos, Json::Object(talos));
    spec.put_full(ClusterSpec::kubernetes, Json::Object(kubernetes));
    spec.put(ClusterSpec::endpoint, cluster.endpoint.as_deref());
    spec.set(ClusterSpec::nodes, Json::Object(nodes));
    let mut document = Object::new();
    document.set(Cluster::metadata, only(Metadata::name, own));
    document.set(Cluster::cluster, Json::Object(spec));
    repository.files.insert(format!("{folder}/cluster.yaml"), plain::write(&Json::Object(document)));
}

/// The version that the machines were installed with, else the one that their configuration was made for.
fn installed(cluster: &BuiltCluster) -> Option<String> {
    let tag = |node: &BuiltNode| {
        let (_, tag) = node.install_image.as_deref()?.rsplit_once(':')?;
        tag.starts_with('v').then(|| tag.to_owned())
    };
    let asked = cluster.talos_version.as_deref().filter(|version| version.matches('.').count() == 2);
    cluster
        .nodes
        .iter()
        .find_map(tag)
        .or_else(|| asked.map(|version| format!("v{}", version.trim_start_matches('v'))))
}

fn schematic(node: &BuiltNode) -> Option<String> {
    let image = node.install_image.as_deref()?;
    let (path, _) = image.rsplit_once(':')?;
    path.rsplit('/').next().filter(|id| id.len() == 64).map(str::to_owned)
}

fn settings(repository: &mut Repository, connection: &Connection, id: &str, has_target: bool) {
    let mut settings = Object::new();
    settings.set(Settings::repository, json!(id));
    settings.set(Settings::state, only(State::backend, "local"));
    settings.set(Settings::secrets, json!([only(SecretSource::sops, "secrets.sops.yaml")]));
    if has_target {
        let mut proxmox = Object::new();
        let endpoint = connection.endpoint.as_deref().unwrap_or("https://proxmox.example:8006");
        let endpoint = endpoint.trim_end_matches('/').trim_end_matches("/api2/json");
        proxmox.set(ProxmoxTarget::endpoint, json!(endpoint));
        proxmox.set(ProxmoxTarget::token, json!({"secret": "proxmox_api_token"}));
        if connection.insecure {
            proxmox.set(ProxmoxTarget::tls, only(Tls::insecure, true));
        }
        settings.set(Settings::targets, json!({"pve": only(Target::proxmox, Json::Object(proxmox))}));
        let missing = || SecretString::new("user@realm!name=00000000-0000-0000-0000-000000000000".to_owned());
        let token = connection.token.clone().unwrap_or_else(missing);
        repository.secrets.insert("proxmox_api_token".to_owned(), token);
    }
    repository.files.insert("strata.yaml".to_owned(), plain::write(&Json::Object(settings)));
}
