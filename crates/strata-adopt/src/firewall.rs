//! The firewall of a guest.

use serde_json::Value as Json;
use strata_resource::Value;
use strata_source::machine::firewall::{Firewall, FirewallRule};

use strata_yaml::Record;

use crate::fields::{Fields, Object, Put};
use crate::record::record;

/// Nothing where it is as Proxmox leaves it.
pub(crate) fn written(mut firewall: Fields) -> Option<Json> {
    let mut options = firewall.map("options").unwrap_or_default();
    let mut yaml = Object::new();
    let enabled = options.bool("enable").unwrap_or(false);
    yaml.put(Firewall::policy_in, options.text("policy_in"));
    yaml.put(Firewall::policy_out, options.text("policy_out"));
    yaml.put(Firewall::log_level_in, options.text("log_level_in"));
    yaml.put(Firewall::log_level_out, options.text("log_level_out"));
    yaml.put(Firewall::dhcp, options.unless("dhcp", false));
    yaml.put(Firewall::mac_filter, options.unless("macfilter", true));
    yaml.put(Firewall::ip_filter, options.unless("ipfilter", false));
    yaml.put(Firewall::ndp, options.unless("ndp", true));
    yaml.put(Firewall::radv, options.unless("radv", false));
    let rules: Vec<Json> = firewall.values("rules").iter().map(rule).collect();
    yaml.put_full(Firewall::rules, Json::Array(rules));
    if !enabled && yaml.is_empty() {
        return None;
    }
    if yaml.is_empty() {
        return Some(true.into());
    }
    if !enabled {
        yaml.set(Firewall::enabled, false);
    }
    Some(Json::Object(yaml))
}

pub(crate) fn applies(written: &Json) -> bool {
    written.get(Firewall::enabled.name()).and_then(Json::as_bool).unwrap_or(true)
}

fn rule(rule: &Value) -> Json {
    let mut rule = rule.as_map().map(Fields::of).unwrap_or_default();
    Json::Object(record(FirewallRule::spec(), &mut rule))
}
