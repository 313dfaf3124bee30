//! What must be true of all fabrics together.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::{is_node, nodes, section_file::File};
use crate::endpoints::sdn::subnets::is_inside;
use crate::world::cluster::Section;

/// An OSPF area, which is written as a number or as an address.
pub fn area(text: &str) -> Option<Ipv4Addr> {
    text.parse().ok().or_else(|| text.parse::<u32>().ok().map(Ipv4Addr::from))
}

fn overlap(one: &str, other: &str) -> bool {
    let address = |cidr: &str| cidr.split('/').next().unwrap_or_default().to_owned();
    is_inside(&address(one), other) || is_inside(&address(other), one)
}

pub fn check(sections: &File) -> Result<(), String> {
    let fabrics: Vec<(&String, &Section)> = sections.iter().filter(|(id, _)| !is_node(id)).collect();
    for (at, (id, fabric)) in fabrics.iter().enumerate() {
        for (other_id, other) in &fabrics[at + 1..] {
            for (key, first, second) in [("ip_prefix", "IP", "IPv4"), ("ip6_prefix", "IPv6", "IPv6")] {
                if let (Some(one), Some(two)) = (fabric.props.get(key), other.props.get(key))
                    && overlap(one, two)
                {
                    return Err(format!(
                        "{first} prefix {two} in fabric '{other_id}' overlaps with {second} prefix {one} in fabric '{id}'"
                    ));
                }
            }
        }
    }
    let (mut areas, mut interfaces) = (BTreeSet::new(), BTreeSet::new());
    for (id, fabric) in fabrics {
        let area = fabric.props.get("area").and_then(|text| area(text));
        if area.is_some_and(|area| !areas.insert(area)) {
            return Err("duplicate OSPF area".to_owned());
        }
        let prefix = format!("{id}_");
        let own: Vec<(&str, &Section)> =
            sections.iter().filter_map(|(id, s)| Some((id.strip_prefix(&prefix)?, s))).collect();
        for (node, section) in &own {
            if !nodes::interfaces(section).all(|name| interfaces.insert(((*node).to_owned(), name))) {
                return Err("interface is already in use by another fabric".to_owned());
            }
        }
        check_nodes(id, fabric, &own)?;
        check_fabric(id, fabric)?;
    }
    Ok(())
}

fn check_nodes(id: &str, fabric: &Section, own: &[(&str, &Section)]) -> Result<(), String> {
    let mut taken = BTreeSet::new();
    for (node, section) in own {
        let (ip, ip6) = (section.props.get("ip"), section.props.get("ip6"));
        let ospf = section.kind == "ospf";
        if ip.is_none() && (ospf || ip6.is_none()) {
            return Err(format!("node '{id}_{node}' does not have an IP configured"));
        }
        if ospf && ip6.is_some() {
            return Err("IPv6 is currently not supported for protocol ospf".to_owned());
        }
        if [ip, ip6].into_iter().flatten().any(|ip| !taken.insert(ip)) {
            return Err(format!("fabric {id} contains nodes with duplicated IPs"));
        }
        for (ip, key) in [(ip, "ip_prefix"), (ip6, "ip6_prefix")] {
            match (fabric.props.get(key), ip) {
                (None, Some(ip)) => {
                    return Err(format!(
                        "fabric '{id}' does not have an IP prefix configured for the node IP {ip}"
                    ));
                }
                (Some(prefix), None) => {
                    return Err(format!(
                        "node '{id}_{node}' does not have an IP configured for this fabric prefix {prefix}"
                    ));
                }
                (Some(prefix), Some(ip)) if !is_inside(ip, prefix) => {
                    return Err(format!("node IP {ip} is outside the IP prefix {prefix} of the fabric"));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn check_fabric(id: &str, fabric: &Section) -> Result<(), String> {
    let (four, six) = (fabric.props.contains_key("ip_prefix"), fabric.props.contains_key("ip6_prefix"));
    let ospf = fabric.kind == "ospf";
    if !four && (ospf || !six) {
        return Err(format!("fabric '{id}' does not have an IP prefix configured"));
    }
    if ospf && six {
        return Err("IPv6 is currently not supported for protocol ospf".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(kind: &str, props: &[(&str, &str)]) -> Section {
        let props = props.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Section { kind: kind.to_owned(), props }
    }

    #[test]
    fn fabrics_do_not_overlap_and_nodes_are_inside() {
        let mut all = File::new();
        all.insert("one".into(), section("openfabric", &[("ip_prefix", "10.0.0.0/24")]));
        let node = |ip| section("openfabric", &[("ip", ip), ("interfaces", "name=eth0")]);
        all.insert("one_pve".into(), node("10.0.0.1"));
        assert_eq!(check(&all), Ok(()));
        all.insert("one_two".into(), node("10.0.1.1"));
        let told = "node IP 10.0.1.1 is outside the IP prefix 10.0.0.0/24 of the fabric";
        assert_eq!(check(&all), Err(told.to_owned()));
        all.shift_remove("one_two");
        all.insert("two".into(), section("ospf", &[("ip_prefix", "10.0.0.128/25"), ("area", "0")]));
        let told =
            "IP prefix 10.0.0.128/25 in fabric 'two' overlaps with IPv4 prefix 10.0.0.0/24 in fabric 'one'";
        assert_eq!(check(&all), Err(told.to_owned()));
        all.insert("two".into(), section("ospf", &[("ip_prefix", "10.1.0.0/24"), ("area", "0")]));
        all.insert("three".into(), section("ospf", &[("ip_prefix", "10.2.0.0/24"), ("area", "0.0.0.0")]));
        assert_eq!(check(&all), Err("duplicate OSPF area".to_owned()));
    }
}
