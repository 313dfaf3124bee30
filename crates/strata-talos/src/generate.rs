//! The configurations of a cluster's control planes and workers, document for document what `talosctl gen config` makes.

mod documents;
mod kubernetes;
mod legacy;

use strata_secret::SecretString;

use crate::config::{ConfigError, MachineConfig};
use crate::contract::Contract;
use crate::document::Document;
use crate::secrets::SecretsBundle;

pub(crate) use kubernetes::{API_SERVER, CONTROLLER_MANAGER, KUBELET, PROXY, SCHEDULER};

/// What a machine does in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    ControlPlane,
    Worker,
}

impl Role {
    pub const ALL: [Self; 2] = [Self::ControlPlane, Self::Worker];

    /// As `machine.type` says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ControlPlane => "controlplane",
            Self::Worker => "worker",
        }
    }
}

/// A registry that is asked elsewhere first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryMirror {
    /// The registry's host, such as `docker.io`.
    pub host: String,
    /// URLs, in the order they are asked.
    pub endpoints: Vec<String>,
}

/// What the configurations of a cluster are made from, besides its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigInput {
    pub contract: Contract,
    pub cluster_name: String,
    /// The URL of the Kubernetes API.
    pub endpoint: String,
    /// With or without the `v`.
    pub kubernetes_version: String,
    /// Further names and addresses of the Kubernetes API and of the Talos API.
    pub additional_sans: Vec<String>,
    /// Without one, nothing says where a 1.14 machine is installed.
    pub install_disk: Option<String>,
    pub install_image: Option<String>,
    pub registry_mirrors: Vec<RegistryMirror>,
    pub dns_domain: String,
    pub pod_subnets: Vec<String>,
    pub service_subnets: Vec<String>,
    pub kubespan: bool,
    pub cluster_discovery: bool,
}

impl ConfigInput {
    /// The defaults of `talosctl gen config`.
    pub fn new(
        contract: Contract,
        cluster_name: impl Into<String>,
        endpoint: impl Into<String>,
        kubernetes_version: impl Into<String>,
    ) -> Self {
        Self {
            contract,
            cluster_name: cluster_name.into(),
            endpoint: endpoint.into(),
            kubernetes_version: kubernetes_version.into(),
            additional_sans: Vec::new(),
            install_disk: Some("/dev/sda".to_owned()),
            install_image: Some(crate::factory::DEFAULT_INSTALLER.to_owned()),
            registry_mirrors: Vec::new(),
            dns_domain: "cluster.local".to_owned(),
            pod_subnets: vec!["10.244.0.0/16".to_owned()],
            service_subnets: vec!["10.96.0.0/12".to_owned()],
            kubespan: false,
            cluster_discovery: true,
        }
    }

    /// The image of a part of Kubernetes in the cluster's version.
    pub(crate) fn image(&self, repository: &str) -> String {
        let version = self.kubernetes_version.strip_prefix('v').unwrap_or(&self.kubernetes_version);
        format!("{repository}:v{version}")
    }

    /// The host of the endpoint, without its port.
    pub(crate) fn endpoint_host(&self) -> Result<String, EndpointError> {
        let url = self.endpoint_url()?;
        let host = url.host_str().unwrap_or_default();
        Ok(host.trim_start_matches('[').trim_end_matches(']').to_owned())
    }

    /// Checks the endpoint as `talosctl` does.
    pub(crate) fn endpoint_url(&self) -> Result<url::Url, EndpointError> {
        let refused = |reason| EndpointError { endpoint: self.endpoint.clone(), reason };
        if !self.endpoint.contains("://") {
            return Err(refused("it needs a scheme: `https://HOST:6443`"));
        }
        let url = url::Url::parse(&self.endpoint).map_err(|_| refused("it is not a URL"))?;
        match url.scheme() {
            "https" if url.host_str().is_some_and(|host| !host.is_empty()) => Ok(url),
            "https" => Err(refused("it names no host")),
            _ => Err(refused("its scheme must be `https`")),
        }
    }
}

/// The endpoint is no URL of a Kubernetes API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{endpoint}` cannot be the endpoint of a cluster: {reason}")]
pub struct EndpointError {
    endpoint: String,
    reason: &'static str,
}

/// Why no configuration could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error("a version of Kubernetes is needed, such as `1.34.1`")]
    NoKubernetesVersion,
    #[error("a name of the cluster is needed")]
    NoClusterName,
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// The configuration of all machines of a role, before patches.
pub fn generate(
    input: &ConfigInput,
    secrets: &SecretsBundle,
    role: Role,
) -> Result<MachineConfig, GenerateError> {
    if input.cluster_name.is_empty() {
        return Err(GenerateError::NoClusterName);
    }
    if input.kubernetes_version.trim_start_matches('v').is_empty() {
        return Err(GenerateError::NoKubernetesVersion);
    }
    let generator = Generator { input, secrets, role, endpoint_host: input.endpoint_host()? };
    // Read as any file is, so that a subnet that is none is found here and not on the node.
    Ok(MachineConfig::from_yaml(&MachineConfig::new(generator.documents())?.to_yaml())?)
}

struct Generator<'i> {
    input: &'i ConfigInput,
    secrets: &'i SecretsBundle,
    role: Role,
    endpoint_host: String,
}

impl Generator<'_> {
    fn is_control_plane(&self) -> bool {
        self.role == Role::ControlPlane
    }

    fn documents(&self) -> Vec<Document> {
        let mut documents = vec![self.legacy()];
        documents.extend(self.machine_documents());
        documents.extend(self.registry_documents());
        documents.extend(self.network_documents());
        if self.input.contract.kubernetes_documents() {
            documents.extend(self.kubernetes_documents());
            if self.is_control_plane() {
                documents.extend(self.control_plane_documents());
            }
        }
        documents
    }
}

/// Text of a PEM file. What is not UTF-8 would not have passed the bundle's check.
fn pem_text(pem: &[u8]) -> SecretString {
    SecretString::new(String::from_utf8_lossy(pem))
}
