//! A Talos cluster: its boot image and its VMs, what Talos is told on each, and what the cluster then has once.

mod config;
#[cfg(test)]
mod every_field;
mod gitops;
mod machine;
mod schematic;

pub use self::machine::{ClusterPlan, NodePlan};

use std::collections::BTreeSet;

use strata_diagnostics::{Diagnostic, Diagnostics};
use strata_resource::{Address, Resource, RestartPolicy, Spec, Stage, Value};
use strata_source::cluster::nodes::Machine as Node;
use strata_source::cluster::topology::NodeSettings;
use strata_source::cluster::{Cluster, ClusterVm, TAGS};
use strata_source::machine::disk::Disk;
use strata_source::machine::image::ContentType;
use strata_yaml::Spanned;

use crate::fields::{Fields, int, list};
use crate::guest::{raw, startup, tags, timeouts};
use crate::hardware::{BOOT_DISK, Built, CD_DRIVE, Machine};
use crate::image::Download;
use crate::kinds;
use crate::site::{Blueprint, Draft, Site};
use crate::storage::Storages;

const FACTORY: &str = "https://factory.talos.dev";
/// The CD drive is the boot image's; the addresses come in the other one.
const ADDRESS_DRIVE: &str = "ide0";
const DEFAULT_DISK_GIB: u64 = 64;

/// The target of what a cluster has inside: its nodes' Talos and its Kubernetes.
pub fn cluster_target(stack: &str) -> String {
    format!("cluster:{stack}")
}

/// Draws a cluster. One without `proxmox` is bare metal: its machines are there already.
pub fn draw_cluster(site: &Site<'_>, cluster: &Cluster) -> Result<Blueprint, Vec<Diagnostic>> {
    let named = cluster.proxmox.as_ref().and_then(|proxmox| proxmox.target.as_ref());
    let target = named.map(|target| target.value.as_str()).or(site.default_target);
    if cluster.proxmox.is_some() && target.is_none() {
        let message = format!("the cluster `{}` names no target", site.stack);
        return Err(vec![Diagnostic::error("no-target", message).hint("set `proxmox: {target: …}`")]);
    }
    let mut draft = Draft::new(site, target.unwrap_or_default().to_owned());
    let mut diagnostics = Diagnostics::default();
    let nodes = cluster.machines(site.stack, &mut diagnostics);
    if cluster.proxmox.is_some() {
        let seat = |node: &'_ Node<'_>| draft.address(kinds::VM, &node.name);
        let seats: Vec<_> = nodes.iter().map(|node| (seat(node), node.seat())).collect();
        draft.spread(&seats);
        for node in &nodes {
            draft.cluster_node(cluster, node);
        }
    }
    draft.cluster_outputs(cluster);
    draft.datasets(cluster);
    draft.talos(cluster, &nodes);
    draft.found.extend(diagnostics.into_iter().filter(Diagnostic::is_error));
    if draft.found.is_empty() { Ok(draft.blueprint) } else { Err(draft.found) }
}

impl Draft<'_> {
    fn cluster_node(&mut self, cluster: &Cluster, node: &Node<'_>) {
        let Some(proxmox) = &cluster.proxmox else { return };
        let name = Spanned::new(node.name.clone(), node.span);
        let (Some(vm_id), Some(hypervisor)) = (node.vm_id, &node.hypervisor) else {
            let _ = self.node(node.hypervisor.as_ref(), &name);
            return;
        };
        let address = self.address(kinds::VM, &node.name);
        let written = hypervisor.as_str();
        let hypervisor = &self.home(&address, written);
        let vm = proxmox.vm.as_ref();
        let storages = Storages::new(proxmox.storage.as_ref());
        let machine = Machine {
            stack: None,
            address: &address,
            name: &name,
            node: hypervisor,
            storage: storages,
            inherits: true,
            cloned: None,
            firewalled: false,
            mac: &|nic| nic.mac.as_ref().map(|mac| mac.value.to_string()),
        };
        let mut built = match vm {
            Some(vm) => self.hardware(&machine, &vm.hardware, None),
            None => Built::default(),
        };
        let boot = boot_slot(vm);
        self.sizes(node, storages, &boot, &mut built);
        self.devices(node, &machine, &mut built);
        self.network(cluster, node, &machine, &mut built.spec);
        addresses(cluster, node, storages, &mut built.spec);
        self.blueprint.addresses.extend(node.address.map(|own| (address.clone(), own.value.to_string())));
        let image = self.boot_image(cluster, node, storages, hypervisor);
        let mut spec = Spec::new();
        spec.put("vmid", int(vm_id.value));
        spec.put("node", hypervisor.as_str());
        spec.put("name", node.name.as_str());
        spec.put("mark", self.mark(&address, vm_id.value));
        spec.put("power", "running");
        spec.extend(built.spec);
        let mut depends_on: BTreeSet<Address> = built.needs;
        if let Some((volume, resource)) = image {
            // Only to install from: once Talos is on the disk, the machine has it ejected.
            let media = [("slot".to_owned(), CD_DRIVE.into()), ("volume".to_owned(), Value::Text(volume))];
            spec.put("boot_media", Spec::from(media));
            depends_on.extend(resource);
        }
        if let Some(kind) = vm.and_then(|vm| vm.cpu_type.as_ref()) {
            group(&mut spec, "cpu").entry("type".to_owned()).or_insert_with(|| kind.as_str().into());
        }
        let secure =
            node.setting(|settings| settings.secure_boot).unwrap_or(cluster.cluster.talos.secure_boot);
        let tpm = vm.and_then(|vm| vm.hardware.tpm.as_ref()).map_or(secure, |tpm| tpm.enabled);
        talos_defaults(&mut spec, storages, &boot, tpm);
        // An empty list is none, not the usual ones.
        if let Some(own) = vm.and_then(|vm| vm.tags.as_ref()) {
            spec.remove("tags");
            spec.put_full("tags", tags(own));
        }
        let own_startup = node.setting(|settings| settings.startup.as_ref());
        if let Some(vm) = vm {
            spec.put_some("pool", vm.pool.as_ref().map(|pool| pool.value.clone()));
            spec.put_some("notes", vm.notes.as_ref().map(|notes| notes.trim_end().to_owned()));
            spec.put_some("protection", vm.protection);
            spec.put_some("onboot", vm.onboot);
            spec.put_some("timeouts", vm.timeouts.as_ref().map(timeouts));
            spec.put_some("force_stop", vm.force_stop.filter(|force| *force));
            let more = vm.proxmox.as_ref().map(|proxmox| proxmox.options.iter()).into_iter().flatten();
            spec.put_full(
                "options",
                raw(vm.options.iter().chain(more).map(|(key, value)| (key.as_str(), value))),
            );
        }
        spec.put_some("startup", own_startup.or(vm.and_then(|vm| vm.startup.as_ref())).map(startup));
        let limits = built.storages.iter().map(|storage| format!("storage:{hypervisor}/{storage}")).collect();
        let protect = node.setting(|settings| settings.protect).or(vm.and_then(|vm| vm.protect));
        let mut resource = Resource {
            address,
            target: self.target.clone(),
            spec,
            depends_on,
            stage: Stage::Compute,
            protect: protect.unwrap_or(false),
            on_change: RestartPolicy::default(),
            ignore: Vec::new(),
            limits,
            origin: self.origin(node.span),
        };
        // Machines of one role are kept apart: a hypervisor that is lost takes as few of them with it as can be.
        self.leave_open(written, Some(format!("{:?}", node.role)), &mut resource);
        self.insert(resource);
    }

    fn sizes(&self, node: &Node<'_>, storages: Storages<'_>, boot: &str, built: &mut Built) {
        let cpu = group(&mut built.spec, "cpu");
        cpu.put_some("cores", node.cores.map(int));
        cpu.put_some("sockets", node.sockets.map(int));
        let memory = group(&mut built.spec, "memory");
        memory.put_some("size", node.memory.map(|memory| int(memory.mib())));
        let disk = group(group(&mut built.spec, "disks"), boot);
        let size = node.disk.map_or(DEFAULT_DISK_GIB << 30, |disk| disk.bytes());
        disk.put("size", int(size));
        let storage = disk.entry("storage".to_owned()).or_insert_with(|| storages.of_disks().into());
        built.storages.extend(storage.as_text().map(str::to_owned));
    }

    /// Disks and devices that the node or its pool adds.
    fn devices(&mut self, node: &Node<'_>, machine: &Machine<'_>, built: &mut Built) {
        let settings: Vec<&NodeSettings> = node.settings.iter().rev().copied().collect();
        for settings in settings {
            for (slot, disk) in settings.disks.iter() {
                let spec = self.disk(&Machine { inherits: false, ..*machine }, slot, disk, built);
                group(&mut built.spec, "disks").put(slot, spec);
            }
            for (slot, pci) in settings.pci.iter() {
                group(&mut built.spec, "pci").put(slot, crate::hardware::pci(pci));
            }
            for (slot, usb) in settings.usb.iter() {
                group(&mut built.spec, "usb").put(slot, crate::hardware::usb(usb));
            }
        }
    }

    fn network(&self, cluster: &Cluster, node: &Node<'_>, machine: &Machine<'_>, spec: &mut Spec) {
        let network = cluster.cluster.network.as_ref();
        let proxmox = cluster.proxmox.as_ref().and_then(|proxmox| proxmox.network.as_ref());
        let bridge = network
            .and_then(|network| network.bridge.as_ref())
            .or(proxmox.and_then(|network| network.bridge.as_ref()));
        let mtu = node.setting(|settings| settings.mtu).or(network.and_then(|network| network.mtu));
        let nic = group(group(spec, "networks"), "net0");
        let mac = node.mac.map(|mac| mac.value.to_string());
        nic.put("mac", mac.unwrap_or_else(|| self.derived_mac(machine.address, "net0")));
        nic.entry("model".to_owned()).or_insert_with(|| "virtio".into());
        match bridge {
            Some(bridge) => nic.put("bridge", bridge.value.as_str()),
            None => {
                nic.entry("bridge".to_owned()).or_insert_with(|| "vmbr0".into());
            }
        }
        nic.put_some("vlan", network.and_then(|network| network.vlan).map(int));
        nic.put_some("mtu", mtu.map(int));
    }

    /// The Talos ISO of the image factory, one for each schematic, version and kind.
    fn boot_image(
        &mut self,
        cluster: &Cluster,
        node: &Node<'_>,
        storages: Storages<'_>,
        hypervisor: &str,
    ) -> Option<(String, Option<Address>)> {
        let defaults = cluster.proxmox.as_ref().and_then(|proxmox| proxmox.storage.as_ref());
        if let Some(path) = defaults.and_then(|defaults| defaults.iso_path.as_ref()) {
            return Some((path.value.clone(), None));
        }
        let talos = &cluster.cluster.talos;
        let id = schematic_id(cluster, node);
        let version = format!("v{}", talos.version.trim_start_matches('v'));
        let arch = talos.arch.map_or_else(|| "amd64".to_owned(), |arch| arch.to_string());
        let secure = node.setting(|settings| settings.secure_boot).unwrap_or(talos.secure_boot);
        let suffix = if secure { "-secureboot" } else { "" };
        let url = format!("{FACTORY}/image/{id}/{version}/nocloud-{arch}{suffix}.iso");
        let schematic = self.schematic(cluster, node);
        let lineage = self.site.lineage.short();
        let file = format!("strata-{lineage}-talos-{version}-nocloud-{arch}{suffix}-{}.iso", &id[..12]);
        let storage = storages.of_images(ContentType::Iso).to_owned();
        let download = Download {
            name: "talos",
            file,
            storage,
            content: ContentType::Iso,
            url: &url,
            checksum: None,
            span: talos.version.span,
        };
        let (volume, address) = self.downloaded(download, hypervisor);
        // The factory knows only schematics that somebody gave it.
        if let Some(schematic) = schematic {
            self.blueprint.graph.add_dependency(&address, schematic);
        }
        Some((volume, Some(address)))
    }
}

/// The schematic that a node is installed with.
fn schematic_of<'c>(cluster: &'c Cluster, node: &Node<'c>) -> Option<&'c strata_source::cluster::Schematic> {
    node.setting(|settings| settings.schematic.as_ref()).or(cluster.cluster.talos.schematic.as_ref())
}

fn schematic_id(cluster: &Cluster, node: &Node<'_>) -> String {
    match (schematic_of(cluster, node), &cluster.cluster.talos.factory_schematic) {
        (Some(schematic), _) => schematic::id(schematic),
        (None, Some(id)) => id.value.clone(),
        (None, None) => schematic::plain_id(),
    }
}

/// The address is known before the first boot: Talos reads it from Proxmox' cloud-init drive. Without one it asks DHCP, which knows
/// the card.
fn addresses(cluster: &Cluster, node: &Node<'_>, storages: Storages<'_>, spec: &mut Spec) {
    let (Some(network), Some(address)) = (&cluster.cluster.network, &node.address) else { return };
    if cluster.asks_dhcp(node) {
        return;
    }
    let mut drive = Spec::new();
    drive.put("slot", ADDRESS_DRIVE);
    drive.put("storage", storages.of_disks());
    let mut config = Spec::new();
    config.put("ip", network.cidr.with_address(address.value).to_string());
    config.put_some("gateway", network.gateway.as_ref().map(|gateway| gateway.0.to_string()));
    let cloudinit = group(spec, "cloudinit");
    cloudinit.put("drive", drive);
    cloudinit.put("ipconfig", Spec::from([("ipconfig0".to_owned(), Value::Map(config))]));
    cloudinit.put_full("nameservers", list(network.nameservers.iter().map(|server| server.0)));
}

/// The slot of the disk that Talos is installed on: the one whose size the nodes say, and otherwise the usual one.
pub(crate) fn boot_slot(vm: Option<&ClusterVm>) -> String {
    let without_size = |disk: &Disk| {
        disk.size.is_none() && disk.iso.is_none() && disk.volume.is_none() && disk.import.is_none()
    };
    let slots = vm.into_iter().flat_map(|vm| vm.hardware.disks.iter());
    let mut named = slots.filter(|(_, disk)| without_size(disk)).map(|(slot, _)| slot.value.clone());
    named.next().unwrap_or_else(|| BOOT_DISK.to_owned())
}

/// What suits Talos on Proxmox, where the source says nothing else.
fn talos_defaults(spec: &mut Spec, storages: Storages<'_>, boot: &str, with_tpm: bool) {
    let missing = |spec: &mut Spec, key: &str, value: Value| {
        spec.entry(key.to_owned()).or_insert(value);
    };
    missing(spec, "bios", "ovmf".into());
    missing(spec, "machine", "q35".into());
    missing(spec, "ostype", "l26".into());
    missing(spec, "scsihw", "virtio-scsi-single".into());
    missing(spec, "onboot", true.into());
    missing(spec, "tags", list(TAGS));
    missing(spec, "boot", list([boot, CD_DRIVE]));
    let cpu = group(spec, "cpu");
    missing(cpu, "type", "host".into());
    missing(cpu, "cores", int(4_u32));
    missing(cpu, "numa", true.into());
    let memory = group(spec, "memory");
    missing(memory, "size", int(8192_u32));
    missing(memory, "balloon", int(0_u32));
    missing(group(spec, "agent"), "enabled", true.into());
    let disk = group(group(spec, "disks"), boot);
    for (key, value) in
        [("discard", true), ("ssd", true), ("iothread", true), ("backup", false), ("replicate", false)]
    {
        // A disk of VirtIO is never shown as a solid-state one, and only these two buses have threads of their own.
        let can = match key {
            "ssd" => !boot.starts_with("virtio"),
            "iothread" => boot.starts_with("virtio") || boot.starts_with("scsi"),
            _ => true,
        };
        if can {
            missing(disk, key, value.into());
        }
    }
    let storage = disk.get("storage").cloned().unwrap_or_else(|| storages.of_disks().into());
    if spec.get("bios").and_then(Value::as_text) == Some("ovmf") {
        let efi = group(spec, "efidisk");
        missing(efi, "storage", storage.clone());
        missing(efi, "type", "4m".into());
        missing(efi, "pre_enrolled_keys", false.into());
    }
    if with_tpm {
        let tpm = group(spec, "tpm");
        missing(tpm, "storage", storage);
        missing(tpm, "version", "v2.0".into());
    }
}

/// The map at a key, made if it is not there.
fn group<'a>(spec: &'a mut Spec, key: &str) -> &'a mut Spec {
    let value = spec.entry(key.to_owned()).or_insert_with(|| Value::Map(Spec::new()));
    if value.as_map().is_none() {
        *value = Value::Map(Spec::new());
    }
    match value {
        Value::Map(map) => map,
        _ => unreachable!("it was made a map above"),
    }
}
