//! Kubernetes clusters as the machines under them make them: what the simulated Kubernetes API is told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One Kubernetes cluster. There is one for each etcd cluster: a second bootstrap makes a second one, with nothing in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubernetesCluster {
    /// The identity of the etcd cluster, which restoring a snapshot keeps; objects belong to it.
    pub id: String,
    /// The cluster's name from the machine configuration.
    pub name: String,
    /// `https://192.0.2.40:6443`.
    pub endpoint: String,
    /// The authority of the Kubernetes API: server and client certificates are signed by it.
    pub ca_pem: String,
    pub ca_key_pem: String,
    /// The private key that signs tokens of service accounts.
    pub service_account_pem: String,
    /// The names and addresses that a server's certificate has besides its own.
    pub cert_sans: Vec<String>,
    pub service_subnets: Vec<String>,
    pub pod_subnets: Vec<String>,
    pub dns_domain: String,
    /// `flannel`, `none` or `custom`.
    pub cni: String,
    pub proxy: bool,
    /// etcd has a leader and at least one API server runs on it.
    pub api_up: bool,
    /// The shared address, while a control plane holds it.
    pub vip: Option<String>,
    pub nodes: Vec<KubeNode>,
}

/// A cluster, and where machines say that its API answers now.
#[derive(Debug, Clone)]
pub struct ReportedCluster {
    /// The cluster itself.
    pub facts: KubernetesCluster,
    /// Addresses of machines with an API server that can be reached, and the shared one while such a machine holds it.
    pub answers_at: Vec<String>,
}

/// One machine of such a cluster, running or not. Machines that were deleted or wiped are not here any more; what
/// Kubernetes remembers of them is its own business.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubeNode {
    /// The node's name in Kubernetes: its hostname.
    pub name: String,
    /// The first one is what Kubernetes shows as its internal address.
    pub addresses: Vec<String>,
    pub control_plane: bool,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// Key to `value:effect` or `effect`.
    pub taints: BTreeMap<String, String>,
    /// `v1.34.1`.
    pub kubelet_version: String,
    /// `v1.13.0`.
    pub talos_version: String,
    /// The version of its API server, on control planes.
    pub api_version: Option<String>,
    /// The API server on this machine answers.
    pub api_up: bool,
    /// The machine runs and its kubelet reports; the network is not looked at.
    pub ready: bool,
    pub boot_id: String,
    /// The images that it is told to run, by component.
    #[serde(default)]
    pub images: BTreeMap<String, String>,
}

/// What runs as static pods on control planes.
pub const CONTROL_PLANE_PARTS: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// The version of what a part of the control plane was told. Its pod bears the same, so that both can be compared.
pub fn config_version(image: &str) -> u32 {
    content_version(image.as_bytes())
}

/// A number that is another one for other bytes, most likely.
pub fn content_version(bytes: &[u8]) -> u32 {
    bytes.iter().fold(1_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte))) % 100_000 + 1
}
