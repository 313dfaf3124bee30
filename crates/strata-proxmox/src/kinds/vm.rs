//! A QEMU guest.

use strata_resource::{FieldRule, Rollout, fields, kind};

use super::guest::{self, GUEST};

kind! {
    /// A virtual machine.
    "vm" {
        called: "VM {vmid} on {node}",
        shares: &[FIELDS, guest::FIELDS],
        rollout: Rollout::Member { always: false, follows: |_| false },
        runs_others: true,
        ..GUEST
    }
}

/// Also those of a template.
pub(super) static FIELDS: &[FieldRule] = fields! {
    /// its name in the interface of Proxmox
    "name": Text => InPlace [unfelt];
    /// how it goes down before it is deleted; never compared
    "force_stop": Bool => Computed;
    /// the template that it is cloned from
    "clone": Map => CreateOnly [unfelt];
    /// VMID and node of the template, whether all is copied, and where to
    "clone.*": Any => CreateOnly;
    /// it is converted to a template at the end
    "template": Bool => InPlace [off_by_default];
    /// the model of its processor
    "cpu.type": Text => Restart [default_text("kvm64")];
    /// cores of each socket
    "cpu.cores": Int => Restart [default_int(1)];
    /// sockets
    "cpu.sockets": Int => Restart [default_int(1)];
    /// memory is divided among sockets
    "cpu.numa": Bool => Restart [off_by_default];
    /// features of the processor: `+aes`
    "cpu.flags": List => Restart [set];
    /// its weight among others
    "cpu.units": Int => InPlace;
    /// at most so many cores' worth of time
    "cpu.limit": Text => InPlace;
    /// cores of the host that it may use
    "cpu.affinity": Text => Restart;
    /// memory
    "memory.size": Int => Restart [default_int(512), mebibytes];
    /// memory that it keeps when the host needs some back
    "memory.balloon": Int => Restart [mebibytes];
    /// its firmware: `seabios` or `ovmf`
    "bios": Text => Restart [default_text("seabios")];
    /// the machine type of QEMU
    "machine": Text => Restart;
    /// the operating system that it is set up for
    "ostype": Text => Restart [default_text("other")];
    /// the controller of its SCSI disks
    "scsihw": Text => Restart [default_text("lsi")];
    /// a pointer that needs no capture
    "tablet": Bool => InPlace [on_by_default];
    /// power management
    "acpi": Bool => Restart [on_by_default];
    /// hardware virtualisation
    "kvm": Bool => Restart [on_by_default];
    /// where the firmware keeps its settings
    "efidisk": Map => Restart [slot];
    /// its storage
    "efidisk.storage": Text => InPlace;
    /// its size class: `4m`
    "efidisk.type": Text => CreateOnly;
    /// the keys of Secure Boot are in it
    "efidisk.pre_enrolled_keys": Bool => CreateOnly;
    /// its format
    "efidisk.format": Text => CreateOnly;
    /// the state of its TPM
    "tpm": Map => Restart [slot];
    /// its storage
    "tpm.storage": Text => InPlace;
    /// its version: `v2.0`
    "tpm.version": Text => CreateOnly;
    /// a disk, by its slot: `scsi0`
    "disks.*": Map => InPlace [slot, volume];
    /// its size
    "disks.*.size": Int => Grow [bytes];
    /// its storage
    "disks.*.storage": Text => InPlace;
    /// its format
    "disks.*.format": Text => CreateOnly;
    /// the volume that it is made from
    "disks.*.import": Text => CreateOnly;
    /// the guest sees a disk without moving parts
    "disks.*.ssd": Bool => Restart [off_by_default];
    /// freed blocks are given back
    "disks.*.discard": Bool => Restart [off_by_default];
    /// a thread of its own
    "disks.*.iothread": Bool => Restart [off_by_default];
    /// the guest cannot write to it
    "disks.*.readonly": Bool => Restart [off_by_default];
    /// how the host caches it
    "disks.*.cache": Text => Restart [default_text("none")];
    /// how requests reach the host
    "disks.*.aio": Text => Restart [default_text("io_uring")];
    /// it is part of backups
    "disks.*.backup": Bool => InPlace [on_by_default];
    /// it is part of replication
    "disks.*.replicate": Bool => InPlace [on_by_default];
    /// any other key of a disk
    "disks.*.*": Any => Restart;
    /// what is in the drive when the VM is made; what is in it later is not ours
    "boot_media": Map => CreateOnly [unfelt];
    /// a drive for ISOs, by its slot
    "cdroms.*": Map => InPlace [slot];
    /// the volume in it, or `none`
    "cdroms.*.volume": Text => InPlace;
    /// drives for ISOs: what is in them is read at boot
    "cdroms": Map => InPlace [read_at_boot];
    /// a network device, by its slot: `net0`
    "networks.*": Map => InPlace [slot];
    /// the model of the device
    "networks.*.model": Text => Restart;
    /// its hardware address, upper case
    "networks.*.mac": Text => Restart;
    /// the bridge or virtual network that it is plugged into
    "networks.*.bridge": Text => InPlace;
    /// its VLAN
    "networks.*.vlan": Int => InPlace;
    /// the largest packet
    "networks.*.mtu": Int => Restart;
    /// queues of the device
    "networks.*.queues": Int => Restart;
    /// its traffic goes through the firewall
    "networks.*.firewall": Bool => InPlace [off_by_default];
    /// unplugged
    "networks.*.link_down": Bool => InPlace [off_by_default];
    /// at most so many megabytes a second
    "networks.*.rate": Text => InPlace;
    /// VLANs that pass through
    "networks.*.trunks": Text => InPlace;
    /// any other key of a network device
    "networks.*.*": Any => Restart;
    /// a PCI device of the host, by its slot
    "pci.*": Map => Restart [slot];
    /// on the PCI Express bus
    "pci.*.pcie": Bool => Restart [off_by_default];
    /// the guest sees its firmware
    "pci.*.rombar": Bool => Restart [on_by_default];
    /// it is the display
    "pci.*.xvga": Bool => Restart [off_by_default];
    /// any other key of a PCI device
    "pci.*.*": Any => Restart;
    /// a USB device of the host, by its slot
    "usb.*": Map => Restart [slot];
    /// at the speed of USB 3
    "usb.*.usb3": Bool => Restart [off_by_default];
    /// any other key of a USB device
    "usb.*.*": Any => Restart;
    /// a serial port, by its slot
    "serial.*": Text => Restart;
    /// the display
    "vga": Map => Restart [slot];
    /// type and memory of the display
    "vga.*": Any => Restart;
    /// the guest agent is asked
    "agent.enabled": Bool => Restart [off_by_default];
    /// the agent trims after a disk has moved
    "agent.trim": Bool => Restart [off_by_default];
    /// the agent freezes file systems for backups
    "agent.freeze": Bool => Restart [on_by_default];
    /// how the agent is reached
    "agent.type": Text => Restart [default_text("virtio")];
    /// what it boots from, in order
    "boot": List => Restart;
    /// what can be plugged while it runs
    "hotplug": List => Restart [set];
    /// what cloud-init is given, read at boot
    "cloudinit": Map => Restart [read_at_boot];
    /// the drive that it is read from
    "cloudinit.drive": Map => Restart [slot];
    /// slot and storage of the drive
    "cloudinit.drive.*": Text => Restart;
    /// the password of its first user
    "cloudinit.password": Text => Restart [write_only];
    /// the digest of a NoCloud ISO; never sent
    "cloudinit.content": Text => Restart [write_only];
    /// addresses of a network device, by its number
    "cloudinit.ipconfig.*": Map => Restart;
    /// address and gateway, of both families
    "cloudinit.ipconfig.*.*": Text => Restart;
    /// packages are upgraded at the first boot
    "cloudinit.upgrade": Bool => Restart [on_by_default];
    /// any other key of cloud-init
    "cloudinit.*": Any => Restart;
    /// the architecture of its processor
    "arch": Text => Replace [because("the processor architecture is fixed at creation")];
};
