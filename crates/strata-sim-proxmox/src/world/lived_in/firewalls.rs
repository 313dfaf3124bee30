//! Firewalls, as the `.fw` files of the cluster, its nodes and guests have them.

use crate::world::World;
use crate::world::firewall::{Alias, Entry, Firewall, Group, IpSet, Rule};

/// By scope.
const FIREWALLS: &[(&str, &str)] = &[
    ("cluster", include_str!("etc/firewall/cluster.fw")),
    ("node/pve1", include_str!("etc/firewall/pve1.fw")),
    ("guest/103", include_str!("etc/firewall/103.fw")),
    ("guest/113", include_str!("etc/firewall/113.fw")),
    ("guest/120", include_str!("etc/firewall/120.fw")),
    ("guest/201", include_str!("etc/firewall/201.fw")),
    ("guest/212", include_str!("etc/firewall/212.fw")),
];

impl World {
    pub(super) fn furnish_firewalls(&mut self) {
        self.firewall.extend(FIREWALLS.iter().map(|(scope, text)| ((*scope).to_owned(), read(text))));
    }
}

fn read(text: &str) -> Firewall {
    let mut firewall = Firewall::default();
    let mut section = "";
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (said, comment) = match line.split_once(" # ") {
            Some((said, comment)) => (said, Some(comment.to_owned())),
            None => (line, None),
        };
        if let Some(head) = said.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = head;
            open(&mut firewall, head, comment);
        } else {
            put(&mut firewall, section, said, comment);
        }
    }
    firewall
}

/// Sets and groups are there even if they are empty.
fn open(firewall: &mut Firewall, head: &str, comment: Option<String>) {
    match head.split_once(' ') {
        Some(("IPSET", name)) => {
            firewall.ipsets.insert(name.to_owned(), IpSet { comment, entries: Vec::new() });
        }
        Some(("group", name)) => {
            firewall.groups.insert(name.to_owned(), Group { comment, rules: Vec::new() });
        }
        _ => {}
    }
}

fn put(firewall: &mut Firewall, section: &str, said: &str, comment: Option<String>) {
    let (kind, name) = section.split_once(' ').unwrap_or((section, ""));
    match kind {
        "OPTIONS" => {
            if let Some((key, value)) = said.split_once(": ") {
                firewall.options.insert(key.to_owned(), value.to_owned());
            }
        }
        "ALIASES" => {
            if let Some((name, cidr)) = said.split_once(' ') {
                let alias = Alias { name: name.to_owned(), cidr: cidr.to_owned(), comment };
                firewall.aliases.insert(name.to_lowercase(), alias);
            }
        }
        "IPSET" => {
            let nomatch = said.starts_with('!');
            let entry = Entry { cidr: said.trim_start_matches('!').to_owned(), nomatch, comment };
            if let Some(set) = firewall.ipsets.get_mut(name) {
                set.entries.push(entry);
            }
        }
        "RULES" => firewall.rules.push(rule(said, comment)),
        "group" => {
            if let Some(group) = firewall.groups.get_mut(name) {
                group.rules.push(rule(said, comment));
            }
        }
        _ => {}
    }
}

/// `IN SSH(ACCEPT) -source 192.0.2.0/24 -p tcp`; one that begins with `|` is off.
fn rule(said: &str, comment: Option<String>) -> Rule {
    let mut rule = Rule::new();
    let mut set = |key: &str, value: &str| drop(rule.insert(key.to_owned(), value.to_owned()));
    let mut words = said.trim_start_matches('|').split(' ');
    set("type", &words.next().unwrap_or_default().to_lowercase());
    let action = words.next().unwrap_or_default();
    match action.strip_suffix(')').and_then(|rest| rest.split_once('(')) {
        Some((service, action)) => {
            set("action", action);
            set("macro", service);
        }
        None => set("action", action),
    }
    set("enable", if said.starts_with('|') { "0" } else { "1" });
    while let (Some(option), Some(value)) = (words.next(), words.next()) {
        match option {
            "-i" => set("iface", value),
            "-p" => set("proto", value),
            other => set(other.trim_start_matches('-'), value),
        }
    }
    if let Some(comment) = comment {
        set("comment", &comment);
    }
    rule
}
