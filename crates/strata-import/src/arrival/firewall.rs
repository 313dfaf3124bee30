//! The firewalls of machines, which are resources of their own in OpenTofu.

use serde_json::{Value as Json, json};

use super::{FIREWALL_OPTIONS, FIREWALL_RULES};
use crate::output::{Object, Put};
use strata_tofu::{Attributes, TofuState};

/// The firewall of a machine, if the state has one.
pub(super) fn of_guest(state: &TofuState, vm_id: u32) -> Option<Json> {
    let of = |kind: &str| {
        state.resources.iter().filter(|resource| !resource.is_data && resource.kind == kind).find_map(
            |resource| {
                let attributes = resource.attributes();
                let id = attributes.positive("vm_id").or_else(|| attributes.positive("container_id"))?;
                (id == i64::from(vm_id)).then_some(attributes)
            },
        )
    };
    let (options, rules) = (of(FIREWALL_OPTIONS), of(FIREWALL_RULES));
    if options.is_none() && rules.is_none() {
        return None;
    }
    let mut firewall = Object::new();
    if let Some(options) = options {
        firewall.put("enabled", options.flag("enabled"));
        for (key, field) in [
            ("policyIn", "input_policy"),
            ("policyOut", "output_policy"),
            ("logLevelIn", "log_level_in"),
            ("logLevelOut", "log_level_out"),
        ] {
            firewall.put(key, options.text(field));
        }
        for (key, field) in [
            ("dhcp", "dhcp"),
            ("macFilter", "macfilter"),
            ("ipFilter", "ipfilter"),
            ("ndp", "ndp"),
            ("radv", "radv"),
        ] {
            firewall.put(key, options.flag(field));
        }
    } else {
        // Rules alone do not switch it on.
        firewall.insert("enabled".into(), json!(false));
    }
    let rules = rules.map(|rules| rules.blocks("rule").into_iter().map(rule).collect()).unwrap_or_default();
    firewall.put_full("rules", Json::Array(rules));
    Some(Json::Object(firewall))
}

fn rule(rule: Attributes<'_>) -> Json {
    let mut written = Object::new();
    match rule.text("security_group") {
        Some(group) => {
            written.insert("direction".into(), json!("group"));
            written.insert("action".into(), json!(group));
        }
        None => {
            written.put("direction", rule.text("type"));
            written.put("action", rule.text("action"));
        }
    }
    for (key, field) in [
        ("comment", "comment"),
        ("source", "source"),
        ("destination", "dest"),
        ("protocol", "proto"),
        ("destinationPort", "dport"),
        ("sourcePort", "sport"),
        ("interface", "iface"),
        ("log", "log"),
        ("macro", "macro"),
    ] {
        written.put(key, rule.text(field));
    }
    written.put("enabled", rule.flag("enabled").filter(|enabled| !*enabled));
    Json::Object(written)
}
