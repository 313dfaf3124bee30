//! Templates, VMs and LXC by environment: `environments/{dev,staging,prod}/terraform.tfvars`.

use crate::output::only;
use crate::records::{
    CloudInit, Container, ContainerNic, Disk, Firewall, Guest, Hardware, Image, Metadata, Nic, RootFs, Stack,
    StackProxmox, Startup, StorageDefaults, Template, Vm,
};
use serde_json::{Value as Json, json};
use strata_source::machine::hardware::Bios;
use strata_yaml::Choice;

use super::files::folder_of;
use super::guest;
use super::hcl::Attribute;
use super::module::Module;
use super::output::{self, Object, Put};
use super::roots::{self, Filing, Root};
use super::tree::{SourceLine, Tree};
use super::{Guests, Import, base, name};

pub(super) fn import(import: &mut Import<'_>) {
    let folders: Vec<String> = import
        .files
        .folders_with(".tfvars")
        .into_iter()
        .filter(|folder| folder_of(folder).rsplit('/').next() == Some("environments"))
        .collect();
    let mut roots = Vec::new();
    for folder in folders {
        let root = folder_of(folder_of(&folder)).to_owned();
        let told = environment(import, &folder, &root);
        if told == Some(Made::OfVariables) && !roots.contains(&root) {
            roots.push(root);
        }
    }
    for root in roots {
        machinery(import, &root);
    }
}

/// The code turns the variables into machines, which Strata does itself.
fn machinery(import: &mut Import<'_>, root: &str) {
    for file in import.files.code(root) {
        import.files.read(&file);
    }
    let blocks: Vec<(SourceLine, String)> = import
        .library
        .folder(root)
        .iter()
        .filter(|block| matches!(block.kind.as_str(), "resource" | "module"))
        .map(|block| (block.place.clone(), format!("{} `{}`", block.kind, block.labels.join("."))))
        .collect();
    for (place, what) in blocks {
        import.note(
            Some(&place),
            format!("the {what} was not carried over: Strata makes the machines of the variables itself"),
        );
    }
}

/// What an environment was made of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Made {
    /// The code: it was evaluated with the values of the environment.
    OfCode,
    /// The variables alone: their code is not here.
    OfVariables,
}

/// The folder of the code that declares these variables: the one above the environments, or one beside them.
fn code_of(import: &Import<'_>, root: &str, names: &[&str]) -> String {
    if !import.files.code(root).is_empty() {
        return root.to_owned();
    }
    let declares = |folder: &&String| {
        let blocks = import.library.folder(folder);
        let declared =
            |name: &&&str| blocks.iter().any(|block| block.kind == "variable" && block.label(0) == **name);
        folder_of(folder) == root && names.iter().filter(declared).count() * 2 > names.len()
    };
    let all = import.files.folders_with_code();
    all.iter().find(declares).cloned().unwrap_or_else(|| root.to_owned())
}

fn environment(import: &mut Import<'_>, folder: &str, root: &str) -> Option<Made> {
    // One with code of its own is a root like any other.
    let own = import.library.folder(folder);
    if own.iter().any(|block| matches!(block.kind.as_str(), "resource" | "module")) {
        return None;
    }
    let mut files: Vec<Vec<Attribute>> = Vec::new();
    let mut blocks = import.library.folder(folder).to_vec();
    let mut paths = import.files.inside(folder, ".tfvars");
    paths.sort_by_key(|path| !path.ends_with("/terraform.tfvars"));
    let mut known = false;
    for path in paths {
        let Some((attributes, inner)) = import.variables(&path) else { continue };
        known |= attributes.iter().any(|attribute| {
            ["templates", "vm_configs", "lxc_configs", "pve_api_url"].contains(&attribute.name.as_str())
        });
        files.push(attributes);
        blocks.extend(inner);
    }
    if !known {
        return None;
    }
    import.found("templates, VMs and LXC by environment");
    let names: Vec<&str> = files.iter().flatten().map(|attribute| attribute.name.as_str()).collect();
    let code = code_of(import, root, &names);
    let root = code.as_str();
    for file in import.files.code(folder) {
        import.files.read(&file);
    }
    let module = Module::root(&import.library, &import.marks, root, blocks, &files);
    let declared: Vec<&str> =
        module.blocks.iter().filter(|block| block.kind == "variable").map(|block| block.label(0)).collect();
    for attribute in files.iter().flatten() {
        if !declared.is_empty() && !declared.contains(&attribute.name.as_str()) {
            import.note(
                Some(&attribute.place),
                format!("`{}` is not declared as a variable; OpenTofu ignores it", attribute.name),
            );
        }
    }
    let values = module.values();
    let place = files
        .iter()
        .flatten()
        .next()
        .map_or_else(|| SourceLine::new(folder, 1), |first| SourceLine { line: 1, ..first.place.clone() });
    let expansion = module.expand();
    if roots::makes_something(&expansion) && !expansion.incomplete {
        let (stack, environment) = called(folder, &values);
        let filing = Filing { stack, above: String::new(), environment: Some(environment), layer: None };
        for file in import.files.code(root) {
            import.files.read(&file);
        }
        let root = Root { folder: root.to_owned(), module, variant: Some(last_of(folder).to_owned()) };
        roots::native(import, &root, &expansion, &filing);
        roots::finish(import, &root, &values);
        return Some(Made::OfCode);
    }
    stack(import, folder, &values, &place);
    import.watch("", &values);
    let locals = module.locals();
    import.watch("", &locals);
    Some(Made::OfVariables)
}

fn last_of(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap_or(folder)
}

/// The name of the stack, and of its environment.
fn called(folder: &str, tree: &Tree) -> (String, String) {
    let environment = name(&tree.text("environment").unwrap_or_else(|| last_of(folder).to_owned()));
    let project = name(&tree.text("project_name").unwrap_or_else(|| "machines".to_owned()));
    // Projects are often called after their environment.
    let wanted = if project.split('-').any(|part| part == environment) {
        project
    } else {
        format!("{project}-{environment}")
    };
    (wanted, environment)
}

struct Context {
    endpoint: String,
    stack: String,
    document: String,
    disk: Object,
    bridge: String,
    vlan: Option<i64>,
    images: Option<String>,
}

fn stack(import: &mut Import<'_>, folder: &str, tree: &Tree, place: &SourceLine) {
    let last = last_of(folder);
    let (wanted, environment) = called(folder, tree);
    let own = import.stack_name(&wanted, place);
    let token = match (tree.text("pve_token_id"), tree.text("pve_token_secret")) {
        (Some(id), Some(secret)) => Some(format!("{id}={secret}")),
        _ => None,
    };
    let insecure = tree.bool("pve_insecure").unwrap_or(false);
    let (target, endpoint) = match tree.text_if("pve_api_url", |url| url.starts_with("http")) {
        Some(url) => (import.target(&url, insecure, token.as_deref()), base(&url)),
        None => {
            let endpoint = format!("https://proxmox-{}.invalid:8006", name(last));
            import.model.stood_in.insert(endpoint.clone());
            import.note(
                Some(place),
                "`pve_api_url`, which is required, is in no file that could be read: set the endpoint of the target in strata.yaml",
            );
            (import.target(&endpoint, insecure, token.as_deref()), endpoint)
        }
    };
    let mut proxmox = Object::new();
    proxmox.set(StackProxmox::target, json!(target));
    let node = tree.text("node").unwrap_or_else(|| {
        import.note(Some(place), "`node` is missing, which is required: `pve` was written down");
        "pve".to_owned()
    });
    proxmox.set(StackProxmox::node, json!(node));
    let mut storages = Object::new();
    storages.put(StorageDefaults::disk, tree.text("storage_vm_disk"));
    let images = tree.text("storage_local");
    storages.put(StorageDefaults::iso, images.clone());
    proxmox.put_full(StackProxmox::storage, Json::Object(storages));
    let mut disk = Object::new();
    disk.put(Disk::cache, tree.text_if("disk_cache", |cache| output::CACHES.contains(&cache)));
    disk.put(Disk::discard, output::discard(tree, "disk_discard"));
    disk.put(Disk::ssd, tree.bool("disk_ssd"));
    disk.put(Disk::format, tree.text_if("disk_format", |format| output::FORMATS.contains(&format)));
    let bridge = tree.text("bridge_interface").unwrap_or_else(|| "vmbr0".to_owned());
    let vlan = output::vlan(tree, "vlan_id");
    let document = format!("stacks/{own}/stack.yaml");
    let context =
        Context { endpoint, stack: own.clone(), document: document.clone(), disk, bridge, vlan, images };
    let mut guests = Guests::default();
    for (key, template) in tree.map("templates") {
        self::template(import, &context, key, template, &mut guests);
    }
    for config in tree.list("vm_configs") {
        machine(import, &context, config, &mut guests);
    }
    for config in tree.list("lxc_configs") {
        container(import, &context, config, &mut guests);
    }
    if guests.is_empty() {
        import.stacks.remove(&own);
        return;
    }
    let mut written = Object::new();
    let mut metadata = Object::new();
    metadata.set(Metadata::name, json!(own));
    metadata.set(Metadata::environment, json!(environment));
    written.set(Stack::metadata, Json::Object(metadata));
    written.set(Stack::proxmox, Json::Object(proxmox));
    guests.put_into(&mut written);
    import.write(document, written, place);
}

fn template(import: &mut Import<'_>, context: &Context, key: &str, tree: &Tree, guests: &mut Guests) {
    let own = name(key);
    let (Some(vm_id), Some(url)) =
        (tree.int("vm_id"), tree.text_if("image_url", |url| url.starts_with("http")))
    else {
        tree.take_all();
        import.note(
            Some(&tree.place),
            format!("the template `{key}` has no `vm_id` or no `image_url` and was left out"),
        );
        return;
    };
    // The same template is in several environments; it is one.
    let known = import.templates.get(&(context.endpoint.clone(), vm_id)).cloned();
    if let Some(known) = known {
        tree.take_all();
        import.templates.insert((format!("{}#{own}", context.stack), 0), known.clone());
        import.note(
            Some(&tree.place),
            format!(
                "the template {vm_id} is `{known}` already: it was left out, and clones refer to that one"
            ),
        );
        return;
    }
    if !import.claim(&context.endpoint, vm_id, &format!("{}/{own}", context.stack), &tree.place) {
        tree.take_all();
        return;
    }
    let unique = import.unique(&context.endpoint, key, &context.stack, &tree.place);
    import.templates.insert((context.endpoint.clone(), vm_id), format!("{}/{unique}", context.stack));
    import.templates.insert((format!("{}#{own}", context.stack), 0), unique.clone());
    let mut template = Object::new();
    template.set(Template::vm_id, json!(vm_id));
    let mut image = Object::new();
    image.set(Image::url, json!(url));
    image.put(Image::checksum, output::checksum_of(tree, "image_checksum", "image_checksum_algorithm"));
    image.put(Image::storage, context.images.clone());
    // An image of a disk that is called `.img` may be of either kind.
    if url.ends_with(".img") {
        image.set(Image::format, json!("qcow2"));
        image.set(Image::content_type, json!("import"));
    }
    template.set(Template::image, Json::Object(image));
    import.needless(tree, &["image_filename"], "Strata names the file after what is in it");
    template.put(Hardware::bios, tree.text_if("bios", |bios| Bios::WORDS.contains(&bios)));
    template.set(Hardware::machine, json!(tree.text("machine_type").unwrap_or_else(|| "q35".to_owned())));
    template.set(Hardware::cores, json!(tree.int_in("cores", 1..=1024).unwrap_or(2)));
    template.set(Hardware::memory, json!(tree.int_in("memory", 16..=i64::from(u32::MAX)).unwrap_or(2048)));
    let mut disk = Object::new();
    disk.set(Disk::size, json!(tree.int_in("disk_size", 1..=1_048_576).unwrap_or(20)));
    disk.extend(context.disk.clone());
    template.set(Hardware::disk, Json::Object(disk));
    template.set(Hardware::network, json!([nic(context, None)]));
    if let Some(text) = tree.text_if("cloud_init_vendor_data", |text| text.contains('\n')) {
        template.set(Template::cloud_init, only(CloudInit::vendor_data, text));
    }
    import.origin(&context.document, "templates", &unique, &tree.place);
    guests.templates.insert(unique, Json::Object(template));
}

fn nic(context: &Context, device: Option<&Tree>) -> Object {
    let mut nic = Object::new();
    let bridge = device.and_then(|device| device.text("bridge"));
    nic.set(Nic::bridge, json!(bridge.unwrap_or_else(|| context.bridge.clone())));
    let vlan = match device {
        Some(device) if device.has("vlan_id") => output::vlan(device, "vlan_id"),
        Some(device) if device.has("vlan") => output::vlan(device, "vlan"),
        _ => context.vlan,
    };
    nic.put(Nic::vlan, vlan);
    if let Some(device) = device {
        nic.put(Nic::mtu, device.int_in("mtu", 1..=65_520));
        nic.put(Nic::mac, device.text_if("mac_address", output::is_mac).map(|mac| mac.to_uppercase()));
        nic.put(Nic::firewall, device.bool("firewall"));
    }
    nic
}

fn network(context: &Context, tree: &Tree) -> Json {
    let devices = tree.list("network_devices");
    let configs = tree.list("ip_configs");
    let mut nics = Vec::new();
    for index in 0..devices.len().max(1) {
        let device = devices.get(index);
        let mut nic = nic(context, device);
        if tree.has("container_id") {
            nic.put(ContainerNic::name, device.and_then(|device| device.text("name")));
        } else if let Some(device) = device {
            nic.put(Nic::model, device.text("model"));
        }
        let empty = Tree::empty("");
        let config = configs.get(index).unwrap_or(&empty);
        for (there, ip, there_gateway, gateway) in [
            ("ipv4_address", Nic::ip, "ipv4_gateway", Nic::gateway),
            ("ipv6_address", Nic::ip6, "ipv6_gateway", Nic::gateway6),
        ] {
            let address = output::address(config, there);
            if address.as_deref().is_some_and(|ip| ip.contains('/')) {
                nic.put(gateway, config.text_if(there_gateway, output::is_address));
            }
            let default = (ip == Nic::ip && !config.has(there)).then(|| "dhcp".to_owned());
            nic.put(ip, address.or(default));
        }
        nics.push(Json::Object(nic));
    }
    Json::Array(nics)
}

fn firewall(import: &mut Import<'_>, tree: &Tree) -> Option<Json> {
    let enabled = tree.bool("enable_firewall").unwrap_or(false);
    let rules = tree.get("firewall_rules");
    if !enabled {
        if let Some(rules) = rules.filter(|rules| !rules.items().is_empty()) {
            rules.take_all();
            import.note(Some(&rules.place), "the firewall is not enabled: its rules were left out");
        }
        let _ = output::log_level(tree, "firewall_log_level");
        return None;
    }
    let mut firewall = Object::new();
    firewall.set(Firewall::enabled, json!(true));
    firewall.put(Firewall::log_level_in, output::log_level(tree, "firewall_log_level"));
    let list: Vec<Json> =
        tree.list("firewall_rules").iter().map(|rule| Json::Object(output::firewall_rule(rule))).collect();
    firewall.put_full(Firewall::rules, Json::Array(list));
    Some(Json::Object(firewall))
}

fn startup(tree: &Tree, up: &str, down: &str) -> Option<Json> {
    let mut startup = Object::new();
    startup.put(Startup::order, tree.int_in("startup_order", 0..=i64::from(u32::MAX)));
    startup.put(Startup::up_delay, tree.int_in(up, 0..=i64::from(u32::MAX)));
    startup.put(Startup::down_delay, tree.int_in(down, 0..=i64::from(u32::MAX)));
    (!startup.is_empty()).then_some(Json::Object(startup))
}

fn machine(import: &mut Import<'_>, context: &Context, tree: &Tree, guests: &mut Guests) {
    let (Some(own), Some(vm_id)) = (tree.text("name"), tree.int("vm_id")) else {
        import.note(Some(&tree.place), "a VM without `name` or `vm_id` was left out");
        tree.take_all();
        return;
    };
    if !import.claim(&context.endpoint, vm_id, &format!("{}/{own}", context.stack), &tree.place) {
        tree.take_all();
        return;
    }
    let mut vm = Object::new();
    vm.set(Guest::vm_id, json!(vm_id));
    match tree.get("template").map(|found| (found.place.clone(), found.as_text().unwrap_or_default())) {
        Some((place, wanted)) => template_of(import, context, &wanted, &place, &mut vm),
        None => import.note(Some(&tree.place), format!("`{own}` names no template: it boots from nothing")),
    }
    vm.set(Hardware::cores, json!(tree.int_in("cores", 1..=1024).unwrap_or(2)));
    vm.set(Hardware::memory, json!(tree.int_in("memory", 16..=i64::from(u32::MAX)).unwrap_or(2048)));
    if tree.bool("memory_ballooning") == Some(false) {
        vm.set(Hardware::balloon, json!(0));
    }
    // The modules of this family start what is told so, and leave the rest off.
    vm.put(Guest::started, tree.bool("autostart"));
    vm.put(Hardware::os_type, tree.text_if("os_type", |found| output::OS_TYPES.contains(&found)));
    vm.put(Guest::notes, tree.text("description"));
    let mut disks = Object::new();
    let mut first = Object::new();
    first.set(Disk::size, json!(tree.int_in("disk_size", 1..=1_048_576).unwrap_or(20)));
    first.extend(context.disk.clone());
    disks.insert("scsi0".into(), Json::Object(first));
    for (index, disk) in tree.list("additional_disks").iter().enumerate() {
        let slot = disk.text_if("interface", output::is_slot).unwrap_or_else(|| format!("scsi{}", index + 1));
        let mut written = Object::new();
        let size = ["size", "disk_size"].iter().find_map(|key| output::gib(disk, key));
        written.set(Disk::size, json!(size.unwrap_or(20)));
        written.put(Disk::storage, disk.text("datastore_id").or_else(|| disk.text("storage")));
        output::disk_flags(disk, &mut written);
        disks.insert(slot, Json::Object(written));
    }
    vm.set(Hardware::disks, Json::Object(disks));
    vm.set(Hardware::network, network(context, tree));
    if tree.bool("enable_cloud_init") != Some(false) {
        let mut cloud_init = Object::new();
        cloud_init
            .set(CloudInit::user, json!(tree.text("cloud_init_user").unwrap_or_else(|| "debian".to_owned())));
        cloud_init.put_full(CloudInit::ssh_keys, json!(guest::keys(tree, "ssh_public_keys")));
        cloud_init.put_full(CloudInit::nameservers, json!(tree.texts_if("dns_servers", output::is_address)));
        vm.set(Vm::cloud_init, Json::Object(cloud_init));
    }
    vm.put(Guest::startup, startup(tree, "startup_up_delay", "startup_down_delay"));
    vm.put(Guest::firewall, firewall(import, tree));
    vm.put_full(Guest::tags, output::tags_of(tree, "tags"));
    import.drop_taken_addresses(&context.endpoint, &mut vm, &format!("{}/{own}", context.stack), &tree.place);
    let unique = import.unique(&context.endpoint, &own, &context.stack, &tree.place);
    import.origin(&context.document, "vms", &unique, &tree.place);
    guests.vms.insert(unique, Json::Object(vm));
}

/// The template of this environment, or the same one of another.
fn template_of(
    import: &mut Import<'_>,
    context: &Context,
    wanted: &str,
    place: &SourceLine,
    vm: &mut Object,
) {
    let found = import.templates.get(&(format!("{}#{}", context.stack, name(wanted)), 0)).cloned();
    match found {
        Some(found) => {
            vm.set(Vm::template, json!(found));
        }
        None => import
            .note(Some(place), format!("there is no template `{wanted}`: the machine boots from nothing")),
    }
}

fn container(import: &mut Import<'_>, context: &Context, tree: &Tree, guests: &mut Guests) {
    let (Some(own), Some(vm_id)) = (tree.text("name"), tree.int("container_id")) else {
        import.note(Some(&tree.place), "a container without `name` or `container_id` was left out");
        tree.take_all();
        return;
    };
    let Some(image) = tree.text_if("template_file_id", |volume| volume.contains(':')) else {
        import.note(
            Some(&tree.place),
            format!("the container `{own}` has no `template_file_id` and was left out"),
        );
        tree.take_all();
        return;
    };
    if !import.claim(&context.endpoint, vm_id, &format!("{}/{own}", context.stack), &tree.place) {
        tree.take_all();
        return;
    }
    let mut written = Object::new();
    written.set(Guest::vm_id, json!(vm_id));
    written.set(Container::image, json!(image));
    let known = |text: &str| output::DISTRIBUTIONS.contains(&text);
    let system = tree.text_if("os_type", known);
    written.put(Container::os_type, system.or_else(|| (!tree.has("os_type")).then(|| "debian".to_owned())));
    written.put(Container::unprivileged, tree.bool("unprivileged"));
    written.set(Container::cores, json!(tree.int_in("cores", 1..=8192).unwrap_or(1)));
    written.put(Container::cpu_units, tree.int_in("cpu_units", 0..=500_000));
    written.set(Container::memory, json!(tree.int_in("memory", 16..=i64::from(u32::MAX)).unwrap_or(512)));
    written.set(Container::swap, json!(tree.int_in("memory_swap", 0..=i64::from(u32::MAX)).unwrap_or(512)));
    let storage = tree.text("storage").unwrap_or_else(|| "local-lvm".to_owned());
    let size = output::gib(tree, "disk_size").unwrap_or(10);
    let mut root = Object::new();
    root.set(RootFs::size, json!(size));
    root.set(RootFs::storage, json!(storage));
    written.set(Container::disk, Json::Object(root));
    written.put(Guest::started, tree.bool("autostart"));
    written.set(Container::network, network(context, tree));
    written.put_full(Container::nameservers, json!(tree.texts_if("dns_servers", output::is_address)));
    written.put_full(Container::ssh_keys, json!(guest::keys(tree, "ssh_public_keys")));
    if let Some(password) = tree.text("root_password") {
        let reference = import.secret(&format!("{}_root_password", name(&own).replace('-', "_")), &password);
        written.set(Container::password, reference);
    }
    written.put(Guest::startup, startup(tree, "startup_delay", "shutdown_delay"));
    written.put(Guest::firewall, firewall(import, tree));
    written.put_full(Guest::tags, output::tags_of(tree, "tags"));
    import.drop_taken_addresses(
        &context.endpoint,
        &mut written,
        &format!("{}/{own}", context.stack),
        &tree.place,
    );
    let unique = import.unique(&context.endpoint, &own, &context.stack, &tree.place);
    import.origin(&context.document, "containers", &unique, &tree.place);
    guests.containers.insert(unique, Json::Object(written));
}
