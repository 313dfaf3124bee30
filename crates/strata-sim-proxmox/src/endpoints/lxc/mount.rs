//! The root file system and mount points: what they are, making their volumes, copying them.

use super::schema;
use crate::api::format::{parse_size, parse_volume_id, print_size};
use crate::api::{PropertyString, Refusal, no};
use crate::endpoints::guest::parse_name;
use crate::world::guest::Config;
use crate::world::storage::own_name;
use crate::world::{Guest, Storage, Volume, World};

/// What is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Volume,
    /// A device of the host.
    Device,
    /// A directory of the host.
    Bind,
}

impl Source {
    pub fn name(self) -> &'static str {
        match self {
            Self::Volume => "volume",
            Self::Device => "device",
            Self::Bind => "bind",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Mount {
    /// `rootfs` or `mpN`.
    pub key: String,
    pub props: PropertyString,
}

impl Mount {
    pub fn parse(key: &str, value: &str) -> Self {
        let schema = if key == "rootfs" { schema::rootfs() } else { schema::mount() };
        Self { key: key.to_owned(), props: schema.read(value) }
    }

    pub fn print(&self) -> String {
        let schema = if self.key == "rootfs" { schema::rootfs() } else { schema::mount() };
        schema.print(&self.props)
    }

    pub fn volume(&self) -> &str {
        self.props.get("volume").unwrap_or_default()
    }

    pub fn source(&self) -> Source {
        match self.volume() {
            path if path.starts_with("/dev/") => Source::Device,
            path if path.starts_with('/') => Source::Bind,
            _ => Source::Volume,
        }
    }

    /// `storage:4` asks for a new volume of so many GiB.
    pub fn new_volume(&self) -> Option<(&str, u64)> {
        let (storage, size) = self.volume().split_once(':')?;
        let gib =
            size.parse::<f64>().ok().filter(|_| size.bytes().all(|b| b.is_ascii_digit() || b == b'.'))?;
        // Sizes are cut to whole MiB.
        Some((storage, ((gib * 1024.0) as u64) << 20))
    }

    pub fn size(&self) -> Option<u64> {
        self.props.get("size").and_then(parse_size)
    }

    pub fn set_volume(&mut self, volid: &str, size: u64) {
        self.props.set("volume", volid);
        self.props.set("size", print_size(size));
    }
}

/// The order in which mount points are gone through.
fn rank(key: &str) -> usize {
    key.strip_prefix("mp").and_then(|n| n.parse::<usize>().ok()).map_or(0, |n| n + 1)
}

/// All mount points of a configuration, the root first.
pub fn mounts(config: &Config) -> Vec<Mount> {
    let mut all: Vec<Mount> =
        config.iter().filter(|(key, _)| schema::is_mount(key)).map(|(k, v)| Mount::parse(k, v)).collect();
    all.sort_by_key(|mount| rank(&mount.key));
    all
}

/// The volumes of a configuration, those without a mount point included.
pub fn volumes(config: &Config) -> Vec<String> {
    let mut all: Vec<String> = mounts(config)
        .into_iter()
        .filter(|m| m.source() == Source::Volume)
        .map(|m| m.volume().to_owned())
        .collect();
    all.extend(config.iter().filter(|(key, _)| schema::is_unused(key)).map(|(_, v)| v.clone()));
    all
}

/// Whether a configuration mounts a volume.
pub fn is_mounted(config: &Config, volid: &str) -> bool {
    mounts(config).iter().any(|mount| mount.volume() == volid)
}

/// Keeps a volume that is no longer mounted, unless a snapshot has it anyway.
pub fn keep_unused(guest: &mut Guest, volid: &str) {
    let listed = guest.config.iter().any(|(key, value)| schema::is_unused(key) && value == volid);
    if listed || is_mounted(&guest.config, volid) {
        return;
    }
    let free = (0..schema::MOUNTS).map(|n| format!("unused{n}")).find(|key| !guest.config.contains_key(key));
    if let Some(key) = free {
        guest.config.insert(key, volid.to_owned());
    }
}

/// Storages that can hold a container's files: 500 otherwise.
pub fn check_rootdir(storage: &Storage) -> Result<(), Refusal> {
    if storage.holds("rootdir") {
        return Ok(());
    }
    Err(no(format!("storage '{}' does not allow content type 'rootdir' (Container)", storage.id)))
}

/// Makes an empty volume with a file system.
pub fn allocate(
    world: &mut World,
    node: &str,
    vmid: u32,
    storage: &str,
    size: u64,
    log: &mut Vec<String>,
) -> Result<String, Refusal> {
    let storage = world.storage_on(storage, node)?.clone();
    if !storage.holds("rootdir") {
        return Err(no(format!(
            "content type 'rootdir' is not available or configured on storage '{}'",
            storage.id
        )));
    }
    let plain = size > 0 && storage.kind != "zfspool";
    let format = if plain { "raw" } else { "subvol" };
    let file = free_name(world, &storage, node, vmid, if plain { "vm" } else { "subvol" });
    let volume = Volume {
        content: "rootdir".into(),
        format: format.into(),
        size,
        vmid: Some(vmid),
        ctime: world.now(),
        bootable: true,
        ..Volume::default()
    };
    let volid = world.allocate(&storage.id, node, volume, &file)?;
    if plain {
        announce(&storage, &volid, size, log);
    }
    Ok(volid)
}

/// The first free number on a storage, whatever has the others.
pub fn free_name(world: &World, storage: &Storage, node: &str, vmid: u32, prefix: &str) -> String {
    let taken: Vec<u32> = world
        .volumes
        .on(&storage.id, &storage.scope(node))
        .filter_map(|(name, _)| {
            let file = name.rsplit('/').next()?;
            let stem = file.split('.').next()?;
            let known = ["vm-", "base-", "subvol-", "basevol-"];
            let rest = known.iter().find_map(|prefix| stem.strip_prefix(prefix))?;
            rest.strip_prefix(&format!("{vmid}-disk-"))?.parse().ok()
        })
        .collect();
    let number = (0..).find(|n| !taken.contains(n)).unwrap_or_default();
    format!("{prefix}-{vmid}-disk-{number}")
}

/// What the tools say that make a volume and a file system on it.
fn announce(storage: &Storage, volid: &str, size: u64, log: &mut Vec<String>) {
    let name = volid.split_once(':').map_or("", |(_, name)| name);
    if storage.is_file_based() {
        let path = storage.path(own_name(name));
        log.push(format!("Formatting '{path}', fmt=raw size={size} preallocation=off"));
    } else if matches!(storage.kind.as_str(), "lvm" | "lvmthin") {
        log.push(format!("  Logical volume \"{name}\" created."));
    }
    const GROUP: u64 = 32_768;
    let blocks = size / 4096;
    log.push(format!("Creating filesystem with {blocks} 4k blocks and {} inodes", blocks / 4));
    let id = crate::world::made_up::sha1_hex(volid);
    log.push(format!(
        "Filesystem UUID: {}-{}-{}-{}-{}",
        &id[..8],
        &id[8..12],
        &id[12..16],
        &id[16..20],
        &id[20..32]
    ));
    log.push("Superblock backups stored on blocks: ".to_owned());
    let backups: Vec<String> = (1..blocks.div_ceil(GROUP))
        .filter(|group| *group == 1 || [3, 5, 7].iter().any(|base| is_power(*group, *base)))
        .map(|group| (group * GROUP).to_string())
        .collect();
    log.push(format!("\t{}", backups.join(", ")));
}

fn is_power(mut number: u64, base: u64) -> bool {
    while number > 1 && number.is_multiple_of(base) {
        number /= base;
    }
    number == 1
}

/// A volume that must be there, on a storage that must be usable.
pub fn existing(world: &World, volid: &str, node: &str) -> Result<Volume, Refusal> {
    let storage = parse_volume_id(volid).map(|(storage, _)| storage).unwrap_or_default();
    world.storage_on(storage, node)?;
    world.volume(volid, node).cloned().ok_or_else(|| no(format!("volume '{volid}' does not exist")))
}

/// A full copy of a volume on a storage.
pub fn copy(
    world: &mut World,
    node: &str,
    mount: &Mount,
    vmid: u32,
    storage: &str,
    log: &mut Vec<String>,
) -> Result<Mount, Refusal> {
    let size = existing(world, mount.volume(), node)?.size;
    let volid = allocate(world, node, vmid, storage, size, log)?;
    let mut new = mount.clone();
    new.set_volume(&volid, size);
    Ok(new)
}

/// Whether a linked clone can be made of a volume. Files cannot, since containers need raw images.
pub fn can_link(world: &World, volid: &str) -> bool {
    let Some((id, name)) = parse_volume_id(volid) else { return false };
    let Some(storage) = world.storages.get(id) else { return false };
    let named = parse_name(world, id, name);
    !storage.is_file_based() && storage.snapshots("raw") && named.is_ok_and(|n| n.is_base)
}

/// Whether a volume can be snapshotted.
pub fn can_snapshot(world: &World, volid: &str) -> bool {
    let Some((id, name)) = parse_volume_id(volid) else { return false };
    let format = parse_name(world, id, name).map(|n| n.format).unwrap_or_default();
    world.storages.get(id).is_some_and(|storage| storage.snapshots(&format))
}

/// Roughly how long copying takes, in seconds.
pub fn copy_seconds(world: &World, volid: &str, node: &str) -> f64 {
    let gib = world.volume(volid, node).map_or(0, |v| v.size) as f64 / (1_u64 << 30) as f64;
    1.0 + (gib * 0.25).min(8.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_volume_is_asked_for_by_its_size() {
        let at = |value: &str| Mount::parse("mp0", value).new_volume().map(|(s, n)| (s.to_owned(), n));
        assert_eq!(at("local:1,mp=/x"), Some(("local".to_owned(), 1 << 30)));
        assert_eq!(at("local:0.5,mp=/x"), Some(("local".to_owned(), 512 << 20)));
        assert_eq!(at("local:200/vm-200-disk-0.raw,mp=/x"), None);
        assert_eq!(at("/srv,mp=/x"), None);
    }

    #[test]
    fn backups_of_the_superblock_are_where_they_always_are() {
        let groups: Vec<u64> =
            (1..32).filter(|g| *g == 1 || [3, 5, 7].iter().any(|b| is_power(*g, *b))).collect();
        assert_eq!(groups, [1, 3, 5, 7, 9, 25, 27]);
    }
}
