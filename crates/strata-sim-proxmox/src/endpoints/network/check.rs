//! What is checked before a change is staged.

use std::net::Ipv6Addr;

use indexmap::IndexMap;

use super::view::vlan;
use crate::api::args::split_list;
use crate::api::format::netmask_bits;
use crate::api::{Call, Refusal, no, wrong};
use crate::world::node::Iface;

type Ifaces = IndexMap<String, Iface>;

/// `7` or `2-4094`.
pub fn vlan_range(value: &str) -> Result<(), String> {
    let number = |s: &str| s.parse::<u16>().ok().filter(|n| (2..=4094).contains(n));
    let ok = match value.split_once('-') {
        None => number(value).is_some(),
        Some((from, to)) => number(from).zip(number(to)).is_some_and(|(a, b)| a < b),
    };
    if ok { Ok(()) } else { Err(format!("invalid VLAN configuration '{value}'\n")) }
}

const PORTS: &[&str] = &["bridge_ports", "ovs_ports", "slaves", "ovs_bonds"];

/// One default gateway for each family, and every port in one place only.
pub fn check_duplicates(call: &Call<'_>, ifaces: &Ifaces, name: &str) -> Result<(), Refusal> {
    let others = || ifaces.iter().filter(|(other, _)| *other != name);
    for (key, word) in [("gateway", "Default gateway"), ("gateway6", "Default ipv6 gateway")] {
        if call.args.filled(key).is_some()
            && let Some((other, _)) = others().find(|(_, iface)| iface.props.contains_key(key))
        {
            return Err(wrong(key, format!("{word} already exists on interface '{other}'.")));
        }
    }
    let given = || PORTS.iter().filter_map(|key| call.args.filled(key).map(|ports| (*key, ports)));
    let Some((first, _)) = given().next() else { return Ok(()) };
    for (other, iface) in others() {
        let used = PORTS.iter().filter_map(|key| iface.props.get(*key)).flat_map(|ports| split_list(ports));
        for port in used {
            if given().any(|(_, ports)| split_list(ports).any(|p| p == port)) {
                return Err(wrong(first, format!("{port} is already used on interface '{other}'.")));
            }
        }
    }
    Ok(())
}

/// The addresses of a request with their prefixes.
pub fn addresses(call: &Call<'_>) -> Result<(Option<String>, Option<String>), Refusal> {
    for (cidr, parts) in [("cidr", ["address", "netmask"]), ("cidr6", ["address6", "netmask6"])] {
        let conflict = parts.iter().find(|part| call.args.has(cidr) && call.args.has(part));
        if let Some(part) = conflict {
            return Err(wrong(*part, format!("{part} conflicts with {cidr}")));
        }
    }
    let bits = |mask: &str| netmask_bits(mask).map_or_else(|| mask.to_owned(), |bits| bits.to_string());
    let joined = |address: &str, mask: &str| {
        let (address, mask) = (call.args.filled(address)?, call.args.filled(mask)?);
        Some(format!("{address}/{}", bits(mask)))
    };
    let given = |cidr: &str| call.args.filled(cidr).map(str::to_owned);
    let address = given("cidr").or_else(|| joined("address", "netmask"));
    let address6 = given("cidr6").or_else(|| joined("address6", "netmask6"));
    if let Some((ip, _)) = address6.as_deref().and_then(|cidr| cidr.split_once('/')) {
        check_host6(ip)?;
    }
    Ok((address, address6))
}

/// Not every IPv6 address can be a host's.
fn check_host6(text: &str) -> Result<(), Refusal> {
    let Ok(ip) = text.parse::<Ipv6Addr>() else {
        return Err(wrong("address", format!("{text} is not a valid host IPv6 address.")));
    };
    let head = ip.segments();
    let kind = if ip.is_unspecified() {
        "UNSPECIFIED"
    } else if ip.is_loopback() {
        "LOOPBACK"
    } else if ip.is_multicast() {
        "MULTICAST"
    } else if head[0] == 0x2001 && head[1] == 0x0db8 {
        "DOCUMENTATION"
    } else if head[0] & 0xffc0 == 0xfec0 {
        "SITE-LOCAL"
    } else {
        return Ok(());
    };
    Err(wrong("address", format!("{text} with type '{kind}', cannot be used as host IPv6 address.")))
}

/// What the original finds out when it writes the file.
pub fn check_file(ifaces: &Ifaces) -> Result<(), Refusal> {
    for (name, iface) in ifaces {
        match iface.kind.as_str() {
            "vlan" => check_vlan(ifaces, name, iface)?,
            "bond" => check_bond(ifaces, name, iface)?,
            "bridge" => check_bridge(ifaces, name, iface)?,
            kind if kind.starts_with("OVS") => {
                return Err(no("Open VSwitch is not installed (need package 'openvswitch-switch')"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where the original's messages say they come from.
fn at(text: &str) -> Refusal {
    no(format!("{text} at /usr/share/perl5/PVE/INotify.pm line 1693."))
}

fn check_vlan(ifaces: &Ifaces, name: &str, iface: &Iface) -> Result<(), Refusal> {
    let Some((device, id)) = vlan(name, iface) else { return Err(at("missing vlan-raw-device option")) };
    let Some(id) = id else { return Err(at("missing vlan-id option")) };
    if id.parse::<u32>().is_ok_and(|n| n > 4094) {
        return Err(no(format!("vlan '{name}' - vlan-id {id} should be <= 4094")));
    }
    let Some(raw) = ifaces.get(device) else {
        return Err(no(format!("vlan '{name}' - unable to find parent '{device}'")));
    };
    if !matches!(raw.kind.as_str(), "eth" | "bridge" | "bond" | "vlan") {
        return Err(no(format!(
            "vlan '{name}' - wrong interface type on parent '{device}' ('{}' != 'eth|bond|bridge|vlan' )",
            raw.kind
        )));
    }
    check_mtu(ifaces, device, name)
}

fn check_bond(ifaces: &Ifaces, name: &str, iface: &Iface) -> Result<(), Refusal> {
    let slaves = iface.props.get("slaves").map_or("", String::as_str);
    for slave in split_list(slaves) {
        let Some(found) = ifaces.get(slave) else {
            return Err(no(format!("bond '{name}' - unable to find slave '{slave}'")));
        };
        if !matches!(found.kind.as_str(), "eth" | "bond") {
            return Err(no(format!(
                "bond '{name}' - wrong interface type on slave '{slave}' ('{}' != 'eth or bond')",
                found.kind
            )));
        }
        check_mtu(ifaces, name, slave)?;
    }
    match iface.props.get("bond-primary") {
        Some(primary) if !split_list(slaves).any(|slave| slave == primary) => {
            Err(at(&format!("bond '{name}' - bond-primary interface is not a slave")))
        }
        _ => Ok(()),
    }
}

fn check_bridge(ifaces: &Ifaces, name: &str, iface: &Iface) -> Result<(), Refusal> {
    let ports = iface.props.get("bridge_ports").map_or("", String::as_str);
    for port in split_list(ports) {
        let Some(found) = ifaces.get(port) else {
            // A VLAN of an interface comes into being by being a port.
            if port.rsplit_once('.').is_some_and(|(_, id)| id.parse::<u16>().is_ok()) {
                continue;
            }
            return Err(no(format!("bridge '{name}' - unable to find bridge port '{port}'")));
        };
        if found.props.contains_key("cidr") || found.props.contains_key("cidr6") {
            return Err(no(format!(
                "iface {port} - ip address can't be set on interface if bridged in {name}"
            )));
        }
        check_mtu(ifaces, port, name)?;
    }
    Ok(())
}

fn check_mtu(ifaces: &Ifaces, parent: &str, child: &str) -> Result<(), Refusal> {
    let mtu = |name: &str| ifaces.get(name).and_then(|i| i.props.get("mtu")?.parse::<u32>().ok());
    let Some(below) = mtu(child) else { return Ok(()) };
    let is_bond = ifaces.get(parent).is_some_and(|i| i.kind == "bond");
    let above = mtu(parent).unwrap_or(if is_bond { below } else { 1500 });
    if above < below {
        return Err(no(format!("interface '{parent}' - mtu {above} is lower than '{child}' - mtu {below}")));
    }
    Ok(())
}
