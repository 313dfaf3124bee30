//! Software-defined networks.

use std::net::IpAddr;

use strata_yaml::{Map, Spanned, TextRule, TextShape, Value, choice, record};

use crate::value::address::{Cidr, Ip, number};
use crate::value::name::{ID, URL};
use crate::value::place::{ADDRESS, VLAN};

/// Of a zone or a network: a network device is named after it.
const SHORT: TextRule = TextRule {
    shape: TextShape {
        what: "a name of two to eight letters and digits that begins with a letter",
        pattern: Some("^[A-Za-z][A-Za-z0-9]{1,7}$"),
    },
    accepts: |text| {
        (2..=8).contains(&text.len())
            && text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    },
};

/// Of a subnet: its addresses.
const SUBNET: TextRule = TextRule {
    shape: TextShape { what: "a network such as `10.66.0.0/24`", pattern: None },
    accepts: |text| {
        let Ok(cidr) = text.parse::<Cidr>() else { return false };
        let bits: u32 = if cidr.address.is_ipv4() { 32 } else { 128 };
        let host = 1_u128.checked_shl(bits - u32::from(cidr.prefix)).map_or(u128::MAX, |size| size - 1);
        number(cidr.address) & host == 0 && cidr.to_string() == text
    },
};

/// Addresses that DHCP gives: `10.66.0.50-10.66.0.99`.
const RANGE: TextRule = TextRule {
    shape: TextShape { what: "two addresses with `-` between", pattern: None },
    accepts: |text| {
        let Some((first, last)) = text.split_once('-') else { return false };
        match (first.parse::<IpAddr>(), last.parse::<IpAddr>()) {
            (Ok(first), Ok(last)) => first.is_ipv4() == last.is_ipv4() && first <= last,
            _ => false,
        }
    },
};

choice! {
    /// How a zone separates networks.
    pub enum ZoneType {
        /// Each host by itself.
        Simple = "simple",
        /// VLANs of a bridge.
        Vlan = "vlan",
        /// VLANs within a VLAN.
        Qinq = "qinq",
        /// Tunnels between the hosts.
        Vxlan = "vxlan",
        /// Tunnels that BGP announces.
        Evpn = "evpn",
    }
}

choice! {
    /// The protocol of the outer VLAN.
    pub enum VlanProtocol { Dot1q = "802.1q", Dot1ad = "802.1ad" }
}

choice! {
    /// What gives addresses.
    pub enum DhcpServer { Dnsmasq = "dnsmasq" }
}

record! {
    /// A zone: networks that are separated in the same way.
    pub struct SdnZone {
        /// how it separates networks
        "type" kind: ZoneType;
        /// the hosts that it is on; otherwise all
        "nodes" nodes: Vec<Spanned<String>> [text(ID)];
        /// vlan, qinq: the bridge of the hosts
        "bridge" bridge: Option<String>;
        /// qinq: the outer VLAN
        "tag" tag: Option<u16> [range(1, 4094), label(VLAN)];
        /// qinq: the protocol of the outer VLAN
        "vlanProtocol" vlan_protocol: Option<VlanProtocol>;
        /// vxlan: the addresses of the hosts
        "peers" peers: Vec<Spanned<Ip>> [label(ADDRESS)];
        /// vxlan, evpn: the port of the tunnels
        "vxlanPort" vxlan_port: Option<u16> [range(1, 65535)];
        /// evpn: the controller that announces it
        "controller" controller: Option<Spanned<String>> [text(ID)];
        /// evpn: the number of the routes between its networks
        "vrfVxlan" vrf_vxlan: Option<u32> [range(1, 16_777_215)];
        /// evpn: the hosts that lead out of it
        "exitNodes" exit_nodes: Vec<Spanned<String>> [text(ID)];
        /// evpn: the one of these that is taken first
        "primaryExitNode" primary_exit_node: Option<Spanned<String>> [text(ID)];
        /// evpn: subnets are announced
        "advertiseSubnets" advertise_subnets: Option<bool>;
        /// simple: what gives addresses to guests
        "dhcp" dhcp: Option<DhcpServer>;
        /// the largest packet
        "mtu" mtu: Option<u16> [range(576, 65520)];
        /// who keeps the addresses: `pve`, or the id of an IPAM
        "ipam" ipam: Option<String>;
        /// the id of the DNS server that has its names
        "dns" dns: Option<String>;
        /// the id of the DNS server that has its reverse names
        "reverseDns" reverse_dns: Option<String>;
        /// the domain of the names
        "dnsZone" dns_zone: Option<String>;
        /// taken over if it is there already
        "adopt" adopt: bool = false;
    }
}

record! {
    /// Addresses of a network.
    pub struct SdnSubnet {
        /// the router
        "gateway" gateway: Option<Spanned<Ip>> [label(ADDRESS)];
        /// what leaves it has the address of the host
        "snat" snat: Option<bool>;
        /// addresses that DHCP gives: `10.66.0.50-10.66.0.99`
        "dhcpRanges" dhcp_ranges: Vec<Spanned<String>> [text(RANGE)];
        /// the name server that guests get by DHCP
        "dnsServer" dns_server: Option<Spanned<Ip>> [label(ADDRESS)];
        /// what is put before the domain of the zone
        "dnsPrefix" dns_prefix: Option<String>;
        /// taken over if it is there already
        "adopt" adopt: bool = false;
    }
}

record! {
    /// A network of a zone: guests use it as a bridge.
    pub struct SdnVnet {
        /// the zone that it is in
        "zone" zone: Spanned<String> [text(SHORT)];
        /// vlan, qinq: the VLAN; vxlan, evpn: the number of the tunnel
        "tag" tag: Option<u32> [range(1, 16_777_215)];
        /// for people
        "alias" alias: Option<String>;
        /// it passes VLANs of guests on
        "vlanAware" vlan_aware: Option<bool>;
        /// guests in it do not see each other
        "isolatePorts" isolate_ports: Option<bool>;
        /// its addresses, by network: `10.66.0.0/24`
        "subnets" subnets: Map<SdnSubnet> [keys(SUBNET)];
        /// taken over if it is there already
        "adopt" adopt: bool = false;
    }
}

choice! {
    /// What a controller speaks.
    pub enum ControllerType { Evpn = "evpn", Bgp = "bgp" }
}

record! {
    /// What announces the routes of zones.
    pub struct SdnController {
        /// what it speaks
        "type" kind: ControllerType;
        /// the number of its autonomous system
        "asn" asn: u32;
        /// the addresses of its peers
        "peers" peers: Vec<Spanned<Ip>> [label(ADDRESS)];
        /// bgp: the host that it is on
        "node" node: Option<Spanned<String>> [text(ID)];
        /// bgp: its peers are of other autonomous systems
        "ebgp" ebgp: Option<bool>;
        /// bgp: the interface whose address it uses
        "loopback" loopback: Option<String>;
        /// taken over if it is there already
        "adopt" adopt: bool = false;
    }
}

choice! {
    /// What keeps the addresses of networks.
    pub enum IpamType { Netbox = "netbox", PhpIpam = "phpipam" }
}

record! {
    /// A server that keeps the addresses of networks.
    pub struct SdnIpam {
        /// what it is
        "type" kind: IpamType;
        /// the URL of its API
        "url" url: String [text(URL)];
        /// what lets Proxmox in
        "token" token: Value<String> [secret];
        /// phpipam: the section
        "section" section: Option<u32>;
        /// the fingerprint of its certificate
        "fingerprint" fingerprint: Option<String>;
        /// taken over if it is there already
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// A PowerDNS server that has the names of guests.
    pub struct SdnDns {
        /// the URL of its API
        "url" url: String [text(URL)];
        /// what lets Proxmox in
        "key" key: Value<String> [secret];
        /// for how many seconds names are remembered
        "ttl" ttl: Option<u32>;
        /// the length of the prefix of reverse zones of IPv6
        "reverseMask6" reverse_mask6: Option<u16> [range(0, 128)];
        /// the fingerprint of its certificate
        "fingerprint" fingerprint: Option<String>;
        /// taken over if it is there already
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// Software-defined networks. They come into effect together.
    pub struct Sdn {
        /// servers that keep addresses, by id; `pve` is Proxmox' own and always there
        "ipams" ipams: Map<SdnIpam> [keys(ID)];
        /// servers that have the names of guests, by id
        "dnsServers" dns_servers: Map<SdnDns> [keys(ID)];
        /// what announces routes, by name
        "controllers" controllers: Map<SdnController> [keys(ID)];
        /// zones, by name
        "zones" zones: Map<SdnZone> [keys(SHORT)];
        /// networks, by name
        "vnets" vnets: Map<SdnVnet> [keys(SHORT)];
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}
