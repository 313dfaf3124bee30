//! The parameters of storages, and the formats of their options.

use std::sync::LazyLock;

use super::kinds;
use crate::api::format;
use crate::api::param::usual;
use crate::api::{Param, Properties, PropertyString, flag, int, number, text};

/// Options that only creation takes.
const AT_CREATION: &[&str] = &[
    "authsupported",
    "base",
    "datastore",
    "export",
    "iscsiprovider",
    "path",
    "portal",
    "share",
    "target",
    "thinpool",
    "type",
    "vgname",
];

/// The parameters of POST /storage.
pub fn create() -> Vec<Param> {
    vec![
        usual::storage(),
        text("type").one_of(kinds::NAMES),
        text("authsupported").opt(),
        text("base").format(format::volume_id).opt(),
        text("blocksize").opt(),
        text("bwlimit").properties(bandwidth).opt(),
        text("comstar_hg").opt(),
        text("comstar_tg").opt(),
        text("content").each(content).opt(),
        text("content-dirs").each(folder).opt(),
        flag("create-base-path").opt(),
        flag("create-subdirs").opt(),
        text("data-pool").opt(),
        text("datastore").opt(),
        flag("disable").opt(),
        text("domain").max_len(256).opt(),
        text("encryption-key").opt(),
        text("export").format(path).opt(),
        text("fingerprint").pattern("([A-Fa-f0-9]{2}:){31}[A-Fa-f0-9]{2}").opt(),
        text("format").one_of(&["raw", "qcow2", "subvol", "vmdk"]).opt(),
        text("fs-name").format(format::configid).opt(),
        flag("fuse").opt(),
        text("is_mountpoint").opt(),
        text("iscsiprovider").opt(),
        text("keyring").opt(),
        flag("krbd").opt(),
        text("lio_tpg").opt(),
        text("master-pubkey").opt(),
        int("max-protected-backups").min(-1.0).opt(),
        flag("mkdir").opt(),
        text("monhost").each(portal).opt(),
        text("mountpoint").format(path).opt(),
        text("namespace").opt(),
        flag("nocow").opt(),
        text("nodes").each(format::node).opt(),
        flag("nowritecache").opt(),
        text("options").format(mount_options).opt(),
        text("password").max_len(256).opt(),
        text("path").format(path).opt(),
        text("pool").opt(),
        int("port").min(1.0).max(65_535.0).opt(),
        text("portal").format(portal).opt(),
        text("preallocation").one_of(&["off", "metadata", "falloc", "full"]).opt(),
        prune_backups().opt(),
        flag("saferemove").opt(),
        int("saferemove-stepsize").one_of(&["1", "2", "4", "8", "16", "32"]).opt(),
        text("saferemove_throughput").opt(),
        text("server").format(server).opt(),
        text("share").opt(),
        flag("shared").opt(),
        flag("skip-cert-verification").opt(),
        text("smbversion").one_of(&["default", "2.0", "2.1", "3", "3.0", "3.11"]).opt(),
        flag("snapshot-as-volume-chain").opt(),
        flag("sparse").opt(),
        text("subdir").format(path).opt(),
        flag("tagged_only").opt(),
        text("target").opt(),
        text("thinpool").format(lvm_name).opt(),
        text("username").opt(),
        text("vgname").format(lvm_name).opt(),
        text("zfs-base-path").format(path).opt(),
    ]
}

/// The parameters of PUT /storage/ID.
pub fn update() -> Vec<Param> {
    let mut params = create();
    params.retain(|p| !AT_CREATION.contains(&p.name.as_ref()));
    params.push(usual::delete().max_len(4096));
    params.push(usual::digest());
    params
}

pub fn prune_backups() -> Param {
    text("prune-backups").properties(retention)
}

/// How many backups to keep.
pub fn retention() -> &'static Properties {
    static SCHEMA: LazyLock<Properties> = LazyLock::new(|| {
        Properties::new([
            flag("keep-all").opt(),
            int("keep-last").min(0.0).opt(),
            int("keep-hourly").min(0.0).opt(),
            int("keep-daily").min(0.0).opt(),
            int("keep-weekly").min(0.0).opt(),
            int("keep-monthly").min(0.0).opt(),
            int("keep-yearly").min(0.0).opt(),
        ])
        .loose()
        .validated(|values| {
            if values.is_set("keep-all") && keeps_some(values) {
                return Err("keep-all cannot be set together with other options.\n".to_owned());
            }
            Ok(())
        })
    });
    &SCHEMA
}

/// Whether a retention limits anything at all.
pub fn keeps_some(values: &PropertyString) -> bool {
    values.0.iter().any(|(k, v)| k != "keep-all" && v.parse::<i64>().is_ok_and(|n| n > 0))
}

fn bandwidth() -> &'static Properties {
    static SCHEMA: LazyLock<Properties> = LazyLock::new(|| {
        let kinds = ["clone", "default", "migration", "move", "restore"];
        Properties::new(kinds.map(|kind| number(kind).min(0.0).opt())).loose()
    });
    &SCHEMA
}

type Checked = Result<(), String>;

fn ensure(ok: bool, complaint: impl Into<String>) -> Checked {
    if ok { Ok(()) } else { Err(complaint.into() + "\n") }
}

/// A kind of content.
pub fn content(value: &str) -> Checked {
    const ALL: &[&str] = &["images", "rootdir", "vztmpl", "iso", "backup", "snippets", "none", "import"];
    ensure(ALL.contains(&value), format!("invalid content type '{value}'"))
}

fn path(value: &str) -> Checked {
    let ok = value.strip_prefix('/').is_some_and(|rest| rest.starts_with(|c| !";()".contains(c)));
    ensure(ok, "value does not look like a valid absolute path")
}

fn server(value: &str) -> Checked {
    ensure(
        format::is_ip(value) || format::is_dns_name(value),
        "value does not look like a valid server name or IP address",
    )
}

fn lvm_name(value: &str) -> Checked {
    let end = |c: char| c.is_ascii_alphanumeric();
    let ok = value.len() >= 2 && value.starts_with(end) && value.ends_with(end) && format::only(value, "-_.");
    ensure(ok, format!("lvm name '{value}' contains illegal characters"))
}

fn portal(value: &str) -> Checked {
    let host = match value.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') && port.parse::<u16>().is_ok() => host,
        Some((host, port)) if host.starts_with('[') && host.ends_with(']') && port.parse::<u16>().is_ok() => {
            &host[1..host.len() - 1]
        }
        _ => value,
    };
    ensure(
        format::is_ip(host) || format::is_dns_name(host),
        "value does not look like a valid portal address",
    )
}

fn mount_options(value: &str) -> Checked {
    ensure(!value.is_empty() && !value.contains(char::is_whitespace), format!("invalid options '{value}'"))
}

fn folder(value: &str) -> Checked {
    if let Some((kind, _)) = value.split_once('=')
        && content(kind).is_err()
    {
        return Err(format!("invalid content type '{kind}'\n"));
    }
    let ok = value.split_once('=').is_some_and(|(_, path)| {
        !path.is_empty()
            && !path.contains("..")
            && !path.ends_with('.')
            && path.len() < 1023
            && path.split('/').all(|part| part.len() < 255)
    });
    ensure(ok, format!("invalid override '{value}'"))
}
