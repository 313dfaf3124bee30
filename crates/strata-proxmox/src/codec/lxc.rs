//! The table of containers.

use super::qemu::STARTUP;
use super::rule::{Property, Table};
use crate::{keys, kinds, property};

const CPU: &str = "VM.Config.CPU";
const MEMORY: &str = "VM.Config.Memory";
const OPTIONS: &str = "VM.Config.Options";
const NETWORK: &str = "VM.Config.Network";
const DISK: &str = "VM.Config.Disk";
const ALLOCATE: &str = "VM.Allocate";

pub(crate) static TABLE: Table = Table {
    kind: kinds::CONTAINER,
    keys: keys! {
        "ostemplate" image: Value(Text) [needs(ALLOCATE), at_creation];
        "password" password: Value(Secret) [needs(ALLOCATE), at_creation];
        "ssh-public-keys" ssh_keys: Value(Lines) [needs(ALLOCATE), at_creation];
        "unprivileged" unprivileged: Value(Bool) [needs(ALLOCATE), at_creation];
        "hostname" name: Value(Text) [needs(NETWORK)];
        "description": Description [needs(OPTIONS)];
        "tags" tags: Value(Tags) [needs(OPTIONS)];
        "onboot" onboot: Value(Bool) [needs(OPTIONS)];
        "protection" protection: Value(Bool) [needs(OPTIONS)];
        "startup" startup: Parts(&STARTUP) [needs(OPTIONS)];
        "ostype" ostype: Value(Text) [needs(OPTIONS), at_creation];
        "template" template: ReadOnly(Bool) [needs(OPTIONS)];
        "features" features: Parts(&FEATURES) [needs(ALLOCATE)];
        "console" console.enabled: Value(Bool) [needs(OPTIONS)];
        "cmode" console.mode: Value(Text) [needs(OPTIONS)];
        "tty" console.tty: Value(Int) [needs(OPTIONS)];
        "timezone" timezone: Value(Text) [needs(OPTIONS)];
        "cores" cpu.cores: Value(Int) [needs(CPU)];
        "cpuunits" cpu.units: Value(Int) [needs(CPU)];
        "cpulimit" cpu.limit: Value(Decimal) [needs(CPU)];
        "memory" memory.size: Value(Int) [needs(MEMORY)];
        "swap" memory.swap: Value(Int) [needs(MEMORY)];
        "rootfs" rootfs: Volume(&ROOTFS) [needs(DISK)];
        "mpN" mounts: Volume(&MOUNT) [needs(DISK)];
        "netN" networks: Parts(&NET) [needs(NETWORK)];
        "nameserver" nameservers: Value(Words) [needs(NETWORK)];
        "searchdomain" searchdomain: Value(Text) [needs(NETWORK)];
    },
};

static FEATURES: Property = property! {
    "nesting" nesting: Bool;
    "keyctl" keyctl: Bool;
    "fuse" fuse: Bool;
    "mknod" mknod: Bool;
    "force_rw_sys" force_rw_sys: Bool;
    "mount" mount: List(';');
};

static ROOTFS: Property = property! {
    unnamed: "volume";
    "ro" readonly: Bool;
    "quota" quota: Bool;
    "replicate" replicate: Bool;
    "acl" acl: Bool;
    "mountoptions" mountoptions: Text;
};

static MOUNT: Property = property! {
    unnamed: "volume";
    "mp" path: Text;
    "backup" backup: Bool;
    "ro" readonly: Bool;
    "quota" quota: Bool;
    "acl" acl: Bool;
    "replicate" replicate: Bool;
    "shared" shared: Bool;
    "mountoptions" mountoptions: Text;
};

static NET: Property = property! {
    "name" name: Text;
    "hwaddr" mac: Mac;
    "bridge" bridge: Text;
    "tag" vlan: Int;
    "mtu" mtu: Int;
    "firewall" firewall: Bool;
    "link_down" link_down: Bool;
    "rate" rate: Decimal;
    "trunks" trunks: Text;
    "ip" ip: Text;
    "gw" gateway: Text;
    "ip6" ip6: Text;
    "gw6" gateway6: Text;
};
