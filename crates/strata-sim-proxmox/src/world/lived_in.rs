//! A datacenter that people have run by hand since 2014: three nodes, sixty guests, and around them storages, pools, users, firewalls,
//! jobs, mappings, networks, realms and notifications. It is what adoption, recovery and everything that must leave alone what it does not manage is tried on.
//!
//! The objects are in `etc/`, written as Proxmox itself keeps them, so that an oddity is added where it would stand on a real node. Volumes
//! follow from the drives and mount points that name them; `etc/volumes` has the others.

mod accounts;
mod files;
mod firewalls;
#[cfg(test)]
mod tests;

use indexmap::IndexMap;

use self::files::{Listed, guests, sections};
use super::cluster::Section;
use super::guest::Config;
use super::node::Iface;
use super::storage::own_name;
use super::{Guest, GuestKind, Node, Storage, Volume, World};
use crate::api::format::{parse_size, parse_volume_id};
use crate::endpoints::lxc::mount;
use crate::endpoints::qemu::{drive, start};

const GIB: u64 = 1 << 30;

/// The nodes with the last part of their addresses and their guests.
const NODES: &[(&str, u8, &str)] = &[
    ("pve1", 11, include_str!("lived_in/etc/pve1.conf")),
    ("pve2", 12, include_str!("lived_in/etc/pve2.conf")),
    ("pve3", 13, include_str!("lived_in/etc/pve3.conf")),
];

/// Files of sections, by the name that the cluster has for them.
const FILES: &[(&str, &str)] = &[
    ("backup", include_str!("lived_in/etc/jobs.cfg")),
    ("replication", include_str!("lived_in/etc/replication.cfg")),
    ("ha/rules", include_str!("lived_in/etc/ha-rules.cfg")),
    ("mapping/pci", include_str!("lived_in/etc/mapping-pci.cfg")),
    ("mapping/usb", include_str!("lived_in/etc/mapping-usb.cfg")),
    ("mapping/dir", include_str!("lived_in/etc/mapping-dir.cfg")),
    ("metrics", include_str!("lived_in/etc/status.cfg")),
    ("notifications", include_str!("lived_in/etc/notifications.cfg")),
];

/// Parts of the SDN: all of it is in effect.
const NETWORKS: &[(&str, &str)] = &[
    ("controllers", include_str!("lived_in/etc/sdn-controllers.cfg")),
    ("zones", include_str!("lived_in/etc/sdn-zones.cfg")),
    ("vnets", include_str!("lived_in/etc/sdn-vnets.cfg")),
    ("subnets", include_str!("lived_in/etc/sdn-subnets.cfg")),
];

impl World {
    pub(super) fn furnish_lived_in(&mut self) {
        self.cluster.name = "homelab".into();
        for (name, last, _) in NODES {
            self.nodes.insert((*name).to_owned(), node(name, *last));
        }
        let options = include_str!("lived_in/etc/datacenter.cfg");
        self.cluster.options = options
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(key, value)| (key.to_owned(), files::decoded(value)))
            .collect();
        for (id, section) in sections(include_str!("lived_in/etc/storage.cfg")) {
            let Section { kind, props } = section;
            let storage = Storage { id: id.clone(), kind, props, capacity: 4096 * GIB, taken: 60 * GIB };
            self.storages.insert(id, storage);
        }
        for (file, text) in FILES {
            self.cluster.file_mut(file).extend(sections(text));
        }
        for (part, text) in NETWORKS {
            for file in [format!("sdn/{part}"), format!("sdn/running/{part}")] {
                self.cluster.file_mut(&file).extend(sections(text));
            }
        }
        let resources = sections(include_str!("lived_in/etc/ha-resources.cfg"));
        let named = resources.map(|(id, section)| (format!("{}:{id}", section.kind), section));
        self.cluster.file_mut(super::ha::RESOURCES).extend(named);
        self.furnish_accounts(include_str!("lived_in/etc/user.cfg"));
        self.furnish_realms(include_str!("lived_in/etc/domains.cfg"));
        self.furnish_firewalls();
        for listed in files::volumes(include_str!("lived_in/etc/volumes")) {
            self.put_listed(listed);
        }
        for (node, _, text) in NODES {
            for guest in guests(text) {
                self.put_guest(node, guest);
            }
        }
    }

    /// A file or an image that nothing refers to with its size.
    fn put_listed(&mut self, listed: Listed<'_>) {
        let node = listed.node.unwrap_or("pve1");
        let Some(place) = self.place(listed.volid, node) else { return };
        let volume = Volume {
            content: listed.content.to_owned(),
            format: format_of(&place.2).to_owned(),
            size: listed.size,
            vmid: owner(&place.2),
            ctime: self.now(),
            ..Volume::default()
        };
        self.volumes.insert(place, volume);
    }

    fn put_guest(&mut self, node: &str, read: files::ReadGuest) {
        // Long before whoever looks: the statistics know it.
        let created = self.now_ms() - 86_400_000;
        let mut guest = Guest::new(read.vmid, node, read.kind, "root@pam", created);
        guest.config = read.config;
        guest.pending = read.pending;
        guest.snapshots = read.snapshots;
        if read.running {
            guest.starts = 1;
            guest.power.running = true;
            guest.power.since = created / 1000;
            guest.power.pid = self.new_pid();
            if guest.kind == GuestKind::Qemu {
                guest.power.machine = start::running_machine(&guest.config);
            }
        }
        for (volid, size) in images(guest.kind, &guest.config) {
            self.put_image(node, &guest, &volid, size);
        }
        for (name, config) in &guest.snapshots {
            for (volid, _) in images(guest.kind, config) {
                if let Some(place) = self.place(&volid, node) {
                    self.volumes.edit(&place, |volume| volume.snapshots.push(name.clone()));
                }
            }
        }
        self.guests.insert(read.vmid, guest);
    }

    fn put_image(&mut self, node: &str, guest: &Guest, volid: &str, size: u64) {
        let Some(place) = self.place(volid, node) else { return };
        let base = parse_volume_id(volid)
            .and_then(|(_, name)| name.strip_suffix(own_name(name)))
            .map(|base| base.trim_end_matches('/').to_owned())
            .filter(|base| !base.is_empty());
        let volume = Volume {
            content: if guest.kind == GuestKind::Lxc { "rootdir" } else { "images" }.to_owned(),
            format: format_of(&place.2).to_owned(),
            size,
            vmid: Some(guest.vmid),
            parent: base,
            ctime: self.now(),
            bootable: true,
            ..Volume::default()
        };
        self.volumes.insert(place, volume);
    }
}

/// The volumes of a configuration, with the sizes that it has for them.
fn images(kind: GuestKind, config: &Config) -> Vec<(String, u64)> {
    let sized = |volid: &str, size: Option<&str>| {
        parse_volume_id(volid)?;
        Some((volid.to_owned(), size.and_then(parse_size).unwrap_or(4 << 20)))
    };
    match kind {
        GuestKind::Qemu => drive::drives(config)
            .filter(|drive| !drive.is_plain_cdrom())
            .filter_map(|drive| sized(drive.file(), drive.props.get("size")))
            .collect(),
        GuestKind::Lxc => mount::mounts(config)
            .iter()
            .filter(|mount| mount.source() == mount::Source::Volume)
            .filter_map(|mount| sized(mount.volume(), mount.props.get("size")))
            .collect(),
    }
}

fn format_of(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((_, extension)) if name.contains('/') => extension,
        _ if name.starts_with("subvol-") || name.starts_with("basevol-") => "subvol",
        _ => "raw",
    }
}

/// The VMID in the name of an image or a backup.
fn owner(name: &str) -> Option<u32> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let rest = ["vzdump-qemu-", "vzdump-lxc-", "vm-", "subvol-", "base-", "basevol-"]
        .iter()
        .find_map(|prefix| file.strip_prefix(prefix))?;
    rest.split('-').next()?.parse().ok()
}

fn node(name: &str, last: u8) -> Node {
    let ip = format!("192.0.2.{last}");
    let mut node = Node::new(name, &ip);
    let text =
        include_str!("lived_in/etc/interfaces.cfg").replace("{ip}", &ip).replace("{last}", &last.to_string());
    node.ifaces = sections(&text)
        .map(|(name, section)| (name, Iface { kind: section.kind, props: section.props, active: true }))
        .collect::<IndexMap<_, _>>();
    node.timezone = "Europe/Berlin".to_owned();
    if name == "pve1" {
        node.config.insert("description".to_owned(), "Erster Knoten, im Keller\n".to_owned());
        node.config.insert("wakeonlan".to_owned(), "mac=BC:24:11:00:00:01".to_owned());
    }
    node
}
