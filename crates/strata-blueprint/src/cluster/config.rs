//! What Talos is told on each node of a cluster: from the source to a machine configuration.

use strata_diagnostics::Diagnostic;
use strata_secret::SecretString;
use strata_source::cluster::nodes::Machine as Node;
use strata_source::cluster::topology::{NodeRole, NodeSettings};
use strata_source::cluster::{Cluster, Cni as WrittenCni};
use strata_source::value::document::Document;
use strata_talos::{
    Arch, Cni, ConfigInput, Contract, DiskKey, Factory, FactoryImage, KernelModule, Link, MachineConfig,
    NodeInput, NodeNetwork, NodePatch, Patch, Platform, RegistryMirror, Role, SecretsBundle, Shown,
    node_config,
};

use super::{FACTORY, boot_slot, schematic_id};
use crate::site::Draft;
use crate::written::{Public, Resolution};

/// The port of the Kubernetes API.
const API_PORT: u16 = 6443;

/// The version of Kubernetes of a cluster that names none: the newest that its Talos is made for.
pub(super) fn kubernetes_version(cluster: &Cluster, contract: Contract) -> String {
    let written = cluster.cluster.kubernetes.as_ref().and_then(|kubernetes| kubernetes.version.as_ref());
    let version = written.map_or_else(|| contract.default_kubernetes(), |version| version.value.clone());
    format!("v{}", version.trim_start_matches('v'))
}

/// The URL of the Kubernetes API: as written, the shared address, or the first control plane.
pub(super) fn endpoint(cluster: &Cluster, nodes: &[Node<'_>]) -> Option<String> {
    if let Some(endpoint) = &cluster.cluster.endpoint {
        return Some(endpoint.value.clone());
    }
    let vip = cluster.cluster.network.as_ref().and_then(|network| network.vip.as_ref()).map(|vip| vip.0);
    let first = || nodes.iter().find(|node| node.role == NodeRole::ControlPlane)?.address.map(|ip| ip.value);
    vip.or_else(first).map(|ip| match ip {
        std::net::IpAddr::V4(ip) => format!("https://{ip}:{API_PORT}"),
        std::net::IpAddr::V6(ip) => format!("https://[{ip}]:{API_PORT}"),
    })
}

/// The image that a node is installed and upgraded from.
pub(super) fn installer(
    cluster: &Cluster,
    node: &Node<'_>,
    mirror: &dyn Fn(&str) -> String,
) -> Option<String> {
    let talos = &cluster.cluster.talos;
    let arch = match talos.arch.map(|arch| arch.to_string()).as_deref() {
        Some("arm64") => Arch::Arm64,
        _ => Arch::Amd64,
    };
    let image = FactoryImage {
        schematic: schematic_id(cluster, node),
        version: talos.version.value.clone(),
        platform: if cluster.proxmox.is_some() { Platform::NoCloud } else { Platform::Metal },
        arch,
        secure_boot: node.setting(|settings| settings.secure_boot).unwrap_or(talos.secure_boot),
    };
    Some(Factory::new(&mirror(FACTORY)).ok()?.installer(&image))
}

impl Draft<'_> {
    /// The configuration of one node; what stands in its way is reported. Without the secrets of the cluster there is none, and where only mistakes
    /// are looked for, one is made all the same to find them.
    pub(super) fn machine_config(
        &mut self,
        cluster: &Cluster,
        nodes: &[Node<'_>],
        node: &Node<'_>,
        mac: Option<String>,
    ) -> Option<(MachineConfig, PublicConfig)> {
        if let Some(secrets) = self.site.cluster_secrets {
            return self.config_with(secrets, cluster, nodes, node, mac);
        }
        if !self.site.resolver.opens_secrets() {
            let stand_in = self.stand_in.take().or_else(|| SecretsBundle::stand_in().ok())?;
            self.config_with(&stand_in, cluster, nodes, node, mac);
            self.stand_in = Some(stand_in);
        }
        None
    }

    fn config_with(
        &mut self,
        secrets: &SecretsBundle,
        cluster: &Cluster,
        nodes: &[Node<'_>],
        node: &Node<'_>,
        mac: Option<String>,
    ) -> Option<(MachineConfig, PublicConfig)> {
        let version = &cluster.cluster.talos.version;
        let contract: Contract = match version.parse() {
            Ok(contract) => contract,
            Err(error) => {
                self.refuse("talos-version", format!("{error}"), version.span);
                return None;
            }
        };
        let endpoint = endpoint(cluster, nodes)?;
        let mut input = ConfigInput::new(
            contract,
            cluster.cluster_name(self.site.stack),
            endpoint,
            kubernetes_version(cluster, contract),
        );
        self.common(cluster, &mut input);
        input.install_image = installer(cluster, node, self.site.mirror);
        let own = node_input(cluster, node, mac);
        let patches = self.patches(cluster, node)?;
        match node_config(&input, secrets, &own, &patches.all) {
            Ok(config) => {
                let made = |patches: &[NodePatch]| node_config(&input, secrets, &own, patches).ok();
                Some((config, patches.public(made)))
            }
            // It may need what a patch brings that nobody opened.
            Err(_) if patches.closed => None,
            Err(error) => {
                let told = if patches.has_secret() { error.without_names() } else { error.to_string() };
                let message = format!("`{}` has no machine configuration: {told}", node.name);
                self.found.push(Diagnostic::error("machine-config", message).at(node.span));
                None
            }
        }
    }

    fn common(&self, cluster: &Cluster, input: &mut ConfigInput) {
        let (talos, kubernetes) = (&cluster.cluster.talos, cluster.cluster.kubernetes.as_ref());
        if let Some(disk) = &talos.install_disk {
            input.install_disk = Some(disk.clone());
        }
        if let Some(network) = &cluster.cluster.network {
            input.additional_sans.extend(network.api_names.iter().cloned());
            input.additional_sans.extend(network.vip.as_ref().map(|vip| vip.0.to_string()));
        }
        input.additional_sans.retain(|name| !input.endpoint.contains(name.as_str()));
        input.registry_mirrors = talos
            .registry_mirrors
            .iter()
            .map(|(host, endpoints)| RegistryMirror {
                host: host.value.clone(),
                endpoints: endpoints.clone(),
            })
            .collect();
        let Some(kubernetes) = kubernetes else { return };
        if let Some(pods) = &kubernetes.pod_cidr {
            input.pod_subnets = vec![pods.value.to_string()];
        }
        if let Some(services) = &kubernetes.service_cidr {
            input.service_subnets = vec![services.value.to_string()];
        }
        if let Some(domain) = &kubernetes.dns_domain {
            input.dns_domain.clone_from(domain);
        }
    }

    /// The user's patches: for all, for the pool or role, for the node.
    fn patches(&mut self, cluster: &Cluster, node: &Node<'_>) -> Option<Patches> {
        let layers = node.settings.iter().rev().flat_map(|settings| &settings.patches);
        let written: Vec<&Document> = cluster.cluster.patches.iter().chain(layers).collect();
        let mut patches = Patches::default();
        for document in written {
            let Resolution { text, public } = self.written(document, &|_, _| Some(()))?;
            if !matches!(public, Public::All) && !self.site.resolver.opens_secrets() {
                patches.closed = true;
                continue;
            }
            let (origin, span) = match document {
                Document::File(path) => (path.value.clone(), path.span),
                Document::Inline(text) => (self.origin(text.span).unwrap_or_default(), text.span),
                Document::Reference(reference) => {
                    (self.origin(reference.span).unwrap_or_default(), reference.span)
                }
                Document::Mapping(node) => (self.origin(node.span).unwrap_or_default(), node.span),
            };
            match Patch::parse(&text) {
                Ok(patch) => patches.push(NodePatch { origin, patch }, &public),
                Err(error) => {
                    let told = match public {
                        Public::All => error.to_string(),
                        Public::Part { .. } | Public::None => error.without_names(),
                    };
                    self.refuse("patch", format!("the patch `{origin}` cannot be read: {told}"), span);
                    return None;
                }
            }
        }
        Some(patches)
    }
}

/// The patches of a node, and the same as far as they are no secrets.
#[derive(Default)]
struct Patches {
    all: Vec<NodePatch>,
    /// With a word in the place of each secret.
    marked: Vec<NodePatch>,
    /// Without them: the word may not be what a field takes.
    bare: Vec<NodePatch>,
    /// Only those that hold no secret.
    open: Vec<NodePatch>,
    /// One with a secret that was not opened is missing.
    closed: bool,
}

impl Patches {
    fn push(&mut self, own: NodePatch, public: &Public) {
        let read = |text: &SecretString| {
            let patch = Patch::parse(text).ok()?;
            Some(NodePatch { origin: own.origin.clone(), patch })
        };
        match public {
            Public::All => {
                [&mut self.marked, &mut self.bare, &mut self.open]
                    .into_iter()
                    .for_each(|list| list.push(own.clone()));
            }
            Public::Part { marked, bare } => {
                self.marked.extend(read(marked));
                self.bare.extend(read(bare));
            }
            Public::None => {}
        }
        self.all.push(own);
    }

    fn has_secret(&self) -> bool {
        self.open.len() < self.all.len()
    }

    /// The configuration as it is without the secrets. A patch may need what a secret one brings: then fewer of them are tried.
    fn public(&self, made: impl Fn(&[NodePatch]) -> Option<MachineConfig>) -> PublicConfig {
        if !self.has_secret() {
            return PublicConfig::Same;
        }
        let tried = [&self.marked[..], &self.bare, &self.open, &[]];
        tried
            .into_iter()
            .find_map(made)
            .map_or(PublicConfig::None, |config| PublicConfig::Less(Box::new(config)))
    }
}

/// What of a node's configuration is no secret of the source.
pub(super) enum PublicConfig {
    Same,
    Less(Box<MachineConfig>),
    None,
}

impl PublicConfig {
    pub(super) fn shown(&self) -> Shown<'_> {
        match self {
            Self::Same => Shown::All,
            Self::Less(config) => Shown::As(config),
            Self::None => Shown::Nothing,
        }
    }
}

fn node_input(cluster: &Cluster, node: &Node<'_>, mac: Option<String>) -> NodeInput {
    let (talos, kubernetes) = (&cluster.cluster.talos, cluster.cluster.kubernetes.as_ref());
    let mut input = NodeInput::new(match node.role {
        NodeRole::ControlPlane => Role::ControlPlane,
        NodeRole::Worker => Role::Worker,
    });
    input.hostname = Some(node.name.clone());
    if let (Some(network), Some(address)) = (&cluster.cluster.network, &node.address) {
        let vip = network.vip.as_ref().filter(|_| node.role == NodeRole::ControlPlane);
        // Who asks DHCP gets its router there, too.
        let fixed = !cluster.asks_dhcp(node);
        let own = network.cidr.with_address(address.value).to_string();
        let gateway = network.gateway.as_ref().filter(|_| fixed);
        input.network = Some(NodeNetwork {
            link: mac.map_or(Link::Only, |mac| Link::Mac(mac.to_ascii_lowercase())),
            addresses: fixed.then_some(own).into_iter().collect(),
            gateway: gateway.map(|gateway| gateway.0.to_string()),
            vlan: network.guest_vlan,
            mtu: node.setting(|settings| settings.mtu).or(network.mtu).map(u32::from),
            vip: vip.map(|vip| vip.0.to_string()),
        });
        input.nameservers = network.nameservers.iter().map(|server| server.0.to_string()).collect();
        input.time_servers.clone_from(&network.time_servers);
    }
    let vm = cluster.proxmox.as_ref().and_then(|proxmox| proxmox.vm.as_ref());
    // What Linux calls the first disk of VirtIO.
    let of_slot = boot_slot(vm).starts_with("virtio").then(|| "/dev/vda".to_owned());
    let of_slot = of_slot.filter(|_| talos.install_disk.is_none());
    input.install_disk = node.setting(|settings| settings.install_disk.clone()).or(of_slot);
    let encrypted = node.setting(|settings| settings.encrypt_disk).or(talos.encrypt_disk).unwrap_or(false);
    let secure = node.setting(|settings| settings.secure_boot).unwrap_or(talos.secure_boot);
    input.disk_key = encrypted.then_some(if secure { DiskKey::Tpm } else { DiskKey::NodeId });
    let modules = node.setting(|settings| settings.kernel_modules.as_ref()).unwrap_or(&talos.kernel_modules);
    input.kernel_modules =
        modules.iter().map(|name| KernelModule { name: name.clone(), parameters: Vec::new() }).collect();
    let pairs = |get: fn(&NodeSettings) -> &strata_yaml::Map<String>| {
        node.merged(get).into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    input.labels = pairs(|settings| &settings.labels);
    input.annotations = pairs(|settings| &settings.annotations);
    input.taints = pairs(|settings| &settings.taints);
    if let Some(kubernetes) = kubernetes {
        input.cni = match kubernetes.cni {
            _ if !kubernetes.cni_manifests.is_empty() => Cni::Custom(kubernetes.cni_manifests.clone()),
            Some(WrittenCni::None) => Cni::None,
            Some(WrittenCni::Flannel) | None => Cni::Flannel,
        };
        input.kube_proxy = kubernetes.kube_proxy.unwrap_or(true);
        input.schedule_on_control_planes = kubernetes.schedule_on_control_planes.unwrap_or(false);
    }
    input
}
