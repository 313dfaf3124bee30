//! Machines as the Telmate/proxmox provider describes them, in the shapes of its versions 2.9 and 3: what was an attribute is a block later,
//! and disks have three forms.

pub(super) mod container;
mod disks;

use crate::output::only;
use crate::records::{
    Agent, CloneMode, CloudInit, Cpu, Efi, Guest, Hardware, Nic, Pci, Startup, Tpm, Usb, Vga, Vm,
};
use serde_json::{Value as Json, json};
use strata_source::machine::hardware::{Bios, Hotplug};
use strata_yaml::Choice;

use super::guest::{self, RootReferences, kind};
use super::module::Resource;
use super::output::{self, Object, Put};
use super::tree::Tree;
use super::{Import, name};

/// What tells the provider how to go about it, and nothing about the machine.
const HOW: [&str; 24] = [
    "additional_wait",
    "agent_timeout",
    "automatic_reboot",
    "automatic_reboot_severity",
    "ci_wait",
    "clone_wait",
    "define_connection_info",
    "force_create",
    "force_recreate_on_change_of",
    "full_clone",
    "guest_agent_ready_timeout",
    "oncreate",
    "os_network_config",
    "os_type",
    "preprovision",
    "pxe",
    "reboot_required",
    "skip_ipv4",
    "skip_ipv6",
    "ssh_forward_ip",
    "ssh_host",
    "ssh_port",
    "ssh_private_key",
    "ssh_user",
];

const WHY: &str = "it is a setting of the provider";

/// Whether a resource is a guest of this provider, and of which kind.
pub(super) fn is_guest(resource: &Resource) -> bool {
    is_guest_kind(kind(&resource.kind))
}

pub(super) fn is_guest_kind(kind: &str) -> bool {
    matches!(kind, "vm_qemu" | "lxc" | "lxc_guest")
}

/// The key under which the provider has the VMID.
pub(super) fn number(resource: &Resource) -> &'static str {
    if kind(&resource.kind) == "lxc_guest" { "guest_id" } else { "vmid" }
}

/// What machines and containers have in common.
fn both(import: &mut Import<'_>, body: &Tree, own: &str, guest: &mut Object) {
    guest.put(Guest::node, body.text("target_node").or_else(|| one_of_several(import, body, own)));
    guest.put(Guest::notes, body.text("desc").or_else(|| body.text("description")));
    guest.put_full(Guest::tags, output::tags_of(body, "tags"));
    guest.put(Guest::pool, body.text("pool"));
    guest.put(Guest::protection, body.flag("protection"));
    let onboot = body.flag("onboot").or_else(|| body.flag("start_at_node_boot"));
    // The provider leaves it off unless told otherwise.
    guest.set(Guest::onboot, json!(onboot.unwrap_or(false)));
    let stopped = |key: &str| {
        let text = body.text_if(key, |state| ["running", "started", "stopped"].contains(&state));
        text.map(|state| state == "stopped")
    };
    let stopped = stopped("vm_state").or_else(|| stopped("power_state"));
    guest.put(Guest::started, stopped.filter(|stopped| *stopped).map(|_| false));
    guest.put(Guest::startup, startup(import, body));
}

/// The provider takes one of the nodes; Strata wants to know which.
fn one_of_several(import: &mut Import<'_>, body: &Tree, own: &str) -> Option<String> {
    let nodes = body.texts("target_nodes");
    let first = nodes.first()?.clone();
    if nodes.len() > 1 {
        let place = body.get("target_nodes").map(|tree| tree.place.clone());
        import.note(
            place.as_ref(),
            format!("`{own}` may be on any of {} nodes: `{first}` was written down", nodes.len()),
        );
    }
    Some(first)
}

/// `order=1,up=30,down=60`, or a block of it.
fn startup(import: &mut Import<'_>, body: &Tree) -> Option<Json> {
    let mut startup = Object::new();
    if let Some(found) = body.one("startup_shutdown") {
        for (key, there) in [
            (Startup::order, "order"),
            (Startup::up_delay, "startup_delay"),
            (Startup::down_delay, "shutdown_timeout"),
        ] {
            // Minus one is nothing said.
            startup.put(key, found.int_in(there, -1..=i64::from(u32::MAX)).filter(|number| *number >= 0));
        }
    } else if let Some(text) = body.text_if("startup", |text| text.contains('=')) {
        for (word, value) in text.split(',').filter_map(|part| part.split_once('=')) {
            let key = match word.trim() {
                "order" => Startup::order,
                "up" => Startup::up_delay,
                "down" => Startup::down_delay,
                _ => continue,
            };
            startup.put(key, value.trim().parse::<u32>().ok());
        }
    } else {
        import.needless(body, &["startup"], WHY);
    }
    (!startup.is_empty()).then_some(Json::Object(startup))
}

/// A machine.
pub(super) fn machine(
    import: &mut Import<'_>,
    around: &RootReferences<'_>,
    body: &Tree,
    own: &str,
) -> Object {
    let mut vm = Object::new();
    both(import, body, own, &mut vm);
    processor(body, &mut vm);
    vm.put(Hardware::bios, body.text_if("bios", |bios| Bios::WORDS.contains(&bios)));
    vm.put(Hardware::machine, body.text("machine"));
    let controller = body.text_if("scsihw", |found| output::SCSI_CONTROLLERS.contains(&found));
    // What the provider sets where nobody says it.
    vm.set(Hardware::scsi_controller, json!(controller.unwrap_or_else(|| "lsi".to_owned())));
    vm.put(Hardware::tablet, body.flag("tablet"));
    vm.put(Hardware::os_type, body.text_if("qemu_os", |found| output::OS_TYPES.contains(&found)));
    if body.flag("agent") == Some(true) {
        vm.set(Hardware::agent, only(Agent::enabled, true));
    }
    vm.put(Hardware::hotplug, hotplug(body));
    if let Some(vga) = body.one("vga") {
        let mut written = Object::new();
        written.put(Vga::kind, vga.text("type"));
        written.put(Vga::memory, vga.int_in("memory", 4..=512));
        vm.put_full(Hardware::vga, Json::Object(written));
    }
    if let Some(efi) = body.one("efidisk") {
        let mut written = Object::new();
        written.put(Efi::storage, efi.text("storage"));
        written.put(Efi::kind, efi.text_if("efitype", |found| ["2m", "4m"].contains(&found)));
        written.put(Efi::format, efi.text_if("format", |found| output::FORMATS.contains(&found)));
        written.put(Efi::pre_enrolled_keys, efi.flag("pre_enrolled_keys"));
        vm.set(Hardware::efi, Json::Object(written));
    } else if vm.get(Hardware::bios.name()).and_then(Json::as_str) == Some("ovmf")
        && body.get("clone").is_none()
    {
        let message =
            format!("`{own}` has the firmware `ovmf` and no disk for its settings: Strata adds one");
        import.note(Some(&body.place), message);
    }
    if let Some(tpm) = body.one("tpm_state") {
        let mut written = Object::new();
        written.put(Tpm::storage, tpm.text("storage"));
        written.put(Tpm::version, tpm.text_if("version", |found| ["v1.2", "v2.0"].contains(&found)));
        vm.set(Hardware::tpm, Json::Object(written));
    }
    let cloud_init = disks::disks(import, body, own, &mut vm);
    boot(import, body, &mut vm);
    devices(body, &mut vm);
    options(body, &mut vm);
    clone(import, around, body, own, &mut vm);
    self::cloud_init(import, body, own, cloud_init, &mut vm);
    import.needless(body, &HOW, WHY);
    vm
}

fn processor(body: &Tree, vm: &mut Object) {
    // A text up to 2.9, a block later.
    let block = body.one("cpu");
    let int = |key: &str, range| block.and_then(|cpu| cpu.int_in(key, range));
    let cores = body.int_in("cores", 1..=1024).or_else(|| int("cores", 1..=1024));
    vm.set(Hardware::cores, json!(cores.unwrap_or(1)));
    vm.put(Hardware::sockets, body.int_in("sockets", 1..=16).or_else(|| int("sockets", 1..=16)));
    let mut cpu = Object::new();
    let model = body.text("cpu").or_else(|| body.text("cpu_type"));
    let model = model.or_else(|| block.and_then(|cpu| cpu.text("type")));
    cpu.set(Cpu::kind, json!(model.unwrap_or_else(|| "host".to_owned())));
    let numa = body.flag("numa").or_else(|| block.and_then(|cpu| cpu.flag("numa")));
    cpu.put(Cpu::numa, numa.filter(|numa| *numa));
    if let Some(block) = block {
        let flags = block.one("flags").map(flags).unwrap_or_default();
        cpu.put_full(Cpu::flags, json!(flags));
        cpu.put(Cpu::units, block.int_in("units", 0..=262_144).filter(|units| *units > 0));
        cpu.put(Cpu::limit, block.get("limit").and_then(Tree::as_number).filter(|limit| *limit > 0.0));
        cpu.put(Cpu::affinity, block.text("affinity"));
    }
    vm.set(Hardware::cpu, Json::Object(cpu));
    let memory = body.int_in("memory", 16..=i64::from(u32::MAX)).unwrap_or(512);
    vm.set(Hardware::memory, json!(memory));
    // Nothing said turns ballooning off.
    vm.set(Hardware::balloon, json!(body.int_in("balloon", 0..=memory).unwrap_or(0)));
}

/// `aes = "on"` is `+aes`.
fn flags(block: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (flag, _) in block.entries() {
        let Some(state) = block.text_if(flag, |state| ["on", "off"].contains(&state)) else { continue };
        let sign = if state == "on" { '+' } else { '-' };
        // The provider's own slip.
        let flag = if flag == "pbpe1gb" { "pdpe1gb".to_owned() } else { flag.replace('_', "-") };
        found.push(format!("{sign}{flag}"));
    }
    found
}

/// A list with commas; `0` for nothing, `1` for what Proxmox does by itself.
fn hotplug(body: &Tree) -> Option<Json> {
    let known = |text: &str| {
        ["0", "1"].contains(&text) || text.split(',').all(|word| Hotplug::WORDS.contains(&word.trim()))
    };
    let text = body.text_if("hotplug", known)?;
    let words: Vec<&str> = match text.as_str() {
        "1" | "network,disk,usb" => return None,
        "0" => Vec::new(),
        list => list.split(',').map(str::trim).collect(),
    };
    Some(json!(words))
}

/// `order=scsi0;net0`, or the disk alone. Letters for kinds of devices are what Proxmox 6 had.
fn boot(import: &mut Import<'_>, body: &Tree, vm: &mut Object) {
    let order = body.text_if("boot", |text| text.starts_with("order=") || text.contains(';'));
    let order: Vec<String> = match order {
        Some(text) => text
            .trim_start_matches("order=")
            .split(';')
            .map(|slot| slot.trim().to_owned())
            .filter(|slot| !slot.is_empty())
            .collect(),
        None => body.text_if("bootdisk", output::is_slot).into_iter().collect(),
    };
    vm.put_full(Hardware::boot_order, json!(order));
    import.needless(body, &["bootdisk"], "the order of booting is said as well");
    let letters =
        |tree: &Tree| tree.peek().is_some_and(|text| text.chars().all(|letter| "acdn".contains(letter)));
    if body.get("boot").is_some_and(letters) {
        import.needless(body, &["boot"], "Proxmox boots from slots now, not from kinds of devices");
    }
}

fn devices(body: &Tree, vm: &mut Object) {
    let mut pci = Object::new();
    for (index, device) in body.several("hostpci").into_iter().enumerate() {
        let mut written = Object::new();
        written.put(Pci::device, device.text("host"));
        written.put(Pci::pcie, device.flag("pcie"));
        written.put(Pci::rombar, device.flag("rombar"));
        pci.insert(format!("hostpci{index}"), Json::Object(written));
    }
    for (index, device) in body.several("pci").into_iter().enumerate() {
        let slot = device.int_in("id", 0..=15).unwrap_or(index as i64);
        pci.insert(format!("hostpci{slot}"), Json::Object(self::pci(device)));
    }
    for (slot, device) in nested(body, "pcis") {
        let inner = device.one("mapping").or_else(|| device.one("raw"));
        if let (Some(number), Some(inner)) = (slot.strip_prefix("pci"), inner) {
            pci.insert(format!("hostpci{number}"), Json::Object(self::pci(inner)));
        }
    }
    vm.put_full(Hardware::pci, Json::Object(pci));
    let mut usb: Vec<(i64, Json)> = numbered(body.several("usb"), 4)
        .into_iter()
        .map(|(number, device)| (number, self::usb(device)))
        .collect();
    for (slot, device) in nested(body, "usbs") {
        let inner = ["device", "mapping", "port", "spice"].iter().find_map(|kind| device.one(kind));
        let number = slot.trim_start_matches("usb").parse().ok();
        usb.extend(number.zip(inner.map(self::usb)));
    }
    vm.put_full(Hardware::usb, slots("usb", usb));
    let ports = numbered(body.several("serial"), 3);
    let serial = ports
        .into_iter()
        .map(|(number, port)| (number, json!(port.text("type").unwrap_or_else(|| "socket".to_owned()))));
    vm.put_full(Hardware::serial, slots("serial", serial.collect()));
}

/// Blocks with the number that each says, or has by its place.
fn numbered(blocks: Vec<&Tree>, last: i64) -> Vec<(i64, &Tree)> {
    let number = |block: &Tree| {
        let text = block.get("id")?.peek()?;
        let number = text.trim_start_matches(|letter: char| letter.is_ascii_alphabetic()).parse().ok()?;
        (0..=last).contains(&number).then(|| block.take_keys(&["id"])).map(|()| number)
    };
    let with = |(index, block)| (number(block).unwrap_or(index as i64), block);
    blocks.into_iter().enumerate().map(with).collect()
}

/// A list where the numbers are those of one, otherwise by slot.
fn slots(prefix: &str, mut found: Vec<(i64, Json)>) -> Json {
    found.sort_by_key(|(number, _)| *number);
    if found.iter().enumerate().all(|(index, (number, _))| index as i64 == *number) {
        return found.into_iter().map(|(_, value)| value).collect();
    }
    let named = found.into_iter().map(|(number, value)| (format!("{prefix}{number}"), value));
    Json::Object(named.collect())
}

/// The slots of a block that has one block for each of them.
fn nested<'t>(body: &'t Tree, key: &str) -> Vec<(&'t str, &'t Tree)> {
    let Some(block) = body.one(key) else { return Vec::new() };
    block.entries().iter().filter_map(|(slot, _)| Some((slot.as_str(), block.one(slot)?))).collect()
}

fn pci(device: &Tree) -> Object {
    let mut written = Object::new();
    written.put(Pci::mapping, device.text("mapping_id"));
    written.put(Pci::device, device.text("raw_id"));
    written.put(Pci::mdev, device.text("mdev"));
    for (key, there) in [(Pci::pcie, "pcie"), (Pci::rombar, "rombar"), (Pci::xvga, "primary_gpu")] {
        written.put(key, device.flag(there));
    }
    let mut options = Object::new();
    for (key, there) in [
        ("device-id", "device_id"),
        ("vendor-id", "vendor_id"),
        ("sub-device-id", "sub_device_id"),
        ("sub-vendor-id", "sub_vendor_id"),
    ] {
        options.put_option(key, device.text(there));
    }
    written.put_full(Pci::options, Json::Object(options));
    written
}

fn usb(device: &Tree) -> Json {
    let mut written = Object::new();
    written.put(Usb::mapping, device.text("mapping_id"));
    written.put(Usb::device, ["host", "device_id", "port_id"].iter().find_map(|key| device.text(key)));
    if written.is_empty() {
        written.set(Usb::device, json!("spice"));
    }
    written.put(Usb::usb3, device.flag("usb3"));
    Json::Object(written)
}

/// What Proxmox knows and Strata has no field for.
fn options(body: &Tree, vm: &mut Object) {
    let mut options = Object::new();
    let plugged = body.int_in("vcpus", 0..=1024);
    let plugged = plugged.or_else(|| body.one("cpu").and_then(|cpu| cpu.int_in("vcores", 0..=1024)));
    options.put_option("vcpus", plugged.filter(|cores| *cores > 0));
    if let Some(rng) = body.one("rng") {
        let mut words =
            vec![format!("source={}", rng.text("source").unwrap_or_else(|| "/dev/urandom".to_owned()))];
        words.extend(rng.int_in("limit", 0..=1 << 30).map(|limit| format!("max_bytes={limit}")));
        words.extend(rng.int_in("period", 0..=1 << 30).map(|period| format!("period={period}")));
        options.insert("rng0".into(), json!(words.join(",")));
    }
    options.put_option("args", body.text("args"));
    vm.put_full(Guest::options, Json::Object(options));
}

fn clone(import: &mut Import<'_>, around: &RootReferences<'_>, body: &Tree, own: &str, vm: &mut Object) {
    let Some(tree) = body.get("clone").or_else(|| body.get("clone_id")) else { return };
    let Some(source) = tree.as_text() else {
        import.note(
            Some(&tree.place),
            format!("what `{own}` is cloned from is not known here: it begins with empty disks unless `template` or `image` says otherwise"),
        );
        tree.take_all();
        return;
    };
    match around.template(import, &source) {
        Some(template) => {
            vm.set(Vm::template, json!(template));
            vm.put(Vm::clone_mode, body.flag("full_clone").map(|full| only(CloneMode::full, full)));
        }
        None => import.note(Some(&tree.place), guest::unknown_template(own, &source)),
    }
}

fn cloud_init(import: &mut Import<'_>, body: &Tree, own: &str, drive: Option<disks::Drive>, vm: &mut Object) {
    let mut nics: Vec<(i64, Json)> = Vec::new();
    for (number, device) in numbered(body.several("network"), 31) {
        let mut nic = nic(device);
        nic.put(Nic::model, device.text("model"));
        nic.put(Nic::queues, device.int_in("queues", 0..=64).filter(|queues| *queues > 1));
        nic.put(Nic::link_down, device.flag("link_down"));
        addresses(body, &format!("ipconfig{number}"), &mut nic);
        nics.push((number, Json::Object(nic)));
    }
    for number in 0..16 {
        let key = format!("ipconfig{number}");
        if nics.iter().any(|(known, _)| *known == number)
            || body.get(&key).is_none_or(|tree| tree.peek().is_none())
        {
            continue;
        }
        let mut nic = Object::new();
        nic.set(Nic::bridge, json!("vmbr0"));
        addresses(body, &key, &mut nic);
        import.note(body.get(&key).map(|tree| &tree.place), guest::card_of_template(own));
        nics.push((number, Json::Object(nic)));
    }
    vm.put_full(Hardware::network, slots("net", nics));
    let mut written = Object::new();
    written.put(CloudInit::user, body.text("ciuser"));
    written.put_full(CloudInit::ssh_keys, json!(guest::keys(body, "sshkeys")));
    let secret = format!("{}_password", name(own).replace('-', "_"));
    written.put(CloudInit::password, body.get("cipassword").and_then(|tree| import.secret_of(tree, &secret)));
    written.put_full(CloudInit::nameservers, json!(servers(body, "nameserver")));
    written.put(CloudInit::search_domain, body.text("searchdomain"));
    written.put(CloudInit::upgrade, body.flag("ciupgrade"));
    let slot = drive.as_ref().map(|drive| drive.slot.clone());
    let storage = body.text("cloudinit_cdrom_storage").or_else(|| drive.and_then(|drive| drive.storage));
    written.put(CloudInit::storage, storage);
    // Where Strata puts it anyway.
    written.put(CloudInit::slot, slot.filter(|slot| slot != "ide2"));
    if let Some(custom) = body.get("cicustom") {
        custom.take_all();
        import.note(
            Some(&custom.place),
            format!("`cicustom` of `{own}` names files on Proxmox: put their text into `cloudInit` of the machine, as `userData` …"),
        );
    }
    vm.put_full(Vm::cloud_init, Json::Object(written));
}

/// What network devices of machines and of containers have in common.
fn nic(device: &Tree) -> Object {
    let mut nic = Object::new();
    nic.set(Nic::bridge, json!(device.text("bridge").unwrap_or_else(|| "vmbr0".to_owned())));
    let mac = ["macaddr", "hwaddr", "mac"].iter().find_map(|key| device.text_if(key, output::is_mac));
    nic.put(Nic::mac, mac.map(|mac| mac.to_uppercase()));
    // Zero, and minus one in 2.9, are none.
    let tag = ["tag", "vlan_native"].iter().find_map(|key| device.int_in(key, -1..=4094));
    nic.put(Nic::vlan, tag.filter(|tag| *tag > 0));
    nic.put(Nic::mtu, device.int_in("mtu", 1..=65_520));
    nic.put(Nic::firewall, device.flag("firewall"));
    nic.put(Nic::rate, device.get("rate").and_then(Tree::as_number).filter(|rate| *rate > 0.0));
    nic
}

/// `ip=192.0.2.10/24,gw=192.0.2.1,ip6=auto`.
fn addresses(body: &Tree, key: &str, nic: &mut Object) {
    let parts = |text: &str| -> Option<Vec<(String, String)>> {
        text.split(',')
            .map(|part| part.trim())
            .filter(|part| !part.is_empty())
            .map(|part| {
                part.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
            })
            .collect()
    };
    let fits = |text: &str| {
        parts(text).is_some_and(|parts| {
            parts.iter().all(|(key, value)| match key.as_str() {
                "ip" => value == "dhcp" || output::with_prefix(value),
                "ip6" => value == "dhcp" || value == "auto" || output::with_prefix(value),
                "gw" | "gw6" => output::is_address(value),
                _ => false,
            })
        })
    };
    let Some(found) = body.text_if(key, fits).and_then(|text| parts(&text)) else { return };
    for (key, there) in [(Nic::ip, "ip"), (Nic::gateway, "gw"), (Nic::ip6, "ip6"), (Nic::gateway6, "gw6")] {
        nic.put(key, found.iter().find(|(word, _)| word == there).map(|(_, value)| value.clone()));
    }
}

/// The addresses of a device of a container, in the words of either kind.
fn addresses_of(device: &Tree, nic: &mut Object) {
    let manual = |text: &str| text == "manual";
    for (block, ip, gateway, words) in [
        ("ipv4", Nic::ip, Nic::gateway, ["ip", "ipv4_address", "gw", "ipv4_gateway", "ipv4_dhcp"]),
        ("ipv6", Nic::ip6, Nic::gateway6, ["ip6", "ipv6_address", "gw6", "ipv6_gateway", "ipv6_dhcp"]),
    ] {
        let inner = device.one(block);
        let address = output::address(device, words[0])
            .or_else(|| output::address(device, words[1]))
            .or_else(|| inner.and_then(|inner| output::address(inner, "address")));
        let dhcp = device.flag(words[4]).or_else(|| inner.and_then(|inner| inner.flag("dhcp")));
        let slaac = device.flag("slaac").or_else(|| inner.and_then(|inner| inner.flag("slaac")));
        let by_itself = match (dhcp, slaac.filter(|_| block == "ipv6")) {
            (Some(true), _) => Some("dhcp".to_owned()),
            (_, Some(true)) => Some("auto".to_owned()),
            _ => None,
        };
        let _ = device.text_if(words[0], manual);
        nic.put(ip, address.or(by_itself));
        let way = [words[2], words[3]].iter().find_map(|key| device.text_if(key, output::is_address));
        let way = way.or_else(|| inner.and_then(|inner| inner.text_if("gateway", output::is_address)));
        nic.put(gateway, way);
    }
}

/// Name servers in one text.
fn servers(body: &Tree, key: &str) -> Vec<String> {
    let split = |text: &str| -> Vec<String> {
        text.split([' ', ',']).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let all = body.text_if(key, |text| split(text).iter().all(|server| output::is_address(server)));
    all.map(|text| split(&text)).unwrap_or_default()
}
