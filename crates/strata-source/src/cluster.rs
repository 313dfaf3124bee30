//! `clusters/<name>/cluster.yaml`: a Talos cluster and the machines it runs on.

pub mod bundle;
pub mod flat;
pub mod gitops;
pub mod nodes;
pub mod topology;

use strata_yaml::{Map, Raw, Spanned, TextRule, TextShape, Value, choice, record};

use crate::cluster::gitops::Gitops;
use crate::cluster::topology::{ClusterNode, Topology};
use crate::machine::guest::{ProxmoxOptions, Startup, Timeouts};
use crate::machine::hardware::Hardware;
use crate::machine::profile::Profile;
use crate::settings::target::Tls;
use crate::stack::output::OutputPath;
use crate::stack::{Metadata, Moved, StorageDefaults};
use crate::value::address::{Cidr, Ip};
use crate::value::document::Document;
use crate::value::duration::Seconds;
use crate::value::name::{HOST, ID, NAME, TAG, URL, VERSION};
use crate::value::place::{ADDRESS, BRIDGE, VLAN, VM_ID};

/// Tags of a cluster's machines unless they say otherwise.
pub const TAGS: [&str; 2] = ["kubernetes", "talos"];

const SCHEMATIC_ID: TextRule = TextRule {
    shape: TextShape { what: "the id of a schematic: 64 hex digits", pattern: Some("^[0-9a-f]{64}$") },
    accepts: |text| {
        text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
    },
};

choice! {
    /// The processor architecture.
    pub enum Arch { Amd64 = "amd64", Arm64 = "arm64" }
}

record! {
    /// What is built into the Talos image.
    pub struct Schematic [
        shorthand("id"),
        at_most_one(&["id", "extensions"]),
        at_most_one(&["id", "extraKernelArgs"])
    ] {
        /// a schematic that the image factory knows already
        "id" id: Option<Spanned<String>> [text(SCHEMATIC_ID)];
        /// system extensions: `siderolabs/qemu-guest-agent`
        "extensions" extensions: Vec<Spanned<String>>;
        /// added to the kernel's command line
        "extraKernelArgs" extra_kernel_args: Vec<String>;
    }
}

record! {
    /// The Talos of a cluster.
    pub struct Talos [at_most_one(&["schematic", "factorySchematic"])] {
        /// such as `v1.13.9`
        "version" version: Spanned<String> [text(VERSION)];
        /// what is built into the image
        "schematic" schematic: Option<Schematic>;
        /// the same by its id
        "factorySchematic" factory_schematic: Option<Spanned<String>> [text(SCHEMATIC_ID)];
        /// signed images and Secure Boot
        "secureBoot" secure_boot: bool = false;
        /// the disk that Talos installs itself on
        "installDisk" install_disk: Option<String>;
        /// otherwise the name of the stack
        "clusterName" cluster_name: Option<Spanned<String>> [text(NAME), env()];
        /// the processor architecture
        "arch" arch: Option<Arch>;
        /// encrypt the disk with the TPM or a key that Talos derives
        "encryptDisk" encrypt_disk: Option<bool>;
        /// kernel modules that are loaded at boot
        "kernelModules" kernel_modules: Vec<String>;
        /// registries that are asked elsewhere first: `docker.io: [https://mirror.example]`
        "registryMirrors" registry_mirrors: Map<Vec<String>>;
        /// the file of the cluster's own secrets, from the folder of the cluster; `talos.sops.yaml` unless said otherwise, and
        /// `talos.<environment>.sops.yaml` for an environment that is laid over the cluster
        "secrets" secrets: Option<Spanned<String>>;
    }
}

choice! {
    /// The network plug-in of Kubernetes.
    pub enum Cni { Flannel = "flannel", None = "none" }
}

record! {
    /// The Kubernetes of a cluster.
    pub struct Kubernetes [shorthand("version"), at_most_one(&["cni", "cniManifests"])] {
        /// such as `v1.36.3`
        "version" version: Option<Spanned<String>> [text(VERSION)];
        /// the network of pods
        "podCidr" pod_cidr: Option<Spanned<Cidr>>;
        /// the network of services
        "serviceCidr" service_cidr: Option<Spanned<Cidr>>;
        /// the domain of services
        "dnsDomain" dns_domain: Option<String>;
        /// the network plug-in; with `none` somebody else installs one, and Strata waits for it
        "cni" cni: Option<Cni>;
        /// instead of `cni`: URLs of manifests that Talos applies at bootstrap
        "cniManifests" cni_manifests: Vec<String>;
        /// whether kube-proxy runs; `false` where the network plug-in does its work, as Cilium can
        "kubeProxy" kube_proxy: Option<bool>;
        /// workloads may run on control planes
        "scheduleOnControlPlanes" schedule_on_control_planes: Option<bool>;
    }
}

record! {
    /// The network of a cluster's machines.
    pub struct ClusterNetwork {
        /// the network that every address lies in
        "cidr" cidr: Spanned<Cidr> [label(ADDRESS)];
        /// the router
        "gateway" gateway: Option<Spanned<Ip>> [label(ADDRESS)];
        /// name servers
        "nameservers" nameservers: Vec<Spanned<Ip>> [label(ADDRESS)];
        /// time servers
        "timeServers" time_servers: Vec<String>;
        /// a DHCP server gives the machines their addresses: each must be reserved there for the machine's `mac`
        "dhcp" dhcp: bool = false;
        /// the address that the control planes share
        "vip" vip: Option<Spanned<Ip>> [label(ADDRESS)];
        /// other names and addresses of the Kubernetes API
        "apiNames" api_names: Vec<String> [env(), label(ADDRESS)];
        /// the bridge that the machines are plugged into
        "bridge" bridge: Option<Spanned<String>> [text(ID), label(BRIDGE)];
        /// the VLAN tag that Proxmox sets
        "vlan" vlan: Option<u16> [range(1, 4094), label(VLAN)];
        /// the VLAN tag that Talos sets itself
        "guestVlan" guest_vlan: Option<u16> [range(1, 4094), label(VLAN)];
        /// the largest packet
        "mtu" mtu: Option<u16> [range(576, 65520)];
    }
}

record! {
    /// Etcd snapshots, encrypted, made before anything touches a control plane.
    pub struct Snapshots {
        /// the folder, from the root of the repository; `.strata/snapshots` unless said otherwise
        "directory" directory: Option<String>;
        /// who can read them: age recipients; otherwise the readers of the repository's secrets
        "recipients" recipients: Vec<String>;
        /// how many are kept
        "keep" keep: Option<u32> [range(1, 1000)];
    }
}

record! {
    /// The etcd of a cluster.
    pub struct Etcd {
        /// copies of it
        "snapshots" snapshots: Option<Snapshots>;
    }
}

record! {
    /// How long the steps of a machine's life may take.
    pub struct ClusterTimeouts {
        /// from being switched on to answering; 15 minutes unless said otherwise
        "boot" boot: Option<Seconds>;
        /// from having a configuration to being healthy in the cluster; 10 minutes unless said otherwise
        "join" join: Option<Seconds>;
        /// a reboot, with the images that are pulled for it; 20 minutes unless said otherwise
        "reboot" reboot: Option<Seconds>;
        /// the network of pods, then the controllers of Flux; 15 minutes unless said otherwise
        "flux" flux: Option<Seconds>;
    }
}

record! {
    /// The cluster.
    pub struct ClusterSpec {
        /// the operating system
        "talos" talos: Talos;
        /// the Kubernetes
        "kubernetes" kubernetes: Option<Kubernetes>;
        /// the etcd
        "etcd" etcd: Option<Etcd>;
        /// the machines' network
        "network" network: Option<ClusterNetwork>;
        /// how many machines of which kind
        "topology" topology: Option<Topology>;
        /// one machine each, by name: what differs from its pool
        "nodes" nodes: Map<ClusterNode> [keys(HOST), env()];
        /// changes to the machine configuration of every node: files, or in place
        "patches" patches: Vec<Document>;
        /// how machines are called, from `{cluster}`, `{role}` and `{n}`
        "naming" naming: Option<Spanned<String>> [env_beside(&["cluster", "role", "n"])];
        /// how long the steps of a machine's life may take
        "timeouts" timeouts: Option<ClusterTimeouts>;
        /// the address of the Kubernetes API, where it is neither the virtual one nor the first control plane's
        "endpoint" endpoint: Option<Spanned<String>> [text(URL), env(), label(ADDRESS)];
    }
}

record! {
    /// What all machines of the cluster have in common.
    pub struct ClusterVm {
        /// the VMID of the first control plane; workers begin ten later
        "idBase" id_base: Option<Spanned<u32>> [range(100, 999_999_999), label(VM_ID)];
        /// the processor's type; short for `cpu: {type: …}`
        "cpuType" cpu_type: Option<String>;
        ..hardware: Hardware;
        /// the pool they are members of
        "pool" pool: Option<Spanned<String>> [env()];
        /// tags, for people
        "tags" tags: Option<Vec<String>> [text(TAG), env()];
        /// notes, for people
        "notes" notes: Option<String> [env()];
        /// Strata refuses to destroy them
        "protect" protect: Option<bool>;
        /// Proxmox refuses to remove them
        "protection" protection: Option<bool>;
        /// started with their host
        "onboot" onboot: Option<bool> [aliases(&["onBoot"])];
        /// when they start and stop with their host
        "startup" startup: Option<Startup>;
        /// stopped hard when they are destroyed
        "forceStop" force_stop: Option<bool>;
        /// how long their steps may take
        "timeouts" timeouts: Option<Timeouts>;
        /// any key that Proxmox knows and Strata has no field for
        "options" options: Map<Raw>;
        /// the same, under another name
        "proxmox" proxmox: Option<ProxmoxOptions>;
    }
}

record! {
    /// The network of machines, where it is said beside the storage.
    pub struct ProxmoxNetwork {
        /// the bridge that the machines are plugged into
        "bridge" bridge: Option<Spanned<String>> [text(ID), label(BRIDGE)];
    }
}

record! {
    /// Where the cluster's machines live; without it the cluster is bare metal.
    pub struct ClusterProxmox [at_most_one(&["node", "nodes"]), at_most_one(&["target", "endpoint"])] {
        /// one of the targets of strata.yaml
        "target" target: Option<Spanned<String>> [text(NAME)];
        /// the address of the API, for a repository without targets
        "endpoint" endpoint: Option<Spanned<String>> [text(URL)];
        /// with `endpoint`: an API token `user@realm!name=uuid`; with `tokenId`, what stands after the `=`
        "token" token: Option<Value<String>> [secret];
        /// with `endpoint`: what stands before the `=` of the token, where the two are kept apart
        "tokenId" token_id: Option<Value<String>>;
        /// with `endpoint`: anyone may answer
        "insecure" insecure: Option<bool>;
        /// with `endpoint`: how the server proves who it is
        "tls" tls: Option<Tls>;
        /// the Proxmox node; `any` has one chosen for each machine when it is made
        "node" node: Option<Spanned<String>> [text(ID)];
        /// Proxmox nodes that the machines are spread over
        "nodes" nodes: Vec<Spanned<String>> [text(ID)];
        /// where volumes go
        "storage" storage: Option<StorageDefaults>;
        /// the network of the machines
        "network" network: Option<ProxmoxNetwork>;
        /// what all machines have in common
        "vm" vm: Option<ClusterVm>;
    }
}

record! {
    /// One dataset; those above it are made too.
    pub struct Dataset [shorthand("name")] {
        /// such as `tank/k8s/homelab`
        "name" name: Spanned<String> [env()];
        /// properties by TrueNAS' names: `compression: LZ4`
        "properties" properties: Map<Raw>;
    }
}

record! {
    /// Datasets of a cluster on a TrueNAS.
    pub struct TruenasStorage {
        /// one of the targets of strata.yaml
        "target" target: Spanned<String> [text(NAME)];
        /// the datasets
        "datasets" datasets: Vec<Dataset>;
    }
}

record! {
    /// Storage outside the machines.
    pub struct ClusterStorage {
        /// datasets on a TrueNAS
        "truenas" truenas: Option<TruenasStorage>;
    }
}

record! {
    /// A Talos cluster.
    pub struct Cluster [document] {
        /// who the stack is
        "metadata" metadata: Option<Metadata>;
        /// what has another address now: objects of other stacks, as those of a cluster keep theirs
        "moved" moved: Vec<Moved>;
        /// the cluster
        "cluster" cluster: ClusterSpec;
        /// named sets of fields, for `use` in this cluster; they win over those of strata.yaml
        "profiles" profiles: Map<Profile> [keys(NAME)];
        /// where its machines live
        "proxmox" proxmox: Option<ClusterProxmox>;
        /// storage outside the machines
        "storage" storage: Option<ClusterStorage>;
        /// what runs on it
        "gitops" gitops: Option<Gitops>;
        /// what others may ask of this stack, by name: `nodes.homelab-cp-1.address`
        "outputs" outputs: Map<Spanned<OutputPath>> [keys(NAME), env()];
    }
}
