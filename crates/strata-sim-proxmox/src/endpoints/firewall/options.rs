//! The options of a firewall.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::{Scope, Site, digest_of, may_change, may_look};
use crate::api::param::usual;
use crate::api::{Call, Param, Properties, Reply, Route, flag, get, int, put, text, wrong};
use crate::endpoints::section::typed;
use crate::world::Firewall;

const LEVELS: &[&str] = &["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug", "nolog"];
const POLICIES: &[&str] = &["ACCEPT", "REJECT", "DROP"];

pub fn routes(site: Site) -> Vec<Route> {
    let params = site.with(settings(site).into_iter().chain([usual::delete(), usual::digest()]));
    vec![
        get(site.path("/options"), site.look(), site.own(), show),
        put(site.path("/options"), site.change(), params, update),
    ]
}

fn settings(site: Site) -> Vec<Param> {
    let level = |name: &'static str| text(name).one_of(LEVELS).opt();
    match site {
        Site::Cluster => vec![
            int("enable").min(0.0).opt(),
            flag("ebtables").opt(),
            text("policy_in").one_of(POLICIES).opt(),
            text("policy_out").one_of(POLICIES).opt(),
            text("policy_forward").one_of(&["ACCEPT", "DROP"]).opt(),
            text("log_ratelimit").properties(rate_limit).opt(),
        ],
        Site::Node => vec![
            flag("enable").opt(),
            level("log_level_in"),
            level("log_level_out"),
            level("log_level_forward"),
            level("tcp_flags_log_level"),
            level("smurf_log_level"),
            flag("nosmurfs").opt(),
            flag("tcpflags").opt(),
            flag("nf_conntrack_allow_invalid").opt(),
            text("nf_conntrack_helpers").format(helpers).opt(),
            int("nf_conntrack_max").min(32_768.0).opt(),
            int("nf_conntrack_tcp_timeout_established").min(7875.0).opt(),
            int("nf_conntrack_tcp_timeout_syn_recv").min(30.0).max(60.0).opt(),
            flag("ndp").opt(),
            flag("protection_synflood").opt(),
            int("protection_synflood_rate").opt(),
            int("protection_synflood_burst").opt(),
            flag("log_nf_conntrack").opt(),
            flag("nftables").opt(),
        ],
        Site::Vm | Site::Container => vec![
            flag("enable").opt(),
            flag("macfilter").opt(),
            flag("dhcp").opt(),
            flag("ndp").opt(),
            flag("radv").opt(),
            flag("ipfilter").opt(),
            text("policy_in").one_of(POLICIES).opt(),
            text("policy_out").one_of(POLICIES).opt(),
            level("log_level_in"),
            level("log_level_out"),
        ],
        Site::Vnet => vec![
            flag("enable").opt(),
            level("log_level_forward"),
            text("policy_forward").one_of(&["ACCEPT", "DROP"]).opt(),
        ],
    }
}

fn rate_limit() -> &'static Properties {
    static SCHEMA: LazyLock<Properties> = LazyLock::new(|| {
        Properties::new([
            flag("enable"),
            text("rate").pattern("[1-9][0-9]*/(second|minute|hour|day)").opt(),
            int("burst").min(0.0).opt(),
        ])
        .default_key("enable")
    });
    &SCHEMA
}

fn helpers(value: &str) -> Result<(), String> {
    const KNOWN: &[&str] = &["amanda", "ftp", "irc", "netbios-ns", "pptp", "sane", "sip", "snmp", "tftp"];
    match value.split(',').find(|helper| !KNOWN.contains(helper)) {
        Some("") => Err("extraneous commas in list\n".to_owned()),
        Some(unknown) => {
            Err(format!("unknown helper {unknown} at /usr/share/perl5/PVE/Firewall.pm line 1221.\n"))
        }
        None => Ok(()),
    }
}

fn site_of(scope: &Scope) -> Site {
    match scope {
        Scope::Cluster => Site::Cluster,
        Scope::Node(_) => Site::Node,
        Scope::Guest(_) => Site::Vm,
        Scope::Vnet(_) => Site::Vnet,
    }
}

fn digest(firewall: &Firewall) -> String {
    if firewall.options.is_empty() {
        return crate::world::made_up::sha1_hex("");
    }
    digest_of(&json!(firewall.options))
}

fn show(call: &mut Call<'_>) -> Reply {
    may_look(call)?;
    let scope = Scope::of(call);
    let firewall = call.world.firewall_of(&scope);
    let params = settings(site_of(&scope));
    let mut data: Map<String, Value> =
        firewall.options.iter().map(|(k, v)| (k.clone(), typed(&params, k, v))).collect();
    data.insert("digest".into(), json!(digest(&firewall)));
    Ok(Value::Object(data).into())
}

fn update(call: &mut Call<'_>) -> Reply {
    may_change(call)?;
    let scope = Scope::of(call);
    let mut firewall = call.world.firewall_of(&scope);
    call.check_digest(&digest(&firewall))?;
    let params = settings(site_of(&scope));
    let known = |key: &str| params.iter().any(|p| p.name == key);
    for key in call.args.list("delete") {
        if !known(&key) {
            return Err(wrong("delete", format!("no such option '{key}'")));
        }
        firewall.options.remove(&key);
    }
    for (key, value) in call.args.texts().filter(|(key, _)| known(key)) {
        firewall.options.insert(key.to_owned(), value.to_owned());
    }
    call.world.keep_firewall(&scope, firewall);
    Ok(().into())
}
