//! Software-defined networks: one resource, as they come into effect together.

use strata_resource::{Address, Spec, Value};
use strata_source::hypervisor::Hypervisor;
use strata_source::hypervisor::sdn::{IpamType, Sdn, SdnController, SdnSubnet, SdnVnet, SdnZone, ZoneType};
use strata_source::value::address::Ip;
use strata_yaml::{Map, Spanned};

use super::Part;
use crate::fields::{Fields, int, list};
use crate::kinds;
use crate::site::Draft;

impl Draft<'_> {
    pub(super) fn sdn(&mut self, hypervisor: &Hypervisor) {
        let Some(sdn) = &hypervisor.sdn else { return };
        self.check_zones(sdn);
        let servers = self.servers(sdn);
        if sdn.controllers.is_empty() && sdn.zones.is_empty() && sdn.vnets.is_empty() && !servers.is_empty() {
            return;
        }
        let mut part = Part::new(kinds::SDN, "datacenter", sdn.span).flags(false, sdn.protect);
        let spec = &mut part.spec;
        spec.put("sdn", "datacenter");
        // Nothing is left that waits.
        spec.put("staged", false);
        spec.put_full("controllers", all(&sdn.controllers, controller));
        spec.put_full("zones", all(&sdn.zones, zone));
        spec.put_full("vnets", all(&sdn.vnets, vnet));
        let subnets = sdn.vnets.iter().flat_map(|(name, vnet)| {
            vnet.subnets.iter().map(move |(cidr, own)| (format!("{name} {cidr}"), Value::Map(subnet(own))))
        });
        spec.put_full("subnets", Value::Map(subnets.collect()));
        // Bridges of zones are made first.
        let networks: Vec<_> =
            self.blueprint.graph.iter().filter(|other| other.address.kind() == kinds::NETWORK).collect();
        part.needs.extend(networks.into_iter().map(|other| other.address.clone()));
        part.needs.extend(servers);
        self.part(part);
    }

    /// What zones refer to: who keeps their addresses, and who has their names.
    fn servers(&mut self, sdn: &Sdn) -> Vec<Address> {
        let mut servers = Vec::new();
        for (name, ipam) in sdn.ipams.iter() {
            if (ipam.kind == IpamType::PhpIpam) != ipam.section.is_some() {
                let (code, what) = match ipam.section {
                    Some(_) => ("no-such-field", "which has no"),
                    None => ("missing-field", "and has no"),
                };
                let message = format!("the IPAM `{name}` is of type `{}`, {what} `section`", ipam.kind);
                self.refuse(code, message, name.span);
            }
            let mut part = Part::new(kinds::SDN_IPAM, name, name.span).flags(ipam.adopt, ipam.protect);
            let spec = &mut part.spec;
            spec.put("sdn_ipam", name.as_str());
            spec.put("type", ipam.kind.to_string());
            spec.put("url", ipam.url.as_str());
            spec.put_some("section", ipam.section.map(int));
            spec.put_some("fingerprint", ipam.fingerprint.clone());
            let token = self.secret(&ipam.token);
            part.spec.put_some("token", token);
            servers.push(self.part(part));
        }
        for (name, dns) in sdn.dns_servers.iter() {
            let mut part = Part::new(kinds::SDN_DNS, name, name.span).flags(dns.adopt, dns.protect);
            let spec = &mut part.spec;
            spec.put("sdn_dns", name.as_str());
            spec.put("type", "powerdns");
            spec.put("url", dns.url.as_str());
            spec.put_some("time_to_live", dns.ttl.map(int));
            spec.put_some("reverse_mask6", dns.reverse_mask6.map(int));
            spec.put_some("fingerprint", dns.fingerprint.clone());
            let key = self.secret(&dns.key);
            part.spec.put_some("api_key", key);
            servers.push(self.part(part));
        }
        servers
    }

    /// What a type of zone needs, and what others do not have.
    fn check_zones(&mut self, sdn: &Sdn) {
        use ZoneType::{Evpn, Qinq, Simple, Vlan, Vxlan};
        for (name, zone) in sdn.zones.iter() {
            let keys: [(&str, bool, &[ZoneType], &[ZoneType]); 9] = [
                ("bridge", zone.bridge.is_some(), &[Vlan, Qinq], &[Vlan, Qinq]),
                ("tag", zone.tag.is_some(), &[Qinq], &[Qinq]),
                ("vlanProtocol", zone.vlan_protocol.is_some(), &[Qinq], &[]),
                ("peers", !zone.peers.is_empty(), &[Vxlan], &[Vxlan]),
                ("vxlanPort", zone.vxlan_port.is_some(), &[Vxlan, Evpn], &[]),
                ("controller", zone.controller.is_some(), &[Evpn], &[Evpn]),
                ("vrfVxlan", zone.vrf_vxlan.is_some(), &[Evpn], &[Evpn]),
                ("exitNodes", !zone.exit_nodes.is_empty(), &[Evpn], &[]),
                ("dhcp", zone.dhcp.is_some(), &[Simple], &[]),
            ];
            for (key, given, belongs, needed) in keys {
                let kind = zone.kind;
                if given && !belongs.contains(&kind) {
                    let message = format!("the zone `{name}` is of type `{kind}`, which has no `{key}`");
                    self.refuse("no-such-field", message, name.span);
                } else if !given && needed.contains(&kind) {
                    let message = format!("the zone `{name}` is of type `{kind}`, and has no `{key}`");
                    self.refuse("missing-field", message, name.span);
                }
            }
        }
    }
}

fn all<T>(map: &Map<T>, spec: impl Fn(&T) -> Spec) -> Value {
    Value::Map(map.iter().map(|(name, own)| (name.value.clone(), Value::Map(spec(own)))).collect())
}

fn sorted<'a>(texts: impl Iterator<Item = &'a Spanned<String>>) -> Value {
    let mut texts: Vec<&str> = texts.map(|text| text.as_str()).collect();
    texts.sort_unstable();
    list(texts)
}

fn addresses(addresses: &[Spanned<Ip>]) -> Value {
    let mut texts: Vec<String> = addresses.iter().map(|address| address.value.to_string()).collect();
    texts.sort_unstable();
    list(texts)
}

fn adopt(spec: &mut Spec, adopt: bool) {
    spec.put_some("adopt", adopt.then_some(true));
}

fn controller(own: &SdnController) -> Spec {
    let mut spec = Spec::new();
    spec.put("type", own.kind.to_string());
    spec.put("asn", int(own.asn));
    spec.put_full("peers", addresses(&own.peers));
    spec.put_some("node", own.node.as_ref().map(|node| node.value.clone()));
    spec.put_some("ebgp", own.ebgp);
    spec.put_some("loopback", own.loopback.clone());
    adopt(&mut spec, own.adopt);
    spec
}

fn zone(own: &SdnZone) -> Spec {
    let mut spec = Spec::new();
    spec.put("type", own.kind.to_string());
    spec.put_full("nodes", sorted(own.nodes.iter()));
    spec.put_some("bridge", own.bridge.clone());
    spec.put_some("tag", own.tag.map(int));
    spec.put_some("vlan_protocol", own.vlan_protocol.map(|protocol| protocol.to_string()));
    spec.put_full("peers", addresses(&own.peers));
    spec.put_some("vxlan_port", own.vxlan_port.map(int));
    spec.put_some("controller", own.controller.as_ref().map(|controller| controller.value.clone()));
    spec.put_some("vrf_vxlan", own.vrf_vxlan.map(int));
    spec.put_full("exit_nodes", sorted(own.exit_nodes.iter()));
    spec.put_some("primary_exit_node", own.primary_exit_node.as_ref().map(|node| node.value.clone()));
    spec.put_some("advertise_subnets", own.advertise_subnets);
    spec.put_some("dhcp", own.dhcp.map(|dhcp| dhcp.to_string()));
    spec.put_some("mtu", own.mtu.map(int));
    spec.put_some("ipam", own.ipam.clone());
    spec.put_some("dns", own.dns.clone());
    spec.put_some("reverse_dns", own.reverse_dns.clone());
    spec.put_some("dns_zone", own.dns_zone.clone());
    adopt(&mut spec, own.adopt);
    spec
}

fn vnet(own: &SdnVnet) -> Spec {
    let mut spec = Spec::new();
    spec.put("zone", own.zone.as_str());
    spec.put_some("tag", own.tag.map(int));
    spec.put_some("alias", own.alias.clone());
    spec.put_some("vlan_aware", own.vlan_aware);
    spec.put_some("isolate_ports", own.isolate_ports);
    adopt(&mut spec, own.adopt);
    spec
}

fn subnet(own: &SdnSubnet) -> Spec {
    let mut spec = Spec::new();
    spec.put_some("gateway", own.gateway.as_ref().map(|gateway| gateway.value.to_string()));
    spec.put_some("snat", own.snat);
    spec.put_full("dhcp_ranges", list(own.dhcp_ranges.iter().map(|range| &range.value)));
    spec.put_some("dns_server", own.dns_server.as_ref().map(|server| server.value.to_string()));
    spec.put_some("dns_prefix", own.dns_prefix.clone());
    adopt(&mut spec, own.adopt);
    spec
}
