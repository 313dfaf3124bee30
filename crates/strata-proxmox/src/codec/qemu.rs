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
    KeyRule::new(Exact("localtime"), &["local_time"], Value(Bool), OPTIONS),
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
    parts: &[Part::new("order", "order", Int), Part::new("up", "up", Int), Part::new("down", "down", Int)],
};

static AGENT: Property = Property {
    default_key: "enabled",
    parts: &[
        Part::new("enabled", "enabled", Bool),
        Part::new("fstrim_cloned_disks", "trim", Bool),
        // The name of 8.4; 9.1 has a shorter one and still takes the others.
        Part::new("freeze-fs-on-backup", "freeze", Bool).also(&["freeze-fs", "guest-fsfreeze"]),
        Part::new("type", "type", Text),
    ],
};

static PROCESSOR: Property = Property {
    default_key: "cputype",
    parts: &[Part::new("cputype", "type", Text), Part::new("flags", "flags", List(';'))],
};

static RAM: Property = Property { default_key: "current", parts: &[Part::new("current", "size", Int)] };

static DISPLAY: Property = Property {
    default_key: "type",
    parts: &[Part::new("type", "type", Text), Part::new("memory", "memory", Int)],
};

static PCI: Property = Property {
    default_key: "host",
    parts: &[
        Part::new("host", "device", Text),
        Part::new("mapping", "mapping", Text),
        Part::new("pcie", "pcie", Bool),
        Part::new("rombar", "rombar", Bool),
        Part::new("x-vga", "xvga", Bool),
        Part::new("mdev", "mdev", Text),
    ],
};

static USB: Property = Property {
    default_key: "host",
    parts: &[
        Part::new("host", "device", Text),
        Part::new("mapping", "mapping", Text),
        Part::new("usb3", "usb3", Bool),
    ],
};

static EFI: Property = Property {
    default_key: "file",
    parts: &[Part::new("efitype", "type", Text), Part::new("pre-enrolled-keys", "pre_enrolled_keys", Bool)],
};

static TPM: Property = Property { default_key: "file", parts: &[Part::new("version", "version", Text)] };

static DISK_OPTIONS: Property = Property {
    default_key: "file",
    parts: &[
        Part::new("ssd", "ssd", Bool),
        Part::new("discard", "discard", OnOff),
        Part::new("iothread", "iothread", Bool),
        Part::new("ro", "readonly", Bool),
        Part::new("backup", "backup", Bool),
        Part::new("replicate", "replicate", Bool),
        Part::new("cache", "cache", Text),
        Part::new("aio", "aio", Text),
        Part::new("serial", "serial", Text),
    ],
};

static NET: Property = Property {
    default_key: "model",
    parts: &[
        Part::new("model", "model", Text),
        Part::new("macaddr", "mac", Mac),
        Part::new("bridge", "bridge", Text),
        Part::new("tag", "vlan", Int),
        Part::new("mtu", "mtu", Int),
        Part::new("queues", "queues", Int),
        Part::new("firewall", "firewall", Bool),
        Part::new("link_down", "link_down", Bool),
        Part::new("rate", "rate", Decimal),
        Part::new("trunks", "trunks", Text),
    ],
};

static ADDRESSES: Property = Property {
    // Every part is named.
    default_key: "",
    parts: &[
        Part::new("ip", "ip", Text),
        Part::new("gw", "gateway", Text),
        Part::new("ip6", "ip6", Text),
        Part::new("gw6", "gateway6", Text),
    ],
};
