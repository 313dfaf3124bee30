//! The inputs of the module for what a datacenter has besides guests.

use super::vm::RULE;
use crate::variable::Default::{EmptyList, EmptyMap};
use crate::variable::Type::{Bool, List, Map, Number, Object, Text};
use crate::variable::{Attribute, Type, Variable, may, must};

const NAMED: Type = Map(&Object(&[may("comment", Text)]));

const DEVICE: Type = Object(&[
    must("node", Text),
    may("path", Text),
    may("id", Text),
    may("subsystem_id", Text),
    may("iommu_group", Number),
]);

const USB_DEVICE: Type = Object(&[must("node", Text), may("path", Text), may("id", Text)]);

/// What bridges, bonds and VLANs have, with two fields of their own.
const fn interface(own: Attribute, other: Attribute) -> [Attribute; 11] {
    [
        must("node_name", Text),
        must("name", Text),
        may("address", Text),
        may("gateway", Text),
        may("address6", Text),
        may("gateway6", Text),
        may("mtu", Number),
        may("autostart", Bool),
        may("comment", Text),
        own,
        other,
    ]
}

const BRIDGE: &[Attribute] = &interface(may("ports", List(&Text)), may("vlan_aware", Bool));
const BOND: &[Attribute] = &interface(must("slaves", List(&Text)), may("bond_mode", Text));
const VLAN: &[Attribute] = &interface(may("interface", Text), may("vlan", Number));

const STORAGE: Type = Object(&[
    must("type", Text),
    may("content", List(&Text)),
    may("nodes", List(&Text)),
    may("disable", Bool),
    may("shared", Bool),
    may("path", Text),
    may("server", Text),
    may("export", Text),
    may("share", Text),
    may("datastore", Text),
    may("namespace", Text),
    may("fingerprint", Text),
    may("username", Text),
    may("volume_group", Text),
    may("thin_pool", Text),
    may("zfs_pool", Text),
    may("thin_provision", Bool),
]);

pub(crate) const INPUTS: &[Variable] = &[
    map("pools", NAMED, "Pools of guests and storages, by name"),
    map("roles", Map(&List(&Text)), "Privileges, by the name of their role"),
    map("groups", NAMED, "Groups of users, by name"),
    map(
        "users",
        Map(&Object(&[
            may("enabled", Bool),
            may("groups", List(&Text)),
            may("comment", Text),
            may("email", Text),
            may("first_name", Text),
            may("last_name", Text),
            may("expiration_date", Text),
        ])),
        "Users, by name and realm: `ops@pve`",
    ),
    map("user_passwords", Map(&Text), "Passwords, by user").sensitive(),
    map(
        "tokens",
        Map(&Object(&[
            may("privileges_separation", Bool),
            may("comment", Text),
            may("expiration_date", Text),
        ])),
        "API tokens, by user and name: `ops@pve!ci`",
    ),
    map(
        "acl",
        Map(&Object(&[
            must("path", Text),
            must("role_id", Text),
            may("user_id", Text),
            may("group_id", Text),
            may("token_id", Text),
            may("propagate", Bool),
        ])),
        "Who may do what where",
    ),
    map(
        "pci_mappings",
        Map(&Object(&[
            may("comment", Text),
            may("mediated_devices", Bool),
            must("map", List(&DEVICE)),
        ])),
        "PCI devices that guests refer to by name",
    ),
    map(
        "usb_mappings",
        Map(&Object(&[may("comment", Text), must("map", List(&USB_DEVICE))])),
        "USB devices that guests refer to by name",
    ),
    map("storages", Map(&STORAGE), "Storages, by name").valid_if(
        "alltrue([for storage in values(var.storages) : contains([\"dir\", \"lvm\", \"lvmthin\", \"zfspool\", \"nfs\", \"cifs\", \"pbs\"], storage.type)])",
        "The provider knows storages of the types dir, lvm, lvmthin, zfspool, nfs, cifs and pbs.",
    ),
    map("storage_passwords", Map(&Text), "Passwords, by storage").sensitive(),
    map(
        "dns",
        Map(&Object(&[must("domain", Text), may("servers", List(&Text))])),
        "Name servers, by node",
    ),
    map("time_zones", Map(&Text), "Time zones, by node"),
    map("bridges", Map(&Object(BRIDGE)), "Bridges, by node and name: `pve1:vmbr1`"),
    map("bonds", Map(&Object(BOND)), "Bonds, by node and name"),
    map("vlans", Map(&Object(VLAN)), "VLANs, by node and name"),
    map(
        "aliases",
        Map(&Object(&[must("cidr", Text), may("comment", Text)])),
        "Names for addresses, in rules of firewalls",
    ),
    map(
        "ip_sets",
        Map(&Object(&[may("comment", Text), must("addresses", List(&Text))])),
        "Sets of addresses, by name",
    ),
    map(
        "security_groups",
        Map(&Object(&[may("comment", Text), must("rules", List(&RULE))])),
        "Sets of rules, by name",
    ),
    Variable::optional("firewall_rules", List(&RULE), "Rules of the datacenter's firewall, in order")
        .or(EmptyList),
    Variable::optional(
        "firewall",
        Object(&[may("enabled", Bool), may("input_policy", Text), may("output_policy", Text)]),
        "The datacenter's firewall; left alone if null",
    ),
];

const fn map(name: &'static str, kind: Type, description: &'static str) -> Variable {
    Variable::optional(name, kind, description).or(EmptyMap)
}
