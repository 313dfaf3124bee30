//! Network devices of a VM, by slot.

use strata_yaml::{Map, Raw, Spanned, choice, record};

use crate::value::address::{Addressing, Ip, Mac};
use crate::value::name::ID;
use crate::value::place::{ADDRESS, BRIDGE, VLAN};

choice! {
    /// The card that the guest sees.
    pub enum NicModel {
        Virtio = "virtio",
        E1000 = "e1000",
        E1000e = "e1000e",
        Rtl8139 = "rtl8139",
        Vmxnet3 = "vmxnet3",
    }
}

record! {
    /// A network device, and the address that cloud-init gives it.
    pub struct Nic [shorthand("bridge")] {
        /// the bridge it is plugged into
        "bridge" bridge: Option<Spanned<String>> [text(ID), label(BRIDGE)];
        /// the card that the guest sees
        "model" model: Option<NicModel>;
        /// otherwise Strata derives one that stays the same
        "mac" mac: Option<Spanned<Mac>>;
        /// the VLAN tag
        "vlan" vlan: Option<u16> [range(1, 4094), label(VLAN)];
        /// VLANs that are passed through tagged
        "trunks" trunks: Vec<u16> [range(1, 4094), label(VLAN)];
        /// 1 takes the bridge's
        "mtu" mtu: Option<u16> [range(1, 65520)];
        /// packet queues, for several cores
        "queues" queues: Option<u8> [range(0, 64)];
        /// whether the guest's firewall rules apply here
        "firewall" firewall: Option<bool>;
        /// limit in megabytes per second
        "rate" rate: Option<f64> [range(0, 1_000_000)];
        /// unplugged
        "linkDown" link_down: Option<bool>;
        /// `dhcp`, or an address with its prefix; `count` machines take one after the other
        "ip" ip: Option<Spanned<Addressing>> [label(ADDRESS)];
        /// the IPv4 router
        "gateway" gateway: Option<Spanned<Ip>> [label(ADDRESS)];
        /// `auto`, `dhcp`, or an address with its prefix
        "ip6" ip6: Option<Spanned<Addressing>> [label(ADDRESS)];
        /// the IPv6 router
        "gateway6" gateway6: Option<Spanned<Ip>> [label(ADDRESS)];
        /// any other property that Proxmox knows, as it is
        "options" options: Map<Raw>;
    }
}
