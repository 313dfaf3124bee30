//! The options of the datacenter.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::section::number;
use crate::api::args::split_list;
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{
    Call, Param, Perm, Properties, Reply, Route, flag, format, get, int, no, number as decimal, put, text,
};

pub fn routes() -> Vec<Route> {
    let params = [options(), vec![usual::delete()]].concat();
    vec![
        get("/cluster/options", Perm::Anyone, vec![], show),
        put("/cluster/options", on("/", &["Sys.Modify"]), params, update),
    ]
}

const KEYBOARDS: &[&str] = &[
    "de", "de-ch", "da", "en-gb", "en-us", "es", "fi", "fr", "fr-be", "fr-ca", "fr-ch", "hu", "is", "it",
    "ja", "lt", "mk", "nl", "no", "pl", "pt", "pt-br", "sv", "sl", "tr",
];
const LANGUAGES: &[&str] = &[
    "ar", "ca", "da", "de", "en", "es", "eu", "fa", "fr", "hr", "he", "it", "ja", "ka", "kr", "nb", "nl",
    "nn", "pl", "pt_BR", "ru", "sl", "sv", "tr", "ukr", "zh_CN", "zh_TW",
];
const TAGS: &str = r"(?i:[a-z0-9_][a-z0-9_\-+.]*)(?:;(?i:[a-z0-9_][a-z0-9_\-+.]*))*";

fn options() -> Vec<Param> {
    vec![
        text("bwlimit").properties(bandwidth).opt(),
        text("consent-text").max_len(65_536).opt(),
        text("console").one_of(&["applet", "vv", "html5", "xtermjs"]).opt(),
        text("crs").properties(scheduling).opt(),
        text("description").max_len(65_536).opt(),
        text("email_from").unless_empty(format::email).opt(),
        text("fencing").one_of(&["watchdog", "hardware", "both"]).opt(),
        text("ha").properties(availability).opt(),
        text("http_proxy").pattern("http://.*").opt(),
        text("keyboard").one_of(KEYBOARDS).opt(),
        text("language").one_of(LANGUAGES).opt(),
        text("mac_prefix").format(mac_prefix).opt(),
        int("max_workers").min(1.0).opt(),
        text("migration").properties(transfer).opt(),
        flag("migration_unsecure").opt(),
        text("next-id").properties(range).opt(),
        text("notify").properties(notify).opt(),
        text("registered-tags").pattern(TAGS).opt(),
        text("replication").properties(transfer).opt(),
        text("tag-style").properties(tag_style).opt(),
        text("u2f").properties(u2f).opt(),
        text("user-tag-access").properties(tag_access).opt(),
        text("webauthn").properties(webauthn).opt(),
    ]
}

/// The vendor part of MAC addresses, or more of it.
fn mac_prefix(value: &str) -> Result<(), String> {
    let parts: Vec<&str> = value.trim_end_matches(':').split(':').collect();
    let hex = |p: &&str| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit());
    let unicast = u8::from_str_radix(parts[0], 16).is_ok_and(|b| b & 1 == 0);
    if (1..=5).contains(&parts.len()) && parts.iter().all(hex) && unicast {
        return Ok(());
    }
    Err("value is not a valid unicast MAC address prefix\n".to_owned())
}

/// Declares the schema of an option that has parts.
macro_rules! schema {
    ($name:ident, $make:expr) => {
        fn $name() -> &'static Properties {
            static SCHEMA: LazyLock<Properties> = LazyLock::new(|| $make);
            &SCHEMA
        }
    };
}

schema!(
    bandwidth,
    Properties::new(["clone", "default", "migration", "move", "restore"].map(|k| decimal(k).min(0.0).opt()))
        .loose()
);
schema!(
    scheduling,
    Properties::new([text("ha").one_of(&["basic", "static"]).opt(), flag("ha-rebalance-on-start").opt()])
);
schema!(
    availability,
    Properties::new([text("shutdown_policy").one_of(&["freeze", "failover", "conditional", "migrate"])])
);
schema!(
    transfer,
    Properties::new([
        text("type").one_of(&["secure", "insecure"]),
        text("network").format(format::cidr).opt()
    ])
    .default_key("type")
);
schema!(range, Properties::new([int("lower").opt(), int("upper").opt()]));
schema!(
    notify,
    Properties::new([
        text("fencing").one_of(&["always", "never"]).opt(),
        text("package-updates").one_of(&["auto", "always", "never"]).opt(),
        text("replication").one_of(&["always", "never"]).opt(),
        text("target-fencing").opt(),
        text("target-package-updates").opt(),
        text("target-replication").opt(),
    ])
);
schema!(
    tag_style,
    Properties::new([
        flag("case-sensitive").opt(),
        text("color-map")
            .pattern(r"[^:;]+:[0-9a-fA-F]{6}(:[0-9a-fA-F]{6})?(;[^:;]+:[0-9a-fA-F]{6}(:[0-9a-fA-F]{6})?)*")
            .opt(),
        text("ordering").one_of(&["config", "alphabetical"]).opt(),
        text("shape").one_of(&["full", "circle", "dense", "none"]).opt(),
    ])
);
schema!(u2f, Properties::new([text("appid").opt(), text("origin").opt()]));
schema!(
    tag_access,
    Properties::new([
        text("user-allow").one_of(&["none", "list", "existing", "free"]).opt(),
        text("user-allow-list").pattern(TAGS).opt(),
    ])
);
schema!(
    webauthn,
    Properties::new([
        flag("allow-subdomains").opt(),
        text("id").opt(),
        text("origin").opt(),
        text("rp").opt(),
    ])
);

/// Options that are shown in parts.
fn parts_of(key: &str) -> Option<&'static Properties> {
    Some(match key {
        "crs" => scheduling(),
        "ha" => availability(),
        "migration" | "replication" => transfer(),
        "next-id" => range(),
        "notify" => notify(),
        "tag-style" => tag_style(),
        "u2f" => u2f(),
        "user-tag-access" => tag_access(),
        "webauthn" => webauthn(),
        _ => return None,
    })
}

fn shown(key: &str, value: &str) -> Value {
    if let Some(schema) = parts_of(key) {
        let parts = schema.read(value).0;
        let part = |(key, value): (String, String)| {
            let shown = match key.as_str() {
                "case-sensitive" | "ha-rebalance-on-start" => number(&value),
                "user-allow-list" => json!(split_list(&value).collect::<Vec<_>>()),
                _ => json!(value),
            };
            (key, shown)
        };
        return Value::Object(parts.into_iter().map(part).collect());
    }
    match key {
        "registered-tags" => json!(split_list(value).collect::<Vec<_>>()),
        "migration_unsecure" => number(value),
        "description" => json!(format!("{}\n", value.trim_end_matches('\n'))),
        _ => json!(value),
    }
}

fn show(call: &mut Call<'_>) -> Reply {
    let all = call.may("/", "Sys.Audit");
    let mut data = Map::new();
    for (key, value) in &call.world.cluster.options {
        if all || matches!(key.as_str(), "console" | "tag-style") {
            data.insert(key.clone(), shown(key, value));
        }
    }
    if all {
        data.entry("mac_prefix").or_insert(json!("BC:24:11"));
        data.entry("description").or_insert(json!(""));
    }
    data.insert("allowed-tags".into(), json!(allowed_tags(call)));
    Ok(Value::Object(data).into())
}

/// The tags that the caller may give.
fn allowed_tags(call: &Call<'_>) -> BTreeSet<String> {
    let option = |key: &str| call.world.cluster.options.get(key).map_or("", String::as_str);
    let access = tag_access().read(option("user-tag-access"));
    let privileged = call.may("/", "Sys.Modify");
    let mut tags: BTreeSet<String> = BTreeSet::new();
    let mode = access.get("user-allow").unwrap_or("free");
    if privileged || matches!(mode, "free" | "existing") {
        let visible =
            call.world.guests.values().filter(|g| call.may(&format!("/vms/{}", g.vmid), "VM.Audit"));
        for guest in visible {
            tags.extend(split_list(guest.get("tags").unwrap_or_default()).map(str::to_owned));
        }
    }
    if privileged || mode != "none" {
        tags.extend(split_list(access.get("user-allow-list").unwrap_or_default()).map(str::to_owned));
    }
    for tag in split_list(option("registered-tags")) {
        if privileged {
            tags.insert(tag.to_owned());
        } else {
            tags.remove(tag);
        }
    }
    tags
}

fn update(call: &mut Call<'_>) -> Reply {
    let set: Vec<(String, String)> = call
        .args
        .texts()
        .filter(|(key, _)| *key != "delete")
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let unset = call.args.list("delete");
    let bounds = range().read(call.args.text("next-id").unwrap_or_default());
    let bound = |key: &str, usual: i64| bounds.get(key).and_then(|n| n.parse::<i64>().ok()).unwrap_or(usual);
    let (lower, upper) = (bound("lower", 100), bound("upper", 1_000_000));
    if lower > upper {
        return Err(no(format!("lower ({lower}) <= upper ({upper}) boundary rule broken")));
    }
    let options = &mut call.world.cluster.options;
    for (key, value) in set {
        if value.is_empty() {
            options.remove(&key);
        } else {
            options.insert(key, value);
        }
    }
    for key in unset {
        options.remove(&key);
    }
    Ok(().into())
}
