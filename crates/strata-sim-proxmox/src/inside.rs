//! A virtual machine as the system inside it sees it: its power, its drives with what is in them, its network cards.

use strata_sim_core::Medium;

use crate::api::format::parse_volume_id;
use crate::endpoints::qemu::drive;
use crate::endpoints::qemu::{boot, net, schema};
use crate::world::guest::Config;
use crate::world::{Guest, GuestKind, World};

/// The power of a virtual machine.
#[derive(Debug, Clone, Copy)]
pub struct Vm {
    /// Its number.
    pub vmid: u32,
    /// It is on.
    pub running: bool,
    /// It is on, and its processors stand still.
    pub paused: bool,
    /// When it was made, in milliseconds since 1970.
    pub created: i64,
    /// How often it was started or reset.
    pub starts: u64,
}

/// A drive with what is in it.
#[derive(Debug)]
pub struct Drive<'w> {
    /// `scsi0`, `ide2`, `efidisk0`.
    pub slot: String,
    /// It takes CDs; the one for cloud-init is one too.
    pub cdrom: bool,
    /// Proxmox writes the data of cloud-init on it.
    pub cloudinit: bool,
    /// Nothing, if it is empty.
    pub volume: Option<Volume<'w>>,
}

/// A disk or a CD.
#[derive(Debug)]
pub struct Volume<'w> {
    /// `local:iso/test.iso`.
    pub id: String,
    /// In bytes.
    pub size: u64,
    /// Where it was downloaded from.
    pub url: Option<&'w str>,
    /// It is the image of a CD.
    pub iso: bool,
    /// There is an operating system on it.
    pub bootable: bool,
    /// The system that was written on it from inside.
    pub medium: Option<&'w Medium>,
}

/// A network card.
#[derive(Debug, Clone)]
pub struct Card {
    /// The 0 of `net0`.
    pub number: u32,
    /// Its hardware address.
    pub mac: String,
    /// The bridge that it is plugged into is there.
    pub connected: bool,
    /// The address that cloud-init gives it, where there is a drive for that.
    pub address: Option<String>,
}

/// What a machine sees of a drive's configuration. Nothing else of it is read: machines look at their drives with every request that
/// anybody makes.
struct Slot<'c> {
    name: &'c str,
    file: &'c str,
    cdrom: bool,
}

impl<'c> Slot<'c> {
    fn read(name: &'c str, value: &'c str) -> Self {
        let mut slot = Self { name, file: "", cdrom: false };
        for part in value.split(',') {
            match part.split_once('=') {
                None => slot.file = part,
                Some(("file" | "volume", file)) => slot.file = file,
                Some(("media", media)) => slot.cdrom = media == "cdrom",
                Some(_) => {}
            }
        }
        slot
    }

    /// The drive under that key of a configuration.
    fn of(config: &'c Config, key: &str) -> Option<Self> {
        let (name, value) = config.get_key_value(key).filter(|(name, _)| drive::is_slot(name))?;
        Some(Self::read(name, value))
    }

    fn all(config: &'c Config) -> impl Iterator<Item = Self> {
        config.iter().filter(|(key, _)| drive::is_slot(key)).map(|(key, value)| Self::read(key, value))
    }

    fn is_cloudinit(&self) -> bool {
        drive::is_cloudinit(self.file)
    }

    /// The volume it has, if it is one that a storage keeps.
    fn volid(&self) -> Option<&'c str> {
        parse_volume_id(self.file).map(|_| self.file)
    }
}

/// The drives of a VM in the order in which its firmware tries them.
fn in_boot_order(config: &Config) -> Vec<Slot<'_>> {
    let boot = config.get("boot").map(String::as_str);
    // The usual form is read here: the whole option is checked when it is set.
    if let Some(list) = boot.and_then(|boot| boot.strip_prefix("order=")).filter(|list| !list.contains(',')) {
        return list.split(';').filter_map(|slot| Slot::of(config, slot)).collect();
    }
    let order = boot::order(boot);
    let order = if order.is_empty() { boot::order(Some(&boot::default_order(config))) } else { order };
    order.iter().filter_map(|slot| Slot::of(config, slot)).collect()
}

fn power(guest: &Guest) -> Vm {
    Vm {
        vmid: guest.vmid,
        running: guest.power.running,
        paused: guest.power.paused,
        created: guest.created,
        starts: guest.starts,
    }
}

impl World {
    fn qemu(&self, vmid: u32) -> Option<&Guest> {
        self.guests.get(&vmid).filter(|guest| guest.kind == GuestKind::Qemu)
    }

    /// Every virtual machine.
    pub fn vms(&self) -> impl Iterator<Item = Vm> {
        self.guests.values().filter(|guest| guest.kind == GuestKind::Qemu).map(power)
    }

    /// One of them.
    pub fn vm(&self, vmid: u32) -> Option<Vm> {
        self.qemu(vmid).map(power)
    }

    /// Its drives that can be booted, in the order in which its firmware tries them.
    pub fn boot_drives(&self, vmid: u32) -> Vec<Drive<'_>> {
        let Some(guest) = self.qemu(vmid) else { return Vec::new() };
        in_boot_order(&guest.config).iter().map(|slot| self.inserted(slot, guest)).collect()
    }

    /// All of its drives, by the names of their slots.
    pub fn drives(&self, vmid: u32) -> Vec<Drive<'_>> {
        let Some(guest) = self.qemu(vmid) else { return Vec::new() };
        Slot::all(&guest.config).map(|slot| self.inserted(&slot, guest)).collect()
    }

    fn inserted(&self, slot: &Slot<'_>, guest: &Guest) -> Drive<'_> {
        let volume = slot.volid().and_then(|volid| {
            let volume = self.volume(volid, &guest.node)?;
            Some(Volume {
                id: volid.to_owned(),
                size: volume.size,
                url: volume.url.as_deref(),
                iso: volume.content == "iso",
                bootable: volume.bootable,
                medium: volume.medium.as_ref(),
            })
        });
        Drive { slot: slot.name.to_owned(), cdrom: slot.cdrom, cloudinit: slot.is_cloudinit(), volume }
    }

    /// Its network cards.
    pub fn cards(&self, vmid: u32) -> Vec<Card> {
        let Some(guest) = self.qemu(vmid) else { return Vec::new() };
        let told = Slot::all(&guest.config).any(|drive| drive.is_cloudinit());
        let host = self.nodes.get(&guest.node);
        let nets = guest.config.iter().filter(|(key, _)| key.starts_with("net") && schema::exists(key));
        nets.filter_map(|(key, value)| {
            let number = key.trim_start_matches("net");
            let card = net::parse(value);
            let bridge = card.get("bridge");
            let ipconfig =
                guest.get(&format!("ipconfig{number}")).filter(|_| told).map(schema::parse_ipconfig);
            let ip = ipconfig.as_ref().and_then(|config| config.get("ip")).filter(|ip| *ip != "dhcp");
            Some(Card {
                number: number.parse().ok()?,
                mac: card.get("macaddr").unwrap_or_default().to_owned(),
                connected: host.is_some_and(|host| bridge.is_some_and(|bridge| host.has_bridge(bridge))),
                address: ip.and_then(|cidr| cidr.split('/').next()).map(str::to_owned),
            })
        })
        .collect()
    }

    /// Its memory in MiB, where that is configured.
    pub fn memory(&self, vmid: u32) -> Option<u64> {
        self.qemu(vmid)?.get("memory")?.split(',').next()?.parse().ok()
    }

    /// A system is written to the disk in that slot, or wiped from it. False if there is no such disk.
    pub fn write_medium(&mut self, vmid: u32, slot: &str, medium: Option<Medium>) -> bool {
        let place = self.qemu(vmid).and_then(|guest| {
            let drive = Slot::of(&guest.config, slot)?;
            self.place(drive.volid()?, &guest.node)
        });
        place.is_some_and(|place| {
            self.volumes.edit(&place, |volume| {
                volume.bootable = medium.is_some();
                volume.medium = medium;
            })
        })
    }

    /// The machine switches itself off.
    pub fn power_off(&mut self, vmid: u32) {
        if let Some(guest) = self.guests.get_mut(&vmid) {
            guest.power = Default::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read in passing is what the whole option says.
    #[test]
    fn a_drive_is_read_as_its_option_says() {
        let options = [
            ("scsi0", "tank:vm-100-disk-0,size=32G,ssd=1"),
            ("scsi1", "file=tank:base-9000-disk-0/vm-100-disk-1,iothread=1"),
            ("virtio0", "volume=local:100/vm-100-disk-0.qcow2,format=qcow2"),
            ("ide2", "local:iso/debian.iso,media=cdrom,size=600M"),
            ("ide3", "none,media=cdrom"),
            ("sata0", "tank:vm-100-cloudinit,media=cdrom"),
            ("scsi2", "/dev/disk/by-id/ata-x,media=disk"),
        ];
        for (name, value) in options {
            let whole = drive::Drive::parse(name, value).unwrap();
            let read = Slot::read(name, value);
            assert_eq!(read.volid(), whole.volid(), "{value}");
            assert_eq!(read.cdrom, whole.is_cdrom(), "{value}");
            assert_eq!(read.is_cloudinit(), whole.is_cloudinit(), "{value}");
        }
    }
}
