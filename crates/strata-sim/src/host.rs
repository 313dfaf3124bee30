//! The datacenter as Talos machines see it: the hypervisor that they run on.

use std::ops::DerefMut;
use std::sync::Arc;

use strata_sim_core::Medium;
use strata_sim_proxmox::{self as proxmox, Datacenter, World};
use strata_sim_talos::{Card, Drive, Host, Hypervisor, Vm, Volume};

/// The datacenter, before anyone holds its lock.
pub(crate) struct Nodes(pub(crate) Arc<Datacenter>);

/// The virtual machines of a world that somebody holds.
pub(crate) struct Guests<W>(pub(crate) W);

impl Host for Nodes {
    fn enter(&self) -> Box<dyn Hypervisor + '_> {
        Box::new(Guests(self.0.world()))
    }
}

fn vm(vm: proxmox::Vm) -> Vm {
    Vm { vmid: vm.vmid, running: vm.running, paused: vm.paused, power: (vm.created, vm.starts) }
}

fn volume(volume: proxmox::Volume<'_>) -> Volume<'_> {
    let proxmox::Volume { id, size, url, iso, bootable, medium } = volume;
    Volume { id, size, url, iso, bootable, medium }
}

fn drive(drive: proxmox::Drive<'_>) -> Drive<'_> {
    let proxmox::Drive { slot, cdrom, cloudinit, volume: inserted } = drive;
    Drive { slot, cdrom, cloudinit, volume: inserted.map(volume) }
}

fn card(card: proxmox::Card) -> Card {
    let proxmox::Card { number, mac, connected, address } = card;
    Card { number, mac, connected, address }
}

impl<W: DerefMut<Target = World>> Hypervisor for Guests<W> {
    fn vms(&self) -> Vec<Vm> {
        self.0.vms().map(vm).collect()
    }

    fn vm(&self, vmid: u32) -> Option<Vm> {
        self.0.vm(vmid).map(vm)
    }

    fn boot_drives(&self, vmid: u32) -> Vec<Drive<'_>> {
        self.0.boot_drives(vmid).into_iter().map(drive).collect()
    }

    fn drives(&self, vmid: u32) -> Vec<Drive<'_>> {
        self.0.drives(vmid).into_iter().map(drive).collect()
    }

    fn cards(&self, vmid: u32) -> Vec<Card> {
        self.0.cards(vmid).into_iter().map(card).collect()
    }

    fn memory(&self, vmid: u32) -> Option<u64> {
        self.0.memory(vmid)
    }

    fn write(&mut self, vmid: u32, slot: &str, medium: Option<Medium>) -> bool {
        self.0.write_medium(vmid, slot, medium)
    }

    fn power_off(&mut self, vmid: u32) {
        self.0.power_off(vmid);
    }
}
