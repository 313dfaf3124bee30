//! What Talos keeps on a disk, and where that disk is.

use serde::{Deserialize, Serialize};

use strata_sim_core::Medium;

use super::config::MachineConfig;
use super::hypervisor::{Drive, vmid};
use super::image::Image;
use crate::world::World;

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

impl World<'_> {
    /// What is installed on the disk that a machine boots from.
    pub fn talos_disk(&self, key: &str) -> Option<&Disk> {
        if let Some(metal) = self.talos.machines.get(key).and_then(|machine| machine.metal.as_ref()) {
            return metal.disk.as_deref();
        }
        installed(&self.installed_drive(key)?)
    }

    /// Changes what is installed; false if nothing is.
    pub fn edit_talos_disk(&mut self, key: &str, change: impl FnOnce(&mut Disk)) -> bool {
        if let Some(metal) = self.talos.machines.get_mut(key).and_then(|machine| machine.metal.as_mut()) {
            let Some(disk) = metal.disk.as_deref_mut() else { return false };
            change(disk);
            return true;
        }
        let Some((vmid, drive)) = vmid(key).zip(self.installed_drive(key)) else { return false };
        let (slot, Some(mut disk)) = (drive.slot.clone(), installed(&drive).cloned()) else { return false };
        change(&mut disk);
        self.hypervisor.write(vmid, &slot, Medium::write(disk))
    }

    /// Removes everything from the disk that a machine boots from.
    pub fn wipe_talos_disk(&mut self, key: &str) {
        if let Some(metal) = self.talos.machines.get_mut(key).and_then(|machine| machine.metal.as_mut()) {
            metal.disk = None;
            return;
        }
        if let Some((vmid, drive)) = vmid(key).zip(self.installed_drive(key)) {
            let slot = drive.slot.clone();
            self.hypervisor.write(vmid, &slot, None);
        }
    }

    /// The drive with Talos on it that a VM has first in its boot order.
    fn installed_drive(&self, key: &str) -> Option<Drive<'_>> {
        let drives = self.hypervisor.boot_drives(vmid(key)?).into_iter();
        drives.filter(|drive| !drive.cdrom).find(|drive| installed(drive).is_some())
    }
}

/// What Talos wrote on a drive.
pub fn installed<'h>(drive: &Drive<'h>) -> Option<&'h Disk> {
    drive.volume.as_ref()?.medium?.read()
}
