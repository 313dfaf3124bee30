//! The options of a container: their names, limits and formats.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::api::param::Kind;
use crate::api::{Param, Properties, PropertyString, flag, format, int, number, text};
use crate::world::guest::RAW;

/// How many of each there may be.
pub const MOUNTS: usize = 256;
pub const NETWORKS: usize = 32;
const DEVICES: usize = 256;

pub const OS_TYPES: &[&str] = &[
    "debian",
    "devuan",
    "ubuntu",
    "centos",
    "fedora",
    "opensuse",
    "archlinux",
    "alpine",
    "gentoo",
    "nixos",
    "unmanaged",
];

/// Every option that a client may set.
pub fn params() -> Vec<Param> {
    let mut params = vec![
        text("lock")
            .one_of(&[
                "backup",
                "create",
                "destroyed",
                "disk",
                "fstrim",
                "migrate",
                "mounted",
                "rollback",
                "snapshot",
                "snapshot-delete",
            ])
            .opt(),
        flag("onboot").opt(),
        text("startup").format(format::startup_order).opt(),
        flag("template").opt(),
        text("arch").one_of(&["amd64", "i386", "arm64", "armhf", "riscv32", "riscv64"]).opt(),
        text("ostype").one_of(OS_TYPES).opt(),
        flag("console").opt(),
        int("tty").min(0.0).max(6.0).opt(),
        int("cores").min(1.0).max(8192.0).opt(),
        number("cpulimit").min(0.0).max(8192.0).opt(),
        int("cpuunits").min(0.0).max(500_000.0).opt(),
        int("memory").min(16.0).opt(),
        int("swap").min(0.0).opt(),
        text("hostname").format(format::dns_name).max_len(255).opt(),
        text("description").max_len(8192).opt(),
        text("searchdomain").each(format::dns_name).opt(),
        text("nameserver").each(nameserver).opt(),
        text("timezone").format(timezone).opt(),
        text("rootfs").properties(rootfs).opt(),
        text("cmode").one_of(&["shell", "console", "tty"]).opt(),
        flag("protection").opt(),
        flag("unprivileged").opt(),
        text("features").properties(features).opt(),
        text("hookscript").format(format::volume_id).opt(),
        text("tags").each(format::tag).opt(),
        flag("debug").opt(),
        text("entrypoint").pattern(r"[^\x00-\x08\x10-\x1F\x7F]+").opt(),
        text("env")
            .pattern(r"(?:\w+=[^\x00-\x08\x10-\x1F\x7F]*)(?:\x00\w+=[^\x00-\x08\x10-\x1F\x7F]*)*")
            .opt(),
    ];
    for n in 0..NETWORKS {
        params.push(text(format!("net{n}")).properties(net).opt());
    }
    for n in 0..MOUNTS {
        params.push(text(format!("mp{n}")).properties(mount).opt());
        params.push(text(format!("unused{n}")).properties(unused).opt());
    }
    for n in 0..DEVICES {
        params.push(text(format!("dev{n}")).properties(device).opt());
    }
    params
}

static KINDS: LazyLock<HashMap<String, Kind>> =
    LazyLock::new(|| params().into_iter().map(|p| (p.name.to_string(), p.kind)).collect());

/// Whether there is an option of that name.
pub fn exists(key: &str) -> bool {
    KINDS.contains_key(key) || matches!(key, "parent" | "snaptime")
}

/// An option as the API shows it: whole numbers and booleans as numbers, the rest as text.
pub fn shown(key: &str, value: &str) -> Value {
    match KINDS.get(key) {
        None if key == RAW => {
            let pairs = value.lines().filter_map(|line| line.split_once(": "));
            pairs.map(|(key, value)| json!([key, value])).collect()
        }
        Some(Kind::Int | Kind::Bool) => super::super::section::number(value),
        None if key == "snaptime" => super::super::section::number(value),
        _ => json!(value),
    }
}

/// `prefixN` with a number.
fn numbered(key: &str, prefix: &str) -> bool {
    key.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

pub fn is_mount(key: &str) -> bool {
    key == "rootfs" || numbered(key, "mp")
}

pub fn is_unused(key: &str) -> bool {
    numbered(key, "unused")
}

pub fn is_net(key: &str) -> bool {
    numbered(key, "net")
}

pub fn is_device(key: &str) -> bool {
    numbered(key, "dev")
}

/// An address, with a zone where it is link-local, or `host`.
fn nameserver(value: &str) -> Result<(), String> {
    if value == "host" {
        return Ok(());
    }
    if let Some((address, zone)) = value.split_once('%') {
        let local = address.to_ascii_lowercase().starts_with("fe80");
        if local && format::is_ipv6(address) && !zone.is_empty() {
            return Ok(());
        }
    }
    format::ip(value)
}

fn timezone(value: &str) -> Result<(), String> {
    if value == "host" || jiff::tz::TimeZone::get(value).is_ok() {
        return Ok(());
    }
    Err(format!("invalid time zone '{value}'\n"))
}

/// No way out of the container's own tree.
fn mount_path(value: &str) -> Result<(), String> {
    let bad = value.contains("/./")
        || value.contains("/../")
        || value.ends_with("/.")
        || value.ends_with("/..")
        || value.starts_with("../");
    if bad { Err(format!("{value} contains illegal character sequences\n")) } else { Ok(()) }
}

const MOUNT_OPTIONS: &str =
    "(discard|lazytime|noatime|nodev|noexec|nosuid)(;(discard|lazytime|noatime|nodev|noexec|nosuid))*";

fn disk_options() -> Vec<Param> {
    vec![
        text("volume").format(mount_path),
        text("size").format(format::disk_size).opt(),
        flag("acl").opt(),
        text("mountoptions").pattern(MOUNT_OPTIONS).opt(),
        flag("ro").opt(),
        flag("quota").opt(),
        flag("replicate").opt(),
        flag("shared").opt(),
    ]
}

pub fn rootfs() -> &'static Properties {
    static SCHEMA: LazyLock<Properties> =
        LazyLock::new(|| Properties::new(disk_options()).default_key("volume"));
    &SCHEMA
}

pub fn mount() -> &'static Properties {
    static SCHEMA: LazyLock<Properties> = LazyLock::new(|| {
        let own = [text("mp").format(mount_path), flag("backup").opt(), flag("keepattrs").opt()];
        Properties::new(disk_options().into_iter().chain(own)).default_key("volume")
    });
    &SCHEMA
}

fn unused() -> &'static Properties {
    static SCHEMA: LazyLock<Properties> =
        LazyLock::new(|| Properties::new([text("volume").format(format::volume_id)]).default_key("volume"));
    &SCHEMA
}

pub fn net() -> &'static Properties {
    static SCHEMA: LazyLock<Properties> = LazyLock::new(|| {
        Properties::new([
            text("type").one_of(&["veth"]).opt(),
            text("name").pattern(r"[-_.\w\d]+"),
            text("bridge").pattern(r"[-_.\w\d]+").opt(),
            text("hwaddr").format(format::mac).opt(),
            int("mtu").min(64.0).max(65_535.0).opt(),
            text("ip").format(format::ipv4_config).opt(),
            text("gw").format(format::ipv4).opt(),
            text("ip6").format(format::ipv6_config).opt(),
            text("gw6").format(format::ipv6).opt(),
            flag("firewall").opt(),
            int("tag").min(1.0).max(4094.0).opt(),
            text("trunks").pattern(r"\d+(?:;\d+)*").opt(),
            number("rate").opt(),
            flag("link_down").opt(),
            flag("host-managed").opt(),
        ])
    });
    &SCHEMA
}

pub fn features() -> &'static Properties {
    static SCHEMA: LazyLock<Properties> = LazyLock::new(|| {
        Properties::new([
            text("mount").pattern("[a-zA-Z0-9_; ]+").opt(),
            flag("nesting").opt(),
            flag("keyctl").opt(),
            flag("fuse").opt(),
            flag("mknod").opt(),
            flag("force_rw_sys").opt(),
        ])
    });
    &SCHEMA
}

fn device_path(value: &str) -> Result<(), String> {
    if value.starts_with("/dev/") && !value.contains("/../") {
        return Ok(());
    }
    Err(format!("{value} is not a valid device path\n"))
}

pub fn device() -> &'static Properties {
    static SCHEMA: LazyLock<Properties> = LazyLock::new(|| {
        Properties::new([
            text("path").format(device_path).opt(),
            text("mode").pattern("0[0-7]{3}").opt(),
            int("uid").min(0.0).opt(),
            int("gid").min(0.0).opt(),
            flag("deny-write").opt(),
        ])
        .default_key("path")
    });
    &SCHEMA
}

pub fn parse_net(value: &str) -> PropertyString {
    net().read(value)
}

/// A description as the configuration file keeps it: whole lines.
pub fn whole_lines(description: &str) -> String {
    description.trim_end_matches('\n').split('\n').map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_shown_by_their_kind() {
        assert_eq!(shown("memory", "128"), json!(128));
        assert_eq!(shown("cpulimit", "1.5"), json!("1.5"));
        assert_eq!(shown("hostname", "200"), json!("200"));
        assert!(exists("mp255") && !exists("mp256") && !exists("bogus"));
    }

    #[test]
    fn mount_points_stay_inside() {
        assert!(mount().parse("local:1,mp=/data", "mp0").is_ok());
        assert_eq!(
            mount().parse("local:1,mp=/a/../b", "mp0").unwrap_err(),
            "format error\nmp0.mp: invalid format - /a/../b contains illegal character sequences\n\n"
        );
    }

    #[test]
    fn a_description_is_made_of_lines() {
        assert_eq!(whole_lines("a\nb"), "a\nb\n");
        assert_eq!(whole_lines("a\n\n"), "a\n");
    }
}
