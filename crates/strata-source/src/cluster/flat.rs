//! The flat `cluster.yaml` and `nodes.yaml` of the cluster-template family, taken as they are.
//!
//! They are read in their own words, so that mistakes are reported in those; then written as the tree of a
//! `cluster.yaml` of ours, every value with the place it came from.

mod convert;
mod secrets;

pub use secrets::{FlatSecrets, SECRETS_FILE, SECRETS_RULE, TOKEN_ID, TOKEN_SECRET, flat_secrets};

use strata_diagnostics::Diagnostics;
use strata_yaml::{Context, Decode, Entry, Kind, Node, Outside, Spanned, Value, choice, record};

use crate::settings::target::FINGERPRINT;
use crate::value::address::{Cidr, Ip, Mac};
use crate::value::name::{HOST, ID, TAG, URL, VERSION};
use crate::value::size::{DiskSize, MemorySize};

record! {
    /// The size of a machine.
    pub struct FlatSize {
        /// processor cores
        "cores" cores: Option<u32> [range(1, 1024)];
        /// processor sockets
        "sockets" sockets: Option<u32> [range(1, 16)];
        /// in MiB
        "memory" memory: Option<MemorySize>;
        /// in GiB
        "disk_size" disk_size: Option<DiskSize>;
    }
}

record! {
    /// What all machines have in common.
    pub struct FlatAdvanced {
        /// the firmware
        "bios" bios: Option<Spanned<String>>;
        /// the chipset
        "machine" machine: Option<Spanned<String>>;
        /// the processor's type
        "cpu_type" cpu_type: Option<Spanned<String>>;
        /// the SCSI controller
        "scsi_hw" scsi_hw: Option<Spanned<String>>;
        /// the least memory that ballooning leaves
        "balloon" balloon: Option<Spanned<u64>>;
        /// shows the guest the host's memory nodes
        "numa" numa: Option<Spanned<bool>>;
        /// the guest agent
        "qemu_agent" qemu_agent: Option<Spanned<bool>>;
        /// packet queues
        "net_queues" net_queues: Option<Spanned<u8>> [range(0, 64)];
        /// space that the guest frees is given back
        "disk_discard" disk_discard: Option<Spanned<bool>>;
        /// shown to the guest as a solid-state disk
        "disk_ssd" disk_ssd: Option<Spanned<bool>>;
        /// included in backups
        "disk_backup" disk_backup: Option<Spanned<bool>>;
        /// included in storage replication
        "disk_replicate" disk_replicate: Option<Spanned<bool>>;
        /// tags, for people
        "tags" tags: Option<Vec<Spanned<String>>> [text(TAG)];
        /// the bridge
        "network_bridge" network_bridge: Option<Spanned<String>> [text(ID)];
        /// the operating system
        "ostype" ostype: Option<Spanned<String>>;
    }
}

choice! {
    /// The network plug-in of the family, or the one that Talos brings along.
    pub enum FlatCni { Cilium = "cilium", Flannel = "flannel" }
}

record! {
    /// The flat `cluster.yaml`: the keys that concern machines. Every other key belongs to an application and passes.
    pub struct FlatCluster [open] {
        /// the network that every address lies in
        "node_cidr" node_cidr: Spanned<Cidr>;
        /// name servers
        "node_dns_servers" node_dns_servers: Vec<Spanned<Ip>>;
        /// time servers
        "node_ntp_servers" node_ntp_servers: Vec<Spanned<String>>;
        /// the router; otherwise the first address of the network
        "node_default_gateway" node_default_gateway: Option<Spanned<Ip>>;
        /// the VLAN tag, as text
        "node_vlan_tag" node_vlan_tag: Option<Spanned<String>>;
        /// Proxmox sets the tag; otherwise Talos does
        "proxmox_vlan_mode" proxmox_vlan_mode: bool = false;
        /// the address that the control planes share
        "cluster_api_addr" cluster_api_addr: Spanned<Ip>;
        /// other names of the Kubernetes API
        "cluster_api_tls_sans" cluster_api_tls_sans: Vec<Spanned<String>>;
        /// the network plug-in: `cilium`, which the family installs itself, unless said otherwise
        "cluster_cni" cluster_cni: Option<Spanned<FlatCni>>;
        /// the network of pods
        "cluster_pod_cidr" cluster_pod_cidr: Option<Spanned<Cidr>>;
        /// the network of services
        "cluster_svc_cidr" cluster_svc_cidr: Option<Spanned<Cidr>>;
        /// Talos, without the `v`
        "talos_version" talos_version: Option<Spanned<String>> [text(VERSION)];
        /// Kubernetes, without the `v`
        "kubernetes_version" kubernetes_version: Option<Spanned<String>> [text(VERSION)];
        /// the address of the API; with `proxmox_node`, machines are made
        "proxmox_api_url" proxmox_api_url: Option<Spanned<String>> [text(URL)];
        /// the Proxmox node
        "proxmox_node" proxmox_node: Option<Spanned<String>> [text(ID)];
        /// an API token: `user@realm!name`
        "proxmox_api_token_id" proxmox_api_token_id: Option<Spanned<Value<String>>>;
        /// its secret
        "proxmox_api_token_secret" proxmox_api_token_secret: Option<Spanned<Value<String>>>;
        /// ours: the SHA-256 fingerprint of the server's certificate, where no authority signed it
        "proxmox_tls_fingerprint" proxmox_tls_fingerprint: Option<Spanned<String>> [text(FINGERPRINT)];
        /// CD images
        "proxmox_iso_storage" proxmox_iso_storage: Option<Spanned<String>> [text(ID)];
        /// disks
        "proxmox_disk_storage" proxmox_disk_storage: Option<Spanned<String>> [text(ID)];
        /// the size of every machine
        "proxmox_vm_defaults" proxmox_vm_defaults: Option<FlatSize>;
        /// the size of control planes
        "proxmox_vm_controller_defaults" proxmox_vm_controller_defaults: Option<FlatSize>;
        /// the size of workers
        "proxmox_vm_worker_defaults" proxmox_vm_worker_defaults: Option<FlatSize>;
        /// what all machines have in common
        "proxmox_vm_advanced" proxmox_vm_advanced: Option<FlatAdvanced>;
    }
}

record! {
    /// A machine.
    pub struct FlatNode {
        /// its name
        "name" name: Spanned<String> [text(HOST)];
        /// its address
        "address" address: Spanned<Ip>;
        /// a control plane; otherwise a worker
        "controller" controller: Spanned<bool>;
        /// the disk that Talos installs itself on
        "disk" disk: Spanned<String>;
        /// its hardware address
        "mac_addr" mac_addr: Spanned<Mac>;
        /// what is built into the image
        "schematic_id" schematic_id: Spanned<String>;
        /// the largest packet
        "mtu" mtu: Option<Spanned<u16>> [range(1450, 9000)];
        /// signed images and Secure Boot
        "secureboot" secureboot: Option<Spanned<bool>>;
        /// encrypt the disk
        "encrypt_disk" encrypt_disk: Option<Spanned<bool>>;
        /// kernel modules that are loaded at boot
        "kernel_modules" kernel_modules: Option<Vec<Spanned<String>>>;
        /// the number in the Proxmox cluster
        "vm_id" vm_id: Option<Spanned<u32>> [range(100, 999_999_999)];
        /// processor cores
        "vm_cores" vm_cores: Option<u32> [range(1, 1024)];
        /// processor sockets
        "vm_sockets" vm_sockets: Option<u32> [range(1, 16)];
        /// in MiB
        "vm_memory" vm_memory: Option<MemorySize>;
        /// in GiB
        "vm_disk_size" vm_disk_size: Option<DiskSize>;
        /// lower starts earlier
        "vm_startup_order" vm_startup_order: Option<Spanned<u32>>;
        /// seconds to wait after it started
        "vm_startup_delay" vm_startup_delay: Option<Spanned<u32>>;
        /// seconds to wait for it to stop
        "vm_shutdown_delay" vm_shutdown_delay: Option<Spanned<u32>>;
    }
}

record! {
    /// The flat `nodes.yaml`.
    pub struct FlatNodes [document] {
        /// the machines
        "nodes" nodes: Vec<FlatNode>;
    }
}

/// The name of a cluster in this family, which does not name it.
pub(crate) const CLUSTER_NAME: &str = "kubernetes";

/// Whether a `cluster.yaml` is of this family.
pub(crate) fn is_flat(tree: &Node) -> bool {
    tree.get("cluster").is_none()
        && ["node_cidr", "cluster_api_addr", "proxmox_api_url"].iter().any(|key| tree.get(key).is_some())
}

/// The samples of this family give every key, with `""` for what is not said.
fn without_empty(node: &Node) -> Node {
    let says = |value: &Node| value.as_scalar().is_none_or(|scalar| !scalar.text.is_empty());
    match &node.kind {
        Kind::Scalar(_) => node.clone(),
        Kind::List(items) => Node::list(items.iter().map(without_empty).collect(), node.span),
        Kind::Mapping(mapping) => {
            let said = mapping.entries.iter().filter(|entry| says(&entry.value));
            let entries =
                said.map(|entry| Entry { key: entry.key.clone(), value: without_empty(&entry.value) });
            Node::mapping(entries.collect(), node.span)
        }
    }
}

/// Reads both files and writes them as one tree of ours.
pub(crate) fn convert(
    tree: &Node,
    nodes: Option<&Node>,
    outside: &dyn Outside,
    diagnostics: &mut Diagnostics,
) -> Option<Node> {
    let mut cx = Context::new(diagnostics, outside);
    let cluster = FlatCluster::decode(&without_empty(tree), &mut cx);
    let nodes = match nodes {
        Some(nodes) => FlatNodes::decode(&without_empty(nodes), &mut cx)?.nodes,
        None => Vec::new(),
    };
    convert::convert(&cluster?, &nodes, diagnostics)
}
