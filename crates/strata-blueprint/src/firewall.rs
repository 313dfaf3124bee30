//! The firewall of a guest.

use strata_resource::{Spec, Value};
use strata_source::machine::firewall::{Firewall, FirewallRule};

use crate::fields::Fields;

pub(crate) fn spec(firewall: &Firewall) -> Value {
    let mut options = Spec::new();
    options.put("enable", firewall.enabled);
    options.put_some("policy_in", firewall.policy_in.map(|policy| policy.to_string()));
    options.put_some("policy_out", firewall.policy_out.map(|policy| policy.to_string()));
    options.put_some("log_level_in", firewall.log_level_in.map(|level| level.to_string()));
    options.put_some("log_level_out", firewall.log_level_out.map(|level| level.to_string()));
    options.put_some("dhcp", firewall.dhcp);
    options.put_some("macfilter", firewall.mac_filter);
    options.put_some("ipfilter", firewall.ip_filter);
    options.put_some("ndp", firewall.ndp);
    options.put_some("radv", firewall.radv);
    let mut spec = Spec::new();
    spec.put("options", options);
    spec.put("rules", Value::List(firewall.rules.iter().map(rule).collect()));
    Value::Map(spec)
}

pub(crate) fn rule(rule: &FirewallRule) -> Value {
    let mut spec = Spec::new();
    spec.put("type", rule.direction.to_string());
    spec.put("action", rule.action.value.clone());
    spec.put("enable", rule.enabled);
    spec.put_some("comment", rule.comment.clone());
    spec.put_some("source", rule.source.clone());
    spec.put_some("dest", rule.destination.clone());
    spec.put_some("proto", rule.protocol.clone());
    spec.put_some("dport", rule.destination_port.as_ref().map(|ports| ports.0.clone()));
    spec.put_some("sport", rule.source_port.as_ref().map(|ports| ports.0.clone()));
    spec.put_some("iface", rule.interface.clone());
    spec.put_some("log", rule.log.map(|level| level.to_string()));
    spec.put_some("macro", rule.macro_.clone());
    spec.put_some("icmp-type", rule.icmp_type.clone());
    Value::Map(spec)
}
