//! How addresses, ports and protocols are written in rules.

use std::net::IpAddr;

use crate::api::format::{is_ipv4, is_ipv6, only};

type Checked = Result<(), String>;

/// Names of aliases, IP sets and security groups.
pub const NAME: &str = r"[A-Za-z][A-Za-z0-9\-_]+";

pub fn is_name(text: &str) -> bool {
    text.len() >= 2 && text.starts_with(|c: char| c.is_ascii_alphabetic()) && only(text, "-_")
}

/// A name without the `dc/` or `guest/` before it.
pub fn unscoped(text: &str) -> (&str, &str) {
    for scope in ["dc/", "guest/"] {
        if let Some(rest) = text.strip_prefix(scope) {
            return (scope, rest);
        }
    }
    ("", text)
}

/// 4 or 6.
pub fn ip_version(address: &str) -> Option<u8> {
    let ip = address.split('/').next().unwrap_or(address);
    if is_ipv4(ip) {
        Some(4)
    } else if is_ipv6(ip) {
        Some(6)
    } else {
        None
    }
}

/// Addresses may lack their last parts.
fn is_short(value: &str) -> bool {
    let parts: Vec<&str> = value.split('.').collect();
    (1..4).contains(&parts.len()) && parts.iter().all(|part| part.parse::<u8>().is_ok())
}

fn is_network(value: &str) -> bool {
    let Some(version) = ip_version(value) else { return false };
    let most = if version == 4 { 32 } else { 128 };
    match value.split_once('/') {
        None => true,
        Some((_, bits)) => bits.parse::<u8>().is_ok_and(|n| n <= most),
    }
}

pub fn network(value: &str) -> Checked {
    if is_network(value) {
        return Ok(());
    }
    Err("value does not look like a valid IP address or CIDR network\n".to_owned())
}

pub fn network_or_alias(value: &str) -> Checked {
    if is_name(unscoped(value).1) { Ok(()) } else { network(value) }
}

/// A network with the bits of the host cleared, and without a prefix that says nothing.
pub fn clean(value: &str) -> String {
    let Some((ip, bits)) = value.split_once('/') else { return value.to_owned() };
    let Ok(bits) = bits.parse::<u32>() else { return value.to_owned() };
    if let Ok(v4) = ip.parse::<std::net::Ipv4Addr>() {
        let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
        let network = std::net::Ipv4Addr::from(u32::from(v4) & mask);
        return if bits == 32 { network.to_string() } else { format!("{network}/{bits}") };
    }
    if let Ok(v6) = ip.parse::<std::net::Ipv6Addr>() {
        let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
        let network = std::net::Ipv6Addr::from(u128::from(v6) & mask);
        return if bits == 128 { network.to_string() } else { format!("{network}/{bits}") };
    }
    value.to_owned()
}

/// The version of the addresses in a list; none for references to sets and aliases.
pub fn parse_addresses(value: &str) -> Result<Option<u8>, String> {
    if value.starts_with('+') && !value.contains(char::is_whitespace) {
        return if value.len() > 65 { Err("ipset name too long\n".to_owned()) } else { Ok(None) };
    }
    if is_name(unscoped(value).1) {
        return if value.len() > 64 { Err("alias name too long\n".to_owned()) } else { Ok(None) };
    }
    if value.is_empty() {
        return Ok(None);
    }
    if value.ends_with(',') {
        return Err("extraneous commas in list\n".to_owned());
    }
    let parts: Vec<&str> = value.split(',').collect();
    let mut version = None;
    for part in &parts {
        let (from, to) = part.split_once('-').map_or((*part, None), |(a, b)| (a, Some(b)));
        let bad = || format!("invalid IP address: Cannot determine IP version for {part}\n");
        let own = ip_version(from).or_else(|| is_short(from).then_some(4));
        if !is_network(from) && !is_short(from) || to.is_some_and(|to| ip_version(to) != own) {
            return Err(bad());
        }
        if let Some((Ok(first), Ok(last))) = to.map(|to| (from.parse::<IpAddr>(), to.parse::<IpAddr>()))
            && first > last
        {
            let text = format!("Begin address is greater than End address {first} - {last}");
            return Err(format!("invalid IP address: {text}\n"));
        }
        if version.is_some() && version != own {
            return Err(format!("detected mixed ipv4/ipv6 addresses in address list '{value}'\n"));
        }
        version = own;
        if to.is_some() && parts.len() > 1 {
            return Err("you can't use a range in a list\n".to_owned());
        }
    }
    Ok(version)
}

pub fn addresses(value: &str) -> Checked {
    parse_addresses(value).map(|_| ())
}

/// Services that can be named instead of a number.
const SERVICES: &[&str] = &[
    "bgp",
    "bootpc",
    "bootps",
    "domain",
    "echo",
    "ftp",
    "ftp-data",
    "git",
    "http",
    "http-alt",
    "https",
    "imap2",
    "imap",
    "imaps",
    "ipp",
    "ircd",
    "iscsi-target",
    "kerberos",
    "ldap",
    "ldaps",
    "microsoft-ds",
    "mysql",
    "nfs",
    "netbios-ns",
    "netbios-ssn",
    "nntp",
    "ntp",
    "openvpn",
    "pop3",
    "pop3s",
    "postgresql",
    "radius",
    "redis",
    "rsync",
    "sip",
    "smtp",
    "snmp",
    "snmp-trap",
    "ssh",
    "submission",
    "submissions",
    "sunrpc",
    "syslog",
    "telnet",
    "tftp",
    "whois",
    "xmpp-client",
];

/// Ports, ranges and service names; for ICMP also its types, which used to be written here.
pub fn parse_ports(value: &str, icmp: bool) -> Checked {
    if value.is_empty() {
        return Ok(());
    }
    if value.ends_with(',') {
        return Err("extraneous commas in list\n".to_owned());
    }
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let number = |s: &str| {
        let n = s.parse::<u64>().unwrap_or(u64::MAX);
        if n > 65_535 { Err(format!("invalid port '{s}'\n")) } else { Ok(n) }
    };
    let (mut count, mut typed) = (0, false);
    for item in value.split(',') {
        match item.split_once(':') {
            Some((from, to)) if digits(from) && digits(to) => {
                count += 2;
                if number(from)? > number(to)? {
                    return Err(format!(
                        "backwards range '{from}:{to}' not allowed, did you mean '{to}:{from}'?\n"
                    ));
                }
            }
            None if digits(item) => {
                count += 1;
                number(item)?;
            }
            _ if icmp && (ICMP.contains(&item) || ICMP6.contains(&item)) => typed = true,
            _ if SERVICES.contains(&item) => {}
            _ => return Err(format!("invalid port '{item}'\n")),
        }
    }
    if typed && count > 0 {
        return Err("ICMP ports not allowed in port range\n".to_owned());
    }
    if count > 15 {
        return Err("too many entries in port list (> 15 numbers)\n".to_owned());
    }
    Ok(())
}

pub fn source_ports(value: &str) -> Checked {
    parse_ports(value, false)
}

pub fn dest_ports(value: &str) -> Checked {
    parse_ports(value, true)
}

/// Protocols with their numbers.
const PROTOCOLS: &[(&str, u8)] = &[
    ("ip", 0),
    ("icmp", 1),
    ("igmp", 2),
    ("ggp", 3),
    ("ipencap", 4),
    ("st", 5),
    ("tcp", 6),
    ("egp", 8),
    ("igp", 9),
    ("pup", 12),
    ("udp", 17),
    ("hmp", 20),
    ("xns-idp", 22),
    ("rdp", 27),
    ("iso-tp4", 29),
    ("dccp", 33),
    ("xtp", 36),
    ("ddp", 37),
    ("idpr-cmtp", 38),
    ("ipv6", 41),
    ("ipv6-route", 43),
    ("ipv6-frag", 44),
    ("idrp", 45),
    ("rsvp", 46),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("skip", 57),
    ("ipv6-icmp", 58),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("rspf", 73),
    ("vmtp", 81),
    ("eigrp", 88),
    ("ospf", 89),
    ("ax.25", 93),
    ("ipip", 94),
    ("etherip", 97),
    ("encap", 98),
    ("pim", 103),
    ("ipcomp", 108),
    ("vrrp", 112),
    ("l2tp", 115),
    ("isis", 124),
    ("sctp", 132),
    ("fc", 133),
    ("mobility-header", 135),
    ("udplite", 136),
    ("mpls-in-ip", 137),
    ("manet", 138),
    ("hip", 139),
    ("shim6", 140),
    ("wesp", 141),
    ("rohc", 142),
    ("icmpv6", 58),
];

pub fn protocol(value: &str) -> Checked {
    let known = PROTOCOLS.iter().any(|(name, number)| *name == value || number.to_string() == value);
    if known || value.is_empty() { Ok(()) } else { Err(format!("unknown protocol '{value}'\n")) }
}

pub fn has_ports(protocol: &str) -> bool {
    ["udp", "17", "udplite", "136", "tcp", "6", "dccp", "33", "sctp", "132"].contains(&protocol)
}

pub fn is_icmp(protocol: &str) -> bool {
    ["icmp", "icmpv6", "ipv6-icmp"].contains(&protocol)
}

pub const ICMP: &[&str] = &[
    "any",
    "echo-reply",
    "destination-unreachable",
    "network-unreachable",
    "host-unreachable",
    "protocol-unreachable",
    "port-unreachable",
    "fragmentation-needed",
    "source-route-failed",
    "network-unknown",
    "host-unknown",
    "network-prohibited",
    "host-prohibited",
    "TOS-network-unreachable",
    "TOS-host-unreachable",
    "communication-prohibited",
    "host-precedence-violation",
    "precedence-cutoff",
    "source-quench",
    "redirect",
    "network-redirect",
    "host-redirect",
    "TOS-network-redirect",
    "TOS-host-redirect",
    "echo-request",
    "router-advertisement",
    "router-solicitation",
    "time-exceeded",
    "ttl-zero-during-transit",
    "ttl-zero-during-reassembly",
    "parameter-problem",
    "ip-header-bad",
    "required-option-missing",
    "timestamp-request",
    "timestamp-reply",
    "address-mask-request",
    "address-mask-reply",
];

pub const ICMP6: &[&str] = &[
    "destination-unreachable",
    "no-route",
    "communication-prohibited",
    "beyond-scope",
    "address-unreachable",
    "port-unreachable",
    "failed-policy",
    "reject-route",
    "packet-too-big",
    "time-exceeded",
    "ttl-zero-during-transit",
    "ttl-zero-during-reassembly",
    "parameter-problem",
    "bad-header",
    "unknown-header-type",
    "unknown-option",
    "echo-request",
    "echo-reply",
    "router-solicitation",
    "router-advertisement",
    "neighbor-solicitation",
    "neighbour-solicitation",
    "neighbor-advertisement",
    "neighbour-advertisement",
    "redirect",
];

pub fn icmp_type(value: &str) -> Checked {
    if value.is_empty() || ICMP.contains(&value) || ICMP6.contains(&value) {
        return Ok(());
    }
    Err(format!("invalid icmp-type value '{value}'\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_cleaned() {
        assert_eq!(clean("10.1.2.3/16"), "10.1.0.0/16");
        assert_eq!(clean("10.1.2.3/32"), "10.1.2.3");
        assert_eq!(clean("2001:db8::1/64"), "2001:db8::/64");
        assert_eq!(clean("0.0.0.0/0"), "0.0.0.0/0");
    }

    #[test]
    fn ports_have_limits() {
        assert!(source_ports("53,1000:2000,ssh").is_ok());
        assert_eq!(source_ports("99999").unwrap_err(), "invalid port '99999'\n");
        assert!(source_ports("2000:1000").unwrap_err().starts_with("backwards range"));
        assert!(dest_ports("echo-request").is_ok() && source_ports("echo-request").is_err());
    }

    /// An empty value takes the property away, so it has to pass.
    #[test]
    fn nothing_is_well_written() {
        assert!(addresses("").is_ok() && source_ports("").is_ok() && dest_ports("").is_ok());
        assert!(protocol("").is_ok() && icmp_type("").is_ok());
    }

    #[test]
    fn lists_are_of_one_version() {
        assert_eq!(parse_addresses("10.0.0.0/8,192.168.0.0/16"), Ok(Some(4)));
        assert_eq!(parse_addresses("+dc/none"), Ok(None));
        assert!(parse_addresses("10.0.0.1,fd00::1").is_err());
    }
}
