//! Devices of the host handed to a VM, and the small devices that every VM has.

use strata_yaml::{Map, Raw, Spanned, choice, record};

use crate::value::name::ID;

record! {
    /// A PCI device of the host.
    pub struct Pci [shorthand("mapping"), exactly_one(&["device", "mapping"])] {
        /// the device's address on the host, such as `0000:01:00.0`; needs root
        "device" device: Option<Spanned<String>>;
        /// the name of a mapping in the datacenter
        "mapping" mapping: Option<Spanned<String>> [text(ID)];
        /// as a PCI Express device; needs machine `q35`
        "pcie" pcie: Option<bool>;
        /// whether the guest sees the device's ROM
        "rombar" rombar: Option<bool>;
        /// the guest's primary display
        "xvga" xvga: Option<bool>;
        /// the type of a mediated device
        "mdev" mdev: Option<String>;
        /// any other property that Proxmox knows, as it is
        "options" options: Map<Raw>;
    }
}

record! {
    /// A USB device of the host.
    pub struct Usb [shorthand("mapping"), exactly_one(&["device", "mapping"])] {
        /// `vendor:product`, `bus-port`, or `spice`; needs root
        "device" device: Option<Spanned<String>>;
        /// the name of a mapping in the datacenter
        "mapping" mapping: Option<Spanned<String>> [text(ID)];
        /// as a USB 3 device
        "usb3" usb3: Option<bool>;
    }
}

choice! {
    /// The display.
    pub enum VgaType {
        Std = "std",
        Cirrus = "cirrus",
        Vmware = "vmware",
        Qxl = "qxl",
        Qxl2 = "qxl2",
        Qxl3 = "qxl3",
        Qxl4 = "qxl4",
        Serial0 = "serial0",
        Serial1 = "serial1",
        Serial2 = "serial2",
        Serial3 = "serial3",
        Virtio = "virtio",
        VirtioGl = "virtio-gl",
        None = "none",
    }
}

record! {
    /// The display.
    pub struct Vga [shorthand("type")] {
        /// what the guest sees
        "type" kind: Option<VgaType>;
        /// in MiB
        "memory" memory: Option<u32> [range(4, 512)];
    }
}

choice! {
    /// How the host talks to the guest agent.
    pub enum AgentType { Virtio = "virtio", Isa = "isa" }
}

record! {
    /// The QEMU guest agent.
    pub struct Agent [shorthand("enabled")] {
        /// the guest runs the agent
        "enabled" enabled: bool = true;
        /// free space is trimmed after a disk was moved or a clone made
        "trim" trim: Option<bool>;
        /// file systems are frozen for a backup
        "freeze" freeze: Option<bool>;
        /// how the host talks to it
        "type" kind: Option<AgentType>;
    }
}

choice! {
    /// The size of the EFI variables store; `4m` for everything that is not old.
    pub enum EfiType { Small = "2m", Large = "4m" }
}

record! {
    /// The disk that keeps the EFI variables.
    pub struct Efi [shorthand("storage")] {
        /// otherwise where the first disk is
        "storage" storage: Option<Spanned<String>> [text(ID)];
        /// with the keys for Secure Boot of Microsoft and the distributions
        "preEnrolledKeys" pre_enrolled_keys: Option<bool>;
        /// its size
        "type" kind: Option<EfiType>;
        /// how the volume is stored
        "format" format: Option<crate::machine::disk::DiskFormat>;
    }
}

choice! {
    /// The version of the TPM.
    pub enum TpmVersion { V12 = "v1.2", V20 = "v2.0" }
}

record! {
    /// The disk that keeps the state of a TPM.
    pub struct Tpm [shorthand("storage")] {
        /// there is one; `false` for a machine of a cluster with Secure Boot that has none
        "enabled" enabled: bool = true;
        /// otherwise where the first disk is
        "storage" storage: Option<Spanned<String>> [text(ID)];
        /// Windows 11 wants `v2.0`
        "version" version: Option<TpmVersion>;
    }
}
