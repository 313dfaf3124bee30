//! What a datacenter has besides guests: who may do what, storages, devices, settings of hosts, the firewall.
//! ```text
//! every kind     adopt: Bool (what is there already is taken over)   mark: Text, where the object has a comment
//! pool           pool: Text   comment: Text
//! role           role: Text   privileges: [Text]
//! group          group: Text   comment: Text
//! user           user: Text "ops@pve"   groups: [Text]   enabled: Bool   expire: Int   email, first_name, last_name, comment: Text
//!                password: Secret
//! token          token: Text "ops@pve!ci"   privsep: Bool   expire: Int   comment: Text   secret: Text (where its value is kept)
//! acl            path: Text   subject: Text   subject_type: Text "user" | "group" | "token"   grants: Text (a role)   propagate: Bool
//! storage        storage, type: Text   content, nodes: [Text]   shared, enabled, sparse: Bool   password: Secret   options: {key: Text}
//!                path, server, export, share, datastore, namespace, fingerprint, username, volume_group, thin_pool, pool: Text
//! mapping        bus: Text "pci" | "usb"   mapping: Text   comment: Text   mediated: Bool
//!                devices: [{node, path, id, subsystem_id: Text, iommu_group: Int}]
//! dns            dns: Text (the node)   servers: [Text]   search: Text
//! timezone       clock: Text (the node)   zone: Text
//! network        network: Text (the node)   staged: Bool (changes wait for a reload; never wanted)
//!                interfaces: {vmbr1: {adopt, may_cut: Bool (what the source allows), type: Text, ports: [Text], cidr, gateway, cidr6, gateway6: Text, vlan_aware, autostart: Bool,
//!                device: Text, tag, mtu: Int, mode: Text, comment: Text, options: {key: Text}}}
//! firewall       firewall: Text "datacenter"   options: {enable: Bool, policy_in, policy_out: Text}   rules: [rule, as of a guest]
//! alias          alias, cidr, comment: Text
//! ipset          ipset: Text   addresses: [Text]   comment: Text
//! securitygroup  security_group: Text   rules: [rule]   comment: Text
//! ```

use crate::rules::ChangeEffect::{Computed, InPlace, Replace};
use crate::rules::{FieldRule, KindRules};

pub(super) fn access_rules() -> KindRules {
    KindRules::new(vec![
        FieldRule::new("adopt", Computed),
        FieldRule::new("mark", InPlace),
        FieldRule::new("pool", InPlace),
        FieldRule::new("role", InPlace),
        FieldRule::new("group", InPlace),
        FieldRule::new("user", InPlace),
        FieldRule::new("email", InPlace),
        FieldRule::new("first_name", InPlace),
        FieldRule::new("last_name", InPlace),
        FieldRule::new("token", InPlace),
        FieldRule::new("path", InPlace),
        FieldRule::new("subject", InPlace),
        FieldRule::new("subject_type", InPlace),
        FieldRule::new("grants", InPlace),
        FieldRule::new("comment", InPlace).default_text(""),
        FieldRule::new("privileges", InPlace).set(),
        FieldRule::new("groups", InPlace).set(),
        FieldRule::new("enabled", InPlace).on_by_default(),
        FieldRule::new("expire", InPlace).default_int(0),
        FieldRule::new("password", InPlace).write_only(),
        FieldRule::new("privsep", InPlace).on_by_default(),
        // Proxmox gives the value once, when the token is made: another place for it is another value.
        FieldRule::new("secret", InPlace).write_only(),
        FieldRule::new("propagate", InPlace).on_by_default(),
    ])
}

pub(super) fn storage_rules() -> KindRules {
    let fixed = |path| {
        FieldRule::new(path, Replace).because(
            "Proxmox cannot change it: the definition is removed and made anew; what is stored stays",
        )
    };
    KindRules::new(vec![
        FieldRule::new("adopt", Computed),
        FieldRule::new("mark", InPlace),
        FieldRule::new("storage", InPlace),
        FieldRule::new("namespace", InPlace),
        FieldRule::new("fingerprint", InPlace),
        FieldRule::new("username", InPlace),
        FieldRule::new("bus", InPlace),
        FieldRule::new("mapping", InPlace),
        fixed("type"),
        fixed("path"),
        fixed("server"),
        fixed("export"),
        fixed("share"),
        fixed("datastore"),
        fixed("volume_group"),
        fixed("thin_pool"),
        fixed("pool"),
        FieldRule::new("content", InPlace).set(),
        FieldRule::new("nodes", InPlace).set(),
        FieldRule::new("enabled", InPlace).on_by_default(),
        FieldRule::new("shared", InPlace).off_by_default(),
        FieldRule::new("sparse", InPlace).off_by_default(),
        FieldRule::new("password", InPlace).write_only(),
        FieldRule::new("options.*", InPlace),
        FieldRule::new("comment", InPlace).default_text(""),
        FieldRule::new("mediated", InPlace).off_by_default(),
        FieldRule::new("devices", InPlace).set(),
    ])
}

pub(super) fn host_rules() -> KindRules {
    KindRules::new(vec![
        FieldRule::new("adopt", Computed),
        FieldRule::new("mark", InPlace),
        FieldRule::new("dns", InPlace),
        FieldRule::new("servers", InPlace),
        FieldRule::new("search", InPlace),
        FieldRule::new("clock", InPlace),
        FieldRule::new("zone", InPlace),
        FieldRule::new("network", InPlace),
        FieldRule::new("staged", InPlace).off_by_default(),
        FieldRule::new("interfaces.*", InPlace).slot(),
        FieldRule::new("interfaces.*.ports", InPlace).set(),
        FieldRule::new("interfaces.*.vlan_aware", InPlace).off_by_default(),
        FieldRule::new("interfaces.*.autostart", InPlace).off_by_default(),
        FieldRule::new("interfaces.*.comment", InPlace).default_text(""),
        FieldRule::new("interfaces.*.adopt", Computed),
        FieldRule::new("interfaces.*.may_cut", Computed),
        FieldRule::new("interfaces.*.*", InPlace),
        FieldRule::new("interfaces.*.options.*", InPlace),
    ])
}

pub(super) fn firewall_rules() -> KindRules {
    KindRules::new(vec![
        FieldRule::new("adopt", Computed),
        FieldRule::new("mark", InPlace),
        FieldRule::new("firewall", InPlace),
        FieldRule::new("alias", InPlace),
        FieldRule::new("cidr", InPlace),
        FieldRule::new("ipset", InPlace),
        FieldRule::new("security_group", InPlace),
        FieldRule::new("options.enable", InPlace).off_by_default(),
        FieldRule::new("options.policy_in", InPlace).default_text("DROP"),
        FieldRule::new("options.policy_out", InPlace).default_text("ACCEPT"),
        FieldRule::new("rules", InPlace),
        FieldRule::new("addresses", InPlace).set(),
        FieldRule::new("comment", InPlace).default_text(""),
    ])
}
