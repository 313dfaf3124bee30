//! The files of a node that the API edits: DNS, hosts, time zone, the node's own options.

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::api::args::split_list;
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{
    Call, Param, Properties, Refusal, Reply, Route, format, get, int, no, post, put, text, wrong,
};
use crate::world::Node;
use crate::world::made_up::sha1_hex;

/// The options of a node that can be asked for one by one.
const PROPERTIES: &[&str] = &[
    "acme",
    "acmedomain0",
    "acmedomain1",
    "acmedomain2",
    "acmedomain3",
    "acmedomain4",
    "acmedomain5",
    "ballooning-target",
    "description",
    "startall-onboot-delay",
    "wakeonlan",
];

static ACME: LazyLock<Properties> = LazyLock::new(|| {
    Properties::new([text("account").format(format::configid).opt(), text("domains").each(domain_name).opt()])
});
static ACME_DOMAIN: LazyLock<Properties> = LazyLock::new(|| {
    let keys = [
        text("domain").format(domain_name),
        text("alias").format(domain_name).opt(),
        text("plugin").format(format::configid).opt(),
    ];
    Properties::new(keys).default_key("domain")
});
static WAKE_ON_LAN: LazyLock<Properties> = LazyLock::new(|| {
    let keys = [
        text("mac").format(format::mac),
        text("bind-interface").format(format::iface).opt(),
        text("broadcast-address").format(format::ipv4).opt(),
    ];
    Properties::new(keys).default_key("mac")
});

/// A name that a certificate can be for.
fn domain_name(value: &str) -> Result<(), String> {
    let name = value.strip_prefix("*.").unwrap_or(value);
    let label =
        |part: &str| part.starts_with(|c: char| c.is_ascii_alphanumeric()) && format::only(part, "-_");
    let ok = name.contains('.') && name.split('.').all(label);
    if ok { Ok(()) } else { Err("value does not look like a valid ACME domain\n".to_owned()) }
}

pub fn routes() -> Vec<Route> {
    let with = |extra: Vec<Param>| [vec![usual::node()], extra].concat();
    let audit = || on("/nodes/{node}", &["Sys.Audit"]);
    let modify = || on("/nodes/{node}", &["Sys.Modify"]);
    let server = |name: &'static str| text(name).format(format::ip).opt();
    vec![
        get("/nodes/{node}/dns", audit(), with(vec![]), |call| Ok(json!(node(call).dns).into())),
        put(
            "/nodes/{node}/dns",
            modify(),
            with(vec![text("search"), server("dns1"), server("dns2"), server("dns3")]),
            set_dns,
        ),
        get("/nodes/{node}/hosts", on("/", &["Sys.Audit"]), with(vec![]), |call| {
            let hosts = &node(call).hosts;
            Ok(json!({ "data": hosts, "digest": sha1_hex(hosts) }).into())
        }),
        post("/nodes/{node}/hosts", modify(), with(vec![text("data"), usual::digest()]), set_hosts),
        get("/nodes/{node}/time", audit(), with(vec![]), time),
        put("/nodes/{node}/time", modify(), with(vec![text("timezone")]), set_time),
        get(
            "/nodes/{node}/config",
            on("/", &["Sys.Audit"]),
            with(vec![text("property").one_of(PROPERTIES).opt()]),
            config,
        ),
        put("/nodes/{node}/config", on("/", &["Sys.Modify"]), with(options()), set_config),
    ]
}

fn node<'c>(call: &'c Call<'_>) -> &'c Node {
    &call.world.nodes[call.args.must("node")]
}

fn node_mut<'c>(call: &'c mut Call<'_>) -> Result<&'c mut Node, Refusal> {
    let name = call.node();
    call.world.nodes.get_mut(&name).ok_or_else(|| no(format!("no such cluster node '{name}'")))
}

fn set_dns(call: &mut Call<'_>) -> Reply {
    let given: Vec<(String, String)> = ["search", "dns1", "dns2", "dns3"]
        .iter()
        .filter_map(|key| call.args.filled(key).map(|value| ((*key).to_owned(), value.to_owned())))
        .collect();
    node_mut(call)?.dns = given.into_iter().collect();
    Ok(().into())
}

fn set_hosts(call: &mut Call<'_>) -> Reply {
    call.check_digest(&sha1_hex(&node(call).hosts))?;
    let data = call.args.must("data").to_owned();
    node_mut(call)?.hosts = data;
    Ok(().into())
}

fn time(call: &mut Call<'_>) -> Reply {
    let now = call.world.now();
    Ok(json!({ "timezone": node(call).timezone, "time": now, "localtime": now }).into())
}

fn set_time(call: &mut Call<'_>) -> Reply {
    let zone = call.args.must("timezone").to_owned();
    let known = zone == "UTC" || jiff::tz::TimeZone::get(&zone).is_ok();
    if !known {
        return Err(wrong("timezone", "No such timezone"));
    }
    node_mut(call)?.timezone = zone;
    Ok(().into())
}

fn options() -> Vec<Param> {
    let mut all = vec![
        text("acme").properties(|| &ACME).opt(),
        int("ballooning-target").min(0.0).max(100.0).opt(),
        usual::delete(),
        text("description").max_len(65536).opt(),
        text("digest").max_len(40).opt(),
        int("startall-onboot-delay").min(0.0).max(300.0).opt(),
        text("wakeonlan").properties(|| &WAKE_ON_LAN).opt(),
    ];
    all.extend((0..6).map(|n| text(format!("acmedomain{n}")).properties(|| &ACME_DOMAIN).opt()));
    all
}

/// The options file: the description as comments first, then the rest.
fn config_text(node: &Node) -> String {
    let mut out = String::new();
    for line in node.config.get("description").map_or("", String::as_str).lines() {
        out.push_str(&format!("#{line}\n"));
    }
    for (key, value) in node.config.iter().filter(|(key, _)| *key != "description") {
        out.push_str(&format!("{key}: {value}\n"));
    }
    out
}

fn config(call: &mut Call<'_>) -> Reply {
    let node = node(call);
    let only = call.args.text("property").filter(|p| *p != "all");
    let mut data = serde_json::Map::new();
    for (key, value) in node.config.iter().filter(|(key, _)| only.is_none_or(|only| only == *key)) {
        let shown = match key.as_str() {
            "description" => json!(format!("{}\n", value.trim_end_matches('\n'))),
            _ => json!(value),
        };
        data.insert(key.clone(), shown);
    }
    if !node.config.is_empty() {
        if only.is_none() {
            data.entry("description").or_insert(json!(""));
        }
        data.insert("digest".into(), json!(sha1_hex(&config_text(node))));
    }
    Ok(Value::Object(data).into())
}

/// Domains of a certificate are named once, and proved by a plugin that is there.
fn check_domains(call: &Call<'_>, config: &IndexMap<String, String>) -> Result<(), Refusal> {
    let mut seen: IndexMap<String, String> = IndexMap::new();
    let listed = config.get("acme").map_or("", String::as_str);
    for domain in ACME.read(listed).get("domains").unwrap_or_default().split(';').filter(|d| !d.is_empty()) {
        if seen.insert(domain.to_owned(), "acme".to_owned()).is_some() {
            return Err(no(format!(
                "duplicate domain '{domain}' in ACME config properties 'acme' and 'acme'"
            )));
        }
    }
    for n in 0..6 {
        let key = format!("acmedomain{n}");
        let Some(value) = config.get(&key) else { continue };
        let entry = ACME_DOMAIN.read(value);
        let domain = entry.get("domain").unwrap_or_default();
        if let Some(other) = seen.get(domain) {
            let text = format!("duplicate domain '{domain}' in ACME config properties '{key}' and '{other}'");
            return Err(no(text));
        }
        let plugin = entry.get("plugin").unwrap_or("standalone");
        if plugin != "standalone" && call.world.cluster.section("acme/plugins", plugin).is_none() {
            return Err(no(format!("plugin '{plugin}' for domain '{domain}' not found!")));
        }
        seen.insert(domain.to_owned(), key);
    }
    Ok(())
}

fn set_config(call: &mut Call<'_>) -> Reply {
    call.check_digest(&sha1_hex(&config_text(node(call))))?;
    let own = ["node", "digest", "delete"];
    let set: Vec<(String, String)> = call
        .args
        .texts()
        .filter(|(key, _)| !own.contains(key))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let delete = call.args.owned("delete").unwrap_or_default();
    let mut config = node(call).config.clone();
    for key in split_list(&delete) {
        config.shift_remove(key);
    }
    for (key, value) in set {
        if value.is_empty() {
            config.shift_remove(&key);
        } else {
            config.insert(key, value);
        }
    }
    check_domains(call, &config)?;
    node_mut(call)?.config = config;
    Ok(().into())
}
