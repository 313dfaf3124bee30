//! `topf.yaml`: a cluster as topf takes it. Settings of machines are patches there, in folders for all, for a role, for a node.

use serde_json::{Map as JsonMap, Value as Json, json};
use strata_source::cluster::Cluster;
use strata_talos::Contract;

use crate::project::{Files, Style};
use crate::render::Project;
use crate::render::cluster::endpoint;
use crate::talconfig::{self, Node};
use strata_yaml::plain;

/// The folder of patches, beside the file.
const PATCHES: &str = "topf";
/// From this minor version of Talos on the name of a machine is a document of its own.
const NAME_DOCUMENT: u8 = 12;

/// Adds the file and its patches to a folder.
pub(crate) fn render(
    project: &Project<'_>,
    cluster: &Cluster,
    nodes: &[Node],
    folder: &str,
    files: &mut Files,
) {
    let spec = &cluster.cluster;
    let stack = &project.stack.name;
    let contract: Option<Contract> = spec.talos.version.parse().ok();
    let mut topf = JsonMap::new();
    topf.insert("clusterName".into(), json!(cluster.cluster_name(stack)));
    topf.insert("clusterEndpoint".into(), json!(endpoint(cluster, stack)));
    match talconfig::kubernetes_version(cluster) {
        Some(version) => drop(topf.insert("kubernetesVersion".into(), json!(plain(&version)))),
        None => files.gap(stack, "topf needs `kubernetes.version`, which no file says"),
    }
    topf.insert("talosVersion".into(), json!(plain(&spec.talos.version)));
    topf.insert("platform".into(), json!(if cluster.proxmox.is_some() { "nocloud" } else { "metal" }));
    let first = nodes.first();
    topf.extend(first.map(|first| ("schematicId".to_owned(), json!(first.schematic))));
    // One machine cannot say that it has none where the cluster says that all have it.
    let all_secure = !nodes.is_empty() && nodes.iter().all(|node| node.secure_boot);
    if all_secure {
        topf.insert("secureboot".into(), json!(true));
    }
    topf.insert("patchesDir".into(), json!(PATCHES));
    topf.insert("secretsPath".into(), json!(secrets(project, cluster, folder)));
    let list: Vec<Json> = nodes
        .iter()
        .map(|node| {
            let mut own = JsonMap::new();
            own.insert("host".into(), json!(node.name));
            own.extend(node.address.as_ref().map(|address| ("ip".to_owned(), json!(address))));
            own.insert("role".into(), json!(if node.control_plane { "control-plane" } else { "worker" }));
            if first.is_some_and(|first| first.schematic != node.schematic) {
                own.insert("schematicId".into(), json!(node.schematic));
            }
            if node.secure_boot && !all_secure {
                own.insert("secureboot".into(), json!(true));
            }
            Json::Object(own)
        })
        .collect();
    topf.insert("nodes".into(), json!(list));
    let path = |file: &str| if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") };
    files.add(path("topf.yaml"), Style::Hash, plain::write(&Json::Object(topf)));
    for (role, patch) in of_cluster(cluster) {
        files.add(path(&format!("{PATCHES}/{role}/10-cluster.yaml")), Style::Hash, plain::write(&patch));
    }
    for node in nodes {
        let own = |file: &str| path(&format!("{PATCHES}/node/{}/{file}", node.name));
        files.add(own("10-machine.yaml"), Style::Hash, of_node(node, contract));
        for (index, patch) in node.patches.iter().enumerate() {
            if patch.trim_start().starts_with(['-', '[']) && !patch.trim_start().starts_with("---") {
                files.gap(
                    format!("{stack}: {}", node.name),
                    "topf takes no patch that is a list of operations: write it as a part of the configuration",
                );
                continue;
            }
            files.add(own(&format!("{}-patch.yaml", 20 + index)), Style::Hash, patch.clone());
        }
    }
}

/// topf writes versions without the letter.
fn plain(version: &str) -> &str {
    version.trim_start_matches('v')
}

/// The way from the file to the secrets of the cluster, which SOPS decrypts.
fn secrets(project: &Project<'_>, cluster: &Cluster, folder: &str) -> String {
    let own = cluster.cluster.talos.secrets.as_ref().map_or("talos.sops.yaml", |path| path.value.as_str());
    let above = &project.stack.folder;
    let inside = folder.strip_prefix(above.as_str()).unwrap_or(folder).trim_start_matches('/');
    let depth = inside.split('/').filter(|part| !part.is_empty()).count();
    format!("{}{own}", "../".repeat(depth))
}

/// What the nodes of a role are told of their cluster.
fn of_cluster(cluster: &Cluster) -> Vec<(&'static str, Json)> {
    let spec = &cluster.cluster;
    let (mut all, mut masters, mut network) = (JsonMap::new(), JsonMap::new(), JsonMap::new());
    if let Some(kubernetes) = &spec.kubernetes {
        network.extend(talconfig::cni(kubernetes).map(|cni| ("cni".to_owned(), cni)));
        let pods = kubernetes.pod_cidr.as_ref().map(|net| json!([net.value.to_string()]));
        network.extend(pods.map(|net| ("podSubnets".to_owned(), net)));
        let services = kubernetes.service_cidr.as_ref().map(|net| json!([net.value.to_string()]));
        network.extend(services.map(|net| ("serviceSubnets".to_owned(), net)));
        network.extend(kubernetes.dns_domain.as_ref().map(|name| ("dnsDomain".to_owned(), json!(name))));
        if let Some(both) = kubernetes.schedule_on_control_planes {
            masters.insert("allowSchedulingOnControlPlanes".into(), json!(both));
        }
    }
    if !network.is_empty() {
        all.insert("network".into(), Json::Object(network));
    }
    let names = spec.network.as_ref().map(|network| &network.api_names);
    if let Some(names) = names.filter(|names| !names.is_empty()) {
        masters.insert("apiServer".into(), json!({"certSANs": names}));
    }
    [("all", all), ("control-plane", masters)]
        .into_iter()
        .filter(|(_, part)| !part.is_empty())
        .map(|(role, part)| (role, json!({"cluster": part})))
        .collect()
}

/// What one node is told: its disk, its network, its labels, and its name.
fn of_node(node: &Node, contract: Option<Contract>) -> String {
    let mut machine = node.machine_part();
    let disk = node.install_disk.clone().unwrap_or_else(|| "/dev/sda".to_owned());
    machine.insert("install".into(), json!({"disk": disk}));
    if contract.is_some_and(|contract| contract.minor() >= NAME_DOCUMENT) {
        let name =
            json!({"apiVersion": "v1alpha1", "kind": "HostnameConfig", "auto": "off", "hostname": node.name});
        return format!("{}---\n{}", plain::write(&json!({"machine": machine})), plain::write(&name));
    }
    let network = machine.entry("network").or_insert_with(|| json!({}));
    if let Some(network) = network.as_object_mut() {
        network.insert("hostname".into(), json!(node.name));
    }
    plain::write(&json!({"machine": machine}))
}
