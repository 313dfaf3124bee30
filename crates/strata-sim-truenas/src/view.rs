//! Datasets as the API shows them: every property with its parsed, raw and shown value, and where it comes from.

use serde_json::{Map, Value, json};

use super::settings::api_name;
use super::{Dataset, TrueNas};

/// Properties, and what they are where nobody set them. Those with a mark are not inherited.
const DEFAULTS: &[(&str, &str)] = &[
    ("aclmode", "discard"),
    ("acltype", "posix"),
    ("atime", "on"),
    ("casesensitivity", "sensitive"),
    ("checksum", "on"),
    ("compression", "on"),
    ("copies", "1"),
    ("dedup", "off"),
    ("exec", "on"),
    ("quota", "0"),
    ("readonly", "off"),
    ("recordsize", "131072"),
    ("refquota", "0"),
    ("refreservation", "0"),
    ("reservation", "0"),
    ("snapdev", "hidden"),
    ("snapdir", "hidden"),
    ("special_small_blocks", "0"),
    ("sync", "standard"),
    ("xattr", "on"),
];
const NOT_INHERITED: &[&str] = &["quota", "refquota", "reservation", "refreservation", "casesensitivity"];
const FILESYSTEM_ONLY: &[&str] = &[
    "aclmode",
    "acltype",
    "atime",
    "casesensitivity",
    "exec",
    "quota",
    "recordsize",
    "refquota",
    "snapdir",
    "xattr",
];
/// What an empty file system takes.
const EMPTY: u64 = 98_304;

impl TrueNas {
    /// A property's value, and the dataset it comes from if that is not this one.
    pub fn property(&self, name: &str, property: &str) -> (String, &'static str, Option<String>) {
        let mut here = name;
        loop {
            if let Some(value) = self.datasets.get(here).and_then(|d| d.properties.get(property)) {
                let own = here == name;
                return (
                    value.clone(),
                    if own { "LOCAL" } else { "INHERITED" },
                    (!own).then(|| here.to_owned()),
                );
            }
            match here.rsplit_once('/') {
                Some((above, _)) if !NOT_INHERITED.contains(&property) => here = above,
                _ => break,
            }
        }
        let default = DEFAULTS.iter().find(|(key, _)| *key == property).map_or("", |(_, value)| value);
        (default.to_owned(), "DEFAULT", None)
    }

    /// The bytes that its own data takes.
    pub fn own_bytes(&self, dataset: &Dataset) -> u64 {
        EMPTY + dataset.files.values().sum::<u64>()
    }

    pub fn used(&self, name: &str) -> u64 {
        let own = self.datasets.get(name).map_or(0, |dataset| self.own_bytes(dataset));
        own + self.below(name).map(|(_, dataset)| self.own_bytes(dataset)).sum::<u64>()
    }

    /// An entry of `pool.dataset.query`.
    pub fn entry(&self, name: &str, with_children: bool) -> Value {
        let Some(dataset) = self.datasets.get(name) else { return Value::Null };
        let pool = name.split('/').next().unwrap_or_default();
        let is_volume = dataset.volume.is_some();
        let mut entry = Map::new();
        for (key, value) in [
            ("id", json!(name)),
            ("type", json!(if is_volume { "VOLUME" } else { "FILESYSTEM" })),
            ("name", json!(name)),
            ("pool", json!(pool)),
            ("encrypted", json!(false)),
            ("encryption_root", Value::Null),
            ("key_loaded", json!(false)),
            ("locked", json!(false)),
            ("mountpoint", if is_volume { Value::Null } else { json!(format!("/mnt/{name}")) }),
        ] {
            entry.insert(key.to_owned(), value);
        }
        let children: Vec<Value> = if with_children {
            self.children(name).into_iter().map(|child| self.entry(child, true)).collect()
        } else {
            Vec::new()
        };
        entry.insert("children".to_owned(), json!(children));
        for (property, _) in DEFAULTS.iter().filter(|(p, _)| !is_volume || !FILESYSTEM_ONLY.contains(p)) {
            let (raw, source, from) = self.property(name, property);
            entry.insert(api_name(property).to_owned(), shown(property, &raw, source, from));
        }
        let used = self.used(name);
        let own = self.own_bytes(dataset);
        let free = self.pools.get(pool).copied().unwrap_or_default().saturating_sub(self.used(pool));
        for (key, bytes) in [
            ("used", used),
            ("usedbydataset", own),
            ("usedbychildren", used - own),
            ("usedbysnapshots", 0),
            ("usedbyrefreservation", 0),
            ("available", free),
        ] {
            entry.insert(key.to_owned(), shown(key, &bytes.to_string(), "NONE", None));
        }
        if let Some(size) = dataset.volume {
            entry.insert("volsize".to_owned(), shown("volsize", &size.to_string(), "LOCAL", None));
            let block = dataset.properties.get("volblocksize").map_or("16384", String::as_str);
            entry.insert("volblocksize".to_owned(), shown("volblocksize", block, "DEFAULT", None));
        }
        entry.insert(
            "creation".to_owned(),
            json!({
                "parsed": { "$date": dataset.created * 1000 }, "rawvalue": dataset.created.to_string(),
                "value": dataset.created.to_string(), "source": "NONE", "source_info": null,
            }),
        );
        let mut user = Map::new();
        for (key, value) in &dataset.user_properties {
            let value = json!({ "parsed": value, "rawvalue": value, "value": value, "source": "LOCAL", "source_info": null });
            match api_name(key) {
                managed if managed != key => entry.insert(managed.to_owned(), value),
                _ => user.insert(key.clone(), value),
            };
        }
        // What is set above holds below, and says so.
        let mut above = name;
        while let Some((parent, _)) = above.rsplit_once('/') {
            above = parent;
            let handed_down =
                self.datasets.get(parent).into_iter().flat_map(|parent| &parent.user_properties);
            for (key, value) in handed_down.filter(|(key, _)| api_name(key) == **key) {
                let value = json!({ "parsed": value, "rawvalue": value, "value": value, "source": "INHERITED", "source_info": parent });
                user.entry(key.clone()).or_insert(value);
            }
        }
        entry.insert("user_properties".to_owned(), Value::Object(user));
        Value::Object(entry)
    }
}

fn shown(property: &str, raw: &str, source: &str, from: Option<String>) -> Value {
    let number = raw.parse::<u64>().ok();
    let (parsed, value) = match property {
        "quota" | "refquota" | "reservation" | "refreservation" => match number {
            Some(0) | None => (Value::Null, Value::Null),
            Some(n) => (json!(n), json!(human(n))),
        },
        "used"
        | "usedbydataset"
        | "usedbychildren"
        | "usedbysnapshots"
        | "usedbyrefreservation"
        | "available"
        | "volsize" => (json!(number), json!(human(number.unwrap_or_default()))),
        "recordsize" | "volblocksize" => (json!(number), json!(short(number.unwrap_or_default()))),
        "checksum" | "atime" | "exec" | "readonly" | "xattr" => {
            let flag = match raw {
                "on" => json!(true),
                "off" => json!(false),
                _ => Value::Null,
            };
            (flag, json!(raw.to_uppercase()))
        }
        "copies" | "special_small_blocks" => (json!(number), json!(raw)),
        _ => (json!(raw), json!(raw.to_uppercase())),
    };
    json!({ "parsed": parsed, "rawvalue": raw, "value": value, "source": source, "source_info": from })
}

/// `1.5 GiB`.
fn human(bytes: u64) -> String {
    let mut unit = 0;
    #[allow(clippy::cast_precision_loss)]
    let mut number = bytes as f64;
    const UNITS: &[&str] = &["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    while number >= 1024.0 && unit + 1 < UNITS.len() {
        number /= 1024.0;
        unit += 1;
    }
    let text = format!("{number:.2}");
    format!("{} {}", text.trim_end_matches('0').trim_end_matches('.'), UNITS[unit])
}

/// `128K`.
fn short(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 => format!("{}M", b >> 20),
        b if b >= 1 << 10 => format!("{}K", b >> 10),
        b => b.to_string(),
    }
}
