//! Machines and containers as the bpg/proxmox provider describes them.

use crate::output::only;
use crate::records::{
    Agent, CloneMode, CloudInit, Container, ContainerNic, Cpu, Disk, Efi, Features, Guest, Hardware, Image,
    Nic, Pci, RootFs, Startup, Timeouts, Tpm, Usb, Vga, Vm,
};
use serde_json::{Value as Json, json};
use strata_source::machine::cloud_init::CloudInitType;
use strata_source::machine::hardware::Bios;
use strata_yaml::Choice;

use super::module::Resource;
use super::output::{self, Object, Put};
use super::tree::{Content, Tree};
use super::{Import, name};

/// The kind of a resource of the provider without its prefix; empty for those of others.
pub(super) fn kind(full: &str) -> &str {
    match full.strip_prefix("proxmox_virtual_environment_") {
        Some(short) => short,
        None => full.strip_prefix("proxmox_").unwrap_or_default(),
    }
}

/// Whether a reference is to the resource at an address, or to something of it.
pub(super) fn refers_to(reference: &str, address: &str) -> bool {
    reference.strip_prefix(address).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What the machines of one root refer to.
pub(super) struct RootReferences<'r> {
    pub(super) resources: &'r [Resource],
    /// Templates of the same stack, by VMID.
    pub(super) templates: Vec<(i64, String)>,
    /// Which of several the machine is that is looked at.
    pub(super) key: Option<String>,
    pub(super) endpoint: String,
}

impl<'r> RootReferences<'r> {
    /// The resource that an expression such as `….download_file.debian.id` names.
    pub(super) fn named(&self, wanted: &str, expression: &str) -> Option<&'r Resource> {
        let of_kind = |resource: &&Resource| kind(&resource.kind) == wanted;
        let mut same = self.resources.iter().filter(of_kind);
        if let Some(found) = same.find(|resource| refers_to(expression, &resource.full_address())) {
            return Some(found);
        }
        let mut parts = expression.split(['.', '[', ' ', '(', ')', ',', '"']).filter(|part| !part.is_empty());
        let full = parts.find(|part| kind(part) == wanted)?;
        let own = parts.next()?;
        let of_name = |resource: &&Resource| resource.kind == full && resource.name == own;
        if expression.contains("each.key") || expression.contains("count.index") {
            let same = |resource: &&Resource| of_name(resource) && resource.key == self.key;
            return self.resources.iter().find(same);
        }
        let mut found = self.resources.iter().filter(of_name);
        let first = found.next()?;
        // Several of one name are told apart by a key that is not known here.
        found.next().is_none().then_some(first)
    }

    /// The template with a VMID or a name: of the same stack, or of one that was read before.
    pub(super) fn template(&self, import: &Import<'_>, wanted: &str) -> Option<String> {
        let number = wanted.parse::<i64>().ok();
        let fits = |vm_id: i64, own: &str| number == Some(vm_id) || own == name(wanted);
        if let Some((_, own)) = self.templates.iter().find(|(vm_id, own)| fits(*vm_id, own)) {
            return Some(own.clone());
        }
        let elsewhere = import.templates.iter().find(|((endpoint, vm_id), path)| {
            *endpoint == self.endpoint && fits(*vm_id, path.rsplit('/').next().unwrap_or(path))
        });
        elsewhere.map(|(_, path)| path.clone())
    }

    /// The image that a disk begins as a copy of. The provider copies what is kept as a CD, too; Proxmox itself does not.
    fn disk_image(&self, import: &mut Import<'_>, tree: &Tree) -> Option<Json> {
        let mut image = self.image(import, tree)?;
        let Some(map) = image.as_object_mut() else { return Some(image) };
        let url = map.get(Image::url.name()).and_then(Json::as_str).unwrap_or_default();
        if [".gz", ".xz", ".bz2", ".zst", ".lzo"].iter().any(|ending| url.ends_with(ending)) {
            let message = format!(
                "`{url}` is packed, which Strata does not unpack: name the image itself as `import`, or the disk begins empty"
            );
            import.note(Some(&tree.place), message);
            return None;
        }
        if url.ends_with(".img") {
            // It may be of either kind; those of distributions are this one.
            map.entry(Image::format.name()).or_insert_with(|| json!("qcow2"));
            map.set(Image::content_type, json!("import"));
        } else if map.get(Image::content_type.name()) != Some(&json!("import")) {
            map.shift_remove(Image::content_type.name());
        }
        if let Some(storage) = map.get(Image::storage.name()).and_then(Json::as_str) {
            import.note(
                Some(&tree.place),
                format!("the image is downloaded to `{storage}`, which has to allow the content `import`"),
            );
        }
        Some(image)
    }

    /// The image that a volume is: one that is there, or one that is downloaded.
    fn image(&self, import: &mut Import<'_>, tree: &Tree) -> Option<Json> {
        match &tree.content {
            Content::Unknown(expression) => {
                let found = self.named("download_file", expression)?;
                tree.take_all();
                image(import, &found.body)
            }
            _ => tree.as_text_if(|text| text.contains(':')).map(Json::from),
        }
    }

    fn document(&self, import: &mut Import<'_>, tree: &Tree) -> Option<String> {
        let file = match &tree.content {
            Content::Unknown(expression) => &self.named("file", expression)?.body,
            // By the name that the code gives the file: `local:snippets/web.yaml`.
            Content::Text(volume) => {
                let called = volume.split_once(":snippets/")?.1;
                let is_it = |resource: &&Resource| {
                    let raw = resource.body.one("source_raw");
                    let own = raw.and_then(|raw| raw.get("file_name")).and_then(Tree::peek);
                    kind(&resource.kind) == "file" && own.as_deref() == Some(called)
                };
                &self.resources.iter().find(is_it)?.body
            }
            _ => return None,
        };
        let raw = file.one("source_raw")?;
        let text = raw.text_if("data", |text| text.contains('\n'))?;
        let why = "Strata makes an ISO of the text, and needs no snippets";
        import.needless(raw, &["file_name"], why);
        import.needless(file, &["content_type", "datastore_id", "node_name"], why);
        tree.take_all();
        Some(text)
    }
}

/// The endings of files that Strata knows.
const FILE_KINDS: [&str; 7] = ["iso", "qcow2", "raw", "vmdk", "tar.gz", "tar.xz", "tar.zst"];

/// A download as Strata writes it.
fn image(import: &mut Import<'_>, body: &Tree) -> Option<Json> {
    let mut image = Object::new();
    let url = body.text_if("url", |url| url.starts_with("http"))?;
    // What the file is called says what it is, where the address does not.
    let kind_of = |name: &str| FILE_KINDS.iter().find(|kind| name.ends_with(&format!(".{kind}"))).copied();
    let named = body.get("file_name").and_then(Tree::peek).and_then(|name| kind_of(&name));
    let format = named.filter(|kind| kind_of(&url).is_none() && (*kind != "iso" || !url.ends_with(".img")));
    image.set(Image::url, json!(url));
    image.put(Image::format, format);
    image.put(Image::checksum, output::checksum_of(body, "checksum", "checksum_algorithm"));
    image.put(Image::storage, body.text("datastore_id"));
    let needless = ["file_name", "overwrite", "overwrite_unmanaged", "upload_timeout", "node_name"];
    import.needless(
        body,
        &needless,
        "Strata names the file after what is in it, and downloads it where it is used",
    );
    let content = body.text_if("content_type", |kind| ["iso", "import", "vztmpl"].contains(&kind));
    image.put(Image::content_type, content);
    Some(Json::Object(image))
}

fn startup(body: &Tree) -> Option<Json> {
    let found = body.one("startup")?;
    let mut startup = Object::new();
    for (key, there) in
        [(Startup::order, "order"), (Startup::up_delay, "up_delay"), (Startup::down_delay, "down_delay")]
    {
        startup.put(key, found.int_in(there, 0..=i64::from(u32::MAX)));
    }
    (!startup.is_empty()).then_some(Json::Object(startup))
}

/// What machines and containers have in common.
fn both(body: &Tree, guest: &mut Object) {
    guest.put(Guest::node, body.text("node_name"));
    guest.put(Guest::notes, body.text("description"));
    guest.put_full(Guest::tags, output::tags_of(body, "tags"));
    guest.put(Guest::pool, body.text("pool_id"));
    guest.put(Guest::protection, body.bool("protection"));
    guest.put(Guest::startup, startup(body));
}

/// A machine; whether it is a template is said beside it.
pub(super) fn machine(
    import: &mut Import<'_>,
    around: &RootReferences<'_>,
    body: &Tree,
    own: &str,
) -> (Object, bool) {
    let mut vm = Object::new();
    both(body, &mut vm);
    // The provider starts machines with their host unless told otherwise.
    vm.set(Guest::onboot, json!(body.bool("on_boot").unwrap_or(true)));
    vm.put(Guest::started, body.bool("started"));
    // What is cloned has what the code does not say from its template.
    let fresh = body.one("clone").is_none();
    processor(body, fresh, &mut vm);
    vm.put(Hardware::bios, word_of(import, body, "bios", Bios::WORDS));
    vm.put(Hardware::machine, body.text("machine"));
    let controller = word_of(import, body, "scsi_hardware", output::SCSI_CONTROLLERS);
    vm.put(Hardware::scsi_controller, controller.or_else(|| fresh.then(|| "virtio-scsi-pci".to_owned())));
    vm.put(Hardware::tablet, body.bool("tablet_device"));
    vm.put_full(Hardware::boot_order, json!(body.texts("boot_order")));
    let system = body.one("operating_system");
    let known = system.and_then(|system| word_of(import, system, "type", output::OS_TYPES));
    vm.put(Hardware::os_type, known.or_else(|| (fresh || system.is_some()).then(|| "other".to_owned())));
    if let Some(agent) = body.one("agent") {
        let mut written = Object::new();
        written.set(Agent::enabled, json!(agent.bool("enabled").unwrap_or(false)));
        written.put(Agent::trim, agent.bool("trim"));
        written.put(Agent::kind, agent.text_if("type", |found| ["virtio", "isa"].contains(&found)));
        vm.set(Hardware::agent, Json::Object(written));
    }
    if let Some(vga) = body.one("vga") {
        let mut written = Object::new();
        written.put(Vga::kind, vga.text("type"));
        written.put(Vga::memory, vga.int_in("memory", 4..=512));
        vm.put_full(Hardware::vga, Json::Object(written));
    }
    if let Some(efi) = body.one("efi_disk") {
        let mut written = Object::new();
        written.put(Efi::storage, efi.text("datastore_id"));
        let kind = efi.text_if("type", |found| ["2m", "4m"].contains(&found));
        written.set(Efi::kind, json!(kind.unwrap_or_else(|| "2m".to_owned())));
        written.put(Efi::format, efi.text_if("file_format", |found| output::FORMATS.contains(&found)));
        let keys = efi.bool("pre_enrolled_keys").unwrap_or(false);
        written.set(Efi::pre_enrolled_keys, json!(keys));
        vm.set(Hardware::efi, Json::Object(written));
    } else if fresh && vm.get(Hardware::bios.name()).and_then(Json::as_str) == Some("ovmf") {
        import.note(
            Some(&body.place),
            format!("`{own}` has the firmware `ovmf` and no disk for its settings: Strata adds one"),
        );
    }
    if let Some(tpm) = body.one("tpm_state") {
        let mut written = Object::new();
        written.put(Tpm::storage, tpm.text("datastore_id"));
        written.put(Tpm::version, tpm.text_if("version", |found| ["v1.2", "v2.0"].contains(&found)));
        vm.set(Hardware::tpm, Json::Object(written));
    }
    disks(import, around, body, &mut vm);
    devices(body, &mut vm);
    times(import, body, &mut vm);
    clone(import, around, body, own, &mut vm);
    cloud_init(import, around, body, own, &mut vm);
    (vm, body.bool("template") == Some(true))
}

/// One of the words that Strata knows; another is told, also where a condition of the code looked at it.
fn word_of(import: &mut Import<'_>, body: &Tree, key: &str, words: &[&str]) -> Option<String> {
    let tree = body.get(key)?;
    let text = tree.peek()?;
    if words.contains(&text.as_str()) {
        return tree.as_text();
    }
    tree.take_all();
    import.note(
        Some(&tree.place),
        format!("`{key}` is `{text}`, which Strata does not know: it was not carried over"),
    );
    None
}

/// How long things may take, and what tells the provider how to go about it.
fn times(import: &mut Import<'_>, body: &Tree, vm: &mut Object) {
    let mut times = Object::new();
    for (key, there) in [
        (Timeouts::create, "timeout_create"),
        (Timeouts::clone_, "timeout_clone"),
        (Timeouts::start, "timeout_start_vm"),
        (Timeouts::shutdown, "timeout_shutdown_vm"),
        (Timeouts::migrate, "timeout_migrate"),
    ] {
        times.put(key, body.int_in(there, 1..=86_400));
    }
    vm.put_full(Guest::timeouts, Json::Object(times));
    let mut options = Object::new();
    options.put_option("keyboard", body.text("keyboard_layout"));
    options.put_option("acpi", body.bool("acpi").filter(|acpi| !acpi));
    let plugged = body.one("cpu").and_then(|cpu| cpu.int_in("hotplugged", 0..=1024));
    options.put_option("vcpus", plugged.filter(|cores| *cores > 0));
    vm.put_full(Guest::options, Json::Object(options));
    let how = [
        "delete_unreferenced_disks_on_destroy",
        "migrate",
        "purge_on_destroy",
        "reboot",
        "reboot_after_update",
        "stop_on_destroy",
        "timeout_move_disk",
        "timeout_reboot",
        "timeout_stop_vm",
    ];
    import.needless(body, &how, "it is a setting of the provider");
    if let Some(agent) = body.one("agent") {
        import.needless(agent, &["timeout", "wait_for_ip"], "Strata waits for no address");
    }
}

fn processor(body: &Tree, fresh: bool, vm: &mut Object) {
    let empty = Tree::empty("");
    let said = body.one("cpu");
    let cpu = said.unwrap_or(&empty);
    let mut written = Object::new();
    if said.is_some() || fresh {
        vm.set(Hardware::cores, json!(cpu.int_in("cores", 1..=1024).unwrap_or(1)));
        let model = cpu.get("type").and_then(Tree::as_text);
        written.set(Cpu::kind, json!(model.unwrap_or_else(|| "qemu64".to_owned())));
    }
    vm.put(Hardware::sockets, cpu.int_in("sockets", 1..=16));
    written.put_full(Cpu::flags, json!(cpu.texts("flags")));
    written.put(Cpu::units, cpu.int_in("units", 1..=262_144));
    written.put(Cpu::limit, cpu.get("limit").and_then(Tree::as_number).filter(|limit| *limit > 0.0));
    written.put(Cpu::numa, cpu.bool("numa"));
    written.put(Cpu::affinity, cpu.text("affinity"));
    vm.put_full(Hardware::cpu, Json::Object(written));
    let said = body.one("memory");
    if said.is_none() && !fresh {
        return;
    }
    let memory = said.unwrap_or(&empty);
    let dedicated = memory.int_in("dedicated", 16..=i64::from(u32::MAX)).unwrap_or(512);
    vm.set(Hardware::memory, json!(dedicated));
    // Nothing said turns ballooning off.
    vm.set(Hardware::balloon, json!(memory.int_in("floating", 0..=dedicated).unwrap_or(0)));
}

fn disks(import: &mut Import<'_>, around: &RootReferences<'_>, body: &Tree, vm: &mut Object) {
    let mut disks = Object::new();
    for disk in body.several("disk") {
        let Some(slot) = disk.text_if("interface", output::is_slot) else { continue };
        let mut written = Object::new();
        written.set(Disk::size, json!(disk.int_in("size", 1..=1_048_576).unwrap_or(8)));
        written.put(Disk::storage, disk.text("datastore_id"));
        output::disk_flags(disk, &mut written);
        written.put(Disk::serial, disk.text("serial"));
        let source = disk.get("import_from").or_else(|| disk.get("file_id"));
        written.put(Disk::import, source.and_then(|tree| around.disk_image(import, tree)));
        import.needless(disk, &["path_in_datastore"], "Proxmox names volumes itself");
        disks.insert(slot, Json::Object(written));
    }
    for drive in body.several("cdrom") {
        if drive.bool("enabled") == Some(false) {
            continue;
        }
        let slot = drive.text_if("interface", output::is_slot).unwrap_or_else(|| "ide3".to_owned());
        match drive.get("file_id").and_then(|tree| around.image(import, tree)) {
            Some(iso) => {
                disks.insert(slot, only(Disk::iso, iso));
            }
            None => {
                let _ = drive.text_if("file_id", |id| id == "none");
            }
        }
    }
    vm.put_full(Hardware::disks, Json::Object(disks));
}

fn devices(body: &Tree, vm: &mut Object) {
    let mut pci = Object::new();
    for (index, device) in body.several("hostpci").into_iter().enumerate() {
        let slot = device.text("device").unwrap_or_else(|| format!("hostpci{index}"));
        let mut written = Object::new();
        written.put(Pci::mapping, device.text("mapping"));
        written.put(Pci::device, device.text("id"));
        written.put(Pci::mdev, device.text("mdev"));
        for (key, there) in [(Pci::pcie, "pcie"), (Pci::rombar, "rombar"), (Pci::xvga, "xvga")] {
            written.put(key, device.bool(there));
        }
        pci.insert(slot, Json::Object(written));
    }
    vm.put_full(Hardware::pci, Json::Object(pci));
    let usb: Vec<Json> = body
        .several("usb")
        .into_iter()
        .map(|device| {
            let mut written = Object::new();
            written.put(Usb::mapping, device.text("mapping"));
            written.put(Usb::device, device.text("host"));
            written.put(Usb::usb3, device.bool("usb3"));
            Json::Object(written)
        })
        .collect();
    vm.put_full(Hardware::usb, json!(usb));
    let serial: Vec<String> = body
        .several("serial_device")
        .into_iter()
        .map(|device| device.text("device").unwrap_or_else(|| "socket".to_owned()))
        .collect();
    vm.put_full(Hardware::serial, json!(serial));
}

fn clone(import: &mut Import<'_>, around: &RootReferences<'_>, body: &Tree, own: &str, vm: &mut Object) {
    let Some(clone) = body.one("clone") else { return };
    import.needless(clone, &["retries", "node_name"], "Strata knows where a template is, and tries again");
    let Some(tree) = clone.get("vm_id") else { return };
    // A template of the same code that Proxmox numbers itself is known by its name.
    let named = match &tree.content {
        Content::Unknown(expression) => match around.named("vm", expression) {
            Some(source) => source.body.get("name").and_then(Tree::peek).or(Some(source.name.clone())),
            None => Some(expression.chars().take(60).collect()),
        },
        _ => tree.peek(),
    };
    let Some(wanted) = named else { return };
    tree.take_all();
    match around.template(import, &wanted) {
        Some(template) => {
            vm.set(Vm::template, json!(template));
            vm.put(Vm::clone_mode, clone.bool("full").map(|full| only(CloneMode::full, full)));
        }
        None => {
            clone.take_keys(&["full"]);
            import.note(Some(&clone.place), unknown_template(own, &wanted));
        }
    }
}

/// Where a clone has the cards of a template that no file describes.
pub(super) fn card_of_template(own: &str) -> String {
    format!("`{own}` has the network device of its template: `vmbr0` was written down for it")
}

/// What to do about a machine that is copied from something that no file describes.
pub(super) fn unknown_template(own: &str, source: &str) -> String {
    format!(
        "`{own}` is cloned from `{source}`, which no file here describes: describe it under `templates` and name it as `template`, or the machine begins with empty disks; one that exists can be adopted as it is"
    )
}

fn cloud_init(import: &mut Import<'_>, around: &RootReferences<'_>, body: &Tree, own: &str, vm: &mut Object) {
    let initialization = body.one("initialization");
    let mut nics = nics(body, "network_device", true);
    let Some(found) = initialization else {
        vm.put_full(Hardware::network, Json::Array(nics.into_iter().map(Json::Object).collect()));
        return;
    };
    while nics.len() < found.several("ip_config").len() && body.one("clone").is_some() {
        let mut nic = Object::new();
        nic.set(Nic::bridge, json!("vmbr0"));
        nics.push(nic);
        import.note(found.get("ip_config").map(|tree| &tree.place), card_of_template(own));
    }
    addresses(import, found, own, &mut nics);
    vm.put_full(Hardware::network, Json::Array(nics.into_iter().map(Json::Object).collect()));
    let mut written = Object::new();
    for (key, there) in [
        (CloudInit::user_data, "user_data_file_id"),
        (CloudInit::vendor_data, "vendor_data_file_id"),
        (CloudInit::network_data, "network_data_file_id"),
        (CloudInit::meta_data, "meta_data_file_id"),
    ] {
        written.put(key, found.get(there).and_then(|tree| around.document(import, tree)));
    }
    match found.one("user_account") {
        // The provider does not look at the account where there is a document.
        Some(user) if written.contains_key(CloudInit::user_data.name()) => {
            user.take_all();
            let message = format!("the account of `{own}` was left out: its user-data says who may log in");
            import.note(Some(&user.place), message);
        }
        Some(user) => {
            written.put(CloudInit::user, user.text("username"));
            written.put_full(CloudInit::ssh_keys, json!(keys(user, "keys")));
            let secret = format!("{}_password", name(own).replace('-', "_"));
            written.put(
                CloudInit::password,
                user.get("password").and_then(|tree| import.secret_of(tree, &secret)),
            );
        }
        None => {}
    }
    name_servers(found, &mut written);
    written.put(CloudInit::upgrade, found.bool("upgrade"));
    written.put(CloudInit::kind, found.text_if("type", |text| CloudInitType::WORDS.contains(&text)));
    let storage = found.text("datastore_id");
    written.set(CloudInit::storage, json!(storage.unwrap_or_else(|| "local-lvm".to_owned())));
    import.needless(found, &["interface"], "Strata decides which slot the drive of cloud-init has");
    vm.put_full(Vm::cloud_init, Json::Object(written));
}

/// Public keys; one text may hold several.
pub(super) fn keys(tree: &Tree, key: &str) -> Vec<String> {
    let lines = tree.texts_or_one(key);
    lines
        .iter()
        .flat_map(|text| text.lines())
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

fn name_servers(found: &Tree, written: &mut Object) {
    let Some(dns) = found.one("dns") else { return };
    let mut servers = dns.texts_if("servers", output::is_address);
    if servers.is_empty() {
        servers.extend(dns.text_if("server", output::is_address));
    }
    written.put_full(CloudInit::nameservers, json!(servers));
    written.put(CloudInit::search_domain, dns.text("domain"));
}

fn nics(body: &Tree, key: &str, machine: bool) -> Vec<Object> {
    let mut nics = Vec::new();
    for device in body.several(key) {
        if device.bool("enabled") == Some(false) {
            device.take_all();
            continue;
        }
        let mut nic = Object::new();
        nic.set(Nic::bridge, json!(device.text("bridge").unwrap_or_else(|| "vmbr0".to_owned())));
        nic.put(Nic::mac, device.text_if("mac_address", output::is_mac).map(|mac| mac.to_uppercase()));
        nic.put(Nic::vlan, output::vlan(device, "vlan_id"));
        nic.put(Nic::mtu, device.int_in("mtu", 1..=65_520));
        nic.put(Nic::firewall, device.bool("firewall"));
        nic.put(Nic::rate, device.get("rate_limit").and_then(Tree::as_number).filter(|rate| *rate > 0.0));
        if machine {
            nic.put(Nic::model, device.text("model"));
            nic.put(Nic::queues, device.int_in("queues", 0..=64));
            nic.put(Nic::link_down, device.bool("disconnected"));
            let tags = |text: &str| {
                text.split(';').map(|tag| tag.trim().parse::<u16>().ok()).collect::<Option<Vec<u16>>>()
            };
            let trunks = device.text_if("trunks", |text| tags(text).is_some());
            nic.put_full(Nic::trunks, json!(trunks.and_then(|text| tags(&text)).unwrap_or_default()));
        } else {
            nic.put(ContainerNic::name, device.text("name"));
        }
        nics.push(nic);
    }
    nics
}

fn addresses(import: &mut Import<'_>, initialization: &Tree, own: &str, nics: &mut [Object]) {
    let configs = initialization.several("ip_config");
    for (nic, config) in nics.iter_mut().zip(configs) {
        for (block, ip, gateway) in [("ipv4", Nic::ip, Nic::gateway), ("ipv6", Nic::ip6, Nic::gateway6)] {
            let Some(found) = config.one(block) else { continue };
            let address = output::address(found, "address");
            if let Some(tree) = found.get("address")
                && let Content::Unknown(expression) = &tree.content
            {
                found.take_all();
                let short: String = expression.chars().take(60).collect();
                let message = format!(
                    "`{own}` has the address `{short}`, which is in no file that was read: it was left without one"
                );
                import.note(Some(&tree.place), message);
            }
            if address.as_deref().is_some_and(|address| address.contains('/')) {
                nic.put(gateway, found.text_if("gateway", output::is_address));
            }
            nic.put(ip, address);
        }
    }
}

/// A container; nothing if it has no image, which is then reported.
pub(super) fn container(
    import: &mut Import<'_>,
    around: &RootReferences<'_>,
    body: &Tree,
    own: &str,
) -> Option<Object> {
    let mut guest = Object::new();
    both(body, &mut guest);
    guest.set(Guest::onboot, json!(body.bool("start_on_boot").unwrap_or(true)));
    guest.put(Guest::started, body.bool("started"));
    guest.set(Container::unprivileged, json!(body.bool("unprivileged").unwrap_or(false)));
    let system = body.one("operating_system");
    let image = system.and_then(|system| around.image(import, system.get("template_file_id")?));
    let image = image.unwrap_or_else(|| {
        let there = system.and_then(|system| system.get("template_file_id"));
        there.into_iter().for_each(Tree::take_all);
        json!(import.some_image(own, there.map_or(&body.place, |tree| &tree.place)))
    });
    guest.set(Container::image, image);
    if let Some(system) = system {
        guest.put(Container::os_type, system.text_if("type", |found| output::DISTRIBUTIONS.contains(&found)));
    }
    guest.entry(Container::os_type.name()).or_insert_with(|| json!("unmanaged"));
    let empty = Tree::empty("");
    let cpu = body.one("cpu").unwrap_or(&empty);
    guest.set(Container::cores, json!(cpu.int_in("cores", 1..=8192).unwrap_or(1)));
    guest.put(Container::cpu_units, cpu.int_in("units", 0..=500_000));
    let memory = body.one("memory").unwrap_or(&empty);
    guest.set(Container::memory, json!(memory.int_in("dedicated", 16..=i64::from(u32::MAX)).unwrap_or(512)));
    guest.set(Container::swap, json!(memory.int_in("swap", 0..=i64::from(u32::MAX)).unwrap_or(0)));
    let disk = body.one("disk").unwrap_or(&empty);
    let mut root = Object::new();
    root.set(RootFs::size, json!(disk.int_in("size", 1..=1_048_576).unwrap_or(4)));
    let storage = disk.text("datastore_id");
    root.set(RootFs::storage, json!(storage.unwrap_or_else(|| "local".to_owned())));
    for (key, there) in [(RootFs::acl, "acl"), (RootFs::quota, "quota"), (RootFs::replicate, "replicate")] {
        root.put(key, disk.bool(there));
    }
    root.put_full(RootFs::mount_options, json!(disk.texts("mount_options")));
    guest.set(Container::disk, Json::Object(root));
    if let Some(features) = body.one("features") {
        let mut written = Object::new();
        for (key, there) in
            [(Features::nesting, "nesting"), (Features::keyctl, "keyctl"), (Features::fuse, "fuse")]
        {
            written.put(key, features.bool(there));
        }
        written.put_full(Features::mount, json!(features.texts("mount")));
        guest.put_full(Container::features, Json::Object(written));
    }
    let mut points = Object::new();
    for (index, mount) in body.several("mount_point").into_iter().enumerate() {
        if let Some(point) = output::mount_point(mount) {
            points.insert(format!("mp{index}"), Json::Object(point));
        }
    }
    guest.put_full(Container::mount_points, Json::Object(points));
    let mut nics = nics(body, "network_interface", false);
    if let Some(found) = body.one("initialization") {
        addresses(import, found, own, &mut nics);
        guest.put(Container::hostname, found.text_if("hostname", output::is_host));
        name_servers(found, &mut guest);
        if let Some(user) = found.one("user_account") {
            guest.put_full(Container::ssh_keys, json!(keys(user, "keys")));
            let secret = format!("{}_password", name(own).replace('-', "_"));
            guest.put(
                Container::password,
                user.get("password").and_then(|tree| import.secret_of(tree, &secret)),
            );
        }
    }
    guest.put_full(Container::network, Json::Array(nics.into_iter().map(Json::Object).collect()));
    Some(guest)
}
