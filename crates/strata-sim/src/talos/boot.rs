//! Booting: what a machine starts from, and which addresses it has before it has a configuration.

use super::image::Image;
use super::machine::{Boot, Metal, Stage};
use crate::endpoints::qemu::drive::{self, Drive};
use crate::endpoints::qemu::{boot as boot_order, net, schema};
use crate::world::guest::Config;
use crate::world::{Guest, World};

/// How long firmware, kernel and network take, in seconds.
const BOOT: f64 = 8.0;

/// What was found to boot.
pub struct Source {
    pub image: Image,
    pub from_disk: bool,
}

/// The drives of a VM in the order in which its firmware tries them.
pub fn in_boot_order(config: &Config) -> Vec<Drive> {
    let order = boot_order::order(config.get("boot").map(String::as_str));
    let order =
        if order.is_empty() { boot_order::order(Some(&boot_order::default_order(config))) } else { order };
    order
        .iter()
        .filter(|slot| drive::is_slot(slot))
        .filter_map(|slot| Drive::parse(slot, config.get(slot)?))
        .collect()
}

impl World {
    /// What a VM would boot, if it is Talos.
    pub fn talos_source(&self, guest: &Guest) -> Option<Source> {
        for drive in in_boot_order(&guest.config) {
            let Some(volid) = drive.volid() else { continue };
            let Some(volume) = self.volume(volid, &guest.node) else { continue };
            if drive.is_cdrom() {
                let named =
                    volume.url.as_deref().and_then(Image::from_url).or_else(|| Image::from_file(volid));
                if let Some(image) = named {
                    return Some(Source { image, from_disk: false });
                }
                // A CD with something else on it boots that.
                if volume.content == "iso" {
                    return None;
                }
            } else if let Some(disk) = &volume.talos {
                return Some(Source { image: disk.image.clone(), from_disk: true });
            } else if volume.bootable {
                return None;
            }
        }
        None
    }

    /// The cards of a VM that are plugged in, each with its settings on the address drive, where the image reads that.
    fn cards(&self, guest: &Guest, image: &Image) -> Vec<(String, Option<String>)> {
        let has_drive = drive::drives(&guest.config).any(|drive| drive.is_cloudinit());
        let reads = has_drive && image.platform == "nocloud";
        let Some(host) = self.nodes.get(&guest.node) else { return Vec::new() };
        let cards = guest.config.iter().filter(|(key, _)| key.starts_with("net") && schema::exists(key));
        cards
            .filter_map(|(key, value)| {
                let card = net::parse(value);
                if !card.get("bridge").is_some_and(|bridge| host.has_bridge(bridge)) {
                    return None;
                }
                let ipconfig = guest.get(&format!("ipconfig{}", key.trim_start_matches("net")));
                let fixed = ipconfig.filter(|_| reads).map(schema::parse_ipconfig);
                let ip = fixed.as_ref().and_then(|fixed| fixed.get("ip")).filter(|ip| *ip != "dhcp");
                let address = ip.and_then(|cidr| cidr.split('/').next()).map(str::to_owned);
                Some((card.get("macaddr").unwrap_or_default().to_uppercase(), address))
            })
            .collect()
    }

    /// What DHCP gives to those cards that have no address otherwise.
    pub fn leases_of(&self, guest: &Guest, image: &Image) -> Vec<String> {
        let asking = self.cards(guest, image).into_iter().filter(|(_, fixed)| fixed.is_none());
        asking.filter_map(|(mac, _)| self.talos.reservations.get(&mac).cloned()).collect()
    }

    /// Switches a machine on, or lets it boot again. Nothing if there is no Talos to boot.
    pub fn talos_boot(&mut self, key: &str, now: i64) {
        let vmid = key.strip_prefix("vm/").and_then(|vmid| vmid.parse::<u32>().ok());
        let (source, platform, leases) = match vmid {
            Some(vmid) => {
                let Some(guest) = self.guests.get(&vmid) else { return };
                let source = self.talos_source(guest);
                let image = source.as_ref().map(|source| &source.image);
                let cards = image.map(|image| self.cards(guest, image)).unwrap_or_default();
                let leases = image.map(|image| self.leases_of(guest, image)).unwrap_or_default();
                (source, cards.into_iter().filter_map(|(_, fixed)| fixed).collect(), leases)
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

    /// So many seconds at this simulator's pace, in milliseconds.
    pub fn scaled_ms(&self, seconds: f64) -> i64 {
        (seconds * self.second * 1000.0) as i64
    }
}

fn metal_source(metal: &Metal) -> Source {
    match &metal.disk {
        Some(disk) => Source { image: disk.image.clone(), from_disk: true },
        None => Source { image: metal.image.clone(), from_disk: false },
    }
}
