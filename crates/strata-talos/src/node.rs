//! The configuration of one machine of a cluster: what its role gets, and what is its own.

mod network;
mod settings;

use crate::config::MachineConfig;
use crate::contract::Contract;
use crate::document::{Document, DocumentId};
use crate::generate::{ConfigInput, GenerateError, Role, generate};
use crate::patch::{Patch, PatchError};
use crate::secrets::SecretsBundle;

/// Which network card a machine's address is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// By the name that the kernel gives it.
    Name(String),
    /// By its hardware address.
    Mac(String),
    /// The only one that the machine has.
    Only,
}

/// A machine's network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeNetwork {
    pub link: Link,
    /// With the length of the prefix: `192.0.2.41/24`. None means DHCP.
    pub addresses: Vec<String>,
    pub gateway: Option<String>,
    /// The tag that the machine itself puts on its packets.
    pub vlan: Option<u16>,
    pub mtu: Option<u32>,
    /// The address that control planes share.
    pub vip: Option<String>,
}

/// The network plug-in of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cni {
    #[default]
    Flannel,
    /// Somebody else installs one.
    None,
    /// Manifests that are applied at bootstrap.
    Custom(Vec<String>),
}

/// What a machine's disk is encrypted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskKey {
    /// Derived from the machine's id: keeps a disk that is thrown away unreadable, and nothing more.
    NodeId,
    /// Sealed by the TPM.
    Tpm,
}

/// A kernel module that is loaded at boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelModule {
    pub name: String,
    pub parameters: Vec<String>,
}

/// What is a machine's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInput {
    pub role: Role,
    pub hostname: Option<String>,
    pub network: Option<NodeNetwork>,
    pub nameservers: Vec<String>,
    pub search_domains: Vec<String>,
    pub time_servers: Vec<String>,
    /// Further names and addresses of this machine's Talos API.
    pub cert_sans: Vec<String>,
    /// Instead of the cluster's.
    pub install_disk: Option<String>,
    pub install_image: Option<String>,
    pub disk_key: Option<DiskKey>,
    pub kernel_modules: Vec<KernelModule>,
    pub sysctls: Vec<(String, String)>,
    pub labels: Vec<(String, String)>,
    pub annotations: Vec<(String, String)>,
    /// `(key, effect)` or `(key, value:effect)`.
    pub taints: Vec<(String, String)>,
    pub kubelet_extra_args: Vec<(String, String)>,
    /// Networks that the kubelet's address is chosen from.
    pub node_ip_subnets: Vec<String>,
    /// Networks that etcd's address is chosen from.
    pub etcd_subnets: Vec<String>,
    pub cni: Cni,
    /// Whether kube-proxy runs.
    pub kube_proxy: bool,
    /// Workloads may run on control planes.
    pub schedule_on_control_planes: bool,
}

impl NodeInput {
    /// A machine with nothing of its own.
    pub fn new(role: Role) -> Self {
        Self {
            role,
            hostname: None,
            network: None,
            nameservers: Vec::new(),
            search_domains: Vec::new(),
            time_servers: Vec::new(),
            cert_sans: Vec::new(),
            install_disk: None,
            install_image: None,
            disk_key: None,
            kernel_modules: Vec::new(),
            sysctls: Vec::new(),
            labels: Vec::new(),
            annotations: Vec::new(),
            taints: Vec::new(),
            kubelet_extra_args: Vec::new(),
            node_ip_subnets: Vec::new(),
            etcd_subnets: Vec::new(),
            cni: Cni::Flannel,
            kube_proxy: true,
            schedule_on_control_planes: false,
        }
    }
}

/// A patch of the user, and where it came from, for messages.
#[derive(Clone)]
pub struct NodePatch {
    pub origin: String,
    pub patch: Patch,
}

/// Why a machine has no configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    #[error(transparent)]
    Generate(#[from] GenerateError),
    #[error(transparent)]
    Settings(PatchError),
    #[error("patch `{origin}`: {error}")]
    Patch { origin: String, error: PatchError },
    #[error("Talos {contract} does not know the document `{document}`; it is new in {since}")]
    TooNew { contract: Contract, document: DocumentId, since: Contract },
    #[error("a worker cannot have the document `{0}`, which is for control planes")]
    ControlPlaneOnly(DocumentId),
}

impl NodeError {
    /// The same without a word of a patch that may be a secret.
    pub fn without_names(&self) -> String {
        match self {
            Self::Patch { origin, error } => format!("patch `{origin}`: {}", error.without_names()),
            Self::TooNew { contract, document, since } => {
                let kind = document.kind;
                format!("Talos {contract} does not know documents `{kind}`; they are new in {since}")
            }
            Self::ControlPlaneOnly(document) => {
                format!("a worker cannot have documents `{}`, which are for control planes", document.kind)
            }
            Self::Generate(_) | Self::Settings(_) => self.to_string(),
        }
    }
}

/// The configuration of a machine, with the user's patches applied in their order.
pub fn node_config(
    input: &ConfigInput,
    secrets: &SecretsBundle,
    node: &NodeInput,
    patches: &[NodePatch],
) -> Result<MachineConfig, NodeError> {
    let mut input = input.clone();
    if node.install_disk.is_some() {
        input.install_disk.clone_from(&node.install_disk);
    }
    if node.install_image.is_some() {
        input.install_image.clone_from(&node.install_image);
    }
    let mut config = generate(&input, secrets, node.role)?;
    let own = Own { contract: input.contract, node };
    config = own.settings().and_then(|settings| settings.apply(config)).map_err(NodeError::Settings)?;
    for NodePatch { origin, patch } in patches {
        let error = |error| NodeError::Patch { origin: origin.clone(), error };
        config = patch.apply(config).map_err(error)?;
    }
    check(input.contract, &config)?;
    Ok(config)
}

/// A node would refuse the whole configuration for one document that it does not know.
fn check(contract: Contract, config: &MachineConfig) -> Result<(), NodeError> {
    for document in config.documents() {
        if document.since() > contract {
            return Err(NodeError::TooNew { contract, document: document.id(), since: document.since() });
        }
        if document.is_for_control_planes() && config.is_control_plane() == Some(false) {
            return Err(NodeError::ControlPlaneOnly(document.id()));
        }
    }
    Ok(())
}

struct Own<'n> {
    contract: Contract,
    node: &'n NodeInput,
}

impl Own<'_> {
    /// Everything that is the machine's own, as a patch of what its role gets. It is read as any patch is, so that an
    /// address that is none is found here.
    fn settings(&self) -> Result<Patch, PatchError> {
        let mut documents: Vec<Document> = self.legacy_settings().into_iter().collect();
        documents.extend(self.network_settings());
        documents.extend(self.machine_settings());
        Patch::of_documents(&documents)
    }
}
