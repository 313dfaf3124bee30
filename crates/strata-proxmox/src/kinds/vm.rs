//! A QEMU guest.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{FieldRule, KindTable, Purpose, Rollout, fields, kind};

use super::guest::{self, GUEST};
use super::managed::ManagedKind;
use super::shared::{NO_FIELD, ONLY_APPLY};
use crate::codec::GuestKind;
use crate::preflight::Needs;

kind! {
    /// A virtual machine.
    "vm" {
        called: "VM {vmid} on {node}",
        shares: &[FIELDS, guest::FIELDS],
        rollout: Rollout::Member { always: false, follows: |_| false, group: guest::restart_group },
        runs_others: true,
        adopted_by: Some("vmid"),
        ..GUEST
    }
}

pub(super) struct Vm;

#[async_trait]
impl ManagedKind for Vm {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn guest(&self) -> Option<GuestKind> {
        Some(GuestKind::Qemu)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.guest(operation, GuestKind::Qemu);
    }
}

/// Also those of a template.
pub(super) static FIELDS: &[FieldRule] = fields! {
    /// its name in the interface of Proxmox
    "name": Text => InPlace [remote("name"), unfelt, purpose(Purpose::Name)];
    /// how it goes down before it is deleted; never compared
    "force_stop": Bool => Computed [no_tofu(ONLY_APPLY)];
    /// how long steps may take, in seconds; never compared
    "timeouts": Map => Computed [unfelt];
    /// the template that it is cloned from
    "clone": Map => CreateOnly [unfelt];
    /// VMID and node of the template, whether all is copied, and where to
    "clone.*": Any => CreateOnly;
    /// it is converted to a template at the end
    "template": Bool => InPlace [remote("template"), off_by_default];
    /// the model of its processor
    "cpu.type": Text => Restart [remote("cpu.cputype"), default_text("kvm64")];
    /// cores of each socket
    "cpu.cores": Int => Restart [remote("cores"), default_int(1)];
    /// sockets
    "cpu.sockets": Int => Restart [remote("sockets"), default_int(1)];
    /// memory is divided among sockets
    "cpu.numa": Bool => Restart [remote("numa"), off_by_default];
    /// features of the processor: `+aes`
    "cpu.flags": List => Restart [remote("cpu.flags"), set];
    /// its weight among others
    "cpu.units": Int => InPlace [remote("cpuunits")];
    /// at most so many cores' worth of time
    "cpu.limit": Text => InPlace [remote("cpulimit")];
    /// cores of the host that it may use
    "cpu.affinity": Text => Restart [remote("affinity")];
    /// memory
    "memory.size": Int => Restart [remote("memory.current"), default_int(512), mebibytes];
    /// memory that it keeps when the host needs some back
    "memory.balloon": Int => Restart [remote("balloon"), mebibytes];
    /// its firmware: `seabios` or `ovmf`
    "bios": Text => Restart [remote("bios"), default_text("seabios")];
    /// the machine type of QEMU
    "machine": Text => Restart [remote("machine")];
    /// the operating system that it is set up for
    "ostype": Text => Restart [remote("ostype"), default_text("other")];
    /// the controller of its SCSI disks
    "scsihw": Text => Restart [remote("scsihw"), default_text("lsi")];
    /// its clock runs in the local time of the host
    "local_time": Bool => Restart [remote("localtime"), off_by_default, no_tofu(NO_FIELD)];
    /// a pointer that needs no capture
    "tablet": Bool => InPlace [remote("tablet"), on_by_default];
    /// power management
    "acpi": Bool => Restart [remote("acpi"), on_by_default, no_tofu(NO_FIELD)];
    /// hardware virtualisation
    "kvm": Bool => Restart [remote("kvm"), on_by_default, no_tofu(NO_FIELD)];
    /// where the firmware keeps its settings
    "efidisk": Map => Restart [remote("efidisk0"), slot];
    /// its storage
    "efidisk.storage": Text => InPlace;
    /// its size class: `4m`
    "efidisk.type": Text => CreateOnly [remote("efidisk0.efitype")];
    /// the keys of Secure Boot are in it
    "efidisk.pre_enrolled_keys": Bool => CreateOnly [remote("efidisk0.pre-enrolled-keys")];
    /// its format
    "efidisk.format": Text => CreateOnly;
    /// the state of its TPM
    "tpm": Map => Restart [remote("tpmstate0"), slot];
    /// its storage
    "tpm.storage": Text => InPlace;
    /// its version: `v2.0`
    "tpm.version": Text => CreateOnly [remote("tpmstate0.version")];
    /// a disk, by its slot: `scsi0`
    "disks.*": Map => InPlace [remote("scsiN, virtioN, sataN, ideN"), slot, volume];
    /// its size
    "disks.*.size": Int => Grow [bytes];
    /// its storage
    "disks.*.storage": Text => InPlace;
    /// its format
    "disks.*.format": Text => CreateOnly;
    /// the volume that it is made from
    "disks.*.import": Text => CreateOnly;
    /// the guest sees a disk without moving parts
    "disks.*.ssd": Bool => Restart [remote("ssd"), off_by_default];
    /// freed blocks are given back
    "disks.*.discard": Bool => Restart [remote("discard"), off_by_default];
    /// a thread of its own
    "disks.*.iothread": Bool => Restart [remote("iothread"), off_by_default];
    /// the guest cannot write to it
    "disks.*.readonly": Bool => Restart [remote("ro"), off_by_default, no_tofu(NO_FIELD)];
    /// how the host caches it
    "disks.*.cache": Text => Restart [remote("cache"), default_text("none")];
    /// how requests reach the host
    "disks.*.aio": Text => Restart [remote("aio"), default_text("io_uring")];
    /// it is part of backups
    "disks.*.backup": Bool => InPlace [remote("backup"), on_by_default];
    /// it is part of replication
    "disks.*.replicate": Bool => InPlace [remote("replicate"), on_by_default];
    /// any other key of a disk
    "disks.*.*": Any => Restart [no_tofu(NO_FIELD)];
    /// what is in the drive when the VM is made; what is in it later is not ours
    "boot_media": Map => CreateOnly [unfelt];
    /// a drive for ISOs, by its slot
    "cdroms.*": Map => InPlace [slot];
    /// the volume in it, or `none`
    "cdroms.*.volume": Text => InPlace;
    /// drives for ISOs: what is in them is read at boot
    "cdroms": Map => InPlace [read_at_boot];
    /// a network device, by its slot: `net0`
    "networks.*": Map => InPlace [remote("netN"), slot];
    /// the model of the device
    "networks.*.model": Text => Restart [remote("netN.model")];
    /// its hardware address, upper case
    "networks.*.mac": Text => Restart [remote("netN.macaddr")];
    /// the bridge or virtual network that it is plugged into
    "networks.*.bridge": Text => InPlace [remote("netN.bridge")];
    /// its VLAN
    "networks.*.vlan": Int => InPlace [remote("netN.tag")];
    /// the largest packet
    "networks.*.mtu": Int => Restart [remote("netN.mtu")];
    /// queues of the device
    "networks.*.queues": Int => Restart [remote("netN.queues")];
    /// its traffic goes through the firewall
    "networks.*.firewall": Bool => InPlace [remote("netN.firewall"), off_by_default];
    /// unplugged
    "networks.*.link_down": Bool => InPlace [remote("netN.link_down"), off_by_default];
    /// at most so many megabytes a second
    "networks.*.rate": Text => InPlace [remote("netN.rate")];
    /// VLANs that pass through
    "networks.*.trunks": Text => InPlace [remote("netN.trunks")];
    /// any other key of a network device
    "networks.*.*": Any => Restart [no_tofu(NO_FIELD)];
    /// a PCI device of the host, by its slot
    "pci.*": Map => Restart [remote("hostpciN"), slot];
    /// on the PCI Express bus
    "pci.*.pcie": Bool => Restart [remote("hostpciN.pcie"), off_by_default];
    /// the guest sees its firmware
    "pci.*.rombar": Bool => Restart [remote("hostpciN.rombar"), on_by_default];
    /// it is the display
    "pci.*.xvga": Bool => Restart [remote("hostpciN.x-vga"), off_by_default];
    /// any other key of a PCI device
    "pci.*.*": Any => Restart [no_tofu(NO_FIELD)];
    /// a USB device of the host, by its slot
    "usb.*": Map => Restart [remote("usbN"), slot];
    /// at the speed of USB 3
    "usb.*.usb3": Bool => Restart [remote("usbN.usb3"), off_by_default];
    /// any other key of a USB device
    "usb.*.*": Any => Restart [no_tofu(NO_FIELD)];
    /// a serial port, by its slot
    "serial.*": Text => Restart [remote("serialN")];
    /// the display
    "vga": Map => Restart [remote("vga"), slot];
    /// type and memory of the display
    "vga.*": Any => Restart;
    /// the guest agent is asked
    "agent.enabled": Bool => Restart [remote("agent.enabled"), off_by_default];
    /// the agent trims after a disk has moved
    "agent.trim": Bool => Restart [remote("agent.fstrim_cloned_disks"), off_by_default];
    /// the agent freezes file systems for backups
    "agent.freeze": Bool => Restart [remote("agent.freeze-fs-on-backup"), on_by_default, no_tofu(NO_FIELD)];
    /// how the agent is reached
    "agent.type": Text => Restart [remote("agent.type"), default_text("virtio")];
    /// what it boots from, in order
    "boot": List => Restart [remote("boot")];
    /// what can be plugged while it runs
    "hotplug": List => Restart [remote("hotplug"), set];
    /// what cloud-init is given, read at boot
    "cloudinit": Map => Restart [read_at_boot];
    /// the drive that it is read from
    "cloudinit.drive": Map => Restart [slot];
    /// slot and storage of the drive
    "cloudinit.drive.*": Text => Restart;
    /// the password of its first user
    "cloudinit.password": Text => Restart [remote("cipassword"), write_only];
    /// the digest of a NoCloud ISO; never sent
    "cloudinit.content": Text => Restart [write_only];
    /// addresses of a network device, by its number
    "cloudinit.ipconfig.*": Map => Restart [remote("ipconfigN")];
    /// address and gateway, of both families
    "cloudinit.ipconfig.*.*": Text => Restart;
    /// packages are upgraded at the first boot
    "cloudinit.upgrade": Bool => Restart [remote("ciupgrade"), on_by_default];
    /// any other key of cloud-init
    "cloudinit.*": Any => Restart;
    /// the architecture of its processor
    "arch": Text => Replace [remote("arch"), because("the processor architecture is fixed at creation"), no_tofu(NO_FIELD)];
};
