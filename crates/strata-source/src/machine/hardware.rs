//! The hardware of a VM: what templates, VMs and the machines of a cluster have in common.

use strata_yaml::{Spanned, TextRule, TextShape, choice, record};

use crate::machine::device::{Agent, Efi, Pci, Tpm, Usb, Vga};
use crate::machine::disk::Disk;
use crate::machine::network::Nic;
use crate::value::size::MemorySize;
use crate::value::slot::{DiskSlots, NetSlots, PciSlots, SerialSlots, Slots, UsbSlots};

choice! {
    /// The firmware.
    pub enum Bios { Seabios = "seabios", Ovmf = "ovmf" }
}

choice! {
    /// The SCSI controller.
    pub enum ScsiController {
        VirtioScsiPci = "virtio-scsi-pci",
        VirtioScsiSingle = "virtio-scsi-single",
        Lsi = "lsi",
        Lsi53c810 = "lsi53c810",
        Megasas = "megasas",
        Pvscsi = "pvscsi",
    }
}

choice! {
    /// The operating system, for the defaults that Proxmox has for it.
    pub enum OsType {
        Linux26 = "l26",
        Linux24 = "l24",
        Windows11 = "win11",
        Windows10 = "win10",
        Windows8 = "win8",
        Windows7 = "win7",
        Windows2008 = "w2k8",
        WindowsVista = "wvista",
        Windows2003 = "w2k3",
        Windows2000 = "w2k",
        WindowsXp = "wxp",
        Solaris = "solaris",
        Other = "other",
    }
}

choice! {
    /// What can be changed while the machine runs.
    pub enum Hotplug {
        Disk = "disk",
        Network = "network",
        Usb = "usb",
        Memory = "memory",
        Cpu = "cpu",
        CloudInit = "cloudinit",
    }
}

record! {
    /// The processor.
    pub struct Cpu [shorthand("type")] {
        /// the model that the guest sees: `host`, `x86-64-v2-AES`, …
        "type" kind: Option<String>;
        /// features to add or take away: `+aes`, `-pcid`
        "flags" flags: Vec<String> [text(CPU_FLAG)];
        /// the weight against other guests
        "units" units: Option<u32> [range(1, 262_144)];
        /// at most this many cores' worth of time
        "limit" limit: Option<f64> [range(0, 128)];
        /// shows the guest the host's memory nodes
        "numa" numa: Option<bool>;
        /// the host's cores it may run on: `0-3,8`
        "affinity" affinity: Option<String>;
    }
}

const CPU_FLAG: TextRule = TextRule {
    shape: TextShape {
        what: "a CPU flag with its sign such as `+aes`",
        pattern: Some("^[+-][A-Za-z0-9._-]+$"),
    },
    accepts: |text| text.len() > 1 && text.starts_with(['+', '-']) && !text.contains([';', ',', ' ']),
};

const SERIAL: TextRule = TextRule {
    shape: TextShape {
        what: "`socket` or a device such as `/dev/ttyS0`",
        pattern: Some("^(socket|/dev/.+)$"),
    },
    accepts: |text| text == "socket" || text.strip_prefix("/dev/").is_some_and(|rest| !rest.is_empty()),
};

record! {
    /// The hardware of a VM.
    pub struct Hardware {
        /// cores for each socket
        "cores" cores: Option<u32> [range(1, 1024)];
        /// processor sockets
        "sockets" sockets: Option<u32> [range(1, 16)];
        /// the processor's type, flags, weight and limits
        "cpu" cpu: Option<Cpu>;
        /// in MiB, or with a unit
        "memory" memory: Option<MemorySize>;
        /// the least memory that ballooning leaves; 0 turns it off
        "balloon" balloon: Option<u64> [range(0, 1 << 42), aliases(&["ballooning"])];
        /// the firmware; `ovmf` wants an `efi` disk
        "bios" bios: Option<Bios>;
        /// the chipset: `q35`, `pc`, or one with a version
        "machine" machine: Option<String>;
        /// the disk that keeps the EFI variables
        "efi" efi: Option<Efi>;
        /// a TPM
        "tpm" tpm: Option<Tpm>;
        /// the SCSI controller
        "scsiController" scsi_controller: Option<ScsiController>;
        /// the first disk; short for the slot that the template or the image boots from
        "disk" disk: Option<Disk>;
        /// disks by slot: `scsi0`, `virtio1`, …
        "disks" disks: Slots<Disk, DiskSlots>;
        /// network devices: a list for `net0`, `net1`, …, or by slot
        "network" network: Slots<Nic, NetSlots>;
        /// PCI devices of the host: a list or by slot
        "pci" pci: Slots<Pci, PciSlots>;
        /// USB devices of the host: a list or by slot
        "usb" usb: Slots<Usb, UsbSlots>;
        /// serial ports: a list or by slot
        "serial" serial: Slots<String, SerialSlots> [text(SERIAL)];
        /// the display
        "vga" vga: Option<Vga>;
        /// the QEMU guest agent
        "agent" agent: Option<Agent>;
        /// the slots to boot from, in order
        "bootOrder" boot_order: Vec<Spanned<String>>;
        /// the operating system, for the defaults that Proxmox has for it
        "osType" os_type: Option<OsType>;
        /// the clock runs in the local time of the host, as Windows expects
        "localTime" local_time: Option<bool>;
        /// a USB tablet as the pointer
        "tablet" tablet: Option<bool>;
        /// what can be changed while the machine runs
        "hotplug" hotplug: Option<Vec<Hotplug>>;
    }
}
