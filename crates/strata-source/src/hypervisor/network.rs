//! Bridges, bonds and VLANs of the hosts.

use strata_yaml::{Map, Raw, Spanned, choice, record};

use crate::value::address::{Cidr, Ip};
use crate::value::name::ID;
use crate::value::place::{ADDRESS, VLAN};

choice! {
    /// What an interface is.
    pub enum HostInterfaceType { Bridge = "bridge", Bond = "bond", Vlan = "vlan", Ethernet = "eth" }
}

record! {
    /// An interface of a host.
    pub struct HostInterface {
        /// what it is
        "type" kind: Option<HostInterfaceType>;
        /// the nodes that have it; otherwise those of the stack
        "nodes" nodes: Vec<Spanned<String>> [text(ID)];
        /// bridge: its ports; bond: its slaves
        "ports" ports: Vec<String>;
        /// the host's address on it
        "address" address: Option<Spanned<Cidr>> [label(ADDRESS)];
        /// the router
        "gateway" gateway: Option<Spanned<Ip>> [label(ADDRESS)];
        /// the host's IPv6 address on it
        "address6" address6: Option<Spanned<Cidr>> [label(ADDRESS)];
        /// the IPv6 router
        "gateway6" gateway6: Option<Spanned<Ip>> [label(ADDRESS)];
        /// bridge: passes VLAN tags on
        "vlanAware" vlan_aware: Option<bool>;
        /// vlan: the interface below
        "device" device: Option<String>;
        /// vlan: the tag
        "tag" tag: Option<u16> [range(1, 4094), label(VLAN)];
        /// bond: how the slaves share the work
        "mode" mode: Option<String>;
        /// the largest packet
        "mtu" mtu: Option<u16> [range(576, 65520)];
        /// brought up with the host
        "autostart" autostart: bool = true;
        /// for people
        "comment" comment: Option<String> [env()];
        /// any key that Proxmox knows and Strata has no field for
        "options" options: Map<Raw>;
        /// taken over if it is there already; an `eth` always is, as it is never made
        "adopt" adopt: bool = false;
        /// it carries the address that Strata reaches the host by, and may be changed all the same
        "mayCutConnection" may_cut_connection: bool = false;
    }
}

record! {
    /// Name servers of the hosts.
    pub struct DnsSettings {
        /// up to three
        "servers" servers: Vec<Spanned<Ip>> [label(ADDRESS)];
        /// the domain that short names are looked up in
        "searchDomain" search_domain: Option<String> [env()];
    }
}
