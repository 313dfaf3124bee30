//! Kinds of machines of a cluster, and single machines that differ.

use strata_yaml::{Map, Spanned, TextRule, TextShape, choice, record};

use crate::cluster::Schematic;
use crate::machine::device::{Pci, Usb};
use crate::machine::disk::Disk;
use crate::machine::guest::Startup;
use crate::value::address::{AddressPool, Ip, Mac};
use crate::value::document::Document;
use crate::value::name::{HOST, ID};
use crate::value::place::{ADDRESS, VM_ID};
use crate::value::size::{DiskSize, MemorySize};
use crate::value::slot::{DiskSlots, PciSlots, Slots, UsbSlots};

/// 32 bytes in base64.
const FINGERPRINT: TextRule = TextRule {
    shape: TextShape {
        what: "the SHA-256 of a public key in base64, as the console of a Talos machine shows it",
        pattern: Some("^[A-Za-z0-9+/]{43}=$"),
    },
    accepts: |text| {
        let digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        text.len() == 44 && text.ends_with('=') && text.bytes().take(43).all(digit)
    },
};

choice! {
    /// What a machine does in its cluster.
    pub enum NodeRole { ControlPlane = "controlPlane", Worker = "worker" }
}

record! {
    /// The size of a machine.
    pub struct Resources {
        /// cores for each socket
        "cores" cores: Option<u32> [range(1, 1024)];
        /// processor sockets
        "sockets" sockets: Option<u32> [range(1, 16)];
        /// in MiB, or with a unit
        "memory" memory: Option<MemorySize>;
        /// in GiB, or with a unit
        "disk" disk: Option<DiskSize>;
    }
}

record! {
    /// What a pool says of its machines, and a machine of itself.
    pub struct NodeSettings {
        /// profiles whose fields it has where it says nothing itself; later ones win
        "use" profiles: Vec<Spanned<String>>;
        /// the size
        "resources" resources: Option<Resources>;
        /// cores for each socket; wins over `resources`
        "cores" cores: Option<u32> [range(1, 1024)];
        /// processor sockets; wins over `resources`
        "sockets" sockets: Option<u32> [range(1, 16)];
        /// in MiB, or with a unit; wins over `resources`
        "memory" memory: Option<MemorySize>;
        /// in GiB, or with a unit; wins over `resources`
        "disk" disk: Option<DiskSize>;
        /// Kubernetes labels
        "labels" labels: Map<String> [env()];
        /// Kubernetes annotations
        "annotations" annotations: Map<String> [env()];
        /// Kubernetes taints: `key: value:NoSchedule`
        "taints" taints: Map<String>;
        /// PCI devices of the host: a list or by slot
        "pci" pci: Slots<Pci, PciSlots>;
        /// USB devices of the host: a list or by slot
        "usb" usb: Slots<Usb, UsbSlots>;
        /// more disks by slot
        "disks" disks: Slots<Disk, DiskSlots>;
        /// changes to the machine configuration: files, or in place
        "patches" patches: Vec<Document>;
        /// what is built into the image
        "schematic" schematic: Option<Schematic>;
        /// signed images and Secure Boot
        "secureBoot" secure_boot: Option<bool>;
        /// encrypt the disk
        "encryptDisk" encrypt_disk: Option<bool>;
        /// kernel modules that are loaded at boot
        "kernelModules" kernel_modules: Option<Vec<String>>;
        /// the disk that Talos installs itself on
        "installDisk" install_disk: Option<String>;
        /// the largest packet
        "mtu" mtu: Option<u16> [range(576, 65520)];
        /// whether a DHCP server gives it its address, where that differs from the cluster's `network.dhcp`
        "dhcp" dhcp: Option<bool>;
        /// when it starts and stops with its host
        "startup" startup: Option<Startup>;
        /// the Proxmox node; `any` has one chosen when it is made, and leaves moves to HA and people
        "hypervisor" hypervisor: Option<Spanned<String>> [text(ID)];
        /// Strata refuses to destroy it
        "protect" protect: Option<bool>;
    }
}

record! {
    /// Machines of one kind.
    pub struct Pool {
        /// how many
        "count" count: u32 [range(0, 500)];
        /// the addresses they take in order: a range or a list
        "addresses" addresses: Option<Spanned<AddressPool>> [label(ADDRESS)];
        /// the VMID of the first
        "idBase" id_base: Option<Spanned<u32>> [range(100, 999_999_999), label(VM_ID)];
        /// the Proxmox nodes they are spread over; otherwise the cluster's
        "hypervisors" hypervisors: Vec<Spanned<String>> [text(ID)];
        ..settings: NodeSettings;
    }
}

record! {
    /// Workers with a name of their own kind.
    pub struct NamedPool {
        /// the kind: it takes the place of `worker` in their names
        "name" name: Spanned<String> [text(HOST)];
        ..pool: Pool;
    }
}

record! {
    /// How many machines of which kind.
    pub struct Topology {
        /// the control planes; an odd number, for a majority
        "controlPlane" control_plane: Option<Pool>;
        /// the workers
        "workers" workers: Option<Pool>;
        /// an even number of control planes is what you want
        "allowEven" allow_even: bool = false;
        /// workers of other kinds
        "pools" pools: Vec<NamedPool>;
    }
}

record! {
    /// One machine: what differs from its pool, or a machine of no pool.
    pub struct ClusterNode {
        /// only for a machine of no pool: what it does
        "role" role: Option<NodeRole>;
        /// its address
        "address" address: Option<Spanned<Ip>> [label(ADDRESS)];
        /// its hardware address; with `dhcp`, the one that its address is reserved for
        "mac" mac: Option<Spanned<Mac>>;
        /// the key that it must show in maintenance mode, as its console prints it: `talosctl --cert-fingerprint` takes the same
        "maintenanceFingerprint" maintenance_fingerprint: Option<Spanned<String>> [text(FINGERPRINT)];
        /// the number in the Proxmox cluster
        "vmId" vm_id: Option<Spanned<u32>> [range(100, 999_999_999), label(VM_ID)];
        ..settings: NodeSettings;
    }
}

record! {
    /// `nodes.yaml`: the same as `cluster.nodes`.
    pub struct NodesFile [document] {
        /// one machine each, by name
        "nodes" nodes: Map<ClusterNode> [keys(HOST), env()];
    }
}
