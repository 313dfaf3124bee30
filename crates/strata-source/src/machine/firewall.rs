//! The firewall of one guest.

use strata_yaml::{Spanned, TextRule, TextShape, choice, record};

use crate::value::place::ADDRESS;
use crate::value::port::Ports;

choice! {
    /// What happens to a packet that no rule matches.
    pub enum Policy { Accept = "ACCEPT", Drop = "DROP", Reject = "REJECT" }
}

choice! {
    /// How much is logged.
    pub enum LogLevel {
        Nolog = "nolog",
        Emerg = "emerg",
        Alert = "alert",
        Crit = "crit",
        Err = "err",
        Warning = "warning",
        Notice = "notice",
        Info = "info",
        Debug = "debug",
    }
}

choice! {
    /// The way of the packets, or a security group.
    pub enum Direction { In = "in", Out = "out", Group = "group" }
}

const ACTION: TextRule = TextRule {
    shape: TextShape {
        what: "`ACCEPT`, `DROP`, `REJECT`, or the name of a security group",
        pattern: Some("^[A-Za-z][A-Za-z0-9_-]+$"),
    },
    accepts: |text| {
        let mut bytes = text.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
            && text.len() > 1
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    },
};

record! {
    /// A firewall rule.
    pub struct FirewallRule {
        /// the way of the packets, or `group`
        "direction" direction: Direction [aliases(&["type"])];
        /// what happens to them, or the security group
        "action" action: Spanned<String> [text(ACTION)];
        /// a note, for people
        "comment" comment: Option<String> [env()];
        /// where they come from: an address, network, range, alias, or `+set`
        "source" source: Option<String> [label(ADDRESS)];
        /// where they go to
        "destination" destination: Option<String> [aliases(&["dest"]), label(ADDRESS)];
        /// `tcp`, `udp`, `icmp`, …
        "protocol" protocol: Option<String> [aliases(&["proto"])];
        /// ports they go to
        "destinationPort" destination_port: Option<Ports> [aliases(&["dport"])];
        /// ports they come from
        "sourcePort" source_port: Option<Ports> [aliases(&["sport"])];
        /// the network device
        "interface" interface: Option<String> [aliases(&["iface"])];
        /// how much is logged
        "log" log: Option<LogLevel>;
        /// a set of rules that Proxmox knows, such as `SSH`
        "macro" macro_: Option<String>;
        /// the kind of ICMP packet
        "icmpType" icmp_type: Option<String>;
        /// whether it applies
        "enabled" enabled: bool = true;
    }
}

record! {
    /// The firewall of a guest: options and rules, in order.
    pub struct Firewall [shorthand("enabled")] {
        /// whether it applies
        "enabled" enabled: bool = true;
        /// for packets to the guest
        "policyIn" policy_in: Option<Policy>;
        /// for packets from the guest
        "policyOut" policy_out: Option<Policy>;
        /// how much of them is logged
        "logLevelIn" log_level_in: Option<LogLevel>;
        /// how much of them is logged
        "logLevelOut" log_level_out: Option<LogLevel>;
        /// the guest may use DHCP
        "dhcp" dhcp: Option<bool>;
        /// only the guest's own hardware address may send
        "macFilter" mac_filter: Option<bool>;
        /// only the guest's own IP addresses may send
        "ipFilter" ip_filter: Option<bool>;
        /// neighbour discovery
        "ndp" ndp: Option<bool>;
        /// the guest may announce itself as a router
        "radv" radv: Option<bool>;
        /// the first that matches decides
        "rules" rules: Vec<FirewallRule>;
    }
}
