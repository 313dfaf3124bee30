//! An LXC container.
//! The spec, in canonical form (absent = not ours); what is not listed is as for a VM:
//! ```text
//! vmid, node, name (the host name), mark, notes, tags, pool, onboot, protection, startup, firewall, power, options, timeouts
//! image: Text volid   ostype: Text   unprivileged: Bool   password: Secret   ssh_keys: [Text]   template: Bool
//! cpu: {cores, units: Int, limit: Text}   memory: {size, swap: Int MiB}
//! rootfs: {storage: Text, size: Int bytes, readonly, quota, replicate: Bool, acl: Bool, mountoptions: Text}
//! mounts: {mp0: {storage: Text, size: Int bytes | volume: Text, path: Text, backup, readonly, quota, acl, replicate, shared: Bool,
//!          mountoptions: Text}}
//! networks: {net0: {name: Text "eth0", mac, bridge: Text, vlan, mtu: Int, firewall, link_down: Bool, rate: Text,
//!            ip, gateway, ip6, gateway6: Text}}
//! features: {nesting, keyctl, fuse, mknod, force_rw_sys: Bool, mount: [Text]}
//! nameservers: [Text]   searchdomain, timezone: Text   console: {enabled: Bool, mode: Text, tty: Int}
//! ```

use crate::rules::ChangeEffect::{Computed, CreateOnly, Grow, InPlace, Replace, Restart};
use crate::rules::{FieldRule, KindRules};

pub(super) fn rules() -> KindRules {
    let mut rules = vec![
        FieldRule::new("name", Restart),
        FieldRule::new("timeouts", Computed),
        FieldRule::new("image", CreateOnly),
        FieldRule::new("template", InPlace).off_by_default(),
        FieldRule::new("ostype", CreateOnly),
        FieldRule::new("password", CreateOnly).write_only(),
        FieldRule::new("ssh_keys", CreateOnly).write_only(),
        FieldRule::new("unprivileged", Replace)
            .on_by_default()
            .because("a container cannot change between privileged and unprivileged"),
        FieldRule::new("cpu.cores", InPlace),
        FieldRule::new("cpu.units", InPlace),
        FieldRule::new("cpu.limit", InPlace),
        FieldRule::new("memory.size", InPlace).default_int(512).mebibytes(),
        FieldRule::new("memory.swap", InPlace).default_int(512).mebibytes(),
        FieldRule::new("rootfs.size", Grow).bytes(),
        FieldRule::new("rootfs.storage", InPlace),
        FieldRule::new("rootfs.readonly", Restart).off_by_default(),
        FieldRule::new("rootfs.quota", Restart).off_by_default(),
        FieldRule::new("rootfs.replicate", InPlace).on_by_default(),
        FieldRule::new("rootfs.*", Restart),
        FieldRule::new("mounts.*", Restart).slot(),
        FieldRule::new("mounts.*.size", Grow).bytes(),
        FieldRule::new("mounts.*.storage", InPlace),
        FieldRule::new("mounts.*.backup", Restart).off_by_default(),
        FieldRule::new("mounts.*.readonly", Restart).off_by_default(),
        FieldRule::new("mounts.*.quota", Restart).off_by_default(),
        FieldRule::new("mounts.*.shared", Restart).off_by_default(),
        FieldRule::new("mounts.*.replicate", Restart).on_by_default(),
        FieldRule::new("mounts.*.*", Restart),
        FieldRule::new("networks.*", InPlace).slot(),
        FieldRule::new("networks.*.firewall", InPlace).off_by_default(),
        FieldRule::new("networks.*.link_down", InPlace).off_by_default(),
        FieldRule::new("networks.*.*", InPlace),
        FieldRule::new("features.*", Restart).off_by_default(),
        FieldRule::new("features.mount", Restart).set(),
        FieldRule::new("nameservers", Restart),
        FieldRule::new("searchdomain", Restart),
        FieldRule::new("timezone", Restart),
        FieldRule::new("console.enabled", Restart).on_by_default(),
        FieldRule::new("console.mode", Restart).default_text("tty"),
        FieldRule::new("console.tty", Restart).default_int(2),
    ];
    rules.extend(super::guest::rules());
    KindRules::new(rules)
}
