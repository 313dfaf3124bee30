//! Every option of a VM: the parameters of create and update, and how each is shown.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::net::RANGES;
use super::{cpu, drive, net};
use crate::api::args::split_list;
use crate::api::format;
use crate::api::param::Kind;
use crate::api::{Param, Properties, PropertyString, flag, int, number, text};

/// Slots of numbered options.
pub const NETS: u32 = 32;
const USBS: u32 = 14;
const HOSTPCIS: u32 = 16;
const UNUSED: u32 = 256;

pub const KEYBOARDS: &[&str] = &[
    "de", "de-ch", "da", "en-gb", "en-us", "es", "fi", "fr", "fr-be", "fr-ca", "fr-ch", "hu", "is", "it",
    "ja", "lt", "mk", "nl", "no", "pl", "pt", "pt-br", "sv", "sl", "tr",
];

macro_rules! properties {
    ($seen:vis $name:ident, $schema:expr) => {
        $seen fn $name() -> &'static Properties {
            static SCHEMA: LazyLock<Properties> = LazyLock::new(|| $schema);
            &SCHEMA
        }
    };
}

properties!(
    agent,
    Properties::new([
        flag("enabled"),
        flag("freeze-fs").opt(),
        flag("fstrim_cloned_disks").opt(),
        text("type").one_of(&["virtio", "isa"]).opt(),
    ])
    .default_key("enabled")
    .alias("freeze-fs-on-backup", "freeze-fs")
    .alias("guest-fsfreeze", "freeze-fs")
);
properties!(
    audio,
    Properties::new([
        text("device").one_of(&["ich9-intel-hda", "intel-hda", "AC97"]),
        text("driver").one_of(&["spice", "none"]).opt(),
    ])
);
properties!(
    boot,
    Properties::new([text("legacy").pattern("[acdn]{1,4}").opt(), text("order").each(boot_device).opt()])
        .default_key("legacy")
);
properties!(
    cicustom,
    Properties::new(
        ["meta", "network", "user", "vendor"].map(|key| text(key).format(format::volume_id).opt())
    )
);
properties!(
    hostpci,
    Properties::new([
        text("host")
            .pattern(r"(?:[a-f0-9]{4,}:)?[a-f0-9]{2}:[a-f0-9]{2}(?:\.[a-f0-9])?(;(?:[a-f0-9]{4,}:)?[a-f0-9]{2}:[a-f0-9]{2}(?:\.[a-f0-9])?)*")
            .opt(),
        text("mapping").format(format::configid).opt(),
        flag("rombar").opt(),
        text("romfile").pattern("[^,;]+").opt(),
        flag("pcie").opt(),
        flag("x-vga").opt(),
        flag("legacy-igd").opt(),
        text("mdev").pattern(r"[^/\.:]+").opt(),
        text("vendor-id").pattern("0x[0-9a-fA-F]{4}").opt(),
        text("device-id").pattern("0x[0-9a-fA-F]{4}").opt(),
        text("sub-vendor-id").pattern("0x[0-9a-fA-F]{4}").opt(),
        text("sub-device-id").pattern("0x[0-9a-fA-F]{4}").opt(),
        text("driver").one_of(&["vfio", "keep"]).opt(),
    ])
    .default_key("host")
);
properties!(
    ipconfig,
    Properties::new([
        text("ip").format(format::ipv4_config).opt(),
        text("gw").format(format::ipv4).needs("ip").opt(),
        text("ip6").format(format::ipv6_config).opt(),
        text("gw6").format(format::ipv6).needs("ip6").opt(),
    ])
);
properties!(ivshmem, Properties::new([int("size").min(1.0), text("name").pattern(r"[a-zA-Z0-9\-]+").opt()]));
properties!(
    pub machine,
    Properties::new([
        text("type")
            .max_len(40)
            .pattern(concat!(
                r"(pc|pc(-i440fx)?-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|q35|pc-q35-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?",
                r"|virt(?:-\d+(\.\d+)+)?(\+pve\d+)?)"
            ))
            .opt(),
        text("viommu").one_of(&["intel", "virtio"]).opt(),
        flag("enable-s3").opt(),
        flag("enable-s4").opt(),
        number("aw-bits").min(32.0).max(64.0).opt(),
    ])
    .default_key("type")
);
properties!(memory, Properties::new([int("current").min(16.0)]).default_key("current"));
properties!(
    numa_node,
    Properties::new([
        text("cpus").pattern(RANGES),
        number("memory").opt(),
        text("hostnodes").pattern(RANGES).opt(),
        text("policy").one_of(&["preferred", "bind", "interleave"]).opt(),
    ])
);
properties!(
    rng,
    Properties::new([
        text("source").one_of(&["/dev/urandom", "/dev/random", "/dev/hwrng"]),
        int("max_bytes").opt(),
        int("period").opt(),
    ])
    .default_key("source")
);
properties!(
    sev,
    Properties::new([
        text("type").one_of(&["std", "es", "snp"]),
        flag("no-debug").opt(),
        flag("no-key-sharing").opt(),
        flag("allow-smt").opt(),
        flag("kernel-hashes").opt(),
    ])
    .default_key("type")
);
properties!(
    smbios,
    Properties::new(
        ["version", "serial", "manufacturer", "product", "sku", "family"]
            .map(|key| text(key).pattern(r"[A-Za-z0-9+/]+={0,2}").opt())
            .into_iter()
            .chain([text("uuid").pattern(UUID).opt(), flag("base64").opt()])
    )
);
properties!(
    spice,
    Properties::new([
        flag("foldersharing").opt(),
        text("videostreaming").one_of(&["off", "all", "filter"]).opt(),
    ])
);
properties!(
    tdx,
    Properties::new([
        text("type").one_of(&["tdx"]),
        flag("attestation").opt(),
        int("vsock-cid").min(2.0).opt(),
        int("vsock-port").min(0.0).opt(),
    ])
    .default_key("type")
);
properties!(
    usb,
    Properties::new([
        text("host")
            .pattern(r"(?:(?:0x)?[0-9A-Fa-f]{4}:(?:0x)?[0-9A-Fa-f]{4}|\d+\-\d+(\.\d+)*|[Ss][Pp][Ii][Cc][Ee])")
            .opt(),
        text("mapping").format(format::configid).opt(),
        flag("usb3").opt(),
    ])
    .default_key("host")
);
properties!(
    vga,
    Properties::new([
        text("type")
            .one_of(&[
                "cirrus",
                "qxl",
                "qxl2",
                "qxl3",
                "qxl4",
                "none",
                "serial0",
                "serial1",
                "serial2",
                "serial3",
                "std",
                "virtio",
                "virtio-gl",
                "vmware",
            ])
            .opt(),
        int("memory").min(4.0).max(512.0).opt(),
        text("clipboard").one_of(&["vnc"]).opt(),
    ])
    .default_key("type")
);
properties!(
    virtiofs,
    Properties::new([
        text("dirid").format(format::configid),
        text("cache").one_of(&["auto", "always", "metadata", "never"]).opt(),
        flag("direct-io").opt(),
        flag("expose-acl").opt(),
        flag("expose-xattr").opt(),
    ])
    .default_key("dirid")
);
properties!(
    watchdog,
    Properties::new([
        text("model").one_of(&["i6300esb", "ib700"]).opt(),
        text("action").one_of(&["reset", "shutdown", "poweroff", "pause", "debug", "none"]).opt(),
    ])
    .default_key("model")
);

const UUID: &str = "[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}";

fn numbered(key: &str, prefix: &str, count: u32) -> bool {
    key.strip_prefix(prefix)
        .is_some_and(|n| (n == "0" || !n.starts_with('0')) && n.parse::<u32>().is_ok_and(|n| n < count))
}

fn boot_device(value: &str) -> Result<(), String> {
    let disk = drive::is_slot(value) && !value.starts_with("efidisk") && !value.starts_with("tpmstate");
    let other =
        numbered(value, "net", NETS) || numbered(value, "usb", USBS) || numbered(value, "hostpci", HOSTPCIS);
    if disk || other { Ok(()) } else { Err(format!("invalid boot device '{value}'\n")) }
}

fn boot_disk(value: &str) -> Result<(), String> {
    if drive::is_slot(value) { Ok(()) } else { Err(format!("invalid boot disk '{value}'\n")) }
}

pub const HOTPLUG: &[&str] = &["network", "disk", "cpu", "memory", "usb", "cloudinit"];

fn hotplug(value: &str) -> Result<(), String> {
    if matches!(value, "0" | "1") {
        return Ok(());
    }
    match split_list(value).find(|feature| !HOTPLUG.contains(feature)) {
        Some(feature) => Err(format!("invalid hotplug feature '{feature}'\n")),
        None => Ok(()),
    }
}

fn cpuset(value: &str) -> Result<(), String> {
    let number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let ok = value.split(',').all(|part| match part.split_once('-') {
        None => number(part),
        Some((a, b)) => number(a) && number(b),
    });
    if ok { Ok(()) } else { Err("unable to parse cpuset option\n".to_owned()) }
}

/// The options that stand alone.
fn single() -> Vec<Param> {
    vec![
        flag("acpi"),
        text("affinity").format(cpuset),
        text("agent").properties(agent),
        flag("allow-ksm"),
        text("amd-sev").properties(sev),
        text("arch").one_of(&["x86_64", "aarch64"]),
        text("args"),
        text("audio0").properties(audio),
        flag("autostart"),
        int("balloon").min(0.0),
        text("bios").one_of(&["seabios", "ovmf"]),
        text("boot").properties(boot),
        text("bootdisk").format(boot_disk).pattern(r"(ide|sata|scsi|virtio)\d+"),
        text("cdrom").properties(drive::schema_of("ide")),
        text("cicustom").properties(cicustom),
        text("cipassword"),
        text("citype").one_of(&["configdrive2", "nocloud", "opennebula"]),
        flag("ciupgrade"),
        text("ciuser"),
        int("cores").min(1.0),
        text("cpu").properties(cpu::schema),
        number("cpulimit").min(0.0).max(128.0),
        int("cpuunits").min(1.0).max(262_144.0),
        text("description").max_len(8192),
        flag("freeze"),
        text("hookscript").format(format::volume_id),
        text("hotplug").format(hotplug),
        text("hugepages").one_of(&["any", "2", "1024"]),
        text("intel-tdx").properties(tdx),
        text("ivshmem").properties(ivshmem),
        flag("keephugepages"),
        text("keyboard").one_of(KEYBOARDS),
        flag("kvm"),
        flag("localtime"),
        text("lock").one_of(&[
            "backup",
            "clone",
            "create",
            "migrate",
            "rollback",
            "snapshot",
            "snapshot-delete",
            "suspending",
            "suspended",
        ]),
        text("machine").properties(machine),
        text("memory").properties(memory),
        number("migrate_downtime").min(0.0),
        int("migrate_speed").min(0.0),
        text("name").format(format::dns_name),
        text("nameserver").each(format::address),
        flag("numa"),
        flag("onboot"),
        text("ostype").one_of(&[
            "other", "wxp", "w2k", "w2k3", "w2k8", "wvista", "win7", "win8", "win10", "win11", "l24", "l26",
            "solaris",
        ]),
        flag("protection"),
        flag("reboot"),
        text("rng0").properties(rng),
        text("scsihw").one_of(&[
            "lsi",
            "lsi53c810",
            "virtio-scsi-pci",
            "virtio-scsi-single",
            "megasas",
            "pvscsi",
        ]),
        text("searchdomain"),
        int("shares").min(0.0).max(50_000.0),
        text("smbios1").properties(smbios).max_len(512),
        int("smp").min(1.0),
        int("sockets").min(1.0),
        text("spice_enhancements").properties(spice),
        text("sshkeys").format(format::urlencoded),
        text("startdate").pattern(r"(now|\d{4}-\d{1,2}-\d{1,2}(T\d{1,2}:\d{1,2}:\d{1,2})?)"),
        text("startup").format(format::startup_order),
        flag("tablet"),
        text("tags").each(format::tag),
        flag("tdf"),
        flag("template"),
        int("vcpus").min(1.0),
        text("vga").properties(vga),
        text("vmgenid").pattern("(?:[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}|[01])"),
        text("vmstatestorage").format(format::storage_id),
        text("watchdog").properties(watchdog),
    ]
}

fn each(prefix: &'static str, count: u32, describe: impl Fn(Param) -> Param) -> Vec<Param> {
    (0..count).map(|n| describe(text(format!("{prefix}{n}")))).collect()
}

fn all() -> Vec<Param> {
    let mut params = single();
    for slot in drive::SLOTS.iter() {
        let schema = drive::schema_of(drive::bus(slot).unwrap_or_default());
        params.push(text(slot.clone()).properties(schema));
    }
    params.extend(each("hostpci", HOSTPCIS, |p| p.properties(hostpci)));
    params.extend(each("ipconfig", NETS, |p| p.properties(ipconfig)));
    params.extend(each("net", NETS, |p| p.properties(net::schema)));
    params.extend(each("numa", 8, |p| p.properties(numa_node)));
    params.extend(each("parallel", 3, |p| p.pattern(r"/dev/parport\d+|/dev/usb/lp\d+")));
    params.extend(each("serial", 4, |p| p.pattern("(/dev/.+|socket)")));
    params.extend(each("unused", UNUSED, |p| p.properties(drive::unused_schema)));
    params.extend(each("usb", USBS, |p| p.properties(usb)));
    params.extend(each("virtiofs", 10, |p| p.properties(virtiofs)));
    params.into_iter().map(Param::opt).collect()
}

static OPTIONS: LazyLock<HashMap<String, Param>> =
    LazyLock::new(|| all().into_iter().map(|p| (p.name.to_string(), p)).collect());

/// Options that only the server sets.
const INTERNAL: &[&str] =
    &["meta", "parent", "snaptime", "vmstate", "runningmachine", "runningcpu", "running-nets-host-mtu"];

/// The parameters of create and update, without those of the calls themselves.
pub fn params() -> Vec<Param> {
    all()
}

pub fn exists(option: &str) -> bool {
    OPTIONS.contains_key(option) || INTERNAL.contains(&option)
}

/// Whether anything but free text is expected: such an option cannot be empty.
pub fn is_checked(option: &str) -> bool {
    OPTIONS.get(option).is_some_and(|p| {
        let listed = matches!(p.format, Some(crate::api::param::Format::Each(_)));
        (p.format.is_some() && !listed && option != "boot")
            || p.pattern.is_some()
            || !p.values.is_empty()
            || !matches!(p.kind, Kind::Text)
    })
}

/// An option's value as the API shows it: whole numbers and booleans as numbers, all else as text.
pub fn shown(option: &str, value: &str) -> Value {
    let numeric =
        option == "snaptime" || OPTIONS.get(option).is_some_and(|p| matches!(p.kind, Kind::Int | Kind::Bool));
    match value.parse::<i64>() {
        Ok(number) if numeric => json!(number),
        _ => json!(value),
    }
}

/// The network settings of a card for cloud-init; DHCP where nothing is said.
pub fn parse_ipconfig(value: &str) -> PropertyString {
    let mut config = ipconfig().read(value);
    if config.get("ip").is_none() && config.get("ip6").is_none() {
        config.set("ip", "dhcp");
        config.set("ip6", "dhcp");
    }
    config
}

pub fn parse_boot(value: &str) -> PropertyString {
    boot().read(value)
}

pub fn parse_usb(value: &str) -> PropertyString {
    usb().read(value)
}

pub fn parse_hostpci(value: &str) -> PropertyString {
    hostpci().read(value)
}

pub fn parse_rng(value: &str) -> PropertyString {
    rng().read(value)
}

pub fn parse_virtiofs(value: &str) -> PropertyString {
    virtiofs().read(value)
}

pub fn parse_vga(value: &str) -> PropertyString {
    vga().read(value)
}

pub fn parse_agent(value: &str) -> PropertyString {
    agent().read(value)
}

pub fn parse_machine(value: &str) -> PropertyString {
    machine().read(value)
}

/// The memory of a VM in MiB.
pub fn parse_memory(value: Option<&str>) -> u64 {
    value.and_then(|v| memory().read(v).get("current").and_then(|m| m.parse().ok())).unwrap_or(512)
}

/// `uuid=…` replaced in (or put in front of) an smbios1 value, printed with its keys sorted.
pub fn with_uuid(value: &str, uuid: &str) -> String {
    let mut smbios1 = smbios().read(value);
    smbios1.set("uuid", uuid);
    smbios().print(&smbios1)
}
