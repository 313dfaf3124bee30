//! A QEMU guest, and the template that guests are cloned from.
//! The spec, in canonical form (absent = not ours):
//! ```text
//! vmid: Int   node: Text   name: Text   mark: Text (the whole line, see Mark)   notes: Text (without the mark)
//! clone: {template: Int, node: Text (the template's), full: Bool, storage: Text}           cloned from; otherwise created
//! template: Bool                                              it is converted to a template at the end
//! cpu: {type: Text, cores, sockets, units: Int, limit: Text, numa: Bool, flags: [Text "+aes"], affinity: Text}
//! memory: {size: Int MiB, balloon: Int MiB}
//! bios, machine, ostype, scsihw, arch: Text   tablet, acpi, kvm, onboot, protection: Bool   hotplug: [Text]
//! efidisk: {storage: Text, type: Text "4m", pre_enrolled_keys: Bool}   tpm: {storage: Text, version: Text "v2.0"}
//! disks: {scsi0: {storage: Text, size: Int bytes, format: Text, import: Text volid, ssd, discard, iothread, readonly, backup,
//!         replicate: Bool, cache, aio: Text, serial: Text, …}}
//! cdroms: {ide2: {volume: Text volid or "none"}}
//! boot_media: {slot: Text "ide2", volume: Text volid}          in the drive when the VM is made; what is in it later is not ours
//! networks: {net0: {model: Text, mac: Text upper case, bridge: Text, vlan, mtu, queues: Int, firewall, link_down: Bool, rate: Text,
//!            trunks: Text}}
//! cloudinit: {drive: {slot: Text "ide2", storage: Text}, user: Text, password: Secret, ssh_keys: [Text], nameservers: [Text],
//!             searchdomain: Text, upgrade: Bool, type: Text, content: Text (hash of a NoCloud ISO; never sent), ipconfig: {ipconfig0: {ip, gateway, ip6, gateway6: Text}}}
//! pci: {hostpci0: {device | mapping: Text, pcie, rombar, xvga: Bool, mdev: Text}}   usb: {usb0: {device | mapping: Text, usb3: Bool}}
//! serial: {serial0: Text}   vga: {type: Text, memory: Int MiB}   agent: {enabled, trim, freeze: Bool, type: Text}
//! boot: [Text]   startup: {order, up, down: Int}   tags: [Text] (lower case, sorted)   pool: Text
//! options: {any other Proxmox key: Text}
//! firewall: {options: {enable, dhcp, macfilter, ipfilter, ndp, radv: Bool, policy_in, policy_out, log_level_in, log_level_out: Text},
//!            rules: [{type, action, comment, source, dest, proto, dport, sport, iface, log, macro, icmp-type: Text, enable: Bool}]}
//! power: Text "running" | "stopped"
//! timeouts: {create, clone, start, shutdown, migrate: Int seconds}   (how long we wait; never compared)
//! force_stop: Bool   (how it goes down before it is deleted; never compared)
//! ```

use crate::rules::ChangeEffect::{Computed, CreateOnly, Grow, InPlace, Replace, Restart};
use crate::rules::{FieldRule, KindRules};

pub(super) fn rules() -> KindRules {
    let mut rules = vec![
        FieldRule::new("name", InPlace),
        FieldRule::new("timeouts", Computed),
        FieldRule::new("force_stop", Computed),
        FieldRule::new("clone", CreateOnly),
        FieldRule::new("clone.*", CreateOnly),
        FieldRule::new("template", InPlace).off_by_default(),
        FieldRule::new("cpu.type", Restart).default_text("kvm64"),
        FieldRule::new("cpu.cores", Restart).default_int(1),
        FieldRule::new("cpu.sockets", Restart).default_int(1),
        FieldRule::new("cpu.numa", Restart).off_by_default(),
        FieldRule::new("cpu.flags", Restart).set(),
        FieldRule::new("cpu.units", InPlace),
        FieldRule::new("cpu.limit", InPlace),
        FieldRule::new("cpu.affinity", Restart),
        FieldRule::new("memory.size", Restart).default_int(512).mebibytes(),
        FieldRule::new("memory.balloon", Restart).mebibytes(),
        FieldRule::new("bios", Restart).default_text("seabios"),
        FieldRule::new("machine", Restart),
        FieldRule::new("ostype", Restart).default_text("other"),
        FieldRule::new("scsihw", Restart).default_text("lsi"),
        FieldRule::new("tablet", InPlace).on_by_default(),
        FieldRule::new("acpi", Restart).on_by_default(),
        FieldRule::new("kvm", Restart).on_by_default(),
        FieldRule::new("efidisk", Restart).slot(),
        FieldRule::new("efidisk.storage", InPlace),
        FieldRule::new("efidisk.type", CreateOnly),
        FieldRule::new("efidisk.pre_enrolled_keys", CreateOnly),
        FieldRule::new("efidisk.format", CreateOnly),
        FieldRule::new("tpm", Restart).slot(),
        FieldRule::new("tpm.storage", InPlace),
        FieldRule::new("tpm.version", CreateOnly),
        FieldRule::new("disks.*", InPlace).slot(),
        FieldRule::new("disks.*.size", Grow).bytes(),
        FieldRule::new("disks.*.storage", InPlace),
        FieldRule::new("disks.*.format", CreateOnly),
        FieldRule::new("disks.*.import", CreateOnly),
        FieldRule::new("disks.*.ssd", Restart).off_by_default(),
        FieldRule::new("disks.*.discard", Restart).off_by_default(),
        FieldRule::new("disks.*.iothread", Restart).off_by_default(),
        FieldRule::new("disks.*.readonly", Restart).off_by_default(),
        FieldRule::new("disks.*.cache", Restart).default_text("none"),
        FieldRule::new("disks.*.aio", Restart).default_text("io_uring"),
        FieldRule::new("disks.*.backup", InPlace).on_by_default(),
        FieldRule::new("disks.*.replicate", InPlace).on_by_default(),
        FieldRule::new("disks.*.*", Restart),
        FieldRule::new("boot_media", CreateOnly),
        FieldRule::new("cdroms.*", InPlace).slot(),
        FieldRule::new("cdroms.*.volume", InPlace),
        FieldRule::new("networks.*", InPlace).slot(),
        FieldRule::new("networks.*.model", Restart),
        FieldRule::new("networks.*.mac", Restart),
        FieldRule::new("networks.*.bridge", InPlace),
        FieldRule::new("networks.*.vlan", InPlace),
        FieldRule::new("networks.*.mtu", Restart),
        FieldRule::new("networks.*.queues", Restart),
        FieldRule::new("networks.*.firewall", InPlace).off_by_default(),
        FieldRule::new("networks.*.link_down", InPlace).off_by_default(),
        FieldRule::new("networks.*.rate", InPlace),
        FieldRule::new("networks.*.trunks", InPlace),
        FieldRule::new("networks.*.*", Restart),
        FieldRule::new("pci.*", Restart).slot(),
        FieldRule::new("pci.*.pcie", Restart).off_by_default(),
        FieldRule::new("pci.*.rombar", Restart).on_by_default(),
        FieldRule::new("pci.*.xvga", Restart).off_by_default(),
        FieldRule::new("pci.*.*", Restart),
        FieldRule::new("usb.*", Restart).slot(),
        FieldRule::new("usb.*.usb3", Restart).off_by_default(),
        FieldRule::new("usb.*.*", Restart),
        FieldRule::new("serial.*", Restart),
        FieldRule::new("vga", Restart).slot(),
        FieldRule::new("vga.*", Restart),
        FieldRule::new("agent.enabled", Restart).off_by_default(),
        FieldRule::new("agent.trim", Restart).off_by_default(),
        FieldRule::new("agent.freeze", Restart).on_by_default(),
        FieldRule::new("agent.type", Restart).default_text("virtio"),
        FieldRule::new("boot", Restart),
        FieldRule::new("hotplug", Restart).set(),
        FieldRule::new("cloudinit.drive", Restart).slot(),
        FieldRule::new("cloudinit.drive.*", Restart),
        FieldRule::new("cloudinit.password", Restart).write_only(),
        FieldRule::new("cloudinit.content", Restart).write_only(),
        FieldRule::new("cloudinit.ipconfig.*", Restart),
        FieldRule::new("cloudinit.ipconfig.*.*", Restart),
        FieldRule::new("cloudinit.upgrade", Restart).on_by_default(),
        FieldRule::new("cloudinit.*", Restart),
        FieldRule::new("arch", Replace).because("the processor architecture is fixed at creation"),
    ];
    rules.extend(super::guest::rules());
    KindRules::new(rules)
}
