//! What can be set on a dataset: the names of the API, those of ZFS, and the values that are good.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::error::{Wrong, wrong};

/// What a value may be.
enum Kind {
    /// One of these, in upper case; ZFS has them in lower case.
    Word(&'static [&'static str]),
    /// Compression has too many to list here.
    Compression,
    /// Bytes from a least number on, or 0 or null for none.
    Bytes(u64),
    /// A size such as `128K`.
    Size,
    Number(i64, i64),
    Text,
    Flag,
}

struct Setting {
    api: &'static str,
    /// Kept as a user property of TrueNAS' own if it begins with a letter and a colon follows.
    zfs: &'static str,
    kind: Kind,
    inherited: bool,
    on_update: bool,
}

const ON_OFF: Kind = Kind::Word(&["ON", "OFF"]);

const fn setting(api: &'static str, zfs: &'static str, kind: Kind) -> Setting {
    Setting { api, zfs, kind, inherited: true, on_update: true }
}

const fn own(api: &'static str, kind: Kind) -> Setting {
    Setting { api, zfs: api, kind, inherited: false, on_update: true }
}

const fn at_creation(api: &'static str, kind: Kind) -> Setting {
    Setting { api, zfs: api, kind, inherited: false, on_update: false }
}

const SETTINGS: &[Setting] = &[
    setting("comments", "org.freenas:description", Kind::Text),
    setting("managedby", "org.truenas:managedby", Kind::Text),
    setting("quota_warning", "org.freenas:quota_warning", Kind::Number(0, 100)),
    setting("quota_critical", "org.freenas:quota_critical", Kind::Number(0, 100)),
    setting("refquota_warning", "org.freenas:refquota_warning", Kind::Number(0, 100)),
    setting("refquota_critical", "org.freenas:refquota_critical", Kind::Number(0, 100)),
    setting("sync", "sync", Kind::Word(&["STANDARD", "ALWAYS", "DISABLED"])),
    setting("snapdev", "snapdev", Kind::Word(&["HIDDEN", "VISIBLE"])),
    setting("compression", "compression", Kind::Compression),
    setting("exec", "exec", ON_OFF),
    setting("atime", "atime", ON_OFF),
    setting("readonly", "readonly", ON_OFF),
    setting("snapdir", "snapdir", Kind::Word(&["DISABLED", "VISIBLE", "HIDDEN"])),
    setting("deduplication", "dedup", Kind::Word(&["ON", "VERIFY", "OFF"])),
    setting(
        "checksum",
        "checksum",
        Kind::Word(&["ON", "OFF", "FLETCHER2", "FLETCHER4", "SHA256", "SHA512", "SKEIN", "EDONR", "BLAKE3"]),
    ),
    setting("acltype", "acltype", Kind::Word(&["OFF", "NFSV4", "POSIX"])),
    setting("aclmode", "aclmode", Kind::Word(&["PASSTHROUGH", "RESTRICTED", "DISCARD"])),
    setting("copies", "copies", Kind::Number(1, 3)),
    setting("recordsize", "recordsize", Kind::Size),
    setting("special_small_block_size", "special_small_blocks", Kind::Bytes(0)),
    own("quota", Kind::Bytes(1 << 30)),
    own("refquota", Kind::Bytes(1 << 30)),
    own("reservation", Kind::Bytes(0)),
    own("refreservation", Kind::Bytes(0)),
    at_creation("casesensitivity", Kind::Word(&["SENSITIVE", "INSENSITIVE"])),
    at_creation("volblocksize", Kind::Size),
    at_creation("sparse", Kind::Flag),
];

/// Members that are no properties.
const CREATE_ONLY: &[&str] = &[
    "name",
    "type",
    "share_type",
    "encryption",
    "encryption_options",
    "inherit_encryption",
    "user_properties",
    "create_ancestors",
    "volsize",
    "force_size",
];
const UPDATE_ONLY: &[&str] = &["user_properties", "user_properties_update", "volsize", "force_size"];

/// What a call sets and what it unsets, by the names of ZFS.
#[derive(Debug, Default)]
pub struct Settings {
    pub set: BTreeMap<String, String>,
    pub inherit: Vec<String>,
}

/// Reads the members of a call; everything that is wrong with them is gathered.
pub fn read(data: &Map<String, Value>, update: bool, wrongs: &mut Vec<Wrong>) -> Settings {
    let mut settings = Settings::default();
    for (key, value) in data {
        let known = if update { UPDATE_ONLY } else { CREATE_ONLY };
        if known.contains(&key.as_str()) {
            continue;
        }
        let found = SETTINGS.iter().find(|s| s.api == key && (!update || s.on_update));
        let Some(setting) = found else {
            wrongs.push(wrong(&format!("data.{key}"), "Extra inputs are not permitted"));
            continue;
        };
        if setting.inherited && value == "INHERIT" {
            settings.inherit.push(setting.zfs.to_owned());
            continue;
        }
        match setting.kind.to_zfs(value) {
            Ok(text) => {
                settings.set.insert(setting.zfs.to_owned(), text);
            }
            Err(why) => wrongs.push(wrong(&format!("data.{key}"), why)),
        }
    }
    settings
}

/// The name that the API has for a property of ZFS.
pub fn api_name(zfs: &str) -> &str {
    SETTINGS.iter().find(|s| s.zfs == zfs).map_or(zfs, |s| s.api)
}

impl Kind {
    fn to_zfs(&self, value: &Value) -> Result<String, String> {
        match self {
            Self::Word(words) => match value.as_str() {
                Some(text) if words.contains(&text) => Ok(text.to_lowercase()),
                _ => {
                    let words: Vec<String> = words.iter().map(|w| format!("'{w}'")).collect();
                    Err(format!("Input should be {} or 'INHERIT'", words.join(", ")))
                }
            },
            Self::Compression => {
                let text = value.as_str().unwrap_or_default();
                let (base, level) =
                    text.split_once('-').map_or((text, None), |(base, rest)| (base, Some(rest)));
                let good = match base {
                    "ON" | "OFF" | "LZ4" | "ZLE" | "LZJB" => level.is_none(),
                    "GZIP" => matches!(level, None | Some("1" | "9")),
                    "ZSTD" => level
                        .is_none_or(|l| l.trim_start_matches("FAST-").parse::<u32>().is_ok() || l == "FAST"),
                    _ => false,
                };
                if good {
                    Ok(text.to_lowercase())
                } else {
                    Err("Input should be a compression of the list".to_owned())
                }
            }
            Self::Bytes(least) => match value {
                Value::Null => Ok("0".to_owned()),
                Value::Number(n) if n.as_u64().is_some_and(|n| n == 0 || n >= *least) => Ok(n.to_string()),
                Value::Number(_) => Err(format!("Input should be greater than or equal to {least}")),
                _ => Err("Input should be a valid integer".to_owned()),
            },
            Self::Size => size(value.as_str().unwrap_or_default())
                .map(|bytes| bytes.to_string())
                .ok_or_else(|| format!("{value} is an invalid size")),
            Self::Number(least, most) => match value.as_i64() {
                Some(number) if (*least..=*most).contains(&number) => Ok(number.to_string()),
                _ => Err(format!("Input should be between {least} and {most}")),
            },
            Self::Text => {
                value.as_str().map(str::to_owned).ok_or_else(|| "Input should be a valid string".to_owned())
            }
            Self::Flag => value
                .as_bool()
                .map(|f| f.to_string())
                .ok_or_else(|| "Input should be a valid boolean".to_owned()),
        }
    }
}

/// `128K` in bytes; powers of two only.
fn size(text: &str) -> Option<u64> {
    let (digits, factor) = match text.chars().last()? {
        'K' => (text.trim_end_matches('K'), 1 << 10),
        'M' => (text.trim_end_matches('M'), 1 << 20),
        'B' => (text.trim_end_matches('B'), 1),
        _ => (text, 1),
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(factor)?;
    (bytes.is_power_of_two() && (512..=16 << 20).contains(&bytes)).then_some(bytes)
}
