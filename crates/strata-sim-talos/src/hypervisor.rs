//! What machines ask of the hypervisor that they run on. It is said here, so that no hypervisor is known here and none knows Talos.

use strata_sim_core::Medium;

/// Where hypervisors are, behind their lock.
pub trait Host: Send + Sync {
    /// The hypervisor, for as long as the guard lives.
    fn enter(&self) -> Box<dyn Hypervisor + '_>;
}

/// The virtual machines that there are. Those that are asked for and are not there have nothing.
pub trait Hypervisor {
    /// Every virtual machine.
    fn vms(&self) -> Vec<Vm>;
    /// One of them.
    fn vm(&self, vmid: u32) -> Option<Vm>;
    /// Its drives that can be booted, in the order in which its firmware tries them.
    fn boot_drives(&self, vmid: u32) -> Vec<Drive<'_>>;
    /// All of its drives, by the names of their slots.
    fn drives(&self, vmid: u32) -> Vec<Drive<'_>>;
    /// Its network cards.
    fn cards(&self, vmid: u32) -> Vec<Card>;
    /// Its memory in MiB, where that is configured.
    fn memory(&self, vmid: u32) -> Option<u64>;
    /// Writes a system to a disk, or wipes it. False if there is no such disk.
    fn write(&mut self, vmid: u32, slot: &str, medium: Option<Medium>) -> bool;
    /// The machine switches itself off.
    fn power_off(&mut self, vmid: u32);
}

/// The power of a virtual machine.
#[derive(Debug, Clone, Copy)]
pub struct Vm {
    /// Its number.
    pub vmid: u32,
    /// It is on.
    pub running: bool,
    /// It is on, and its processors stand still.
    pub paused: bool,
    /// When it was made, and how often it was started: another pair is another boot.
    pub power: (i64, u64),
}

/// A drive with what is in it.
#[derive(Debug)]
pub struct Drive<'h> {
    /// `scsi0`, `ide2`, `efidisk0`.
    pub slot: String,
    /// It takes CDs; the drive with addresses is one too.
    pub cdrom: bool,
    /// The hypervisor writes what it tells the guest on it.
    pub cloudinit: bool,
    /// Nothing, if it is empty.
    pub volume: Option<Volume<'h>>,
}

/// A disk or a CD.
#[derive(Debug)]
pub struct Volume<'h> {
    /// What the hypervisor calls it.
    pub id: String,
    /// In bytes.
    pub size: u64,
    /// Where it was downloaded from.
    pub url: Option<&'h str>,
    /// It is the image of a CD.
    pub iso: bool,
    /// There is some operating system on it.
    pub bootable: bool,
    /// The system that a machine wrote there.
    pub medium: Option<&'h Medium>,
}

/// A network card.
#[derive(Debug, Clone)]
pub struct Card {
    /// The first one is 0.
    pub number: u32,
    /// Its hardware address.
    pub mac: String,
    /// The bridge that it is plugged into is there.
    pub connected: bool,
    /// What the address drive says, where there is one.
    pub address: Option<String>,
}

/// The number of the virtual machine that a machine is, if it is one.
pub fn vmid(key: &str) -> Option<u32> {
    key.strip_prefix("vm/")?.parse().ok()
}

impl Drive<'_> {
    /// The kind of bus that it is on: `scsi` of `scsi0`.
    pub fn bus(&self) -> &str {
        self.slot.trim_end_matches(|c: char| c.is_ascii_digit())
    }

    /// Its place on that bus.
    pub fn number(&self) -> u32 {
        self.slot[self.bus().len()..].parse().unwrap_or_default()
    }

    /// The machine can keep something on it. What the firmware and the TPM keep is no disk of the machine.
    pub fn is_disk(&self) -> bool {
        !self.cdrom && !self.cloudinit && !matches!(self.bus(), "efidisk" | "tpmstate")
    }

    /// How much fits on it, if something is in it.
    pub fn size(&self) -> Option<u64> {
        self.volume.as_ref().map(|volume| volume.size)
    }
}
