//! `modules/proxmox_qemu_vm`: one virtual machine.

use crate::variable::Default::{Bool as DefaultBool, EmptyList, EmptyMap};
use crate::variable::Type::{Bool, List, Map, Number, Object, Text};
use crate::variable::{Type, Variable, may, must};

const CLONE: Type =
    Object(&[must("vm_id", Number), may("node_name", Text), may("full", Bool), may("datastore_id", Text)]);

const CPU: Type = Object(&[
    may("type", Text),
    may("cores", Number),
    may("sockets", Number),
    may("units", Number),
    may("limit", Number),
    may("numa", Bool),
    may("flags", List(&Text)),
    may("affinity", Text),
]);

const DISK: Type = Object(&[
    may("datastore_id", Text),
    may("size", Number),
    may("file_format", Text),
    may("import_from", Text),
    may("path_in_datastore", Text),
    may("ssd", Bool),
    may("discard", Bool),
    may("iothread", Bool),
    may("backup", Bool),
    may("replicate", Bool),
    may("cache", Text),
    may("aio", Text),
    may("serial", Text),
]);

const NETWORK: Type = Object(&[
    may("enabled", Bool),
    may("bridge", Text),
    may("model", Text),
    may("mac_address", Text),
    may("vlan_id", Number),
    may("trunks", Text),
    may("mtu", Number),
    may("queues", Number),
    may("firewall", Bool),
    may("disconnected", Bool),
    may("rate_limit", Number),
]);

pub(super) const IP_CONFIG: Type = Object(&[
    may("ipv4_address", Text),
    may("ipv4_gateway", Text),
    may("ipv6_address", Text),
    may("ipv6_gateway", Text),
]);

const INITIALIZATION: Type = Object(&[
    may("datastore_id", Text),
    may("interface", Text),
    may("type", Text),
    may("upgrade", Bool),
    may("username", Text),
    may("ssh_keys", List(&Text)),
    may("dns_servers", List(&Text)),
    may("dns_domain", Text),
    may("ip_configs", List(&IP_CONFIG)),
    may("user_data_file_id", Text),
    may("vendor_data_file_id", Text),
    may("network_data_file_id", Text),
    may("meta_data_file_id", Text),
]);

pub(super) const FIREWALL: Type = Object(&[
    must("enabled", Bool),
    may("dhcp", Bool),
    may("macfilter", Bool),
    may("ipfilter", Bool),
    may("ndp", Bool),
    may("radv", Bool),
    may("input_policy", Text),
    may("output_policy", Text),
    may("log_level_in", Text),
    may("log_level_out", Text),
    may("rules", List(&RULE)),
]);

pub(super) const RULE: Type = Object(&[
    may("type", Text),
    may("action", Text),
    may("security_group", Text),
    may("enabled", Bool),
    may("comment", Text),
    may("source", Text),
    may("dest", Text),
    may("proto", Text),
    may("dport", Text),
    may("sport", Text),
    may("iface", Text),
    may("log", Text),
    may("macro", Text),
]);

pub(super) const STARTUP: Type =
    Object(&[may("order", Number), may("up_delay", Number), may("down_delay", Number)]);

pub(super) const VM_ID: Variable = Variable::required("vm_id", Number, "The number in the Proxmox cluster")
    .valid_if("var.vm_id >= 100 && var.vm_id <= 999999999", "VMIDs go from 100 to 999999999.");

/// What a VM and a template both take.
pub(crate) const INPUTS: &[Variable] = &[
    VM_ID,
    Variable::required("name", Text, "The name, a host name").valid_if(
        "can(regex(\"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$\", var.name))",
        "The name must be a host name.",
    ),
    Variable::required("node_name", Text, "The Proxmox node"),
    Variable::optional("description", Text, "The notes; the last line is Strata's ownership mark"),
    Variable::optional("tags", List(&Text), "Tags, in lower case").or(EmptyList),
    Variable::optional("pool_id", Text, "The pool it is a member of"),
    Variable::optional("started", Bool, "Whether it runs").or(DefaultBool(true)),
    Variable::optional("on_boot", Bool, "Whether it starts with its host").or(DefaultBool(false)),
    Variable::optional("protection", Bool, "Whether Proxmox refuses to remove it").or(DefaultBool(false)),
    Variable::optional("template", Bool, "Whether it is only cloned").or(DefaultBool(false)),
    Variable::optional("bios", Text, "The firmware: `seabios` or `ovmf`").valid_if(
        "var.bios == null ? true : contains([\"seabios\", \"ovmf\"], var.bios)",
        "The firmware is seabios or ovmf.",
    ),
    Variable::optional("machine", Text, "The chipset, such as `q35`"),
    Variable::optional("os_type", Text, "The operating system, such as `l26`"),
    Variable::optional("scsi_hardware", Text, "The SCSI controller"),
    Variable::optional("tablet_device", Bool, "Whether there is a pointing device"),
    Variable::optional("hotplug", Text, "What can be plugged while it runs"),
    Variable::optional("boot_order", List(&Text), "The slots that it boots from, first to last"),
    Variable::optional("clone", CLONE, "The template it is cloned from"),
    Variable::optional("cpu", CPU, "The processor"),
    Variable::optional(
        "memory",
        Object(&[may("dedicated", Number), may("floating", Number)]),
        "Memory and the least that ballooning leaves, in MiB",
    ),
    Variable::optional(
        "agent",
        Object(&[may("enabled", Bool), may("trim", Bool), may("type", Text)]),
        "The guest agent",
    ),
    Variable::optional("disks", Map(&DISK), "Disks by slot, such as `scsi0`; sizes in GiB").or(EmptyMap),
    Variable::optional(
        "cdrom",
        Object(&[must("interface", Text), must("file_id", Text)]),
        "The CD in the drive",
    ),
    Variable::optional(
        "efi_disk",
        Object(&[
            must("datastore_id", Text),
            may("type", Text),
            may("pre_enrolled_keys", Bool),
            may("file_format", Text),
        ]),
        "The disk of the OVMF firmware",
    ),
    Variable::optional(
        "tpm_state",
        Object(&[must("datastore_id", Text), may("version", Text)]),
        "The disk of the TPM",
    ),
    Variable::optional("network_devices", List(&NETWORK), "Network devices: the first is `net0`")
        .or(EmptyList),
    Variable::optional("initialization", INITIALIZATION, "What cloud-init configures at its first boot"),
    Variable::optional("user_password", Text, "The password of cloud-init's user").sensitive(),
    Variable::optional(
        "hostpci",
        Map(&Object(&[
            may("id", Text),
            may("mapping", Text),
            may("pcie", Bool),
            may("rombar", Bool),
            may("xvga", Bool),
            may("mdev", Text),
        ])),
        "PCI devices of the host by slot, such as `hostpci0`",
    )
    .or(EmptyMap),
    Variable::optional(
        "usb",
        List(&Object(&[may("host", Text), may("mapping", Text), may("usb3", Bool)])),
        "USB devices of the host",
    )
    .or(EmptyList),
    Variable::optional("serial_devices", List(&Text), "Serial ports").or(EmptyList),
    Variable::optional("vga", Object(&[may("type", Text), may("memory", Number)]), "The graphics card"),
    Variable::optional("startup", STARTUP, "When it starts and stops with its host"),
    Variable::optional("firewall", FIREWALL, "The firewall of this guest"),
    Variable::optional(
        "timeouts",
        Object(&[
            may("create", Number),
            may("clone", Number),
            may("start", Number),
            may("shutdown", Number),
            may("migrate", Number),
        ]),
        "How long steps may take, in seconds",
    ),
];
