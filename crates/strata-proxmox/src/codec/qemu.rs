//! The table of VMs.

use super::rule::{Property, Table};
use crate::{keys, kinds, property};

const CPU: &str = "VM.Config.CPU";
const MEMORY: &str = "VM.Config.Memory";
const HARDWARE: &str = "VM.Config.HWType";
const OPTIONS: &str = "VM.Config.Options";
const NETWORK: &str = "VM.Config.Network";
const DISK: &str = "VM.Config.Disk";
const CLOUDINIT: &str = "VM.Config.Cloudinit";

pub(crate) static TABLE: Table = Table {
    kind: kinds::VM,
    keys: keys! {
        "name" name: Value(Text) [needs(OPTIONS)];
        "description": Description [needs(OPTIONS)];
        "tags" tags: Value(Tags) [needs(OPTIONS)];
        "onboot" onboot: Value(Bool) [needs(OPTIONS)];
        "protection" protection: Value(Bool) [needs(OPTIONS)];
        "startup" startup: Parts(&STARTUP) [needs(OPTIONS)];
        "agent" agent: Parts(&AGENT) [needs(OPTIONS)];
        "bios" bios: Value(Text) [needs(OPTIONS)];
        "ostype" ostype: Value(Text) [needs(OPTIONS)];
        "template" template: ReadOnly(Bool) [needs(OPTIONS)];
        "cpu" cpu: Parts(&PROCESSOR) [needs(CPU)];
        "cores" cpu.cores: Value(Int) [needs(CPU)];
        "sockets" cpu.sockets: Value(Int) [needs(CPU)];
        "cpuunits" cpu.units: Value(Int) [needs(CPU)];
        "cpulimit" cpu.limit: Value(Decimal) [needs(CPU)];
        "numa" cpu.numa: Value(Bool) [needs(CPU)];
        "affinity" cpu.affinity: Value(Text) [needs(CPU)];
        "memory" memory: Parts(&RAM) [needs(MEMORY)];
        "balloon" memory.balloon: Value(Int) [needs(MEMORY)];
        "arch" arch: Value(Text) [needs(HARDWARE), at_creation];
        "machine" machine: Value(Text) [needs(HARDWARE)];
        "scsihw" scsihw: Value(Text) [needs(HARDWARE)];
        "localtime" local_time: Value(Bool) [needs(OPTIONS)];
        "tablet" tablet: Value(Bool) [needs(HARDWARE)];
        "acpi" acpi: Value(Bool) [needs(HARDWARE)];
        "kvm" kvm: Value(Bool) [needs(HARDWARE)];
        "hotplug" hotplug: Value(Hotplug) [needs(HARDWARE)];
        "vga" vga: Parts(&DISPLAY) [needs(HARDWARE)];
        "serialN" serial: Value(Text) [needs(HARDWARE)];
        "hostpciN" pci: Parts(&PCI) [needs(HARDWARE)];
        "usbN" usb: Parts(&USB) [needs(HARDWARE)];
        "efidisk0" efidisk: Volume(&EFI) [needs(DISK)];
        "tpmstate0" tpm: Volume(&TPM) [needs(DISK)];
        "scsiN" disks: Drive(&DISK_OPTIONS) [needs(DISK)];
        "virtioN" disks: Drive(&DISK_OPTIONS) [needs(DISK)];
        "sataN" disks: Drive(&DISK_OPTIONS) [needs(DISK)];
        "ideN" disks: Drive(&DISK_OPTIONS) [needs(DISK)];
        "boot" boot: Value(Boot) [needs(DISK)];
        "netN" networks: QemuNet(&NET) [needs(NETWORK)];
        "ciuser" cloudinit.user: Value(Text) [needs(CLOUDINIT)];
        "cipassword" cloudinit.password: Value(Secret) [needs(CLOUDINIT)];
        "sshkeys" cloudinit.ssh_keys: Value(SshKeys) [needs(CLOUDINIT)];
        "nameserver" cloudinit.nameservers: Value(Words) [needs(CLOUDINIT)];
        "searchdomain" cloudinit.searchdomain: Value(Text) [needs(CLOUDINIT)];
        "ciupgrade" cloudinit.upgrade: Value(Bool) [needs(CLOUDINIT)];
        "citype" cloudinit.type: Value(Text) [needs(CLOUDINIT)];
        "ipconfigN" cloudinit.ipconfig: Parts(&ADDRESSES) [needs(CLOUDINIT)];
    },
};

pub(super) static STARTUP: Property = property! {
    unnamed: "order";
    "order" order: Int;
    "up" up: Int;
    "down" down: Int;
};

static AGENT: Property = property! {
    unnamed: "enabled";
    "enabled" enabled: Bool;
    "fstrim_cloned_disks" trim: Bool;
    // The name of 8.4; 9.1 has a shorter one and still takes the others.
    "freeze-fs-on-backup" freeze: Bool [also(&["freeze-fs", "guest-fsfreeze"])];
    "type" type: Text;
};

static PROCESSOR: Property = property! {
    unnamed: "cputype";
    "cputype" type: Text;
    "flags" flags: List(';');
};

static RAM: Property = property! {
    unnamed: "current";
    "current" size: Int;
};

static DISPLAY: Property = property! {
    unnamed: "type";
    "type" type: Text;
    "memory" memory: Int;
};

static PCI: Property = property! {
    unnamed: "host";
    "host" device: Text;
    "mapping" mapping: Text;
    "pcie" pcie: Bool;
    "rombar" rombar: Bool;
    "x-vga" xvga: Bool;
    "mdev" mdev: Text;
};

static USB: Property = property! {
    unnamed: "host";
    "host" device: Text;
    "mapping" mapping: Text;
    "usb3" usb3: Bool;
};

static EFI: Property = property! {
    unnamed: "file";
    "efitype" type: Text;
    "pre-enrolled-keys" pre_enrolled_keys: Bool;
};

static TPM: Property = property! {
    unnamed: "file";
    "version" version: Text;
};

static DISK_OPTIONS: Property = property! {
    unnamed: "file";
    "ssd" ssd: Bool;
    "discard" discard: OnOff;
    "iothread" iothread: Bool;
    "ro" readonly: Bool;
    "backup" backup: Bool;
    "replicate" replicate: Bool;
    "cache" cache: Text;
    "aio" aio: Text;
    "serial" serial: Text;
};

static NET: Property = property! {
    unnamed: "model";
    "model" model: Text;
    "macaddr" mac: Mac;
    "bridge" bridge: Text;
    "tag" vlan: Int;
    "mtu" mtu: Int;
    "queues" queues: Int;
    "firewall" firewall: Bool;
    "link_down" link_down: Bool;
    "rate" rate: Decimal;
    "trunks" trunks: Text;
};

static ADDRESSES: Property = property! {
    "ip" ip: Text;
    "gw" gateway: Text;
    "ip6" ip6: Text;
    "gw6" gateway6: Text;
};
