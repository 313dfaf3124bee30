//! `modules/proxmox_lxc_container`: one LXC container.

use crate::module::vm::{FIREWALL, IP_CONFIG, STARTUP, VM_ID};
use crate::variable::Default::{Bool as DefaultBool, EmptyList};
use crate::variable::Type::{Bool, List, Number, Object, Text};
use crate::variable::{Type, Variable, may, must};

const DISK: Type = Object(&[
    must("datastore_id", Text),
    must("size", Number),
    may("acl", Bool),
    may("quota", Bool),
    may("replicate", Bool),
    may("mount_options", List(&Text)),
]);

const MOUNT: Type = Object(&[
    must("path", Text),
    must("volume", Text),
    may("size", Text),
    may("read_only", Bool),
    may("backup", Bool),
    may("quota", Bool),
    may("acl", Bool),
    may("replicate", Bool),
    may("shared", Bool),
    may("mount_options", List(&Text)),
]);

const NETWORK: Type = Object(&[
    must("name", Text),
    may("enabled", Bool),
    may("bridge", Text),
    may("mac_address", Text),
    may("vlan_id", Number),
    may("mtu", Number),
    may("firewall", Bool),
    may("rate_limit", Number),
]);

const FEATURES: Type = Object(&[
    may("nesting", Bool),
    may("keyctl", Bool),
    may("fuse", Bool),
    may("mknod", Bool),
    may("mount", List(&Text)),
]);

pub(crate) const INPUTS: &[Variable] = &[
    VM_ID,
    Variable::required("hostname", Text, "The host name"),
    Variable::required("node_name", Text, "The Proxmox node"),
    Variable::required("template_file_id", Text, "The volume of the container template"),
    Variable::optional("os_type", Text, "The distribution inside"),
    Variable::optional("description", Text, "The notes; the last line is Strata's ownership mark"),
    Variable::optional("tags", List(&Text), "Tags, in lower case").or(EmptyList),
    Variable::optional("pool_id", Text, "The pool it is a member of"),
    Variable::optional("started", Bool, "Whether it runs").or(DefaultBool(true)),
    Variable::optional("start_on_boot", Bool, "Whether it starts with its host").or(DefaultBool(false)),
    Variable::optional("protection", Bool, "Whether Proxmox refuses to remove it").or(DefaultBool(false)),
    Variable::optional("unprivileged", Bool, "Whether its root is nobody on the host").or(DefaultBool(true)),
    Variable::optional(
        "cpu",
        Object(&[may("cores", Number), may("units", Number), may("limit", Number)]),
        "The processor",
    ),
    Variable::optional(
        "memory",
        Object(&[may("dedicated", Number), may("swap", Number)]),
        "Memory and swap in MiB",
    ),
    Variable::optional("disk", DISK, "The root file system; the size in GiB"),
    Variable::optional("mount_points", List(&MOUNT), "Volumes and folders of the host: the first is `mp0`")
        .or(EmptyList),
    Variable::optional("network_interfaces", List(&NETWORK), "Network devices: the first is `net0`")
        .or(EmptyList),
    Variable::optional("ip_configs", List(&IP_CONFIG), "Addresses, one entry for each network device")
        .or(EmptyList),
    Variable::optional("dns_servers", List(&Text), "Name servers").or(EmptyList),
    Variable::optional("dns_domain", Text, "The domain that short names are looked up in"),
    Variable::optional("ssh_keys", List(&Text), "Keys that may log in as root").or(EmptyList),
    Variable::optional("user_password", Text, "The password of root").sensitive(),
    Variable::optional("features", FEATURES, "What the container may do; all but `nesting` need root@pam"),
    Variable::optional(
        "console",
        Object(&[may("enabled", Bool), may("tty_count", Number), may("type", Text)]),
        "The console",
    ),
    Variable::optional("startup", STARTUP, "When it starts and stops with its host"),
    Variable::optional("firewall", FIREWALL, "The firewall of this guest"),
    Variable::optional(
        "timeouts",
        Object(&[may("create", Number), may("clone", Number), may("delete", Number)]),
        "How long steps may take, in seconds",
    ),
];
