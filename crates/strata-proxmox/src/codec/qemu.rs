//! The table of VMs.

use super::form::Form::{
    Bool, Boot, Decimal, Hotplug, Int, List, Mac, OnOff, Secret, SshKeys, Tags, Text, Words,
};
use super::rule::Content::{Description, Drive, Property as Parts, QemuNet, ReadOnly, Value, Volume};
use super::rule::Key::{Exact, Slot};
use super::rule::{KeyRule, Part, Property};

const CPU: &str = "VM.Config.CPU";
const MEMORY: &str = "VM.Config.Memory";
const HARDWARE: &str = "VM.Config.HWType";
const OPTIONS: &str = "VM.Config.Options";
const NETWORK: &str = "VM.Config.Network";
const DISK: &str = "VM.Config.Disk";
const CLOUDINIT: &str = "VM.Config.Cloudinit";

pub(crate) static TABLE: &[KeyRule] = &[
    KeyRule::new(Exact("name"), &["name"], Value(Text), OPTIONS),
    KeyRule::new(Exact("description"), &[], Description, OPTIONS),
    KeyRule::new(Exact("tags"), &["tags"], Value(Tags), OPTIONS),
    KeyRule::new(Exact("onboot"), &["onboot"], Value(Bool), OPTIONS),
    KeyRule::new(Exact("protection"), &["protection"], Value(Bool), OPTIONS),
    KeyRule::new(Exact("startup"), &["startup"], Parts(&STARTUP), OPTIONS),
    KeyRule::new(Exact("agent"), &["agent"], Parts(&AGENT), OPTIONS),
    KeyRule::new(Exact("bios"), &["bios"], Value(Text), OPTIONS),
    KeyRule::new(Exact("ostype"), &["ostype"], Value(Text), OPTIONS),
    KeyRule::new(Exact("template"), &["template"], ReadOnly(Bool), OPTIONS),
    KeyRule::new(Exact("cpu"), &["cpu"], Parts(&PROCESSOR), CPU),
    KeyRule::new(Exact("cores"), &["cpu", "cores"], Value(Int), CPU),
    KeyRule::new(Exact("sockets"), &["cpu", "sockets"], Value(Int), CPU),
    KeyRule::new(Exact("cpuunits"), &["cpu", "units"], Value(Int), CPU),
    KeyRule::new(Exact("cpulimit"), &["cpu", "limit"], Value(Decimal), CPU),
    KeyRule::new(Exact("numa"), &["cpu", "numa"], Value(Bool), CPU),
    KeyRule::new(Exact("affinity"), &["cpu", "affinity"], Value(Text), CPU),
    KeyRule::new(Exact("memory"), &["memory"], Parts(&RAM), MEMORY),
    KeyRule::new(Exact("balloon"), &["memory", "balloon"], Value(Int), MEMORY),
    KeyRule::new(Exact("arch"), &["arch"], Value(Text), HARDWARE).at_creation(),
    KeyRule::new(Exact("machine"), &["machine"], Value(Text), HARDWARE),
    KeyRule::new(Exact("scsihw"), &["scsihw"], Value(Text), HARDWARE),
    KeyRule::new(Exact("tablet"), &["tablet"], Value(Bool), HARDWARE),
    KeyRule::new(Exact("acpi"), &["acpi"], Value(Bool), HARDWARE),
    KeyRule::new(Exact("kvm"), &["kvm"], Value(Bool), HARDWARE),
    KeyRule::new(Exact("hotplug"), &["hotplug"], Value(Hotplug), HARDWARE),
    KeyRule::new(Exact("vga"), &["vga"], Parts(&DISPLAY), HARDWARE),
    KeyRule::new(Slot("serial"), &["serial"], Value(Text), HARDWARE),
    KeyRule::new(Slot("hostpci"), &["pci"], Parts(&PCI), HARDWARE),
    KeyRule::new(Slot("usb"), &["usb"], Parts(&USB), HARDWARE),
    KeyRule::new(Exact("efidisk0"), &["efidisk"], Volume(&EFI), DISK),
    KeyRule::new(Exact("tpmstate0"), &["tpm"], Volume(&TPM), DISK),
    KeyRule::new(Slot("scsi"), &["disks"], Drive(&DISK_OPTIONS), DISK),
    KeyRule::new(Slot("virtio"), &["disks"], Drive(&DISK_OPTIONS), DISK),
    KeyRule::new(Slot("sata"), &["disks"], Drive(&DISK_OPTIONS), DISK),
    KeyRule::new(Slot("ide"), &["disks"], Drive(&DISK_OPTIONS), DISK),
    KeyRule::new(Exact("boot"), &["boot"], Value(Boot), DISK),
    KeyRule::new(Slot("net"), &["networks"], QemuNet(&NET), NETWORK),
    KeyRule::new(Exact("ciuser"), &["cloudinit", "user"], Value(Text), CLOUDINIT),
    KeyRule::new(Exact("cipassword"), &["cloudinit", "password"], Value(Secret), CLOUDINIT),
    KeyRule::new(Exact("sshkeys"), &["cloudinit", "ssh_keys"], Value(SshKeys), CLOUDINIT),
    KeyRule::new(Exact("nameserver"), &["cloudinit", "nameservers"], Value(Words), CLOUDINIT),
    KeyRule::new(Exact("searchdomain"), &["cloudinit", "searchdomain"], Value(Text), CLOUDINIT),
    KeyRule::new(Exact("ciupgrade"), &["cloudinit", "upgrade"], Value(Bool), CLOUDINIT),
    KeyRule::new(Exact("citype"), &["cloudinit", "type"], Value(Text), CLOUDINIT),
    KeyRule::new(Slot("ipconfig"), &["cloudinit", "ipconfig"], Parts(&ADDRESSES), CLOUDINIT),
];

pub(super) static STARTUP: Property = Property {
    default_key: "order",
    parts: &[
        Part { key: "order", field: "order", form: Int },
        Part { key: "up", field: "up", form: Int },
        Part { key: "down", field: "down", form: Int },
    ],
};

static AGENT: Property = Property {
    default_key: "enabled",
    parts: &[
        Part { key: "enabled", field: "enabled", form: Bool },
        Part { key: "fstrim_cloned_disks", field: "trim", form: Bool },
        Part { key: "type", field: "type", form: Text },
    ],
};

static PROCESSOR: Property = Property {
    default_key: "cputype",
    parts: &[
        Part { key: "cputype", field: "type", form: Text },
        Part { key: "flags", field: "flags", form: List(';') },
    ],
};

static RAM: Property =
    Property { default_key: "current", parts: &[Part { key: "current", field: "size", form: Int }] };

static DISPLAY: Property = Property {
    default_key: "type",
    parts: &[
        Part { key: "type", field: "type", form: Text },
        Part { key: "memory", field: "memory", form: Int },
    ],
};

static PCI: Property = Property {
    default_key: "host",
    parts: &[
        Part { key: "host", field: "device", form: Text },
        Part { key: "mapping", field: "mapping", form: Text },
        Part { key: "pcie", field: "pcie", form: Bool },
        Part { key: "rombar", field: "rombar", form: Bool },
        Part { key: "x-vga", field: "xvga", form: Bool },
        Part { key: "mdev", field: "mdev", form: Text },
    ],
};

static USB: Property = Property {
    default_key: "host",
    parts: &[
        Part { key: "host", field: "device", form: Text },
        Part { key: "mapping", field: "mapping", form: Text },
        Part { key: "usb3", field: "usb3", form: Bool },
    ],
};

static EFI: Property = Property {
    default_key: "file",
    parts: &[
        Part { key: "efitype", field: "type", form: Text },
        Part { key: "pre-enrolled-keys", field: "pre_enrolled_keys", form: Bool },
    ],
};

static TPM: Property =
    Property { default_key: "file", parts: &[Part { key: "version", field: "version", form: Text }] };

static DISK_OPTIONS: Property = Property {
    default_key: "file",
    parts: &[
        Part { key: "ssd", field: "ssd", form: Bool },
        Part { key: "discard", field: "discard", form: OnOff },
        Part { key: "iothread", field: "iothread", form: Bool },
        Part { key: "ro", field: "readonly", form: Bool },
        Part { key: "backup", field: "backup", form: Bool },
        Part { key: "replicate", field: "replicate", form: Bool },
        Part { key: "cache", field: "cache", form: Text },
        Part { key: "aio", field: "aio", form: Text },
        Part { key: "serial", field: "serial", form: Text },
        Part { key: "queues", field: "queues", form: Int },
        Part { key: "iops", field: "iops", form: Int },
        Part { key: "iops_rd", field: "iops_rd", form: Int },
        Part { key: "iops_wr", field: "iops_wr", form: Int },
        Part { key: "mbps", field: "mbps", form: Decimal },
        Part { key: "mbps_rd", field: "mbps_rd", form: Decimal },
        Part { key: "mbps_wr", field: "mbps_wr", form: Decimal },
    ],
};

static NET: Property = Property {
    default_key: "model",
    parts: &[
        Part { key: "model", field: "model", form: Text },
        Part { key: "macaddr", field: "mac", form: Mac },
        Part { key: "bridge", field: "bridge", form: Text },
        Part { key: "tag", field: "vlan", form: Int },
        Part { key: "mtu", field: "mtu", form: Int },
        Part { key: "queues", field: "queues", form: Int },
        Part { key: "firewall", field: "firewall", form: Bool },
        Part { key: "link_down", field: "link_down", form: Bool },
        Part { key: "rate", field: "rate", form: Decimal },
        Part { key: "trunks", field: "trunks", form: Text },
    ],
};

static ADDRESSES: Property = Property {
    // Every part is named.
    default_key: "",
    parts: &[
        Part { key: "ip", field: "ip", form: Text },
        Part { key: "gw", field: "gateway", form: Text },
        Part { key: "ip6", field: "ip6", form: Text },
        Part { key: "gw6", field: "gateway6", form: Text },
    ],
};
