//! The table of containers.

use super::form::Form::{Bool, Decimal, Int, Lines, List, Mac, Secret, Tags, Text, Words};
use super::qemu::STARTUP;
use super::rule::Content::{Description, Property as Parts, ReadOnly, Value, Volume};
use super::rule::Key::{Exact, Slot};
use super::rule::{KeyRule, Part, Property};

const CPU: &str = "VM.Config.CPU";
const MEMORY: &str = "VM.Config.Memory";
const OPTIONS: &str = "VM.Config.Options";
const NETWORK: &str = "VM.Config.Network";
const DISK: &str = "VM.Config.Disk";
const ALLOCATE: &str = "VM.Allocate";

pub(crate) static TABLE: &[KeyRule] = &[
    KeyRule::new(Exact("ostemplate"), &["image"], Value(Text), ALLOCATE).at_creation(),
    KeyRule::new(Exact("password"), &["password"], Value(Secret), ALLOCATE).at_creation(),
    KeyRule::new(Exact("ssh-public-keys"), &["ssh_keys"], Value(Lines), ALLOCATE).at_creation(),
    KeyRule::new(Exact("unprivileged"), &["unprivileged"], Value(Bool), ALLOCATE).at_creation(),
    KeyRule::new(Exact("hostname"), &["name"], Value(Text), NETWORK),
    KeyRule::new(Exact("description"), &[], Description, OPTIONS),
    KeyRule::new(Exact("tags"), &["tags"], Value(Tags), OPTIONS),
    KeyRule::new(Exact("onboot"), &["onboot"], Value(Bool), OPTIONS),
    KeyRule::new(Exact("protection"), &["protection"], Value(Bool), OPTIONS),
    KeyRule::new(Exact("startup"), &["startup"], Parts(&STARTUP), OPTIONS),
    KeyRule::new(Exact("ostype"), &["ostype"], Value(Text), OPTIONS).at_creation(),
    KeyRule::new(Exact("template"), &["template"], ReadOnly(Bool), OPTIONS),
    KeyRule::new(Exact("features"), &["features"], Parts(&FEATURES), ALLOCATE),
    KeyRule::new(Exact("console"), &["console", "enabled"], Value(Bool), OPTIONS),
    KeyRule::new(Exact("cmode"), &["console", "mode"], Value(Text), OPTIONS),
    KeyRule::new(Exact("tty"), &["console", "tty"], Value(Int), OPTIONS),
    KeyRule::new(Exact("timezone"), &["timezone"], Value(Text), OPTIONS),
    KeyRule::new(Exact("cores"), &["cpu", "cores"], Value(Int), CPU),
    KeyRule::new(Exact("cpuunits"), &["cpu", "units"], Value(Int), CPU),
    KeyRule::new(Exact("cpulimit"), &["cpu", "limit"], Value(Decimal), CPU),
    KeyRule::new(Exact("memory"), &["memory", "size"], Value(Int), MEMORY),
    KeyRule::new(Exact("swap"), &["memory", "swap"], Value(Int), MEMORY),
    KeyRule::new(Exact("rootfs"), &["rootfs"], Volume(&ROOTFS), DISK),
    KeyRule::new(Slot("mp"), &["mounts"], Volume(&MOUNT), DISK),
    KeyRule::new(Slot("net"), &["networks"], Parts(&NET), NETWORK),
    KeyRule::new(Exact("nameserver"), &["nameservers"], Value(Words), NETWORK),
    KeyRule::new(Exact("searchdomain"), &["searchdomain"], Value(Text), NETWORK),
];

static FEATURES: Property = Property {
    // No part of it goes without a name.
    default_key: "",
    parts: &[
        Part::new("nesting", "nesting", Bool),
        Part::new("keyctl", "keyctl", Bool),
        Part::new("fuse", "fuse", Bool),
        Part::new("mknod", "mknod", Bool),
        Part::new("force_rw_sys", "force_rw_sys", Bool),
        Part::new("mount", "mount", List(';')),
    ],
};

static ROOTFS: Property = Property {
    default_key: "volume",
    parts: &[
        Part::new("ro", "readonly", Bool),
        Part::new("quota", "quota", Bool),
        Part::new("replicate", "replicate", Bool),
        Part::new("acl", "acl", Bool),
        Part::new("mountoptions", "mountoptions", Text),
    ],
};

static MOUNT: Property = Property {
    default_key: "volume",
    parts: &[
        Part::new("mp", "path", Text),
        Part::new("backup", "backup", Bool),
        Part::new("ro", "readonly", Bool),
        Part::new("quota", "quota", Bool),
        Part::new("acl", "acl", Bool),
        Part::new("replicate", "replicate", Bool),
        Part::new("shared", "shared", Bool),
        Part::new("mountoptions", "mountoptions", Text),
    ],
};

static NET: Property = Property {
    default_key: "",
    parts: &[
        Part::new("name", "name", Text),
        Part::new("hwaddr", "mac", Mac),
        Part::new("bridge", "bridge", Text),
        Part::new("tag", "vlan", Int),
        Part::new("mtu", "mtu", Int),
        Part::new("firewall", "firewall", Bool),
        Part::new("link_down", "link_down", Bool),
        Part::new("rate", "rate", Decimal),
        Part::new("trunks", "trunks", Text),
        Part::new("ip", "ip", Text),
        Part::new("gw", "gateway", Text),
        Part::new("ip6", "ip6", Text),
        Part::new("gw6", "gateway6", Text),
    ],
};
