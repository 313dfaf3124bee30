//! `talconfig.yaml`: a cluster as talhelper takes it.

use serde_json::{Map as JsonMap, Value as Json, json};
use strata_blueprint::kinds;
use strata_diagnostics::Diagnostics;
use strata_resource::Resource;
use strata_source::cluster::nodes::Machine;
use strata_source::cluster::topology::NodeRole;
use strata_source::cluster::{Arch, Cluster, Kubernetes, Schematic};
use strata_source::value::document::Document;
use strata_talos::{Contract, Factory, FactoryImage, Platform};

use crate::project::Files;
use crate::render::Project;
use crate::render::cluster::endpoint;
use strata_yaml::plain;

/// The label that keeps control planes out of load balancers.
const NOT_BALANCED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// One machine as far as Talos is concerned.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) control_plane: bool,
    pub(crate) address: Option<String>,
    pub(crate) install_disk: Option<String>,
    /// With the version.
    pub(crate) installer: String,
    pub(crate) schematic: String,
    pub(crate) secure_boot: bool,
    pub(crate) patches: Vec<String>,
    json: Json,
}

pub(crate) fn with_v(version: &str) -> String {
    format!("v{}", version.trim_start_matches('v'))
}

/// The machines of a cluster.
pub(crate) fn nodes(project: &Project<'_>, cluster: &Cluster, files: &mut Files) -> Vec<Node> {
    let machines = cluster.machines(&project.stack.name, &mut Diagnostics::new());
    machines.iter().map(|machine| node(project, cluster, machine, files)).collect()
}

fn node(project: &Project<'_>, cluster: &Cluster, machine: &Machine<'_>, files: &mut Files) -> Node {
    let spec = &cluster.cluster;
    let talos = &spec.talos;
    let control_plane = machine.role == NodeRole::ControlPlane;
    let disk =
        machine.setting(|settings| settings.install_disk.clone()).or_else(|| talos.install_disk.clone());
    let secure = machine.setting(|settings| settings.secure_boot).unwrap_or(talos.secure_boot);
    let schematic = match machine.setting(|settings| settings.schematic.as_ref()).or(talos.schematic.as_ref())
    {
        Some(schematic) => schematic_id(schematic),
        None => talos
            .factory_schematic
            .as_ref()
            .map_or_else(|| strata_talos::Schematic::default().id(), |id| id.value.clone()),
    };
    let image = FactoryImage {
        schematic: schematic.clone(),
        version: talos.version.value.clone(),
        // Machines that are there already have no drive for their addresses.
        platform: if cluster.proxmox.is_some() { Platform::NoCloud } else { Platform::Metal },
        arch: match talos.arch {
            Some(Arch::Arm64) => strata_talos::Arch::Arm64,
            _ => strata_talos::Arch::Amd64,
        },
        secure_boot: secure,
    };
    let installer = Factory::default().installer(&image);
    let mut patches: Vec<String> = besides(cluster, machine, secure).into_iter().collect();
    let own = machine.settings.iter().rev().flat_map(|settings| settings.patches.iter());
    for document in spec.patches.iter().chain(own) {
        match text(project, document) {
            Some(text) => patches.push(text),
            None => files.gap(
                format!("{}: {}", project.stack.name, machine.name),
                "a patch with references stays with Strata: the file would hold a secret",
            ),
        }
    }
    let address = machine.address.as_ref().map(|address| address.value.to_string());
    let mut json = JsonMap::new();
    json.insert("hostname".into(), json!(machine.name));
    json.insert("ipAddress".into(), json!(address.clone().unwrap_or_default()));
    json.insert("controlPlane".into(), json!(control_plane));
    json.insert("installDisk".into(), json!(disk.clone().unwrap_or_else(|| "/dev/sda".to_owned())));
    let untagged = installer.rsplit_once(':').map_or(installer.as_str(), |(image, _)| image);
    json.insert("talosImageURL".into(), json!(untagged));
    if secure {
        let mode = if cluster.proxmox.is_some() { "nocloud" } else { "metal" };
        json.insert("machineSpec".into(), json!({"mode": mode, "secureboot": true}));
    }
    let mut labels = machine.merged(|settings| &settings.labels);
    if !labels.is_empty() {
        // talhelper writes these in place of what Talos gives every control plane.
        if control_plane {
            labels.entry(NOT_BALANCED).or_insert("");
        }
        json.insert("nodeLabels".into(), json!(labels));
    }
    let annotations = machine.merged(|settings| &settings.annotations);
    if !annotations.is_empty() {
        json.insert("nodeAnnotations".into(), json!(annotations));
    }
    let taints = machine.merged(|settings| &settings.taints);
    if !taints.is_empty() {
        json.insert("nodeTaints".into(), json!(taints));
    }
    let modules = machine
        .setting(|settings| settings.kernel_modules.clone())
        .unwrap_or_else(|| talos.kernel_modules.clone());
    if !modules.is_empty() {
        let modules: Vec<Json> = modules.iter().map(|name| json!({"name": name})).collect();
        json.insert("kernelModules".into(), json!(modules));
    }
    network(project, cluster, machine, control_plane, &mut json);
    if !patches.is_empty() {
        json.insert("patches".into(), json!(patches));
    }
    Node {
        name: machine.name.clone(),
        control_plane,
        address,
        install_disk: disk,
        installer,
        schematic,
        secure_boot: secure,
        patches,
        json: Json::Object(json),
    }
}

/// What talhelper has no word for.
fn besides(cluster: &Cluster, machine: &Machine<'_>, secure: bool) -> Option<String> {
    let talos = &cluster.cluster.talos;
    let mut patch = JsonMap::new();
    if machine.setting(|settings| settings.encrypt_disk).or(talos.encrypt_disk).unwrap_or(false) {
        let key = if secure { json!({"slot": 0, "tpm": {}}) } else { json!({"slot": 0, "nodeID": {}}) };
        let volume = json!({"provider": "luks2", "keys": [key]});
        patch.insert("systemDiskEncryption".into(), json!({"state": volume, "ephemeral": volume}));
    }
    let servers = cluster.cluster.network.as_ref().map(|network| &network.time_servers);
    if let Some(servers) = servers.filter(|servers| !servers.is_empty()) {
        patch.insert("time".into(), json!({"servers": servers}));
    }
    let mirrors: JsonMap<String, Json> = talos
        .registry_mirrors
        .iter()
        .map(|(host, endpoints)| (host.value.clone(), json!({"endpoints": endpoints})))
        .collect();
    if !mirrors.is_empty() {
        patch.insert("registries".into(), json!({"mirrors": mirrors}));
    }
    (!patch.is_empty()).then(|| plain::write(&json!({"machine": patch})))
}

impl Node {
    /// What Talos is told of the machine besides patches of the user's own: talhelper and Talos have the same words for it.
    pub(crate) fn machine_patch(&self) -> Option<String> {
        let machine = self.machine_part();
        (!machine.is_empty()).then(|| plain::write(&json!({"machine": machine})))
    }

    /// The same, as the part `machine` of a configuration.
    pub(crate) fn machine_part(&self) -> JsonMap<String, Json> {
        let mut machine = JsonMap::new();
        let mut network = JsonMap::new();
        for (key, there) in [("networkInterfaces", "interfaces"), ("nameservers", "nameservers")] {
            network.extend(self.json.get(key).map(|value| (there.to_owned(), value.clone())));
        }
        if !network.is_empty() {
            machine.insert("network".into(), Json::Object(network));
        }
        for key in ["nodeLabels", "nodeAnnotations", "nodeTaints"] {
            machine.extend(self.json.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        if let Some(modules) = self.json.get("kernelModules") {
            machine.insert("kernel".into(), json!({"modules": modules}));
        }
        machine
    }
}

fn network(
    project: &Project<'_>,
    cluster: &Cluster,
    machine: &Machine<'_>,
    control_plane: bool,
    json: &mut JsonMap<String, Json>,
) {
    let (Some(network), Some(address)) = (&cluster.cluster.network, &machine.address) else { return };
    let mut link = JsonMap::new();
    match mac(project, machine) {
        Some(mac) => link.insert("deviceSelector".into(), json!({"hardwareAddr": mac.to_lowercase()})),
        None => link.insert("interface".into(), json!("eth0")),
    };
    let fixed = !cluster.asks_dhcp(machine);
    link.insert("dhcp".into(), json!(!fixed && network.guest_vlan.is_none()));
    let mtu = machine.setting(|settings| settings.mtu).or(network.mtu);
    if let Some(mtu) = mtu {
        link.insert("mtu".into(), json!(mtu));
    }
    let mut inner = JsonMap::new();
    if fixed {
        inner.insert("addresses".into(), json!([network.cidr.with_address(address.value).to_string()]));
    }
    if let Some(gateway) = network.gateway.as_ref().filter(|_| fixed) {
        let all = if gateway.0.is_ipv6() { "::/0" } else { "0.0.0.0/0" };
        inner.insert("routes".into(), json!([{"network": all, "gateway": gateway.0.to_string()}]));
    }
    if let Some(vip) = network.vip.as_ref().filter(|_| control_plane) {
        inner.insert("vip".into(), json!({"ip": vip.0.to_string()}));
    }
    match network.guest_vlan {
        Some(vlan) => {
            inner.insert("vlanId".into(), json!(vlan));
            if !fixed {
                inner.insert("dhcp".into(), json!(true));
            }
            link.insert("vlans".into(), json!([Json::Object(inner)]));
        }
        None => link.extend(inner),
    }
    json.insert("networkInterfaces".into(), json!([Json::Object(link)]));
    if !network.nameservers.is_empty() {
        let servers: Vec<String> = network.nameservers.iter().map(|server| server.0.to_string()).collect();
        json.insert("nameservers".into(), json!(servers));
    }
}

/// As drawn: the source's, or the one that Strata derives.
fn mac(project: &Project<'_>, machine: &Machine<'_>) -> Option<String> {
    let is_its_vm =
        |resource: &&Resource| resource.kind() == kinds::VM && resource.address.name() == machine.name;
    let drawn = project.blueprint.graph.iter().find(is_its_vm)?;
    let networks = drawn.spec.get("networks")?.as_map()?;
    Some(networks.get("net0")?.as_map()?.get("mac")?.as_text()?.to_owned())
}

fn schematic_id(schematic: &Schematic) -> String {
    match &schematic.id {
        Some(id) => id.value.clone(),
        None => strata_talos::Schematic {
            extensions: schematic.extensions.iter().map(|extension| extension.value.clone()).collect(),
            extra_kernel_args: schematic.extra_kernel_args.clone(),
            ..strata_talos::Schematic::default()
        }
        .id(),
    }
}

fn text(project: &Project<'_>, document: &Document) -> Option<String> {
    match document {
        Document::Inline(text) => Some(text.value.clone()),
        Document::File(path) => {
            let bytes = project.stack.read(path, project.world).ok()?;
            String::from_utf8(bytes).ok()
        }
        Document::Mapping(node) => plain::of_node(node).map(|json| plain::write(&json)),
        Document::Reference(_) => None,
    }
}

/// The file.
pub(crate) fn render(project: &Project<'_>, cluster: &Cluster, nodes: &[Node]) -> String {
    let spec = &cluster.cluster;
    let mut json = JsonMap::new();
    json.insert("clusterName".into(), json!(cluster.cluster_name(&project.stack.name)));
    json.insert("talosVersion".into(), json!(with_v(&spec.talos.version)));
    let kubernetes = spec.kubernetes.as_ref();
    if let Some(version) = kubernetes_version(cluster) {
        json.insert("kubernetesVersion".into(), json!(with_v(&version)));
    }
    json.insert("endpoint".into(), json!(endpoint(cluster, &project.stack.name)));
    if let Some(kubernetes) = kubernetes {
        if let Some(domain) = &kubernetes.dns_domain {
            json.insert("domain".into(), json!(domain));
        }
        if let Some(pods) = &kubernetes.pod_cidr {
            json.insert("clusterPodNets".into(), json!([pods.value.to_string()]));
        }
        if let Some(services) = &kubernetes.service_cidr {
            json.insert("clusterSvcNets".into(), json!([services.value.to_string()]));
        }
        if let Some(both) = kubernetes.schedule_on_control_planes {
            json.insert("allowSchedulingOnControlPlanes".into(), json!(both));
        }
        json.extend(cni(kubernetes).map(|cni| ("cniConfig".to_owned(), cni)));
    }
    if let Some(names) =
        spec.network.as_ref().map(|network| &network.api_names).filter(|names| !names.is_empty())
    {
        json.insert("additionalApiServerCertSans".into(), json!(names));
    }
    let nodes: Vec<&Json> = nodes.iter().map(|node| &node.json).collect();
    json.insert("nodes".into(), json!(nodes));
    // talhelper fills `$NAME` in wherever it stands: what is a dollar is written as two.
    format!("---\n{}", plain::write(&Json::Object(json)).replace('$', "$$"))
}

/// The version of the source, or else the one that Strata takes: other tools would take one of their own.
pub(crate) fn kubernetes_version(cluster: &Cluster) -> Option<String> {
    let spec = &cluster.cluster;
    let written = spec.kubernetes.as_ref().and_then(|kubernetes| kubernetes.version.as_ref());
    let contract =
        || spec.talos.version.parse::<Contract>().ok().map(|contract| contract.default_kubernetes());
    written.map(|version| version.value.clone()).or_else(contract)
}

/// The network plug-in in the words of Talos, where the source names one.
pub(crate) fn cni(kubernetes: &Kubernetes) -> Option<Json> {
    if !kubernetes.cni_manifests.is_empty() {
        return Some(json!({"name": "custom", "urls": kubernetes.cni_manifests}));
    }
    kubernetes.cni.map(|cni| json!({"name": cni.to_string()}))
}
