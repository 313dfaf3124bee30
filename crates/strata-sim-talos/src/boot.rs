//! Booting: what a machine starts from, and which addresses it has before it has a configuration.

use super::disk::installed;
use super::hypervisor::{Card, vmid};
use super::image::Image;
use super::machine::{Boot, Metal, Stage};
use crate::world::World;

/// How long firmware, kernel and network take, in seconds.
const BOOT: f64 = 8.0;

/// What was found to boot.
pub struct Source {
    pub image: Image,
    pub from_disk: bool,
}

impl World<'_> {
    /// What a VM would boot, if it is Talos.
    pub fn talos_source(&self, vmid: u32) -> Option<Source> {
        for drive in self.hypervisor.boot_drives(vmid) {
            let Some(volume) = &drive.volume else { continue };
            if drive.cdrom {
                let named = volume.url.and_then(Image::from_url).or_else(|| Image::from_file(&volume.id));
                if let Some(image) = named {
                    return Some(Source { image, from_disk: false });
                }
                // A CD with something else on it boots that.
                if volume.iso {
                    return None;
                }
            } else if let Some(disk) = installed(&drive) {
                return Some(Source { image: disk.image.clone(), from_disk: true });
            } else if volume.bootable {
                return None;
            }
        }
        None
    }

    /// The cards of a VM that are plugged in, each with its address on the address drive, where the image reads that.
    fn cards(&self, vmid: u32, image: &Image) -> Vec<Card> {
        let mut cards = self.hypervisor.cards(vmid);
        cards.retain(|card| card.connected);
        if image.platform != "nocloud" {
            cards.iter_mut().for_each(|card| card.address = None);
        }
        cards
    }

    /// What DHCP gives to those cards that have no address otherwise.
    pub fn leases_of(&self, vmid: u32, image: &Image) -> Vec<String> {
        let asking = self.cards(vmid, image).into_iter().filter(|card| card.address.is_none());
        asking.filter_map(|card| self.talos.reservations.get(&card.mac.to_uppercase()).cloned()).collect()
    }

    /// Switches a machine on, or lets it boot again. Nothing if there is no Talos to boot.
    pub fn talos_boot(&mut self, key: &str, now: i64) {
        let (source, platform, leases) = match vmid(key) {
            Some(vmid) => {
                if self.hypervisor.vm(vmid).is_none() {
                    return;
                }
                let source = self.talos_source(vmid);
                let image = source.as_ref().map(|source| &source.image);
                let cards = image.map(|image| self.cards(vmid, image)).unwrap_or_default();
                let leases = image.map(|image| self.leases_of(vmid, image)).unwrap_or_default();
                (source, cards.into_iter().filter_map(|card| card.address).collect(), leases)
            }
            None => {
                let Some(metal) = self.talos.machines.get(key).and_then(|m| m.metal.as_ref()) else { return };
                (Some(metal_source(metal)), metal.addresses.clone(), Vec::new())
            }
        };
        // Proxmox writes its address drive when the VM starts, and a guest's own reboot does not.
        let kept = self.talos.machines.get(key).and_then(|machine| machine.boot.as_ref());
        let platform = kept.map_or(platform, |boot| boot.platform.clone());
        let boots = self.talos.machines.get(key).map_or(0, |machine| machine.boots) + 1;
        let id = self.uuid(&["boot", key, &boots.to_string()]);
        let until = now + self.scaled_ms(BOOT);
        let Some(machine) = self.talos.machines.get_mut(key) else { return };
        machine.boots = boots;
        let (stage, until) = match &source {
            Some(_) => (Stage::Booting, Some(until)),
            None => (Stage::NoSystem, None),
        };
        machine.boot = Some(Boot {
            id,
            stage,
            until,
            from_disk: source.as_ref().is_some_and(|source| source.from_disk),
            image: source.map(|source| source.image),
            platform,
            leases,
            config: None,
            booted_config: None,
            trial: None,
            stopped: Vec::new(),
            snapshot: None,
            running_since: None,
            etcd_since: None,
        });
    }
}

fn metal_source(metal: &Metal) -> Source {
    match &metal.disk {
        Some(disk) => Source { image: disk.image.clone(), from_disk: true },
        None => Source { image: metal.image.clone(), from_disk: false },
    }
}
