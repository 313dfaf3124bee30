//! Talos clusters of a state: their secrets, and the machines that were told of them.

use serde_json::{Map, Value as Json};
use strata_secret::SecretString;
use strata_talos::{MachineConfig, SecretsBundle};

use super::StateNote;
use strata_tofu::{Attributes, TofuResource, TofuState};

const SECRETS: &str = "talos_machine_secrets";
const APPLY: &str = "talos_machine_configuration_apply";
const CONFIGURATION: &str = "talos_machine_configuration";
/// What the state keeps of a cluster and Strata makes whenever it is asked.
const RECREATED: [&str; 2] = ["talos_machine_bootstrap", "talos_cluster_kubeconfig"];

/// A cluster that OpenTofu built.
pub struct BuiltCluster {
    /// The address of its secrets in the state.
    pub address: String,
    /// What its configurations call it.
    pub name: Option<String>,
    /// Its keys and certificates.
    pub secrets: SecretsBundle,
    /// Where Kubernetes answers.
    pub endpoint: Option<String>,
    /// The contract that its configurations were generated for.
    pub talos_version: Option<String>,
    /// The version of Kubernetes, where its configurations say one.
    pub kubernetes_version: Option<String>,
    /// Its machines.
    pub nodes: Vec<BuiltNode>,
    /// The address of its bootstrap in the state, if OpenTofu did that.
    pub bootstrap: Option<String>,
}

/// A machine with Talos.
pub struct BuiltNode {
    /// The address in the state.
    pub address: String,
    /// Where its Talos API answers.
    pub ip: String,
    /// What its configuration calls it.
    pub hostname: Option<String>,
    /// Otherwise a worker.
    pub control_plane: bool,
    /// The disk that Talos is installed on.
    pub install_disk: Option<String>,
    /// The image that Talos is installed from.
    pub install_image: Option<String>,
    /// What it was told.
    pub config: MachineConfig,
}

pub(super) fn built(state: &TofuState, notes: &mut Vec<StateNote>) -> Vec<BuiltCluster> {
    let of = |kind: &'static str, is_data: bool| {
        state.resources.iter().filter(move |found| found.kind == kind && found.is_data == is_data)
    };
    let mut clusters: Vec<BuiltCluster> = Vec::new();
    for resource in of(SECRETS, false) {
        match bundle(resource) {
            Ok(secrets) => clusters.push(BuiltCluster {
                address: resource.address.clone(),
                name: None,
                secrets,
                endpoint: None,
                talos_version: resource.attributes().text("talos_version").map(str::to_owned),
                kubernetes_version: None,
                nodes: Vec::new(),
                bootstrap: None,
            }),
            Err(reason) => notes.push(StateNote::new(&resource.address, reason)),
        }
    }
    for resource in of(CONFIGURATION, true) {
        let attributes = resource.attributes();
        let id = attributes.block("machine_secrets").and_then(|all| all.block("cluster")?.text("id"));
        let Some(cluster) =
            clusters.iter_mut().find(|cluster| Some(cluster.secrets.cluster_id.as_str()) == id)
        else {
            continue;
        };
        cluster.name = attributes.text("cluster_name").map(str::to_owned);
        cluster.endpoint = attributes.text("cluster_endpoint").map(str::to_owned);
        cluster.kubernetes_version = attributes.text("kubernetes_version").map(str::to_owned);
        cluster.talos_version =
            attributes.text("talos_version").map(str::to_owned).or(cluster.talos_version.take());
    }
    for resource in of(APPLY, false) {
        match node(resource) {
            Some((cluster_id, node)) => {
                let own = clusters.iter_mut().find(|cluster| cluster.secrets.cluster_id == cluster_id);
                match own {
                    Some(cluster) => cluster.nodes.push(node),
                    None => notes.push(StateNote::new(
                        &resource.address,
                        "the secrets of its cluster are not in the state: bring them with `strata talos` or talhelper",
                    )),
                }
            }
            None => {
                notes.push(StateNote::new(&resource.address, "its configuration in the state cannot be read"))
            }
        }
    }
    for resource in of(RECREATED[0], false) {
        let ip = resource.attributes().text("node");
        let own =
            clusters.iter_mut().find(|cluster| cluster.nodes.iter().any(|node| Some(node.ip.as_str()) == ip));
        if let Some(cluster) = own {
            cluster.bootstrap = Some(resource.address.clone());
        }
    }
    for kind in RECREATED {
        for resource in of(kind, false).filter(|_| clusters.is_empty()) {
            notes.push(StateNote::new(
                &resource.address,
                "it stays as it is: the cluster's secrets are not in the state",
            ));
        }
    }
    for resource in
        state.resources.iter().filter(|found| found.kind == "talos_image_factory_schematic" && !found.is_data)
    {
        let id = resource.attributes().text("id").unwrap_or_default();
        let message = format!(
            "a schematic is known to the image factory by its id: write `schematic: {{id: {id}}}` where it is used"
        );
        notes.push(StateNote::new(&resource.address, message));
    }
    clusters
}

/// The bundle under the names that talosctl has for it.
fn bundle(resource: &TofuResource) -> Result<SecretsBundle, String> {
    let Some(secrets) = resource.attributes().raw("machine_secrets") else {
        return Err("the state has no secrets of it".to_owned());
    };
    let text = SecretString::new(renamed(secrets).to_string());
    SecretsBundle::from_yaml(&text).map_err(|error| format!("its secrets cannot be used: {error}"))
}

/// The provider writes `cert` where everyone else writes `crt`, and what is not there as null.
fn renamed(value: &Json) -> Json {
    match value {
        Json::Object(map) => {
            let entries = map.iter().filter(|(_, value)| !value.is_null());
            let renamed: Map<String, Json> = entries
                .map(|(key, value)| {
                    (if key == "cert" { "crt".to_owned() } else { key.clone() }, renamed(value))
                })
                .collect();
            Json::Object(renamed)
        }
        other => other.clone(),
    }
}

/// A machine, and the id of its cluster.
fn node(resource: &TofuResource) -> Option<(String, BuiltNode)> {
    let attributes: Attributes<'_> = resource.attributes();
    let text = attributes
        .text("machine_configuration")
        .or_else(|| attributes.text("machine_configuration_input"))?;
    let config = MachineConfig::from_yaml(&SecretString::new(text.to_owned())).ok()?;
    let main = config.v1alpha1()?;
    let at = |path: &[&str]| Some(main.at(path)?.as_text()?.to_owned());
    let named =
        config.document("HostnameConfig").and_then(|own| Some(own.at(&["hostname"])?.as_text()?.to_owned()));
    let id = at(&["cluster", "id"])?;
    let node = BuiltNode {
        address: resource.address.clone(),
        ip: attributes.text("node")?.to_owned(),
        hostname: at(&["machine", "network", "hostname"]).or(named),
        control_plane: config.is_control_plane()?,
        install_disk: at(&["machine", "install", "disk"]),
        install_image: at(&["machine", "install", "image"]),
        config,
    };
    Some((id, node))
}
