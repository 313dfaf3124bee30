//! Templates, VMs and LXC by environment: `environments/{dev,staging,prod}/terraform.tfvars`.

use serde_json::{Value as Json, json};

use super::output::{self, Object, Put};
use super::tree::Tree;
use super::{Guests, Import, Place, base, name};

pub(super) fn import(import: &mut Import<'_>) {
    for root in ["environments", "terraform/environments"] {
        for environment in import.folders(root) {
            let path = format!("{root}/{environment}/terraform.tfvars");
            let Some(tree) = import.tfvars(&path) else { continue };
            if !["templates", "vm_configs", "lxc_configs", "pve_api_url"].iter().any(|key| tree.has(key)) {
                continue;
            }
            import.found("templates, VMs and LXC by environment");
            let (defaults, blocks) = import.code(root.rsplit_once('/').map_or("", |(above, _)| above));
            let declared: Vec<String> = blocks
                .iter()
                .filter(|block| block.kind == "variable")
                .filter_map(|block| block.labels.first().cloned())
                .collect();
            for (key, value) in tree.left() {
                if !declared.is_empty() && !declared.contains(&key) {
                    import.note(
                        Some(&value),
                        format!("`{key}` is not declared as a variable; OpenTofu ignores it"),
                    );
                }
            }
            stack(import, &environment, &tree.with_defaults(&defaults));
        }
    }
}

struct Context {
    endpoint: String,
    stack: String,
    disk: Object,
    bridge: String,
    vlan: Option<i64>,
    images: Option<String>,
}

fn stack(import: &mut Import<'_>, folder: &str, tree: &Tree) {
    let environment = name(&tree.text("environment").unwrap_or_else(|| folder.to_owned()));
    let project = name(&tree.text("project_name").unwrap_or_else(|| "machines".to_owned()));
    let own = format!("{project}-{environment}");
    let endpoint = base(&tree.text("pve_api_url").unwrap_or_default());
    let mut proxmox = Object::new();
    let token = match (tree.text("pve_token_id"), tree.text("pve_token_secret")) {
        (Some(id), Some(secret)) => Some(format!("{id}={secret}")),
        _ => None,
    };
    if endpoint.is_empty() {
        import.note(
            Some(&tree.place),
            "`pve_api_url` is missing, which is required: add a target to strata.yaml",
        );
        let target = import.target("pve", "https://proxmox.invalid:8006", false, token.as_deref());
        proxmox.insert("target".into(), json!(target));
    } else {
        let insecure = tree.bool("pve_insecure").unwrap_or(false);
        let target = import.target("pve", &endpoint, insecure, token.as_deref());
        proxmox.insert("target".into(), json!(target));
    }
    let node = tree.text("node").or_else(|| {
        import.note(Some(&tree.place), "`node` is missing, which is required: `pve` was written down");
        Some("pve".to_owned())
    });
    proxmox.put("node", node);
    let mut storages = Object::new();
    storages.put("disk", tree.text("storage_vm_disk"));
    let images = tree.text("storage_local");
    storages.put("iso", images.clone());
    proxmox.put_full("storage", Json::Object(storages));
    let mut disk = Object::new();
    disk.put("cache", tree.text("disk_cache"));
    disk.put("discard", tree.text("disk_discard").map(|discard| discard == "on"));
    disk.put("ssd", tree.bool("disk_ssd"));
    let bridge = tree.text("bridge_interface").unwrap_or_else(|| "vmbr0".to_owned());
    let vlan = output::vlan(tree, "vlan_id");
    let context = Context { endpoint, stack: own.clone(), disk, bridge, vlan, images };
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
    import.report(tree);
    if guests.is_empty() {
        return;
    }
    let mut document = Object::new();
    document.insert("metadata".into(), json!({"name": own, "environment": environment}));
    document.insert("proxmox".into(), Json::Object(proxmox));
    guests.put_into(&mut document);
    import.write(format!("stacks/{own}/stack.yaml"), document);
}

fn template(import: &mut Import<'_>, context: &Context, key: &str, tree: &Tree, guests: &mut Guests) {
    let own = name(key);
    let (Some(vm_id), Some(url)) = (tree.int("vm_id"), tree.text("image_url")) else {
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
            format!("the template {vm_id} is `{known}` already: clones refer to that one"),
        );
        return;
    }
    if !import.claim(&context.endpoint, vm_id, &format!("{}/{own}", context.stack), &tree.place) {
        tree.take_all();
        return;
    }
    import.templates.insert((context.endpoint.clone(), vm_id), format!("{}/{own}", context.stack));
    let mut template = Object::new();
    template.insert("vmId".into(), json!(vm_id));
    let mut image = Object::new();
    image.insert("url".into(), json!(url));
    image.put(
        "checksum",
        output::checksum(tree.text("image_checksum"), tree.text("image_checksum_algorithm")),
    );
    image.put("storage", context.images.clone());
    template.insert("image".into(), Json::Object(image));
    tree.get("image_filename");
    template.put("bios", tree.text("bios"));
    template.insert("machine".into(), json!(tree.text("machine_type").unwrap_or_else(|| "q35".to_owned())));
    template.insert("cores".into(), json!(tree.int("cores").unwrap_or(2)));
    template.insert("memory".into(), json!(tree.int("memory").unwrap_or(2048)));
    let mut disk = Object::new();
    disk.insert("size".into(), json!(tree.int("disk_size").unwrap_or(20)));
    disk.extend(context.disk.clone());
    template.insert("disk".into(), Json::Object(disk));
    template.insert("network".into(), json!([nic(context, None)]));
    if let Some(data) = tree.get("cloud_init_vendor_data") {
        match data.as_text().filter(|text| text.contains('\n')) {
            Some(text) => template.put("cloudInit", Some(json!({"vendorData": text}))),
            None => {
                let place = data.place.clone();
                import.note(
                    Some(&place),
                    "`cloud_init_vendor_data` is no text of several lines and was not carried over",
                );
            }
        }
    }
    import.names.insert((base(&context.endpoint), own.clone()));
    guests.templates.insert(own, Json::Object(template));
}

fn nic(context: &Context, device: Option<&Tree>) -> Object {
    let mut nic = Object::new();
    let bridge = device.and_then(|device| device.text("bridge"));
    nic.insert("bridge".into(), json!(bridge.unwrap_or_else(|| context.bridge.clone())));
    let vlan = match device {
        Some(device) if device.has("vlan_id") => output::vlan(device, "vlan_id"),
        _ => context.vlan,
    };
    nic.put("vlan", vlan);
    nic
}

fn network(context: &Context, tree: &Tree) -> Json {
    let devices = tree.list("network_devices");
    let configs = tree.list("ip_configs");
    let mut nics = Vec::new();
    for index in 0..devices.len().max(1) {
        let device = devices.get(index);
        let mut nic = nic(context, device);
        nic.put("name", device.and_then(|device| device.text("name")).filter(|_| tree.has("container_id")));
        let config = configs.get(index);
        let get = |key: &str| config.and_then(|config| config.text(key));
        let ip = output::address(get("ipv4_address")).unwrap_or_else(|| "dhcp".to_owned());
        let gateway = get("ipv4_gateway");
        if ip.contains('/') {
            nic.put("gateway", gateway);
        }
        nic.insert("ip".into(), json!(ip));
        let ip6 = output::address(get("ipv6_address"));
        let gateway6 = get("ipv6_gateway");
        if ip6.as_deref().is_some_and(|ip| ip.contains('/')) {
            nic.put("gateway6", gateway6);
        }
        nic.put("ip6", ip6);
        nics.push(Json::Object(nic));
    }
    Json::Array(nics)
}

fn firewall(tree: &Tree) -> Option<Json> {
    let enabled = tree.bool("enable_firewall");
    let level = tree.text("firewall_log_level");
    let rules = tree.list("firewall_rules");
    if enabled != Some(true) {
        rules.iter().for_each(Tree::take_all);
        return None;
    }
    let mut firewall = Object::new();
    firewall.insert("enabled".into(), json!(true));
    firewall.put("logLevelIn", level);
    let mut list = Vec::new();
    for rule in rules {
        let mut written = Object::new();
        written.insert("direction".into(), json!(rule.text("type").unwrap_or_else(|| "in".to_owned())));
        written.insert("action".into(), json!(rule.text("action").unwrap_or_else(|| "ACCEPT".to_owned())));
        for (key, there) in [
            ("comment", "comment"),
            ("source", "source"),
            ("destination", "dest"),
            ("protocol", "proto"),
            ("destinationPort", "dport"),
            ("sourcePort", "sport"),
            ("interface", "iface"),
            ("log", "log"),
        ] {
            written.put(key, rule.text(there));
        }
        written.put("enabled", rule.bool("enabled"));
        list.push(Json::Object(written));
    }
    firewall.put_full("rules", Json::Array(list));
    Some(Json::Object(firewall))
}

fn startup(tree: &Tree, up: &str, down: &str) -> Option<Json> {
    let mut startup = Object::new();
    startup.put("order", tree.int("startup_order"));
    startup.put("upDelay", tree.int(up));
    startup.put("downDelay", tree.int(down));
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
    vm.insert("vmId".into(), json!(vm_id));
    match tree.get("template").map(|found| (found.place.clone(), found.as_text().unwrap_or_default())) {
        Some((place, wanted)) => template_of(import, context, &wanted, &place, guests, &mut vm),
        None => import.note(Some(&tree.place), format!("`{own}` names no template: it boots from nothing")),
    }
    vm.insert("cores".into(), json!(tree.int("cores").unwrap_or(2)));
    vm.insert("memory".into(), json!(tree.int("memory").unwrap_or(2048)));
    if tree.bool("memory_ballooning") == Some(false) {
        vm.insert("balloon".into(), json!(0));
    }
    vm.put("onboot", tree.bool("autostart"));
    vm.put("osType", tree.text("os_type"));
    let mut disks = Object::new();
    let mut first = Object::new();
    first.insert("size".into(), json!(tree.int("disk_size").unwrap_or(20)));
    first.extend(context.disk.clone());
    disks.insert("scsi0".into(), Json::Object(first));
    for (index, disk) in tree.list("additional_disks").iter().enumerate() {
        let slot = disk.text("interface").unwrap_or_else(|| format!("scsi{}", index + 1));
        let mut written = Object::new();
        written
            .insert("size".into(), json!(disk.int("size").or_else(|| disk.int("disk_size")).unwrap_or(20)));
        written.put("storage", disk.text("datastore_id").or_else(|| disk.text("storage")));
        written.put("ssd", disk.bool("ssd"));
        disks.insert(slot, Json::Object(written));
    }
    vm.insert("disks".into(), Json::Object(disks));
    vm.insert("network".into(), network(context, tree));
    if tree.bool("enable_cloud_init") != Some(false) {
        let mut cloud_init = Object::new();
        cloud_init.insert(
            "user".into(),
            json!(tree.text("cloud_init_user").unwrap_or_else(|| "debian".to_owned())),
        );
        cloud_init.put_full("sshKeys", json!(keys(tree)));
        vm.insert("cloudInit".into(), Json::Object(cloud_init));
    }
    vm.put("startup", startup(tree, "startup_up_delay", "startup_down_delay"));
    vm.put("firewall", firewall(tree));
    vm.put_full("tags", output::tags(&tree.texts("tags")));
    let unique = import.unique(&context.endpoint, &own, &context.stack, &tree.place);
    guests.vms.insert(unique, Json::Object(vm));
}

/// The template of this environment, or the same one of another.
fn template_of(
    import: &mut Import<'_>,
    context: &Context,
    wanted: &str,
    place: &Place,
    guests: &Guests,
    vm: &mut Object,
) {
    let own = name(wanted);
    let elsewhere = import.templates.get(&(format!("{}#{own}", context.stack), 0)).cloned();
    if guests.templates.contains_key(&own) {
        vm.insert("template".into(), json!(own));
    } else if let Some(elsewhere) = elsewhere {
        vm.insert("template".into(), json!(elsewhere));
    } else {
        import.note(Some(place), format!("there is no template `{wanted}`: the machine boots from nothing"));
    }
}

/// One key, or a list of them.
fn keys(tree: &Tree) -> Vec<String> {
    let list = tree.texts("ssh_public_keys");
    if list.is_empty() { tree.text("ssh_public_keys").into_iter().collect() } else { list }
}

fn container(import: &mut Import<'_>, context: &Context, tree: &Tree, guests: &mut Guests) {
    let (Some(own), Some(vm_id)) = (tree.text("name"), tree.int("container_id")) else {
        import.note(Some(&tree.place), "a container without `name` or `container_id` was left out");
        tree.take_all();
        return;
    };
    let Some(image) = tree.text("template_file_id").filter(|volume| volume.contains(':')) else {
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
    written.insert("vmId".into(), json!(vm_id));
    written.insert("image".into(), json!(image));
    written.insert("osType".into(), json!(tree.text("os_type").unwrap_or_else(|| "debian".to_owned())));
    written.put("unprivileged", tree.bool("unprivileged"));
    written.insert("cores".into(), json!(tree.int("cores").unwrap_or(1)));
    written.put("cpuUnits", tree.int("cpu_units"));
    written.insert("memory".into(), json!(tree.int("memory").unwrap_or(512)));
    written.insert("swap".into(), json!(tree.int("memory_swap").unwrap_or(512)));
    let storage = tree.text("storage").unwrap_or_else(|| "local-lvm".to_owned());
    written.insert("disk".into(), json!({"size": tree.int("disk_size").unwrap_or(10), "storage": storage}));
    written.put("onboot", tree.bool("autostart"));
    written.insert("network".into(), network(context, tree));
    written.put_full("nameservers", json!(tree.texts("dns_servers")));
    written.put_full("sshKeys", json!(keys(tree)));
    if let Some(password) = tree.text("root_password") {
        let reference = import.secret(&format!("{}_root_password", name(&own).replace('-', "_")), &password);
        written.insert("password".into(), reference);
    }
    written.put("startup", startup(tree, "startup_delay", "shutdown_delay"));
    written.put("firewall", firewall(tree));
    written.put_full("tags", output::tags(&tree.texts("tags")));
    let unique = import.unique(&context.endpoint, &own, &context.stack, &tree.place);
    guests.containers.insert(unique, Json::Object(written));
}
