//! Storages: what they may hold, where they are, how they name volumes, how much room is left.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::World;
use super::volume::{Volume, VolumeKey};
use crate::api::format::parse_volume_id;
use crate::api::{Refusal, no};

/// One section of the storage configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Storage {
    pub id: String,
    /// `dir`, `lvmthin`, `nfs`, …
    pub kind: String,
    /// Options as text: content, path, nodes, disable, shared and so on.
    pub props: IndexMap<String, String>,
    /// Bytes it has, on each node unless it is shared.
    pub capacity: u64,
    /// Bytes that something outside the simulation takes.
    pub taken: u64,
}

/// Content that lies in files and not in the `images` folder.
const FOLDERS: &[(&str, &str)] = &[
    ("iso", "template/iso"),
    ("vztmpl", "template/cache"),
    ("import", "import"),
    ("snippets", "snippets"),
    ("backup", "dump"),
];

impl Storage {
    pub fn prop(&self, key: &str) -> Option<&str> {
        self.props.get(key).map(String::as_str)
    }

    pub fn contents(&self) -> Vec<&str> {
        self.prop("content")
            .unwrap_or_default()
            .split(',')
            .filter(|c| !c.is_empty() && *c != "none")
            .collect()
    }

    pub fn holds(&self, content: &str) -> bool {
        self.contents().contains(&content)
    }

    pub fn is_disabled(&self) -> bool {
        self.prop("disable") == Some("1")
    }

    /// Some kinds are always the same everywhere, some when they say so.
    pub fn is_shared(&self) -> bool {
        match self.kind.as_str() {
            "nfs" | "cifs" | "pbs" | "rbd" | "cephfs" | "iscsi" | "iscsidirect" | "zfs" => true,
            _ => self.prop("shared") == Some("1"),
        }
    }

    pub fn is_on(&self, node: &str) -> bool {
        self.prop("nodes").is_none_or(|nodes| nodes.split(',').any(|n| n.trim() == node))
    }

    /// The node part of its volumes' places.
    pub fn scope(&self, node: &str) -> String {
        if self.is_shared() { String::new() } else { node.to_owned() }
    }

    /// Keeps images as files in folders by VMID.
    pub fn is_file_based(&self) -> bool {
        matches!(self.kind.as_str(), "dir" | "nfs" | "cifs" | "cephfs" | "btrfs")
    }

    /// The format of an image for which none was asked.
    pub fn default_format(&self) -> &'static str {
        "raw"
    }

    pub fn takes_format(&self, format: &str) -> bool {
        format == "raw" || (self.is_file_based() && matches!(format, "qcow2" | "vmdk"))
    }

    /// Snapshots need a format or a storage that has them.
    pub fn snapshots(&self, format: &str) -> bool {
        match self.kind.as_str() {
            "lvmthin" | "rbd" | "zfspool" | "zfs" | "btrfs" => true,
            _ => self.is_file_based() && format == "qcow2",
        }
    }

    /// Volumes are multiples of this many bytes.
    pub fn grain(&self) -> u64 {
        match self.kind.as_str() {
            "lvm" | "lvmthin" => 4 << 20,
            _ => 1,
        }
    }

    /// Linked clones are named after their base, except where the storage forgets what they came from.
    pub fn names_base(&self) -> bool {
        !matches!(self.kind.as_str(), "lvm" | "lvmthin" | "btrfs")
    }

    /// Where a file-based storage is mounted.
    pub fn root(&self) -> String {
        self.prop("path").map_or_else(|| format!("/mnt/pve/{}", self.id), str::to_owned)
    }

    /// The path of a volume, as messages show it.
    pub fn path(&self, volume: &str) -> String {
        if !self.is_file_based() {
            let name = bare(volume);
            return match self.kind.as_str() {
                "lvm" | "lvmthin" => format!("/dev/{}/{name}", self.prop("vgname").unwrap_or("pve")),
                "zfspool" => format!("/dev/zvol/{}/{name}", self.prop("pool").unwrap_or("rpool")),
                "rbd" => format!("rbd:{}/{name}", self.prop("pool").unwrap_or("rbd")),
                _ => format!("{}/{name}", self.id),
            };
        }
        let root = self.root();
        for (content, folder) in FOLDERS {
            if let Some(name) = volume.strip_prefix(&format!("{content}/")) {
                return format!("{root}/{folder}/{name}");
            }
        }
        format!("{root}/images/{}", own_name(volume))
    }

    /// The name of an image volume: with its folder and extension on file-based storages.
    pub fn image_name(&self, vmid: u32, file: &str, format: &str) -> String {
        if self.is_file_based() { format!("{vmid}/{file}.{format}") } else { file.to_owned() }
    }
}

/// A linked clone is named after its base; this is its own part.
pub fn own_name(volume: &str) -> &str {
    let parts: Vec<&str> = volume.split('/').collect();
    let own = match parts.len() {
        4 => parts[..2].join("/").len() + 1,
        2 if parts[0].starts_with("base-") || parts[0].starts_with("basevol-") => parts[0].len() + 1,
        _ => 0,
    };
    &volume[own..]
}

/// Without its folder.
fn bare(volume: &str) -> &str {
    volume.rsplit('/').next().unwrap_or(volume)
}

impl World {
    /// Where a volume is, seen from a node.
    pub fn place(&self, volid: &str, node: &str) -> Option<VolumeKey> {
        let (storage, volume) = parse_volume_id(volid)?;
        let storage = self.storages.get(storage)?;
        Some((storage.id.clone(), storage.scope(node), own_name(volume).to_owned()))
    }

    pub fn volume(&self, volid: &str, node: &str) -> Option<&Volume> {
        self.volumes.get(&self.place(volid, node)?)
    }

    /// The full id of a volume; a linked clone's contains its base.
    pub fn volid(&self, place: &VolumeKey) -> String {
        match self.volumes.get(place).and_then(|v| v.parent.as_deref()) {
            Some(parent) => format!("{}:{parent}/{}", place.0, place.2),
            None => format!("{}:{}", place.0, place.2),
        }
    }

    pub fn storage_used(&self, storage: &Storage, node: &str) -> u64 {
        storage.taken + self.volumes.used(&storage.id, &storage.scope(node))
    }

    pub fn storage_free(&self, storage: &Storage, node: &str) -> u64 {
        storage.capacity.saturating_sub(self.storage_used(storage, node))
    }

    /// The first free `vm-ID-disk-N` (or `base-…`, or another stem) on a storage, whatever its format.
    pub fn free_disk_name(&self, storage: &Storage, node: &str, vmid: u32) -> String {
        let taken: Vec<u32> = self
            .volumes
            .on(&storage.id, &storage.scope(node))
            .filter(|(_, v)| v.vmid == Some(vmid))
            .filter_map(|(name, _)| disk_number(bare(name), vmid))
            .collect();
        let number = (0..).find(|n| !taken.contains(n)).unwrap_or_default();
        format!("vm-{vmid}-disk-{number}")
    }

    /// Makes an image volume and gives its id.
    pub fn allocate(
        &mut self,
        storage: &str,
        node: &str,
        mut volume: Volume,
        file: &str,
    ) -> Result<String, Refusal> {
        let storage = self.storage_on(storage, node)?.clone();
        volume.size = volume.size.next_multiple_of(storage.grain());
        let vmid = volume.vmid.unwrap_or_default();
        let name = storage.image_name(vmid, file, &volume.format);
        let place = (storage.id.clone(), storage.scope(node), name.clone());
        if self.volumes.get(&place).is_some() {
            return Err(no(format!("disk image '{}' already exists", storage.path(&name))));
        }
        if volume.size > self.storage_free(&storage, node) {
            return Err(no(match storage.kind.as_str() {
                "lvm" | "lvmthin" => format!(
                    "lvcreate '{}/{file}' error:   Volume group \"{}\" has insufficient free space",
                    storage.prop("vgname").unwrap_or("pve"),
                    storage.prop("vgname").unwrap_or("pve"),
                ),
                _ => format!(
                    "unable to create image: qemu-img: {}: No space left on device",
                    storage.path(&name)
                ),
            }));
        }
        let parent = volume.parent.clone();
        self.volumes.insert(place, volume);
        Ok(match parent {
            Some(parent) => format!("{}:{parent}/{name}", storage.id),
            None => format!("{}:{name}", storage.id),
        })
    }

    /// Removes a volume; a missing one is fine.
    pub fn free(&mut self, volid: &str, node: &str) -> Option<Volume> {
        let place = self.place(volid, node)?;
        self.volumes.remove(&place)
    }

    /// The linked clones of a base volume.
    pub fn clones_of<'w>(&'w self, place: &VolumeKey) -> impl Iterator<Item = &'w VolumeKey> + use<'w> {
        let name = place.2.clone();
        let (storage, scope) = (place.0.clone(), place.1.clone());
        self.volumes
            .iter()
            .filter(move |((s, n, _), v)| *s == storage && *n == scope && v.parent.as_deref() == Some(&name))
            .map(|(place, _)| place)
    }
}

/// N of `vm-ID-disk-N.ext` and `base-ID-disk-N.ext`.
fn disk_number(file: &str, vmid: u32) -> Option<u32> {
    let stem = file.strip_prefix("vm-").or_else(|| file.strip_prefix("base-"))?;
    let rest = stem.strip_prefix(&format!("{vmid}-disk-"))?;
    rest.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linked_clone_is_stored_under_its_own_name() {
        assert_eq!(own_name("130/base-130-disk-0.qcow2/133/vm-133-disk-0.qcow2"), "133/vm-133-disk-0.qcow2");
        assert_eq!(own_name("base-130-disk-0/vm-133-disk-0"), "vm-133-disk-0");
        assert_eq!(own_name("basevol-900-disk-0/subvol-217-disk-0"), "subvol-217-disk-0");
        assert_eq!(own_name("110/vm-110-disk-0.raw"), "110/vm-110-disk-0.raw");
        assert_eq!(own_name("iso/test.iso"), "iso/test.iso");
    }

    #[test]
    fn disks_are_numbered_whatever_they_are() {
        assert_eq!(disk_number("base-130-disk-2.qcow2", 130), Some(2));
        assert_eq!(disk_number("vm-130-cloudinit.qcow2", 130), None);
    }
}
