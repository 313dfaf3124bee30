//! The firewalls of machines, which are resources of their own in OpenTofu.

use crate::records::{Firewall, FirewallRule};
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
        firewall.put(Firewall::enabled, options.flag("enabled"));
        for (key, field) in [
            (Firewall::policy_in, "input_policy"),
            (Firewall::policy_out, "output_policy"),
            (Firewall::log_level_in, "log_level_in"),
            (Firewall::log_level_out, "log_level_out"),
        ] {
            firewall.put(key, options.text(field));
        }
        for (key, field) in [
            (Firewall::dhcp, "dhcp"),
            (Firewall::mac_filter, "macfilter"),
            (Firewall::ip_filter, "ipfilter"),
            (Firewall::ndp, "ndp"),
            (Firewall::radv, "radv"),
        ] {
            firewall.put(key, options.flag(field));
        }
    } else {
        // Rules alone do not switch it on.
        firewall.set(Firewall::enabled, json!(false));
    }
    let rules = rules.map(|rules| rules.blocks("rule").into_iter().map(rule).collect()).unwrap_or_default();
    firewall.put_full(Firewall::rules, Json::Array(rules));
    Some(Json::Object(firewall))
}

fn rule(rule: Attributes<'_>) -> Json {
    let mut written = Object::new();
    match rule.text("security_group") {
        Some(group) => {
            written.set(FirewallRule::direction, json!("group"));
            written.set(FirewallRule::action, json!(group));
        }
        None => {
            written.put(FirewallRule::direction, rule.text("type"));
            written.put(FirewallRule::action, rule.text("action"));
        }
    }
    for (key, field) in [
        (FirewallRule::comment, "comment"),
        (FirewallRule::source, "source"),
        (FirewallRule::destination, "dest"),
        (FirewallRule::protocol, "proto"),
        (FirewallRule::destination_port, "dport"),
        (FirewallRule::source_port, "sport"),
        (FirewallRule::interface, "iface"),
        (FirewallRule::log, "log"),
        (FirewallRule::macro_, "macro"),
    ] {
        written.put(key, rule.text(field));
    }
    written.put(FirewallRule::enabled, rule.flag("enabled").filter(|enabled| !*enabled));
    Json::Object(written)
}
