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
        Part { key: "nesting", field: "nesting", form: Bool },
        Part { key: "keyctl", field: "keyctl", form: Bool },
        Part { key: "fuse", field: "fuse", form: Bool },
        Part { key: "mknod", field: "mknod", form: Bool },
        Part { key: "force_rw_sys", field: "force_rw_sys", form: Bool },
        Part { key: "mount", field: "mount", form: List(';') },
    ],
};

static ROOTFS: Property = Property {
    default_key: "volume",
    parts: &[
        Part { key: "ro", field: "readonly", form: Bool },
        Part { key: "quota", field: "quota", form: Bool },
        Part { key: "replicate", field: "replicate", form: Bool },
        Part { key: "acl", field: "acl", form: Bool },
        Part { key: "mountoptions", field: "mountoptions", form: Text },
    ],
};

static MOUNT: Property = Property {
    default_key: "volume",
    parts: &[
        Part { key: "mp", field: "path", form: Text },
        Part { key: "backup", field: "backup", form: Bool },
        Part { key: "ro", field: "readonly", form: Bool },
        Part { key: "quota", field: "quota", form: Bool },
        Part { key: "acl", field: "acl", form: Bool },
        Part { key: "replicate", field: "replicate", form: Bool },
        Part { key: "shared", field: "shared", form: Bool },
        Part { key: "mountoptions", field: "mountoptions", form: Text },
    ],
};

static NET: Property = Property {
    default_key: "",
    parts: &[
        Part { key: "name", field: "name", form: Text },
        Part { key: "hwaddr", field: "mac", form: Mac },
        Part { key: "bridge", field: "bridge", form: Text },
        Part { key: "tag", field: "vlan", form: Int },
        Part { key: "mtu", field: "mtu", form: Int },
        Part { key: "firewall", field: "firewall", form: Bool },
        Part { key: "link_down", field: "link_down", form: Bool },
        Part { key: "rate", field: "rate", form: Decimal },
        Part { key: "ip", field: "ip", form: Text },
        Part { key: "gw", field: "gateway", form: Text },
        Part { key: "ip6", field: "ip6", form: Text },
        Part { key: "gw6", field: "gateway6", form: Text },
    ],
};
