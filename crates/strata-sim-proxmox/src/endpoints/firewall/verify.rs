//! Whether a rule makes sense where it stands.

use super::spec::{self, ICMP, ICMP6};
use super::{Scope, macros};
use crate::api::format;
use crate::world::World;
use crate::world::firewall::Rule;

/// Where a rule stands: in a firewall, or in a security group.
pub struct RulePosition<'p> {
    pub world: &'p World,
    pub scope: &'p Scope,
    pub in_group: bool,
}

/// What is wrong with a rule, parameter by parameter; and the version of its addresses.
#[derive(Debug, Default)]
pub struct Verdict {
    pub problems: Vec<(&'static str, String)>,
    pub version: Option<u8>,
}

impl RulePosition<'_> {
    fn environment(&self) -> &'static str {
        if self.in_group { "group" } else { self.scope.environment(self.world) }
    }

    pub fn verify(&self, rule: &mut Rule) -> Verdict {
        let mut verdict = Verdict::default();
        self.check_kind(rule, &mut verdict);
        self.check_iface(rule, &mut verdict);
        if let Some(name) = rule.get("macro") {
            match macros::preferred(name) {
                Some(known) => drop(rule.insert("macro".into(), known.into())),
                None => verdict.add("macro", format!("unknown macro '{name}'")),
            }
        }
        check_protocol(rule, &mut verdict);
        // A macro says which packets it is about.
        if rule.contains_key("macro") && verdict.problems.is_empty() {
            for key in ["proto", "dport", "sport"].into_iter().filter(|key| rule.contains_key(*key)) {
                verdict.add(key, "parameter already define in macro");
            }
        }
        for key in ["source", "dest"] {
            self.check_address(rule, key, &mut verdict);
        }
        verdict
    }

    fn check_kind(&self, rule: &Rule, verdict: &mut Verdict) {
        let kind = rule.get("type").map_or("", String::as_str);
        let action = rule.get("action").map_or("", String::as_str);
        let environment = self.environment();
        let allowed: &[&str] = match environment {
            "ct" | "vm" => &["in", "out", "group"],
            "group" => &["in", "out", "forward"],
            "vnet" => &["forward", "group"],
            _ => &["in", "out", "forward", "group"],
        };
        if !allowed.contains(&kind) {
            verdict.add("type", format!("invalid rule type '{kind}' for rule_env '{environment}'"));
        }
        if kind == "group" {
            if !spec::is_name(action) {
                verdict.add("action", "invalid characters in security group name");
            }
            return;
        }
        if kind == "forward" && action == "REJECT" {
            verdict.add("action", "cannot define REJECT rules on forward chain");
        }
        if !matches!(action, "ACCEPT" | "DROP" | "REJECT") {
            verdict.add("action", format!("unknown action '{action}'"));
        }
    }

    fn check_iface(&self, rule: &Rule, verdict: &mut Verdict) {
        let Some(iface) = rule.get("iface") else { return };
        if self.in_group || matches!(self.scope, Scope::Vnet(_)) {
            verdict.add("type", "parameter -i not allowed for this rule type");
        }
        if let Err(text) = format::iface(iface) {
            verdict.add("iface", text.trim_end());
        }
        let guest_net = iface.strip_prefix("net").is_some_and(|n| !n.is_empty() && n.parse::<u32>().is_ok());
        if matches!(self.scope, Scope::Guest(_)) && !guest_net {
            verdict.add("iface", r"value does not match the regex pattern 'net\d+'");
        }
    }

    fn check_address(&self, rule: &Rule, key: &'static str, verdict: &mut Verdict) {
        let Some(value) = rule.get(key) else { return };
        match spec::parse_addresses(value) {
            Ok(version) => verdict.set_version(key, version),
            Err(text) => verdict.add(key, text.trim_end()),
        }
        let (own, cluster) = (self.world.firewall_of(self.scope), self.world.firewall_of(&Scope::Cluster));
        if let Some(set) = value.strip_prefix('+') {
            let name = set.strip_prefix("sdn/").unwrap_or(spec::unscoped(set).1);
            if !spec::is_name(name) {
                verdict.add(key, format!("invalid ipset name '{value}'"));
            } else if !own.ipsets.contains_key(name) && !cluster.ipsets.contains_key(name) {
                verdict.add(key, format!("no such ipset '{name}'"));
            }
            return;
        }
        let (scope, name) = spec::unscoped(value);
        if !spec::is_name(name) {
            return;
        }
        let lower = name.to_ascii_lowercase();
        let local = own.aliases.get(&lower).filter(|_| scope != "dc/");
        let global = cluster.aliases.get(&lower).filter(|_| scope != "guest/");
        match local.or(global) {
            Some(alias) => verdict.set_version(key, spec::ip_version(&alias.cidr)),
            None => verdict.add(key, format!("no such alias '{value}'")),
        }
    }
}

impl Verdict {
    fn add(&mut self, param: &'static str, text: impl Into<String>) {
        self.problems.push((param, text.into()));
    }

    fn set_version(&mut self, param: &'static str, version: Option<u8>) {
        if version.is_some() {
            if self.version.is_some() && self.version != version {
                self.add(param, "detected mixed ipv4/ipv6 addresses in rule");
            }
            self.version = version;
        }
    }
}

fn check_protocol(rule: &Rule, verdict: &mut Verdict) {
    let get = |key: &str| rule.get(key).map(String::as_str);
    let protocol = get("proto").unwrap_or_default();
    if !protocol.is_empty() {
        if let Err(text) = spec::protocol(protocol) {
            verdict.add("proto", text.trim_end());
        }
        match protocol {
            "icmp" => verdict.set_version("proto", Some(4)),
            "icmpv6" | "ipv6-icmp" => verdict.set_version("proto", Some(6)),
            _ => {}
        }
    }
    let icmp = spec::is_icmp(protocol);
    if let Some(ports) = get("dport") {
        check_ports("dport", ports, protocol, icmp, verdict);
    }
    if let Some(kind) = get("icmp-type") {
        if !icmp {
            verdict.add("proto", "missing property - 'icmp-type' requires this property");
        }
        if get("dport").is_some() {
            verdict.add("icmp-type", "'icmp-type' cannot be specified together with 'dport'");
        }
        let known = if protocol == "icmp" { ICMP } else { ICMP6 };
        if icmp && !known.contains(&kind) {
            verdict.add("icmp-type", format!("invalid icmp-type '{kind}' for proto '{protocol}'"));
        }
    }
    if let Some(ports) = get("sport") {
        check_ports("sport", ports, protocol, false, verdict);
    }
}

fn check_ports(key: &'static str, ports: &str, protocol: &str, icmp: bool, verdict: &mut Verdict) {
    if let Err(text) = spec::parse_ports(ports, icmp) {
        verdict.add(key, text.trim_end());
    }
    if protocol.is_empty() {
        verdict.add("proto", format!("missing property - '{key}' requires this property"));
    } else if !spec::has_ports(protocol) && !icmp {
        verdict.add(key, format!("protocol '{protocol}' does not support ports"));
    }
}
