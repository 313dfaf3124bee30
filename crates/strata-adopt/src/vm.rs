//! A virtual machine, and a template.

use serde_json::Value as Json;
use strata_resource::Spec;
use strata_source::machine::guest::Guest;
use strata_source::machine::hardware::{Cpu, Hardware};
use strata_source::machine::network::Nic;
use strata_source::machine::template::Template;
use strata_source::machine::vm::{CloneMode, Vm};

use crate::fields::{Fields, Object, Put, raw, short};
use crate::{StackDefaults, Written, cloud_init, device, disk, guest, network};

/// What the blueprint chooses, and what Proxmox takes where its configuration says nothing.
struct Usual {
    chosen: &'static str,
    unsaid: &'static str,
}

const CPU_TYPE: Usual = Usual { chosen: "x86-64-v2-AES", unsaid: "kvm64" };
const SCSI: Usual = Usual { chosen: "virtio-scsi-single", unsaid: "lsi" };
const OS: Usual = Usual { chosen: "l26", unsaid: "other" };
const MEMORY: (i64, i64) = (2048, 512);

/// Fields of a spec that the source has no key for, and Proxmox' names for them.
const RAW: &[(&str, &str)] = &[("acpi", "acpi"), ("kvm", "kvm"), ("arch", "arch")];

impl Usual {
    /// Where something else decides what is left open, nothing is.
    fn written(&self, live: Option<String>, inherits: bool) -> Option<String> {
        let live = live.unwrap_or_else(|| self.unsaid.to_owned());
        (inherits || live != self.chosen).then_some(live)
    }
}

/// The entry of `templates` with this key that is drawn to the spec of a live template. What it was made from cannot be read.
pub fn template(key: &str, spec: &Spec, stack: &StackDefaults) -> Written {
    let mut written = vm(key, spec, stack);
    if let Json::Object(yaml) = &mut written.yaml {
        yaml.shift_remove(Guest::started.name());
        let of_guests = [Guest::onboot, Guest::startup, Guest::firewall];
        for key in of_guests.iter().filter(|key| yaml.shift_remove(key.name()).is_some()) {
            written.notes.push(format!("a template has no `{key}` in the YAML: it stays as it is"));
        }
    }
    written.notes.push(format!(
        "what it was made from cannot be read: it is kept as it is, and can be recreated only once `{}` names it",
        Template::image
    ));
    written
}

/// The entry of `vms` with this key that is drawn to the spec of a live VM.
pub fn vm(key: &str, spec: &Spec, stack: &StackDefaults) -> Written {
    linked_vm(key, spec, stack, None)
}

/// The same, with the template that its disks are linked to.
pub fn linked_vm(key: &str, spec: &Spec, stack: &StackDefaults, template: Option<&str>) -> Written {
    let mut left = Fields::of(spec);
    let (mut yaml, mut notes) = (Object::new(), Vec::new());
    let inherits = template.is_some();
    let firewalled = guest::begin(key, &mut left, stack, &mut yaml);
    if let Some(template) = template {
        yaml.set(Vm::template, template);
        yaml.set(
            Vm::clone_mode,
            short(Object::from_iter([(CloneMode::full.name().to_owned(), false.into())]), CloneMode::full),
        );
    }
    processor(&mut left, inherits, &mut yaml, &mut notes);
    yaml.put(Hardware::bios, left.text("bios").filter(|bios| bios != "seabios"));
    yaml.put(Hardware::machine, left.text("machine"));
    yaml.put(Hardware::os_type, OS.written(left.text("ostype"), inherits));
    yaml.put(Hardware::scsi_controller, SCSI.written(left.text("scsihw"), inherits));
    let (disks, home) = disk::disks(&mut left, stack, &mut notes);
    let cd_taken = disks.get("ide2").is_some();
    yaml.put_full(Hardware::disks, Json::Object(disks));
    yaml.put(Hardware::efi, disk::efi(&mut left, &home));
    yaml.put(Hardware::tpm, disk::tpm(&mut left, &home));
    let drive = cloud_init::drive(&mut left, &home, cd_taken, &mut notes);
    let (mut none, mut drive) = (Fields::default(), drive);
    let addresses = drive.as_mut().map_or(&mut none, |drive| &mut drive.addresses);
    let networks = network::of_vm(&mut left, firewalled, addresses);
    let has_address = networks.to_string().contains(&format!("\"{}", Nic::ip));
    yaml.put_full(Hardware::network, networks);
    yaml.put_full(Hardware::pci, device::pci(&mut left));
    yaml.put_full(Hardware::usb, device::usb(&mut left, &mut notes));
    yaml.put_full(Hardware::serial, device::serial(&mut left));
    yaml.put(Hardware::vga, device::vga(&mut left, &mut notes));
    yaml.put(Hardware::agent, device::agent(&mut left));
    yaml.put_full(Hardware::boot_order, left.texts("boot").unwrap_or_default().into());
    yaml.put(Hardware::local_time, left.unless("local_time", false));
    yaml.put(Hardware::tablet, left.unless("tablet", true));
    yaml.put(Hardware::hotplug, left.texts("hotplug"));
    yaml.put(Vm::cloud_init, drive.and_then(|drive| drive.written(has_address, &mut notes)));
    let mut more = Object::new();
    for (field, option) in RAW {
        if let Some(value) = left.get(field).and_then(raw) {
            more.insert((*option).to_owned(), value);
            left.forget(&[field]);
        }
    }
    guest::end(&mut left, more, &mut yaml);
    left.told("", &mut notes);
    Written { yaml: Json::Object(yaml), notes }
}

fn processor(left: &mut Fields, inherits: bool, yaml: &mut Object, notes: &mut Vec<String>) {
    let mut cpu = left.map("cpu").unwrap_or_default();
    yaml.put(Hardware::cores, cpu.int("cores").filter(|cores| inherits || *cores != 1));
    yaml.put(Hardware::sockets, cpu.int("sockets").filter(|sockets| *sockets != 1));
    let mut written = Object::new();
    written.put(Cpu::kind, CPU_TYPE.written(cpu.text("type"), inherits));
    written.put_full(Cpu::flags, cpu.texts("flags").unwrap_or_default().into());
    written.put(Cpu::units, cpu.int("units"));
    written.put(Cpu::limit, cpu.number("limit"));
    written.put(Cpu::numa, cpu.unless("numa", false));
    written.put(Cpu::affinity, cpu.text("affinity"));
    cpu.told("cpu.", notes);
    if !written.is_empty() {
        yaml.set(Hardware::cpu, short(written, Cpu::kind));
    }
    let mut memory = left.map("memory").unwrap_or_default();
    let size = memory.int("size").unwrap_or(MEMORY.1);
    yaml.put(Hardware::memory, Some(size).filter(|size| inherits || *size != MEMORY.0));
    yaml.put(Hardware::balloon, memory.int("balloon"));
    memory.told("memory.", notes);
}
