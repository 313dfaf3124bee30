//! The hardware of a VM, from the source's form to the canonical one.

use std::collections::BTreeSet;

use strata_resource::{Address, Spec, Value};
use strata_source::machine::device::{Agent, Efi, Pci, Tpm, Usb, Vga};
use strata_source::machine::disk::Disk;
use strata_source::machine::hardware::{Bios, Hardware};
use strata_source::machine::image::{ContentType, ImageRef};
use strata_source::machine::network::Nic;
use strata_source::stack::Stack;
use strata_yaml::Spanned;

use crate::fields::{Fields, decimal, int, list};
use crate::guest::put_raw;
use crate::image::ImageUse;
use crate::site::Draft;
use crate::storage::Storages;

/// The disk that a VM boots from unless it says otherwise.
pub(crate) const BOOT_DISK: &str = "scsi0";
/// Where a CD goes unless the source names a slot.
pub(crate) const CD_DRIVE: &str = "ide2";

/// What the hardware of one VM is built with.
pub(crate) struct Machine<'a> {
    /// Whose `images` can be named.
    pub(crate) stack: Option<&'a Stack>,
    pub(crate) address: &'a Address,
    pub(crate) name: &'a Spanned<String>,
    pub(crate) node: &'a str,
    pub(crate) storage: Storages<'a>,
    /// Something else decides what the source leaves open: a template, or a cluster's own defaults.
    pub(crate) inherits: bool,
    /// What it is cloned from, if it is.
    pub(crate) cloned: Option<&'a Cloned>,
    pub(crate) firewalled: bool,
    /// The hardware address that the source gives `net0`, … of this very machine.
    pub(crate) mac: &'a dyn Fn(&Nic) -> Option<String>,
}

/// A template, as the disks of its clones see it.
pub(crate) struct Cloned {
    pub(crate) full: bool,
    /// The slots that come with the clone.
    pub(crate) slots: BTreeSet<String>,
}

impl Cloned {
    /// Where a disk goes for which nothing is written; none if it stays where the template's is.
    fn storage<'s>(&self, slot: &str, storages: &Storages<'s>) -> Option<&'s str> {
        let comes_along = self.slots.contains(slot);
        match (comes_along, self.full) {
            // A linked disk is a difference to the template's, and lies beside it.
            (true, false) => None,
            (true, true) => storages.chosen_for_disks(),
            (false, _) => Some(storages.of_disks()),
        }
    }
}

/// The fields, and what must be there first.
#[derive(Default)]
pub(crate) struct Built {
    pub(crate) spec: Spec,
    pub(crate) needs: BTreeSet<Address>,
    pub(crate) storages: BTreeSet<String>,
}

impl Built {
    /// The storage of the disk that it boots from, else of its first one: what is made beside the disks goes there.
    pub(crate) fn home(&self) -> Option<String> {
        let disks = self.spec.get("disks").and_then(Value::as_map)?;
        let storage = |disk: &Value| Some(disk.as_map()?.get("storage")?.as_text()?.to_owned());
        disks.get(BOOT_DISK).and_then(storage).or_else(|| disks.values().find_map(storage))
    }
}

impl Draft<'_> {
    /// `boot` is what the first disk is copied from, or the CD that is booted.
    pub(crate) fn hardware(
        &mut self,
        machine: &Machine<'_>,
        hardware: &Hardware,
        boot: Option<&ImageRef>,
    ) -> Built {
        let mut built = Built::default();
        plain(&mut built.spec, hardware, machine.inherits);
        self.disks(machine, hardware, boot, &mut built);
        let mut networks = Spec::new();
        for (slot, nic) in hardware.network.iter() {
            networks.put(slot, self.nic(machine, slot, nic));
        }
        built.spec.put_full("networks", Value::Map(networks));
        let first = built.home().unwrap_or_else(|| machine.storage.of_disks().to_owned());
        // OVMF forgets its settings without a disk for them.
        let wants_efi = hardware.bios == Some(Bios::Ovmf) && !machine.inherits;
        if hardware.efi.is_some() || wants_efi {
            built.spec.put("efidisk", efi_disk(hardware.efi.as_ref(), &first));
        }
        if let Some(tpm) = hardware.tpm.as_ref().filter(|tpm| tpm.enabled) {
            built.spec.put("tpm", tpm_disk(tpm, &first));
        }
        built
    }

    fn disks(
        &mut self,
        machine: &Machine<'_>,
        hardware: &Hardware,
        boot: Option<&ImageRef>,
        built: &mut Built,
    ) {
        let (mut disks, mut cdroms) = (Spec::new(), Spec::new());
        let first = hardware.disk.as_ref().map(|disk| (BOOT_DISK, disk));
        let by_slot = hardware.disks.iter().map(|(slot, disk)| (slot.as_str(), disk));
        for (slot, disk) in first.into_iter().chain(by_slot) {
            if let Some(iso) = &disk.iso {
                if let Some(volume) = self.volume(machine, iso, ContentType::Iso, built) {
                    cdroms.put(slot, Spec::from([("volume".to_owned(), Value::Text(volume.0))]));
                }
                continue;
            }
            let spec = self.disk(machine, slot, disk, built);
            // `disk` and `disks.scsi0` together: the slot adds to the short form.
            match disks.get_mut(slot) {
                Some(Value::Map(known)) => known.extend(spec),
                _ => disks.put(slot, spec),
            }
        }
        let mut order = Vec::new();
        if let Some(boot) = boot
            && let Some((volume, content)) = self.volume(machine, boot, ContentType::Iso, built)
        {
            let has_disk = !disks.is_empty() || content != ContentType::Iso;
            if has_disk {
                order.push(BOOT_DISK.to_owned());
            }
            if content == ContentType::Iso {
                cdroms.put(CD_DRIVE, Spec::from([("volume".to_owned(), Value::Text(volume))]));
                order.push(CD_DRIVE.to_owned());
            } else {
                Self::import(machine, &mut disks, volume, built);
            }
        }
        for (slot, disk) in &disks {
            let complete = disk.as_map().is_some_and(|disk| {
                ["size", "import", "volume"].iter().any(|field| disk.contains_key(*field))
            });
            if !complete && !machine.inherits {
                let message = format!("the disk `{slot}` of `{}` has no size", machine.name);
                self.refuse("no-size", message, machine.name.span);
            }
        }
        built.spec.put_full("disks", Value::Map(disks));
        built.spec.put_full("cdroms", Value::Map(cdroms));
        let written: Vec<String> = hardware.boot_order.iter().map(|slot| slot.value.clone()).collect();
        built.spec.put_full("boot", list(if written.is_empty() { order } else { written }));
    }

    /// The first disk begins as a copy of an image.
    fn import(machine: &Machine<'_>, disks: &mut Spec, volume: String, built: &mut Built) {
        let disk = disks.entry(BOOT_DISK.to_owned()).or_insert_with(|| Value::Map(Spec::new()));
        let Value::Map(disk) = disk else { return };
        disk.put("import", volume);
        if !disk.contains_key("storage") {
            let storage = machine.storage.of_disks();
            built.storages.insert(storage.to_owned());
            disk.put("storage", storage);
        }
    }

    fn volume(
        &mut self,
        machine: &Machine<'_>,
        image: &ImageRef,
        wanted: ContentType,
        built: &mut Built,
    ) -> Option<(String, ContentType)> {
        let used = ImageUse { name: machine.name, node: machine.node, wanted, storage: machine.storage };
        let volume = self.image(machine.stack, image, &used)?;
        built.needs.extend(volume.resource);
        Some((volume.id, volume.content))
    }

    pub(crate) fn disk(&mut self, machine: &Machine<'_>, slot: &str, disk: &Disk, built: &mut Built) -> Spec {
        let mut spec = Spec::new();
        let default = match machine.cloned {
            _ if disk.volume.is_some() => None,
            Some(cloned) => cloned.storage(slot, &machine.storage),
            None => (!machine.inherits).then(|| machine.storage.of_disks()),
        };
        let default = default.map(str::to_owned);
        if let Some(storage) = disk.storage.as_ref().map(|storage| storage.value.clone()).or(default) {
            built.storages.insert(storage.clone());
            spec.put("storage", storage);
        }
        spec.put_some("size", disk.size.map(|size| int(size.bytes())));
        spec.put_some("volume", disk.volume.as_ref().map(|volume| volume.value.clone()));
        if let Some(import) = &disk.import
            && let Some((volume, _)) = self.volume(machine, import, ContentType::Import, built)
        {
            spec.put("import", volume);
        }
        spec.put_some("ssd", disk.ssd);
        spec.put_some("discard", disk.discard);
        spec.put_some("iothread", disk.iothread);
        spec.put_some("cache", disk.cache.map(|cache| cache.to_string()));
        spec.put_some("backup", disk.backup);
        spec.put_some("replicate", disk.replicate);
        spec.put_some("aio", disk.aio.map(|aio| aio.to_string()));
        spec.put_some("format", disk.format.map(|format| format.to_string()));
        spec.put_some("readonly", disk.read_only);
        spec.put_some("serial", disk.serial.clone());
        put_raw(&mut spec, &disk.options);
        spec
    }

    fn nic(&self, machine: &Machine<'_>, slot: &str, nic: &Nic) -> Spec {
        let mut spec = Spec::new();
        spec.put("model", nic.model.map_or_else(|| "virtio".to_owned(), |model| model.to_string()));
        spec.put("mac", (machine.mac)(nic).unwrap_or_else(|| self.derived_mac(machine.address, slot)));
        spec.put("bridge", nic.bridge.as_ref().map_or("vmbr0", |bridge| bridge.value.as_str()));
        spec.put_some("vlan", nic.vlan.map(int));
        spec.put_full("trunks", trunks(&nic.trunks));
        spec.put_some("mtu", nic.mtu.map(int));
        spec.put_some("queues", nic.queues.map(int));
        // A guest with rules wants them to apply to its devices.
        spec.put_some("firewall", nic.firewall.or(machine.firewalled.then_some(true)));
        spec.put_some("rate", nic.rate.map(decimal));
        spec.put_some("link_down", nic.link_down);
        put_raw(&mut spec, &nic.options);
        spec
    }
}

pub(crate) fn trunks(vlans: &[u16]) -> Value {
    let vlans: Vec<String> = vlans.iter().map(ToString::to_string).collect();
    if vlans.is_empty() { Value::List(Vec::new()) } else { Value::Text(vlans.join(";")) }
}

/// Everything that is no slot.
fn plain(spec: &mut Spec, hardware: &Hardware, inherits: bool) {
    let fresh = |value: &'static str| (!inherits).then(|| value.to_owned());
    let cpu = hardware.cpu.as_ref();
    let mut processor = Spec::new();
    processor.put_some("type", cpu.and_then(|cpu| cpu.kind.clone()).or_else(|| fresh("x86-64-v2-AES")));
    processor.put_some("cores", hardware.cores.or((!inherits).then_some(1)).map(int));
    processor.put_some("sockets", hardware.sockets.map(int));
    if let Some(cpu) = cpu {
        processor.put_full("flags", list(&cpu.flags));
        processor.put_some("units", cpu.units.map(int));
        processor.put_some("limit", cpu.limit.map(decimal));
        processor.put_some("numa", cpu.numa);
        processor.put_some("affinity", cpu.affinity.clone());
    }
    spec.put_full("cpu", Value::Map(processor));
    let mut memory = Spec::new();
    memory.put_some(
        "size",
        hardware.memory.map(|memory| memory.mib()).or((!inherits).then_some(2048)).map(int),
    );
    memory.put_some("balloon", hardware.balloon.map(int));
    spec.put_full("memory", Value::Map(memory));
    spec.put_some("bios", hardware.bios.map(|bios| bios.to_string()));
    spec.put_some("machine", hardware.machine.clone());
    spec.put_some(
        "scsihw",
        hardware.scsi_controller.map(|hw| hw.to_string()).or_else(|| fresh("virtio-scsi-single")),
    );
    spec.put_some("ostype", hardware.os_type.map(|os| os.to_string()).or_else(|| fresh("l26")));
    spec.put_some("local_time", hardware.local_time);
    spec.put_some("tablet", hardware.tablet);
    spec.put_some("hotplug", hardware.hotplug.as_ref().map(list));
    spec.put_some("vga", hardware.vga.as_ref().map(vga));
    spec.put_some("agent", hardware.agent.as_ref().map(agent));
    spec.put_full(
        "pci",
        Value::Map(hardware.pci.iter().map(|(slot, pci_)| (slot.value.clone(), pci(pci_))).collect()),
    );
    spec.put_full(
        "usb",
        Value::Map(hardware.usb.iter().map(|(slot, usb_)| (slot.value.clone(), usb(usb_))).collect()),
    );
    let serial = hardware.serial.iter().map(|(slot, port)| (slot.value.clone(), Value::Text(port.clone())));
    spec.put_full("serial", Value::Map(serial.collect()));
}

fn vga(vga: &Vga) -> Value {
    let mut spec = Spec::new();
    spec.put_some("type", vga.kind.map(|kind| kind.to_string()));
    spec.put_some("memory", vga.memory.map(int));
    Value::Map(spec)
}

fn agent(agent: &Agent) -> Value {
    let mut spec = Spec::new();
    spec.put("enabled", agent.enabled);
    spec.put_some("trim", agent.trim);
    spec.put_some("freeze", agent.freeze);
    spec.put_some("type", agent.kind.map(|kind| kind.to_string()));
    Value::Map(spec)
}

pub(crate) fn pci(pci: &Pci) -> Value {
    let mut spec = Spec::new();
    spec.put_some("device", pci.device.as_ref().map(|device| device.value.clone()));
    spec.put_some("mapping", pci.mapping.as_ref().map(|mapping| mapping.value.clone()));
    spec.put_some("pcie", pci.pcie);
    spec.put_some("rombar", pci.rombar);
    spec.put_some("xvga", pci.xvga);
    spec.put_some("mdev", pci.mdev.clone());
    put_raw(&mut spec, &pci.options);
    Value::Map(spec)
}

pub(crate) fn usb(usb: &Usb) -> Value {
    let mut spec = Spec::new();
    spec.put_some("device", usb.device.as_ref().map(|device| device.value.clone()));
    spec.put_some("mapping", usb.mapping.as_ref().map(|mapping| mapping.value.clone()));
    spec.put_some("usb3", usb.usb3);
    Value::Map(spec)
}

fn efi_disk(efi: Option<&Efi>, default: &str) -> Spec {
    let mut spec = Spec::new();
    let storage = efi.and_then(|efi| efi.storage.as_ref());
    spec.put("storage", storage.map_or(default, |storage| storage.value.as_str()));
    spec.put("type", efi.and_then(|efi| efi.kind).map_or_else(|| "4m".to_owned(), |kind| kind.to_string()));
    spec.put("pre_enrolled_keys", efi.and_then(|efi| efi.pre_enrolled_keys).unwrap_or(false));
    spec.put_some("format", efi.and_then(|efi| efi.format).map(|format| format.to_string()));
    spec
}

fn tpm_disk(tpm: &Tpm, default: &str) -> Spec {
    let mut spec = Spec::new();
    spec.put("storage", tpm.storage.as_ref().map_or(default, |storage| storage.value.as_str()));
    spec.put("version", tpm.version.map_or_else(|| "v2.0".to_owned(), |version| version.to_string()));
    spec
}
