//! A virtual machine as the system inside it sees it: its power, its drives with what is in them, its network cards.

use strata_sim_core::Medium;

use crate::endpoints::qemu::drive::{self, Drive as Slot};
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

/// The drives of a VM in the order in which its firmware tries them.
fn in_boot_order(config: &Config) -> Vec<Slot> {
    let order = boot::order(config.get("boot").map(String::as_str));
    let order = if order.is_empty() { boot::order(Some(&boot::default_order(config))) } else { order };
    order
        .iter()
        .filter(|slot| drive::is_slot(slot))
        .filter_map(|slot| Slot::parse(slot, config.get(slot)?))
        .collect()
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
        drive::drives(&guest.config).map(|slot| self.inserted(&slot, guest)).collect()
    }

    fn inserted(&self, slot: &Slot, guest: &Guest) -> Drive<'_> {
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
        Drive { slot: slot.slot.clone(), cdrom: slot.is_cdrom(), cloudinit: slot.is_cloudinit(), volume }
    }

    /// Its network cards.
    pub fn cards(&self, vmid: u32) -> Vec<Card> {
        let Some(guest) = self.qemu(vmid) else { return Vec::new() };
        let told = drive::drives(&guest.config).any(|drive| drive.is_cloudinit());
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
            let drive = Slot::parse(slot, guest.get(slot)?)?;
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
