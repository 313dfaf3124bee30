//! The named formats of the API. Each check gives the complaint that stands after `invalid format - `, with its newline.

use std::net::{Ipv4Addr, Ipv6Addr};

type Checked = Result<(), String>;

fn ensure(ok: bool, complaint: impl FnOnce() -> String) -> Checked {
    if ok { Ok(()) } else { Err(complaint() + "\n") }
}

fn looks_like(ok: bool, what: &str) -> Checked {
    ensure(ok, || format!("value does not look like a valid {what}"))
}

/// Letters, digits and the given extra characters only.
pub fn only(value: &str, extra: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
}

pub fn vmid(value: &str) -> Checked {
    let digits = value.bytes().all(|b| b.is_ascii_digit());
    looks_like(digits && (3..=9).contains(&value.len()) && !value.starts_with('0'), "VM ID")
}

pub fn node(value: &str) -> Checked {
    looks_like(is_label(value), "node name")
}

/// One part of a DNS name.
fn is_label(value: &str) -> bool {
    !value.is_empty() && only(value, "-") && !value.starts_with('-') && !value.ends_with('-')
}

pub fn is_dns_name(value: &str) -> bool {
    !value.is_empty() && value.split('.').all(is_label)
}

pub fn dns_name(value: &str) -> Checked {
    looks_like(is_dns_name(value), "DNS name")
}

pub fn storage_id(value: &str) -> Checked {
    ensure(value.len() >= 2, || format!("storage ID '{value}' cannot be shorter than 2 characters"))?;
    let ok = value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value.ends_with(|c: char| c.is_ascii_alphanumeric())
        && only(value, "-_.");
    ensure(ok, || format!("storage ID '{value}' contains illegal characters"))
}

pub fn bridge_id(value: &str) -> Checked {
    ensure(!value.is_empty() && only(value, "-_."), || format!("invalid bridge ID '{value}'"))
}

pub fn configid(value: &str) -> Checked {
    let ok = value.len() >= 2 && value.starts_with(|c: char| c.is_ascii_alphabetic()) && only(value, "-_");
    ensure(ok, || format!("invalid configuration ID '{value}'"))
}

pub fn urlencoded(value: &str) -> Checked {
    ensure(only(value, "-%_.!~*'()"), || format!("invalid urlencoded string: {value}"))
}

pub fn mac(value: &str) -> Checked {
    let parts: Vec<&str> = value.split(':').collect();
    let hex =
        parts.len() == 6 && parts.iter().all(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()));
    // The lowest bit of the first byte marks a group address.
    let unicast = hex && u8::from_str_radix(parts[0], 16).is_ok_and(|b| b & 1 == 0);
    looks_like(unicast, "unicast MAC address")
}

pub fn is_ipv4(value: &str) -> bool {
    value.parse::<Ipv4Addr>().is_ok()
}

pub fn is_ipv6(value: &str) -> bool {
    value.parse::<Ipv6Addr>().is_ok()
}

pub fn is_ip(value: &str) -> bool {
    is_ipv4(value) || is_ipv6(value)
}

pub fn ipv4(value: &str) -> Checked {
    looks_like(is_ipv4(value), "IPv4 address")
}

pub fn ipv6(value: &str) -> Checked {
    looks_like(is_ipv6(value), "IPv6 address")
}

pub fn ip(value: &str) -> Checked {
    looks_like(is_ip(value), "IP address")
}

fn cidr_with(value: &str, address: fn(&str) -> bool, most: u8) -> bool {
    value.split_once('/').is_some_and(|(ip, bits)| {
        let digits = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
        address(ip) && digits && bits.parse::<u8>().is_ok_and(|n| n > 7 && n <= most)
    })
}

pub fn is_cidr4(value: &str) -> bool {
    cidr_with(value, is_ipv4, 32)
}

pub fn is_cidr6(value: &str) -> bool {
    cidr_with(value, is_ipv6, 128)
}

pub fn cidr4(value: &str) -> Checked {
    looks_like(is_cidr4(value), "IPv4 CIDR network")
}

pub fn cidr6(value: &str) -> Checked {
    looks_like(is_cidr6(value), "IPv6 CIDR network")
}

pub fn cidr(value: &str) -> Checked {
    looks_like(is_cidr4(value) || is_cidr6(value), "CIDR network")
}

/// The prefix length of a dotted netmask.
pub fn netmask_bits(value: &str) -> Option<u32> {
    let mask = u32::from(value.parse::<Ipv4Addr>().ok()?);
    (mask.leading_ones() + mask.trailing_zeros() == 32 || mask == 0 || mask == u32::MAX)
        .then_some(mask.leading_ones())
}

pub fn netmask4(value: &str) -> Checked {
    looks_like(netmask_bits(value).is_some(), "IP netmask")
}

pub fn ipv4_config(value: &str) -> Checked {
    looks_like(matches!(value, "dhcp" | "manual") || is_cidr4(value), "ipv4 network configuration")
}

pub fn ipv6_config(value: &str) -> Checked {
    looks_like(matches!(value, "auto" | "dhcp" | "manual") || is_cidr6(value), "ipv6 network configuration")
}

pub fn address(value: &str) -> Checked {
    ensure(is_ip(value) || is_dns_name(value), || {
        format!("value does not look like a valid address: {value}")
    })
}

pub fn email(value: &str) -> Checked {
    let ok = value.split_once('@').is_some_and(|(user, host)| {
        !user.is_empty() && user.len() <= 64 && only(user, "_.+-&'!#$%*/=?^`{|}~") && is_dns_name(host)
    });
    looks_like(ok, "email address")
}

pub fn iface(value: &str) -> Checked {
    let (name, suffix) = match value.find([':', '.']) {
        Some(at) => (&value[..at], Some(&value[at + 1..])),
        None => (value, None),
    };
    let ok = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && (2..=21).contains(&name.len())
        && only(name, "_")
        && suffix.is_none_or(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()));
    ensure(ok, || format!("invalid network interface name '{value}'"))
}

pub fn disk_size(value: &str) -> Checked {
    ensure(parse_size(value).is_some(), || format!("value does not look like a valid disk size: {value}"))
}

pub fn startup_order(value: &str) -> Checked {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let ok = !value.is_empty()
        && value != "0"
        && value.split(',').filter(|p| !p.trim().is_empty()).all(|p| match p.split_once('=') {
            None => digits(p),
            Some(("order" | "up" | "down", n)) => digits(n),
            Some(_) => false,
        });
    // "0" alone is false in the original's eyes, and so refused.
    ensure(ok, || "unable to parse startup options".to_owned())
}

pub fn tag(value: &str) -> Checked {
    let ok = value.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && only(value, "_-+.");
    ensure(ok, || "invalid characters in tag".to_owned())
}

pub fn pool_id(value: &str) -> Checked {
    let parts: Vec<&str> = value.split('/').collect();
    ensure(parts.len() <= 3, || format!("pool name '{value}' nested too deeply (max levels = 3)"))?;
    let ok = parts.iter().all(|p| !p.is_empty() && only(p, ".-_"));
    ensure(ok, || format!("pool name '{value}' contains invalid characters"))
}

pub fn user_id(value: &str) -> Checked {
    ensure(value.len() >= 3, || format!("user name '{value}' is too short"))?;
    ensure(value.len() <= 64, || format!("user name '{value}' is too long ({} > 64)", value.len()))?;
    // Slashes, colons and white space never; a realm always.
    let ok = value.rsplit_once('@').is_some_and(|(name, realm)| {
        !name.is_empty() && !name.contains([':', '/', ' ', '\t', '\n']) && is_realm(realm)
    });
    ensure(ok, || format!("value '{value}' does not look like a valid user name"))
}

pub fn is_realm(value: &str) -> bool {
    value.starts_with(|c: char| c.is_ascii_alphabetic()) && value.len() >= 2 && only(value, ".-_")
}

pub fn realm(value: &str) -> Checked {
    looks_like(is_realm(value), "realm")
}

pub fn group_id(value: &str) -> Checked {
    ensure(!value.is_empty() && only(value, ".-_"), || {
        format!("group name '{value}' contains invalid characters")
    })
}

pub fn role_id(value: &str) -> Checked {
    ensure(!value.is_empty() && only(value, ".-_"), || {
        format!("role name '{value}' contains invalid characters")
    })
}

pub fn token_id(value: &str) -> Checked {
    let ok = value.split_once('!').is_some_and(|(user, token)| {
        user_id(user).is_ok() && token.starts_with(|c: char| c.is_ascii_alphabetic()) && only(token, ".-_")
    });
    ensure(ok, || format!("value '{value}' does not look like a valid token ID"))
}

/// `storage:volume` taken apart, or the API's complaint.
pub fn parse_volume_id(value: &str) -> Option<(&str, &str)> {
    let (storage, volume) = value.split_once(':')?;
    (storage_id(storage).is_ok() && !volume.is_empty()).then_some((storage, volume))
}

pub fn volume_id(value: &str) -> Checked {
    ensure(parse_volume_id(value).is_some(), || format!("unable to parse volume ID '{value}'"))
}

/// A size with a unit, in bytes.
pub fn parse_size(value: &str) -> Option<u64> {
    let value = value.strip_suffix("iB").filter(|v| v.ends_with(['K', 'M', 'G', 'T'])).unwrap_or(value);
    let (digits, shift) = match value.as_bytes().last()? {
        b'K' => (&value[..value.len() - 1], 10),
        b'M' => (&value[..value.len() - 1], 20),
        b'G' => (&value[..value.len() - 1], 30),
        b'T' => (&value[..value.len() - 1], 40),
        _ => (value, 0),
    };
    let decimal = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let valid = match digits.split_once('.') {
        None => decimal(digits),
        Some((a, b)) => decimal(a) && decimal(b),
    };
    if !valid {
        return None;
    }
    if let Ok(whole) = digits.parse::<u64>() {
        return whole.checked_mul(1 << shift);
    }
    let bytes = digits.parse::<f64>().ok()? * (1_u64 << shift) as f64;
    (bytes < 1e18).then_some(bytes as u64)
}

/// A size as the API prints it: the largest unit that divides it.
pub fn print_size(bytes: u64) -> String {
    let mut value = bytes;
    let mut unit = "";
    for next in ["K", "M", "G", "T"] {
        if value == 0 || !value.is_multiple_of(1024) {
            break;
        }
        value /= 1024;
        unit = next;
    }
    format!("{value}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_go_both_ways() {
        assert_eq!(parse_size("1G"), Some(1 << 30));
        assert_eq!(parse_size("1.5K"), Some(1536));
        assert_eq!(parse_size("528KiB"), Some(540_672));
        assert_eq!(parse_size("4X"), None);
        assert_eq!(parse_size("99999999999999999999T"), None);
        assert_eq!(print_size(540_672), "528K");
        assert_eq!(print_size(3_000_320), "2930K");
        assert_eq!(print_size(3_000_000), "3000000");
        assert_eq!(print_size(0), "0");
    }

    #[test]
    fn names_and_addresses() {
        assert!(dns_name("a.b-c").is_ok() && dns_name("under_score").is_err() && dns_name("a..b").is_err());
        assert!(mac("bc:24:11:00:00:0f").is_ok() && mac("01:00:5e:00:00:01").is_err());
        assert!(ipv4_config("192.0.2.50/24").is_ok() && ipv4_config("999.1.1.1/24").is_err());
        assert!(user_id("bob@pve").is_ok() && user_id("bob").is_err());
        assert!(storage_id("local-lvm").is_ok() && storage_id("1bad").is_err());
        assert_eq!(netmask_bits("255.255.255.0"), Some(24));
        assert_eq!(netmask_bits("255.0.255.0"), None);
    }
}
