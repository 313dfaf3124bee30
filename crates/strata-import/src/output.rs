//! Parts of stacks as they are written. A value that Strata would refuse is not taken, and so reported.

use crate::records::{Disk, FirewallRule, Gitops, MountPoint, Stack};
use std::net::IpAddr;

use serde_json::{Map, Value as Json, json};
use strata_source::machine::container::ContainerOs;
use strata_source::machine::disk::{DiskAio, DiskCache, DiskFormat};
use strata_source::machine::firewall::LogLevel;
use strata_source::machine::hardware::{OsType, ScsiController};
use strata_yaml::{Choice, Key};

use super::tree::Tree;

pub(crate) type Object = Map<String, Json>;

pub(super) const SCSI_CONTROLLERS: &[&str] = ScsiController::WORDS;
pub(super) const OS_TYPES: &[&str] = OsType::WORDS;
pub(super) const DISTRIBUTIONS: &[&str] = ContainerOs::WORDS;
pub(super) const FORMATS: &[&str] = DiskFormat::WORDS;
pub(super) const CACHES: &[&str] = DiskCache::WORDS;
const LOG_LEVELS: &[&str] = LogLevel::WORDS;

/// The machines of a stack, by kind.
#[derive(Default)]
pub(super) struct Guests {
    pub(super) templates: Object,
    pub(super) vms: Object,
    pub(super) containers: Object,
}

impl Guests {
    pub(super) fn is_empty(&self) -> bool {
        self.templates.is_empty() && self.vms.is_empty() && self.containers.is_empty()
    }

    pub(super) fn put_into(self, stack: &mut Object) {
        for (key, guests) in
            [(Stack::templates, self.templates), (Stack::vms, self.vms), (Stack::containers, self.containers)]
        {
            if !guests.is_empty() {
                stack.set(key, Json::Object(guests));
            }
        }
    }
}

/// Writes keys of the source. They are constants of its records: a field that is renamed there does not compile here.
pub(crate) trait Put {
    fn set(&mut self, key: Key, value: Json);
    /// Where there is a value.
    fn put(&mut self, key: Key, value: Option<impl Into<Json>>);
    /// Not an empty list, mapping or text.
    fn put_full(&mut self, key: Key, value: Json);
    /// An option of Proxmox, which the source passes on under Proxmox' own name.
    fn put_option(&mut self, option: &str, value: Option<impl Into<Json>>);
}

impl Put for Object {
    fn set(&mut self, key: Key, value: Json) {
        self.insert(key.name().to_owned(), value);
    }

    fn put(&mut self, key: Key, value: Option<impl Into<Json>>) {
        if let Some(value) = value {
            self.set(key, value.into());
        }
    }

    fn put_option(&mut self, option: &str, value: Option<impl Into<Json>>) {
        if let Some(value) = value {
            self.insert(option.to_owned(), value.into());
        }
    }

    fn put_full(&mut self, key: Key, value: Json) {
        let empty = match &value {
            Json::Array(items) => items.is_empty(),
            Json::Object(map) => map.is_empty(),
            Json::String(text) => text.is_empty(),
            Json::Null => true,
            _ => false,
        };
        if !empty {
            self.set(key, value);
        }
    }
}

/// Flux as it would be, not yet switched on.
pub(super) fn gitops_off(flux: Object) -> Json {
    let mut gitops = Object::new();
    gitops.set(Gitops::enabled, json!(false));
    gitops.set(Gitops::flux, Json::Object(flux));
    Json::Object(gitops)
}

/// A mapping with one key.
pub(crate) fn only(key: Key, value: impl Into<Json>) -> Json {
    let mut written = Object::new();
    written.set(key, value.into());
    Json::Object(written)
}

/// A tag as Proxmox and Strata take it.
fn tag(text: &str) -> Option<String> {
    let fit = |letter: char| {
        let letter = letter.to_ascii_lowercase();
        let known = letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-+.".contains(letter);
        if known { letter } else { '-' }
    };
    let tag: String = text.trim().chars().map(fit).collect();
    tag.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_').then_some(tag)
}

/// Tags of a list, or of a text with `;` or `,` between them.
pub(super) fn tags_of(tree: &Tree, key: &str) -> Json {
    let mut found: Vec<String> = Vec::new();
    for item in tree.list(key) {
        found.extend(item.as_text_if(|text| tag(text).is_some()).and_then(|text| tag(&text)));
    }
    if let Some(text) = tree.text_if(key, |text| text.split([';', ',']).all(|part| tag(part).is_some())) {
        found.extend(text.split([';', ',']).filter_map(tag));
    }
    tags(&found)
}

/// Tags as Strata takes them, each once.
pub(crate) fn tags(list: &[String]) -> Json {
    let mut once: Vec<String> = Vec::new();
    for tag in list.iter().filter_map(|text| tag(text)) {
        if !once.contains(&tag) {
            once.push(tag);
        }
    }
    json!(once)
}

/// `dhcp`, or an address with its prefix.
pub(super) fn address(tree: &Tree, key: &str) -> Option<String> {
    tree.text_if(key, |text| text == "dhcp" || text == "auto" || with_prefix(text))
}

pub(super) fn with_prefix(text: &str) -> bool {
    text.split_once('/')
        .is_some_and(|(ip, length)| is_address(ip) && length.parse::<u8>().is_ok_and(|length| length <= 128))
}

pub(super) fn is_address(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

pub(super) fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    parts.len() == 6
        && parts.iter().all(|part| part.len() == 2 && u8::from_str_radix(part, 16).is_ok())
        && text.contains(':')
}

pub(super) fn is_host(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 63
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The id of a schematic.
pub(super) fn is_schematic(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `scsi0`, `virtio1`, …
pub(super) fn is_slot(text: &str) -> bool {
    ["scsi", "virtio", "sata", "ide"].iter().any(|bus| {
        text.strip_prefix(bus).is_some_and(|number| number.parse::<u8>().is_ok_and(|number| number < 31))
    })
}

/// A VLAN tag; 0 is none.
pub(super) fn vlan(tree: &Tree, key: &str) -> Option<i64> {
    tree.int_in(key, 0..=4094).filter(|vlan| *vlan > 0)
}

/// `algorithm:hex`, where there is a checksum.
pub(super) fn checksum_of(tree: &Tree, key: &str, algorithm: &str) -> Option<String> {
    let hex = tree.text_if(key, is_checksum)?;
    let known = |name: &str| ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"].contains(&name);
    checksum(Some(hex), tree.text_if(algorithm, known))
}

fn is_checksum(hex: &str) -> bool {
    hex.len() >= 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `algorithm:hex`; the algorithm is told by the length where nobody says it.
pub(crate) fn checksum(hex: Option<String>, algorithm: Option<String>) -> Option<String> {
    let hex = hex.filter(|hex| is_checksum(hex))?;
    let by_length = match hex.len() {
        32 => "md5",
        40 => "sha1",
        96 => "sha384",
        128 => "sha512",
        _ => "sha256",
    };
    let algorithm = algorithm.unwrap_or_else(|| by_length.to_owned());
    Some(format!("{algorithm}:{}", hex.to_ascii_lowercase()))
}

/// The options of a disk, as the provider names them.
pub(super) fn disk_flags(tree: &Tree, disk: &mut Object) {
    for (key, there) in [
        (Disk::ssd, "ssd"),
        (Disk::iothread, "iothread"),
        (Disk::backup, "backup"),
        (Disk::replicate, "replicate"),
    ] {
        disk.put(key, tree.bool(there));
    }
    disk.put(Disk::cache, tree.text_if("cache", |cache| CACHES.contains(&cache)));
    disk.put(Disk::discard, discard(tree, "discard"));
    disk.put(Disk::aio, tree.text_if("aio", |aio| DiskAio::WORDS.contains(&aio)));
    disk.put(Disk::format, tree.text_if("file_format", |format| FORMATS.contains(&format)));
}

/// `on`, `ignore`, `off`, or truth.
pub(super) fn discard(tree: &Tree, key: &str) -> Option<bool> {
    tree.bool(key).or_else(|| {
        tree.text_if(key, |text| ["on", "ignore", "off"].contains(&text)).map(|text| text == "on")
    })
}

/// A number of GiB, written as a number or with its unit.
pub(super) fn gib(tree: &Tree, key: &str) -> Option<i64> {
    let plain = |text: &str| -> Option<i64> {
        let number = text.trim().trim_end_matches(['B', 'b', 'i']);
        match number.strip_suffix(['T', 't']) {
            Some(tera) => tera.trim().parse::<i64>().ok()?.checked_mul(1024),
            None => number.trim_end_matches(['G', 'g']).trim().parse().ok(),
        }
    };
    let text = tree.text_if(key, |text| plain(text).is_some_and(|size| (1..=1_048_576).contains(&size)))?;
    plain(&text)
}

/// The size of a disk: a number of GiB, or with the unit that it has.
pub(super) fn size(tree: &Tree, key: &str) -> Option<Json> {
    if let Some(gib) = gib(tree, key) {
        return Some(json!(gib));
    }
    // Less than one, or not a whole number of them.
    let mib = |text: &str| -> Option<i64> {
        let text = text.trim().trim_end_matches(['B', 'b', 'i']);
        let mib = match text.strip_suffix(['K', 'k']) {
            Some(kib) => kib.trim().parse::<i64>().ok()? / 1024,
            None => text.strip_suffix(['M', 'm'])?.trim().parse().ok()?,
        };
        (mib > 0).then_some(mib)
    };
    let text = tree.text_if(key, |text| mib(text).is_some())?;
    mib(&text).map(|mib| if mib % 1024 == 0 { json!(mib / 1024) } else { json!(format!("{mib}M")) })
}

/// A number without what is no part of it.
pub(super) fn number(number: f64) -> Json {
    if number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
}

/// A mount point of a container.
pub(super) fn mount_point(mount: &Tree) -> Option<Object> {
    let mut point = Object::new();
    point.set(MountPoint::path, json!(mount.text("path")?));
    let volume = mount.text("volume").unwrap_or_default();
    let place = if volume.contains(':') || volume.starts_with('/') {
        MountPoint::volume
    } else {
        MountPoint::storage
    };
    point.put_full(place, json!(volume));
    if place == MountPoint::storage {
        point.put(MountPoint::size, gib(mount, "size"));
    }
    for (key, there) in [
        (MountPoint::read_only, "read_only"),
        (MountPoint::backup, "backup"),
        (MountPoint::quota, "quota"),
        (MountPoint::acl, "acl"),
        (MountPoint::replicate, "replicate"),
        (MountPoint::shared, "shared"),
    ] {
        point.put(key, mount.bool(there));
    }
    point.put_full(MountPoint::mount_options, json!(mount.texts("mount_options")));
    Some(point)
}

/// A rule of a firewall, in the words of Proxmox or of the provider's older modules.
pub(super) fn firewall_rule(rule: &Tree) -> Object {
    let mut written = Object::new();
    let way = |text: &str| ["in", "out", "group"].contains(&text.to_ascii_lowercase().as_str());
    let direction = rule.text_if("type", way).or_else(|| rule.text_if("direction", way));
    let group = rule.text("security_group");
    let action = rule.text_if("action", |action| {
        ["accept", "drop", "reject"].contains(&action.to_ascii_lowercase().as_str())
    });
    let direction = match group {
        Some(_) => "group".to_owned(),
        None => direction.map_or_else(|| "in".to_owned(), |way| way.to_ascii_lowercase()),
    };
    written.set(FirewallRule::direction, json!(direction));
    let action = group.or_else(|| Some(action?.to_ascii_uppercase()));
    written.set(FirewallRule::action, json!(action.unwrap_or_else(|| "ACCEPT".to_owned())));
    for (key, there) in [
        (FirewallRule::comment, ["comment", "description"]),
        (FirewallRule::source, ["source", "source"]),
        (FirewallRule::destination, ["dest", "destination"]),
        (FirewallRule::protocol, ["proto", "protocol"]),
        (FirewallRule::destination_port, ["dport", "port"]),
        (FirewallRule::source_port, ["sport", "source_port"]),
        (FirewallRule::interface, ["iface", "interface"]),
        (FirewallRule::macro_, ["macro", "macro"]),
    ] {
        written.put(key, there.iter().find_map(|name| rule.text(name)));
    }
    written.put(FirewallRule::log, rule.text_if("log", |level| LOG_LEVELS.contains(&level)));
    written.put(FirewallRule::enabled, rule.bool("enabled"));
    written
}

pub(super) fn log_level(tree: &Tree, key: &str) -> Option<String> {
    tree.text_if(key, |level| LOG_LEVELS.contains(&level))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn values_that_would_be_refused_are_left() {
        let text = "tags: [Web Server, '!', k8s]\nsum: abc\nsize: 20G\nbig: 1TB\nmac: bc:24:11:00:00:01\nother: bc-24-11-00-00-01\n";
        let tree = parse::yaml("a.yaml", text).0.unwrap();
        assert_eq!(tags_of(&tree, "tags"), json!(["web-server", "k8s"]));
        assert_eq!(checksum_of(&tree, "sum", "algorithm"), None);
        assert_eq!((gib(&tree, "size"), gib(&tree, "big")), (Some(20), Some(1024)));
        assert!(tree.text_if("mac", is_mac).is_some() && tree.text_if("other", is_mac).is_none());
        let left: Vec<String> = tree.left().into_iter().map(|left| left.path).collect();
        assert_eq!(left, ["tags[1]", "sum", "other"]);
    }
}
