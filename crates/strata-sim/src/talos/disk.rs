//! What Talos keeps on a disk, and where that disk is.

use serde::{Deserialize, Serialize};

use super::boot;
use super::config::MachineConfig;
use super::image::Image;
use crate::world::World;
use crate::world::volume::Place;

/// An installed Talos with its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    pub image: Image,
    /// The configuration that the next boot starts with.
    pub config: Option<MachineConfig>,
    /// The content of etcd's data directory.
    pub etcd: Option<EtcdData>,
    /// An upgrade that the next boot carries out.
    pub staged: Option<Image>,
    /// What ran before the last upgrade.
    #[serde(default)]
    pub previous: Option<Image>,
    /// Made at installation; it is what a generated hostname and the node's identity come from.
    pub identity: String,
    /// How its partitions were encrypted when they were made; nothing for those that will be made at the next boot.
    #[serde(default)]
    pub encryption: Option<Encryption>,
}

/// The encryption of STATE and EPHEMERAL, as a configuration says it.
pub type Encryption = std::collections::BTreeMap<String, serde_json::Value>;

/// The membership that a data directory holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcdData {
    pub cluster: String,
    pub member: u64,
}

impl World {
    /// What is installed on the disk that a machine boots from.
    pub fn talos_disk(&self, key: &str) -> Option<&Disk> {
        if let Some(metal) = self.talos.machines.get(key).and_then(|machine| machine.metal.as_ref()) {
            return metal.disk.as_deref();
        }
        let place = self.talos_place(key)?;
        self.volumes.get(&place)?.talos.as_deref()
    }

    /// Changes what is installed; false if nothing is.
    pub fn edit_talos_disk(&mut self, key: &str, change: impl FnOnce(&mut Disk)) -> bool {
        if let Some(metal) = self.talos.machines.get_mut(key).and_then(|machine| machine.metal.as_mut()) {
            let Some(disk) = metal.disk.as_deref_mut() else { return false };
            change(disk);
            return true;
        }
        let Some(place) = self.talos_place(key) else { return false };
        let mut found = false;
        self.volumes.edit(&place, |volume| {
            if let Some(disk) = volume.talos.as_deref_mut() {
                change(disk);
                found = true;
            }
        });
        found
    }

    /// Removes everything from the disk that a machine boots from.
    pub fn wipe_talos_disk(&mut self, key: &str) {
        if let Some(metal) = self.talos.machines.get_mut(key).and_then(|machine| machine.metal.as_mut()) {
            metal.disk = None;
            return;
        }
        if let Some(place) = self.talos_place(key) {
            self.volumes.edit(&place, |volume| {
                volume.talos = None;
                volume.bootable = false;
            });
        }
    }

    /// The volume with Talos on it that a VM has first in its boot order.
    fn talos_place(&self, key: &str) -> Option<Place> {
        let guest = self.talos_guest(key)?;
        boot::in_boot_order(&guest.config)
            .into_iter()
            .filter(|drive| !drive.is_cdrom())
            .filter_map(|drive| self.place(drive.volid()?, &guest.node))
            .find(|place| self.volumes.get(place).is_some_and(|volume| volume.talos.is_some()))
    }
}
