//! A virtual machine of a state, as a stack says it.

use crate::output::only;
use crate::records::{Agent, CloudInit, Cpu, Disk, Efi, Guest, Hardware, Nic, Pci, Tpm, Usb, Vga, Vm};
use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use strata_source::machine::hardware::Hotplug;
use strata_yaml::Choice;

use super::guest::{addresses, common, number};
use super::repository::Writing;
use super::{StateNote, vm_id};
use crate::output::{Object, Put};
use strata_tofu::{Attributes, TofuResource};

/// Blocks that Strata has neither a field nor a raw key for.
const WITHOUT_PLACE: [&str; 4] = ["amd_sev", "numa", "smbios", "virtiofs"];

/// The fields of a machine, and whether it is a template that Strata can recreate.
pub(super) struct WrittenVm {
    pub(super) fields: Object,
    pub(super) is_template: bool,
}

pub(super) fn write(writing: &mut Writing<'_>, resource: &TofuResource) -> Option<WrittenVm> {
    let attributes = resource.attributes();
    let vm_id = vm_id(attributes)?;
    let node = attributes.text("node_name").unwrap_or_default();
    let mut vm = Object::new();
    vm.set(Guest::vm_id, json!(vm_id));
    vm.extend(common(attributes, writing.node, "on_boot", writing.pools.get(&vm_id).map(String::as_str)));
    let template = attributes.flag("template") == Some(true);
    let clone = attributes.block("clone");
    let source = clone.and_then(|clone| clone.positive("vm_id").or_else(|| clone.positive("source_vm_id")));
    let own_template = source.and_then(|source| writing.templates.get(&source)).cloned();
    let inherits = own_template.is_some() && !template;
    if inherits {
        vm.put(Vm::template, own_template);
        vm.put(Vm::clone_mode, clone.and_then(|clone| clone.flag("full")).filter(|full| !*full));
    } else if let Some(source) = source.filter(|_| !template) {
        let message = format!(
            "the template {source} that it was cloned from is not in the state: Strata could not clone it again"
        );
        writing.notes.push(StateNote::new(&resource.address, message));
    }
    if !template {
        vm.set(Guest::started, json!(attributes.flag("started").unwrap_or(true)));
    }
    hardware(&mut vm, attributes, inherits);
    let (disks, image) = disks(writing, attributes, node, inherits);
    let is_template = template && image.is_some();
    if is_template {
        vm.put(Vm::image, image);
        // A template never starts, and a source has no words for when it would.
        vm.retain(|key, _| ![Guest::onboot.name(), Guest::startup.name()].contains(&key.as_str()));
    } else if template {
        vm.set(Guest::started, json!(false));
        let message =
            "it is a template of no known image: Strata keeps it as a machine that does not run".to_owned();
        writing.notes.push(StateNote::new(&resource.address, message));
    }
    vm.put_full(Hardware::disks, Json::Object(disks));
    vm.put_full(Hardware::network, networks(attributes));
    devices(&mut vm, attributes);
    cloud_init(writing, &mut vm, attributes, resource, vm_id);
    if let Some(firewall) = super::firewall::of_guest(writing.state, vm_id).filter(|_| !is_template) {
        vm.set(Guest::firewall, firewall);
    }
    vm.put_full(Guest::options, Json::Object(options(attributes)));
    for block in WITHOUT_PLACE.iter().filter(|block| attributes.block(block).is_some()) {
        let message = format!("`{block}` has no field in Strata: what is set stays as it is");
        writing.notes.push(StateNote::new(&resource.address, message));
    }
    Some(WrittenVm { fields: vm, is_template })
}

/// Everything that is no slot. A clone has what it does not say from its template; any other machine has Proxmox' defaults, which are
/// written down where Strata would choose otherwise.
fn hardware(vm: &mut Object, attributes: Attributes<'_>, inherits: bool) {
    let processor = attributes.block("cpu");
    let mut cpu = Object::new();
    if let Some(processor) = processor {
        vm.put(Hardware::cores, processor.positive("cores"));
        vm.put(Hardware::sockets, processor.positive("sockets").filter(|sockets| *sockets > 1));
        cpu.put(Cpu::kind, processor.text("type"));
        cpu.put_full(Cpu::flags, json!(processor.texts("flags")));
        cpu.put(Cpu::units, processor.positive("units"));
        cpu.put(Cpu::limit, processor.number("limit").map(number));
        cpu.put(Cpu::numa, processor.flag("numa").filter(|numa| *numa));
        cpu.put(Cpu::affinity, processor.text("affinity"));
    }
    // What the provider chooses where a machine says nothing.
    if !inherits && !cpu.contains_key(Cpu::kind.name()) {
        cpu.set(Cpu::kind, json!("qemu64"));
    }
    vm.put_full(Hardware::cpu, Json::Object(cpu));
    let memory = attributes.block("memory");
    let size = memory.and_then(|memory| memory.positive("dedicated").or_else(|| memory.positive("size")));
    vm.put(Hardware::memory, size.or((!inherits).then_some(512)));
    vm.put(
        Hardware::balloon,
        memory.and_then(|memory| memory.int("floating").or_else(|| memory.int("balloon"))),
    );
    vm.put(Hardware::bios, attributes.text("bios").filter(|bios| *bios != "seabios" || inherits));
    vm.put(Hardware::machine, attributes.text("machine"));
    vm.put(
        Hardware::scsi_controller,
        attributes.text("scsi_hardware").or((!inherits).then_some("virtio-scsi-pci")),
    );
    let system = attributes.block("operating_system").and_then(|system| system.text("type"));
    vm.put(Hardware::os_type, system.or((!inherits).then_some("other")));
    vm.put(Hardware::tablet, attributes.flag("tablet_device").filter(|tablet| !*tablet));
    let hotplug: Vec<&str> =
        attributes.text("hotplug").unwrap_or_default().split(',').filter(|word| !word.is_empty()).collect();
    if hotplug.iter().all(|word| Hotplug::WORDS.contains(word)) {
        vm.put_full(Hardware::hotplug, json!(hotplug));
    }
    vm.put_full(Hardware::boot_order, json!(attributes.texts("boot_order")));
    if let Some(agent) = attributes.block("agent").filter(|agent| agent.flag("enabled") == Some(true)) {
        let mut own = Object::new();
        own.set(Agent::enabled, json!(true));
        own.put(Agent::trim, agent.flag("trim").filter(|trim| *trim));
        own.put(Agent::kind, agent.text("type").filter(|kind| *kind != "virtio"));
        vm.set(Hardware::agent, Json::Object(own));
    }
    if let Some(efi) = attributes.block("efi_disk") {
        let mut own = Object::new();
        own.put(Efi::storage, efi.text("datastore_id"));
        own.put(Efi::kind, efi.text("type"));
        own.put(Efi::pre_enrolled_keys, efi.flag("pre_enrolled_keys"));
        vm.set(Hardware::efi, Json::Object(own));
    }
    if let Some(tpm) = attributes.block("tpm_state") {
        let mut own = Object::new();
        own.put(Tpm::storage, tpm.text("datastore_id"));
        own.put(Tpm::version, tpm.text("version"));
        vm.set(Hardware::tpm, Json::Object(own));
    }
}

/// Disks and CD drives by slot, and the image that the first disk began as.
fn disks(
    writing: &mut Writing<'_>,
    attributes: Attributes<'_>,
    node: &str,
    inherits: bool,
) -> (Object, Option<String>) {
    let (mut disks, mut image) = (Object::new(), None);
    let listed =
        attributes.blocks("disk").into_iter().filter_map(|disk| Some((disk.text("interface")?, disk)));
    let by_slot = attributes
        .entries("disk")
        .into_iter()
        .filter(|(slot, _)| slot.ends_with(|last: char| last.is_ascii_digit()));
    let found: BTreeMap<&str, Attributes<'_>> = by_slot.chain(listed).collect();
    for (slot, disk) in found {
        let mut own = Object::new();
        own.put(Disk::storage, disk.text("datastore_id"));
        own.put(Disk::size, disk.positive("size").or_else(|| disk.positive("size_gb")));
        for (key, field) in [(Disk::ssd, "ssd"), (Disk::iothread, "iothread")] {
            own.put(key, disk.flag(field).filter(|on| *on));
        }
        own.put(Disk::discard, (disk.text("discard") == Some("on")).then_some(true));
        for (key, field) in [(Disk::backup, "backup"), (Disk::replicate, "replicate")] {
            own.put(key, disk.flag(field).filter(|on| !*on));
        }
        own.put(Disk::cache, disk.text("cache").filter(|cache| *cache != "none"));
        own.put(Disk::aio, disk.text("aio").filter(|aio| *aio != "io_uring"));
        own.put(Disk::format, disk.text("file_format").filter(|format| *format != "raw"));
        own.put(Disk::serial, disk.text("serial"));
        own.put_full(Disk::options, Json::Object(limits(disk)));
        let from = disk.text("import_from").or_else(|| disk.text("file_id")).filter(|_| !inherits);
        if let Some(from) = from {
            let reference = writing.images.reference(from, node);
            if image.is_none() && slot == "scsi0" {
                image = Some(reference);
            } else {
                own.set(Disk::import, json!(reference));
            }
        }
        disks.insert(slot.to_owned(), Json::Object(own));
    }
    // A machine takes its image where a template does.
    if attributes.flag("template") != Some(true)
        && let Some(image) = image.take()
        && let Some(Json::Object(first)) = disks.get_mut("scsi0")
    {
        first.set(Disk::import, json!(image));
    }
    if let Some(cdrom) = attributes.block("cdrom")
        && let Some(volume) = cdrom.text("file_id").filter(|volume| volume.contains(':'))
    {
        let slot = cdrom.text("interface").unwrap_or("ide3");
        disks.insert(slot.to_owned(), only(Disk::iso, writing.images.reference(volume, node)));
    }
    (disks, image)
}

fn limits(disk: Attributes<'_>) -> Object {
    let mut options = Object::new();
    if let Some(speed) = disk.block("speed") {
        for (key, field) in [
            ("iops_rd", "iops_read"),
            ("iops_rd_max", "iops_read_burstable"),
            ("iops_wr", "iops_write"),
            ("iops_wr_max", "iops_write_burstable"),
            ("mbps_rd", "read"),
            ("mbps_rd_max", "read_burstable"),
            ("mbps_wr", "write"),
            ("mbps_wr_max", "write_burstable"),
        ] {
            options.put_option(key, speed.positive(field));
        }
    }
    options.put_option("queues", disk.positive("queues"));
    options
}

fn networks(attributes: Attributes<'_>) -> Json {
    let configs =
        attributes.block("initialization").map(|inner| inner.blocks("ip_config")).unwrap_or_default();
    let listed = attributes.blocks("network_device").into_iter().enumerate();
    let listed = listed.map(|(index, device)| (format!("net{index}"), device));
    let by_slot = attributes.entries("network").into_iter().map(|(slot, device)| (slot.to_owned(), device));
    let mut devices = Object::new();
    for (slot, device) in listed.chain(by_slot).filter(|(_, device)| device.flag("enabled") != Some(false)) {
        let mut own = Object::new();
        own.put(Nic::bridge, device.text("bridge"));
        own.put(Nic::model, device.text("model").filter(|model| *model != "virtio"));
        own.put(Nic::mac, device.text("mac_address").map(str::to_ascii_uppercase));
        own.put(Nic::vlan, device.positive("vlan_id").or_else(|| device.positive("tag")));
        let trunks = device.text("trunks").unwrap_or_default().split([';', ',']);
        let trunks: Vec<u16> = trunks.filter_map(|vlan| vlan.trim().parse().ok()).collect();
        own.put_full(Nic::trunks, json!(trunks));
        own.put(Nic::mtu, device.positive("mtu"));
        own.put(Nic::queues, device.positive("queues"));
        // Written in any case: a firewall with rules would switch it on.
        own.put(Nic::firewall, device.flag("firewall"));
        own.put(Nic::rate, device.number("rate_limit").map(number));
        own.put(
            Nic::link_down,
            device.flag("disconnected").or_else(|| device.flag("link_down")).filter(|down| *down),
        );
        let index: Option<usize> = slot.trim_start_matches("net").parse().ok();
        addresses(&mut own, index.and_then(|index| configs.get(index)).copied());
        devices.insert(slot, Json::Object(own));
    }
    Json::Object(devices)
}

fn devices(vm: &mut Object, attributes: Attributes<'_>) {
    let mut pci = Object::new();
    for (index, device) in attributes.blocks("hostpci").into_iter().enumerate() {
        let mut own = Object::new();
        match device.text("mapping") {
            Some(mapping) => own.put(Pci::mapping, Some(mapping)),
            None => own.put(Pci::device, device.text("id")),
        }
        own.put(Pci::pcie, device.flag("pcie").filter(|on| *on));
        own.put(Pci::rombar, device.flag("rombar").filter(|on| !*on));
        own.put(Pci::xvga, device.flag("xvga").filter(|on| *on));
        own.put(Pci::mdev, device.text("mdev"));
        own.put_full(
            Pci::options,
            device.text("rom_file").map(|file| json!({"romfile": file})).unwrap_or_default(),
        );
        let slot = device.text("device").map_or_else(|| format!("hostpci{index}"), str::to_owned);
        pci.insert(slot, Json::Object(own));
    }
    vm.put_full(Hardware::pci, Json::Object(pci));
    let usb = attributes.blocks("usb").into_iter().map(|device| {
        let mut own = Object::new();
        match device.text("mapping") {
            Some(mapping) => own.put(Usb::mapping, Some(mapping)),
            None => own.put(Usb::device, device.text("host")),
        }
        own.put(Usb::usb3, device.flag("usb3").filter(|on| *on));
        Json::Object(own)
    });
    vm.put_full(Hardware::usb, Json::Array(usb.collect()));
    let serial = attributes
        .blocks("serial_device")
        .into_iter()
        .map(|device| json!(device.text("device").unwrap_or("socket")));
    vm.put_full(Hardware::serial, Json::Array(serial.collect()));
    if let Some(vga) = attributes.block("vga") {
        let mut own = Object::new();
        own.put(Vga::kind, vga.text("type"));
        own.put(Vga::memory, vga.positive("memory").filter(|memory| *memory >= 4));
        vm.put_full(Hardware::vga, Json::Object(own));
    }
}

fn cloud_init(
    writing: &mut Writing<'_>,
    vm: &mut Object,
    attributes: Attributes<'_>,
    resource: &TofuResource,
    vm_id: u32,
) {
    let Some(initialization) = attributes.block("initialization") else { return };
    let mut own = Object::new();
    own.put(CloudInit::storage, initialization.text("datastore_id"));
    own.put(CloudInit::slot, initialization.text("interface"));
    own.put(CloudInit::kind, initialization.text("type"));
    own.put(CloudInit::upgrade, initialization.flag("upgrade").filter(|upgrade| !*upgrade));
    if let Some(dns) = initialization.block("dns") {
        own.put_full(CloudInit::nameservers, json!(dns.texts("servers")));
        own.put(CloudInit::search_domain, dns.text("domain"));
    }
    if let Some(account) = initialization.block("user_account") {
        own.put(CloudInit::user, account.text("username"));
        let keys: Vec<&str> = account.texts("keys").into_iter().map(str::trim).collect();
        own.put_full(CloudInit::ssh_keys, json!(keys));
        // Proxmox shows stars for a password, and so does a state that was refreshed.
        match account.text("password") {
            Some(stars) if stars.bytes().all(|byte| byte == b'*') => {
                let message =
                    "the state does not know its password any more: the one that is set stays".to_owned();
                writing.notes.push(StateNote::new(&resource.address, message));
            }
            Some(password) => {
                own.set(CloudInit::password, writing.secret(&format!("password_{vm_id}"), password));
            }
            None => {}
        }
    }
    vm.set(Vm::cloud_init, Json::Object(own));
    let documents: Vec<&str> = ["meta", "network", "user", "vendor"]
        .into_iter()
        .filter(|part| initialization.text(&format!("{part}_data_file_id")).is_some())
        .collect();
    if !documents.is_empty() {
        let message = "its documents of cloud-init are snippets: they are named as they are; as `userData` in the stack Strata would bring them without SSH";
        writing.notes.push(StateNote::new(&resource.address, message));
    }
}

/// Keys of Proxmox that Strata has no field for.
fn options(attributes: Attributes<'_>) -> Object {
    let mut options = Object::new();
    options.put_option("acpi", (attributes.flag("acpi") == Some(false)).then_some(0));
    options.put_option("args", attributes.text("kvm_arguments"));
    options.put_option("hookscript", attributes.text("hook_script_file_id"));
    options.put_option("keyboard", attributes.text("keyboard_layout").filter(|layout| *layout != "en-us"));
    let processor = attributes.block("cpu");
    options.put_option(
        "vcpus",
        processor.and_then(|cpu| cpu.positive("hotplugged").or_else(|| cpu.positive("vcpus"))),
    );
    if let Some(memory) = attributes.block("memory") {
        options.put_option("hugepages", memory.text("hugepages"));
        options.put_option("shares", memory.positive("shared").or_else(|| memory.positive("shares")));
    }
    if let Some(initialization) = attributes.block("initialization") {
        let documents: Vec<String> = ["meta", "network", "user", "vendor"]
            .into_iter()
            .filter_map(|part| {
                Some(format!("{part}={}", initialization.text(&format!("{part}_data_file_id"))?))
            })
            .collect();
        options.put_option("cicustom", (!documents.is_empty()).then(|| documents.join(",")));
    }
    options
}
