//! Whether somebody gets through the firewalls of a host to its API. No IO.
//!
//! A host looks at its own rules, then at those of the datacenter, then lets in the IP set `management` and its own network, and then
//! does what the policy says. What cannot be told (an interface, a name that is not known) counts as a way in: only what is sure to
//! keep everybody out does so here.

use std::collections::BTreeMap;
use std::net::IpAddr;

use strata_resource::{Spec, Value};

/// The port of the API of each host.
const PORT: u32 = 8006;

/// Addresses from one to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    v6: bool,
    first: u128,
    last: u128,
}

impl Block {
    /// An address, a network, or a range with `-`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some((first, last)) = text.split_once('-') {
            let (first, last) = (Self::parse(first.trim())?, Self::parse(last.trim())?);
            return (first.v6 == last.v6).then_some(Self { last: last.last, ..first });
        }
        let (ip, prefix) = match text.split_once('/') {
            Some((ip, prefix)) => (ip.parse().ok()?, Some(prefix.parse::<u32>().ok()?)),
            None => (text.parse::<IpAddr>().ok()?, None),
        };
        let (v6, bits, number) = match ip {
            IpAddr::V4(ip) => (false, 32, u128::from(u32::from(ip))),
            IpAddr::V6(ip) => (true, 128, u128::from(ip)),
        };
        let free = bits - prefix.unwrap_or(bits).min(bits);
        let hosts = 1u128.checked_shl(free).map_or(u128::MAX, |size| size - 1);
        Some(Self { v6, first: number & !hosts, last: number | hosts })
    }

    pub(crate) fn of(ip: IpAddr) -> Option<Self> {
        Self::parse(&ip.to_string())
    }

    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.v6 == other.v6 && self.first <= other.first && other.last <= self.last
    }

    fn meets(&self, other: &Self) -> bool {
        self.v6 == other.v6 && self.first <= other.last && other.first <= self.last
    }
}

/// What rules call addresses and other rules, by name in lower case.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    pub(crate) aliases: BTreeMap<String, String>,
    pub(crate) sets: BTreeMap<String, Vec<String>>,
    pub(crate) groups: BTreeMap<String, Vec<Value>>,
}

/// All that a host looks at.
pub(crate) struct Filter<'a> {
    /// Its own rules, then those of the datacenter.
    pub(crate) rules: Vec<&'a Value>,
    /// What happens to what no rule speaks of.
    pub(crate) policy: &'a str,
    pub(crate) names: &'a Names,
    /// The networks that the host is in; none if that is not known.
    pub(crate) own: Option<&'a [Block]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Matches {
    No,
    Maybe,
    Yes,
}

use Matches::{Maybe, No, Yes};

/// Why nobody of an origin gets through; none where somebody does, or may. Without an origin that is anybody.
pub(crate) fn kept_out(filter: &Filter<'_>, origin: Option<&Block>) -> Option<String> {
    let packet = Packet { names: filter.names, origin };
    let mut way = false;
    for rule in filter.rules.iter().filter_map(|rule| rule.as_map()) {
        for (matches, rule) in packet.rule(rule, 0) {
            let accepts = text(rule, "action") == "ACCEPT";
            match matches {
                Yes if accepts => return None,
                Yes if way => return None,
                Yes => return Some(format!("the rule `{}` matches first", shown(rule))),
                Maybe => way |= accepts,
                No => {}
            }
        }
    }
    let is_managing = packet.set("management").max(packet.own_network(filter.own));
    let stays_out = !way && is_managing == No && filter.policy != "ACCEPT";
    stays_out.then(|| format!("no rule lets it in, and the policy is {}", filter.policy))
}

struct Packet<'a> {
    names: &'a Names,
    origin: Option<&'a Block>,
}

impl<'a> Packet<'a> {
    /// A rule and whether it is about the packet; of a group, those in it.
    fn rule(&self, rule: &'a Spec, depth: usize) -> Vec<(Matches, &'a Spec)> {
        if rule.get("enable").and_then(Value::as_bool) == Some(false) {
            return Vec::new();
        }
        match text(rule, "type") {
            "in" => vec![(self.matches(rule), rule)],
            "group" if depth == 0 => {
                let most = if rule.contains_key("iface") { Maybe } else { Yes };
                let group = self.names.groups.get(&text(rule, "action").to_lowercase());
                let rules = group.into_iter().flatten().filter_map(Value::as_map);
                let inner = rules.flat_map(|rule| self.rule(rule, 1));
                inner.map(|(matches, rule)| (matches.min(most), rule)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn matches(&self, rule: &Spec) -> Matches {
        // Of all macros only that of the mail gateway has this port.
        let macros = rule.get("macro").and_then(Value::as_text);
        if macros.is_some_and(|name| !name.eq_ignore_ascii_case("PMG")) {
            return No;
        }
        if !matches!(text(rule, "proto"), "" | "tcp" | "6") || !has_port(text(rule, "dport")) {
            return No;
        }
        let limits = ["iface", "dest", "sport"].iter().any(|limit| rule.contains_key(*limit));
        let source = match text(rule, "source") {
            "" => Yes,
            written => self.source(written),
        };
        source.min(if limits { Maybe } else { Yes })
    }

    fn source(&self, written: &str) -> Matches {
        if let Some(set) = written.strip_prefix('+') {
            return self.set(set.strip_prefix("dc/").unwrap_or(set));
        }
        written.split(',').map(|part| self.address(part.trim())).max().unwrap_or(Maybe)
    }

    /// An address, or a name for one.
    fn address(&self, written: &str) -> Matches {
        let name = written.strip_prefix("dc/").unwrap_or(written).to_lowercase();
        let known = self.names.aliases.get(&name).map_or(written, String::as_str);
        match (Block::parse(known), self.origin) {
            (Some(block), Some(origin)) if block.covers(origin) => Yes,
            (Some(block), Some(origin)) if !block.meets(origin) => No,
            _ => Maybe,
        }
    }

    fn set(&self, name: &str) -> Matches {
        let Some(entries) = self.names.sets.get(&name.to_lowercase()) else {
            // One that the source does not have may be of the SDN.
            return if name == "management" { No } else { Maybe };
        };
        let (left_out, there): (Vec<&String>, Vec<&String>) =
            entries.iter().partition(|entry| entry.starts_with('!'));
        let within = there.iter().map(|entry| self.address(entry)).max().unwrap_or(No);
        let without = left_out.iter().map(|entry| self.address(&entry[1..])).max().unwrap_or(No);
        match without {
            No => within,
            Yes => No,
            Maybe => within.min(Maybe),
        }
    }

    fn own_network(&self, own: Option<&[Block]>) -> Matches {
        if self.names.aliases.contains_key("local_network") {
            return self.address("local_network");
        }
        let (Some(own), Some(origin)) = (own, self.origin) else { return Maybe };
        if own.iter().any(|block| block.covers(origin)) {
            Yes
        } else if own.iter().any(|block| block.meets(origin)) {
            Maybe
        } else {
            No
        }
    }
}

fn has_port(ports: &str) -> bool {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let is_in = |part: &str| match part.split_once(':') {
        Some((first, last)) => {
            number(first).is_some_and(|n| n <= PORT) && number(last).is_some_and(|n| n >= PORT)
        }
        None => number(part) == Some(PORT),
    };
    ports.is_empty() || ports.split(',').any(is_in)
}

fn shown(rule: &Spec) -> String {
    let parts = ["action", "macro", "proto", "dport", "source"].iter().filter_map(|field| {
        let value = rule.get(*field)?.as_text()?;
        Some(if matches!(*field, "dport" | "source") { format!("{field} {value}") } else { value.to_owned() })
    });
    parts.collect::<Vec<_>>().join(" ")
}

fn text<'s>(spec: &'s Spec, field: &str) -> &'s str {
    spec.get(field).and_then(Value::as_text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn names() -> Names {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let group: Vec<Value> =
            rules(json!([{"type": "in", "action": "ACCEPT", "dport": "8000:8010", "proto": "tcp"}]));
        Names {
            aliases: [("office".to_owned(), "198.51.100.0/24".to_owned())].into(),
            sets: [
                ("management".to_owned(), texts(&["203.0.113.7"])),
                ("staff".to_owned(), texts(&["office", "!198.51.100.66"])),
            ]
            .into(),
            groups: [("web".to_owned(), group)].into(),
        }
    }

    fn rules(json: Json) -> Vec<Value> {
        serde_json::from_value(json).unwrap()
    }

    fn told(list: Json, policy: &str, origin: Option<&str>) -> Option<String> {
        let (names, rules) = (names(), rules(list));
        let own = [Block::parse("192.0.2.0/24").unwrap()];
        let filter = Filter { rules: rules.iter().collect(), policy, names: &names, own: Some(&own) };
        kept_out(&filter, origin.map(|text| Block::parse(text).unwrap()).as_ref())
    }

    fn is_out(list: Json, origin: &str) -> bool {
        told(list, "DROP", Some(origin)).is_some()
    }

    #[test]
    fn the_own_network_and_managers_get_in_by_themselves() {
        assert!(!is_out(json!([]), "192.0.2.9") && !is_out(json!([]), "203.0.113.7"));
        assert!(is_out(json!([]), "198.51.100.1"));
        assert_eq!(told(json!([]), "ACCEPT", Some("198.51.100.1")), None);
        assert_eq!(told(json!([]), "DROP", None), None, "somebody of the own network does");
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let accept = |source: &str| json!({"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "22,8006", "source": source});
        let drop = json!({"type": "in", "action": "DROP"});
        assert!(!is_out(json!([accept("198.51.100.0/25"), drop]), "198.51.100.1"));
        assert!(is_out(json!([drop, accept("198.51.100.0/25")]), "198.51.100.1"));
        assert!(is_out(json!([accept("198.51.100.128-198.51.100.140"), drop]), "198.51.100.1"));
        assert!(is_out(json!([drop]), "192.0.2.9"), "also the own network");
        assert!(told(json!([drop]), "ACCEPT", None).is_some_and(|why| why.contains("`DROP`")));
        assert!(told(json!([accept("office"), drop]), "DROP", None).is_none());
        assert!(!is_out(json!([accept("+dc/staff"), drop]), "198.51.100.1"));
        assert!(is_out(json!([accept("+staff"), drop]), "198.51.100.66"));
    }

    #[test]
    fn rules_about_other_packets_let_nobody_in() {
        for other in [
            json!({"type": "in", "action": "ACCEPT", "macro": "SSH"}),
            json!({"type": "in", "action": "ACCEPT", "proto": "udp"}),
            json!({"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "8007:9000,https"}),
            json!({"type": "out", "action": "ACCEPT"}),
            json!({"type": "in", "action": "ACCEPT", "enable": false}),
            json!({"type": "group", "action": "none"}),
        ] {
            assert!(is_out(json!([other]), "198.51.100.1"), "{other}");
        }
        assert!(!is_out(json!([{"type": "group", "action": "Web"}]), "198.51.100.1"));
        let by_interface =
            json!([{"type": "in", "action": "ACCEPT", "iface": "vmbr1"}, {"type": "in", "action": "DROP"}]);
        assert!(!is_out(by_interface, "198.51.100.1"), "that may be the way");
    }

    #[test]
    fn blocks_are_read_in_both_families() {
        let block = |text: &str| Block::parse(text).unwrap();
        assert!(block("::/0").covers(&block("2001:db8::1")) && !block("::/0").covers(&block("192.0.2.1")));
        assert!(block("0.0.0.0/0").covers(&block("192.0.2.0/24")));
        assert_eq!(Block::parse("web"), None);
    }
}
