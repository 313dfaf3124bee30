//! Stacks of OpenTofu with Ansible Vault: `stacks/{onprem,cloud}/<name>` with data in `.tfvars`.

use serde_json::{Value as Json, json};

use super::output::{self, Object, Put};
use super::tree::{Content, Tree};
use super::{Guests, Import, Place, base, join, name};

pub(super) fn import(import: &mut Import<'_>) {
    for root in ["stacks", "tofu/stacks", "terraform/stacks"] {
        walk(import, root, 0);
    }
}

fn walk(import: &mut Import<'_>, folder: &str, depth: usize) {
    let data: Vec<String> = import.files(folder, ".tfvars");
    if !data.is_empty() {
        let (defaults, blocks) = import.code(folder);
        let mut entries: Vec<(String, Tree)> = Vec::new();
        for file in data {
            if let Some(tree) = import.tfvars(&file)
                && let Content::Map(found) = tree.content
            {
                entries.extend(found);
            }
        }
        let mut values = Tree::empty(folder);
        values.content = Content::Map(entries);
        let values = values.with_defaults(&defaults);
        if values.has("resources") {
            import.found("stacks of OpenTofu with Ansible Vault");
            stack(import, folder, &values);
            for block in blocks.iter().filter(|block| block.kind == "terraform") {
                if let Some(backend) = block.body.get("backend") {
                    import.backend("s3", backend);
                }
            }
        } else {
            by_hand(import, folder);
        }
    } else if !import.files(folder, ".tf").is_empty() {
        by_hand(import, folder);
    }
    for inner in import.folders(folder) {
        if depth < 6 {
            walk(import, &join(folder, &inner), depth + 1);
        }
    }
}

/// A stack of another provider stays what it is: Strata drives OpenTofu for it.
fn by_hand(import: &mut Import<'_>, folder: &str) {
    import.found("stacks of OpenTofu with Ansible Vault");
    let target = format!("stacks/{}", folder.split_once("stacks/").map_or(folder, |(_, rest)| rest));
    let mut files = import.files(folder, ".tf");
    files.extend(import.files(folder, ".tfvars"));
    for file in files {
        if let Some(text) = import.read(&file) {
            let own = file.rsplit('/').next().unwrap_or(&file).to_owned();
            import.imported.files.insert(format!("{target}/{own}"), text);
        }
    }
    let place = Place { file: folder.into(), line: 1 };
    import.note(Some(&place), "it has no `resources`: kept as a stack written by hand, for `strata tofu`");
}

struct Context {
    endpoint: String,
    datastore: Option<String>,
    stack: String,
}

fn stack(import: &mut Import<'_>, folder: &str, values: &Tree) {
    let path = folder.split_once("stacks/").map_or(folder, |(_, rest)| rest).to_owned();
    let own = name(path.rsplit('/').next().unwrap_or(&path));
    let mut proxmox = Object::new();
    let mut endpoint = String::new();
    match values.get("proxmox_connection") {
        Some(connection) => {
            endpoint = base(&connection.text("url").unwrap_or_default());
            let insecure = connection.bool("insecure_tls").unwrap_or(false);
            let token = token(import, connection);
            if endpoint.is_empty() {
                import.note(
                    Some(&connection.place),
                    "the connection has no `url`: add a target to strata.yaml",
                );
            } else {
                let target = import.target("pve", &endpoint, insecure, token.as_deref());
                proxmox.insert("target".into(), json!(target));
            }
        }
        None => {
            // Often in the encrypted file.
            let target = import.target("pve", "https://proxmox.invalid:8006", false, None);
            proxmox.insert("target".into(), json!(target));
            import.note(
                Some(&values.place),
                "`proxmox_connection` is not in a file that could be read: set the endpoint in strata.yaml",
            );
        }
    }
    let node = values.text("target_node");
    proxmox.put("node", node.clone());
    let datastore = values.text("target_datastore");
    proxmox.put("storage", datastore.clone().map(|disk| json!({"disk": disk})));
    let context = Context { endpoint, datastore, stack: own.clone() };
    let mut guests = Guests::default();
    let credentials = values.get("user_credentials");
    let groups = values.map("resources");
    for (group, resource) in groups {
        if resource.bool("enabled") == Some(false) {
            resource.take_all();
            import
                .note(Some(&resource.place), format!("the group `{group}` is not enabled and was left out"));
            continue;
        }
        if node.is_none() && !resource.has("node_name") {
            import.note(
                Some(&resource.place),
                format!("the group `{group}` names no node: `pve` was written down"),
            );
            proxmox.entry("node").or_insert_with(|| json!("pve"));
        }
        self::group(import, &context, group, resource, credentials, &mut guests);
    }
    import.report(values);
    if guests.is_empty() {
        return;
    }
    let mut document = Object::new();
    document.insert("metadata".into(), json!({"name": own}));
    document.insert("proxmox".into(), Json::Object(proxmox));
    guests.put_into(&mut document);
    import.write(format!("stacks/{path}/stack.yaml"), document);
}

fn token(import: &mut Import<'_>, connection: &Tree) -> Option<String> {
    let method = connection.text("auth_method").unwrap_or_else(|| "token".to_owned());
    if method != "token" {
        import.note(
            Some(&connection.place),
            format!("the connection uses `{method}`: Strata wants an API token"),
        );
    }
    for other in ["password_auth", "ticket_auth"] {
        if let Some(tree) = connection.get(other) {
            tree.take_all();
        }
    }
    let auth = connection.get("token_auth")?;
    Some(format!("{}={}", auth.text("id")?, auth.text("secret")?))
}

fn group(
    import: &mut Import<'_>,
    context: &Context,
    group: &str,
    resource: &Tree,
    credentials: Option<&Tree>,
    guests: &mut Guests,
) {
    let kind = resource.text("type").unwrap_or_else(|| "vm".to_owned());
    if let Some(groups) = resource.get("ansible_groups") {
        groups.take_all();
        let place = groups.place.clone();
        import.note(
            Some(&place),
            "groups of Ansible become tags; their variables belong into the inventory of your own",
        );
    }
    let mut tags = resource.texts("tags");
    if let Some(groups) = resource.get("ansible_groups") {
        tags.extend(groups.entries().iter().map(|(name, _)| name.clone()));
    }
    let user = resource.text("cloud_init_user");
    let keys = user.as_deref().and_then(|user| credentials?.get(user));
    let config = if kind == "lxc" { resource.get("lxc_config") } else { resource.get("vm_config") };
    let empty = Tree::empty("");
    let config = config.unwrap_or(&empty);
    for (node, own) in resource.map("nodes") {
        let Some(vm_id) = own.int("vm_id") else {
            import.note(Some(&own.place), format!("`{node}` of `{group}` has no `vm_id` and was left out"));
            continue;
        };
        if !import.claim(&context.endpoint, vm_id, &format!("{}/{node}", context.stack), &own.place) {
            own.take_all();
            continue;
        }
        // A key of the node wins over the group's.
        let layered = Layered { own, config };
        let mut guest = Object::new();
        guest.insert("vmId".into(), json!(vm_id));
        let place = own.text("node_name").or_else(|| resource.text("node_name"));
        guest.put("node", place);
        guest.put("notes", own.text("description").or_else(|| resource.text("description")));
        guest.put_full("tags", output::tags(&tags));
        guest.put("onboot", own.bool("on_boot").or_else(|| resource.bool("on_boot")));
        guest.put("started", own.bool("started").or_else(|| resource.bool("started")));
        if kind == "lxc" {
            if container(import, context, &layered, keys, &mut guest, own) {
                let unique = import.unique(&context.endpoint, node, &context.stack, &own.place);
                guests.containers.insert(unique, Json::Object(guest));
            }
        } else {
            machine(import, &layered, keys, &mut guest, own);
            let unique = import.unique(&context.endpoint, node, &context.stack, &own.place);
            guests.vms.insert(unique, Json::Object(guest));
        }
    }
}

struct Layered<'t> {
    own: &'t Tree,
    config: &'t Tree,
}

impl<'t> Layered<'t> {
    fn get(&self, key: &str) -> Option<&'t Tree> {
        let below = self.config.get(key);
        self.own.get(key).or(below)
    }

    fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.as_text()
    }

    fn int(&self, key: &str) -> Option<i64> {
        self.get(key)?.as_int()
    }

    fn bool(&self, key: &str) -> Option<bool> {
        self.get(key)?.as_bool()
    }
}

fn nic(layered: &Layered<'_>) -> Json {
    let mut nic = Object::new();
    nic.insert("bridge".into(), json!(layered.text("vlan_bridge").unwrap_or_else(|| "vmbr0".to_owned())));
    nic.put("vlan", layered.int("vlan_id").filter(|vlan| (1..=4094).contains(vlan)));
    let address = output::address(layered.text("ipv4_address")).unwrap_or_else(|| "dhcp".to_owned());
    if address.contains('/') {
        nic.put("gateway", layered.text("ipv4_gateway"));
    }
    nic.insert("ip".into(), json!(address));
    json!([nic])
}

fn machine(
    import: &mut Import<'_>,
    layered: &Layered<'_>,
    user: Option<&Tree>,
    guest: &mut Object,
    own: &Tree,
) {
    guest.insert("cores".into(), json!(layered.int("cpu_cores").unwrap_or(1)));
    guest.insert("sockets".into(), json!(layered.int("cpu_sockets").unwrap_or(1)));
    guest.insert("memory".into(), json!(layered.int("memory_size").unwrap_or(1024)));
    let mut disks = Object::new();
    let mut first = Object::new();
    first.insert("size".into(), json!(layered.int("disk_size").unwrap_or(8)));
    first.put("storage", layered.text("disk_datastore_id"));
    first.put("ssd", layered.bool("disk_ssd"));
    disks.insert("scsi0".into(), Json::Object(first));
    if let Some(more) = layered.get("additional_disks") {
        for (index, disk) in more.items().iter().enumerate() {
            let slot = disk.text("interface").unwrap_or_else(|| format!("scsi{}", index + 1));
            let mut written = Object::new();
            written.insert("size".into(), json!(disk.int("size").unwrap_or(8)));
            written.put("storage", disk.text("datastore_id"));
            written.put("ssd", disk.bool("ssd"));
            disks.insert(slot, Json::Object(written));
        }
    }
    guest.insert("disks".into(), Json::Object(disks));
    if let Some(version) = layered.get("os_version") {
        let place = version.place.clone();
        let text = version.as_text().unwrap_or_default();
        import.note(
            Some(&place),
            format!(
                "`os_version = {text}` names an image that only the module knows: set `image` or `template`"
            ),
        );
    }
    guest.insert("network".into(), nic(layered));
    if let Some(user) = user {
        let mut cloud_init = Object::new();
        cloud_init.put("user", user.text("username"));
        cloud_init.put_full("sshKeys", json!(user.texts("ssh_public_keys")));
        if let Some(password) = user.text("password") {
            let who = name(&own_name(own, user)).replace('-', "_");
            let reference = import.secret(&format!("{who}_password"), &password);
            cloud_init.insert("password".into(), reference);
        }
        guest.put_full("cloudInit", Json::Object(cloud_init));
    }
}

fn own_name(_own: &Tree, user: &Tree) -> String {
    user.text("username").unwrap_or_else(|| "user".to_owned())
}

fn container(
    import: &mut Import<'_>,
    context: &Context,
    layered: &Layered<'_>,
    user: Option<&Tree>,
    guest: &mut Object,
    own: &Tree,
) -> bool {
    let Some(url) = layered.text("template_url") else {
        import.note(Some(&own.place), "a container without `template_url` was left out");
        return false;
    };
    let mut image = Object::new();
    image.insert("url".into(), json!(url));
    let checksum =
        output::checksum(layered.text("template_checksum"), layered.text("template_checksum_algorithm"));
    image.put("checksum", checksum);
    image.put("storage", layered.text("template_datastore_id"));
    guest.insert("image".into(), Json::Object(image));
    guest.put("osType", layered.text("os_type"));
    guest.put("unprivileged", layered.bool("unprivileged"));
    guest.insert("cores".into(), json!(layered.int("cpu_cores").unwrap_or(1)));
    guest.insert("memory".into(), json!(layered.int("memory_size").unwrap_or(1024)));
    let mut disk = Object::new();
    disk.insert("size".into(), json!(layered.int("disk_size").unwrap_or(2)));
    disk.put("storage", layered.text("disk_datastore_id").or_else(|| context.datastore.clone()));
    guest.insert("disk".into(), Json::Object(disk));
    let mut features = Object::new();
    features.insert("nesting".into(), json!(layered.bool("nesting").unwrap_or(true)));
    for feature in ["fuse", "keyctl"] {
        if layered.bool(feature) == Some(true) {
            features.insert(feature.into(), json!(true));
            import.note(
                Some(&own.place),
                format!("`{feature}` needs a login as root@pam: a token may not set it"),
            );
        }
    }
    guest.insert("features".into(), Json::Object(features));
    guest.insert("network".into(), nic(layered));
    if let Some(mounts) = layered.get("mount_points") {
        let mut written = Object::new();
        for (index, mount) in mounts.items().iter().enumerate() {
            let Some(path) = mount.text("path") else { continue };
            let mut point = Object::new();
            point.insert("path".into(), json!(path));
            let volume = mount.text("volume").unwrap_or_default();
            let place = if volume.contains(':') || volume.starts_with('/') { "volume" } else { "storage" };
            point.put_full(place, json!(volume));
            let size = mount.text("size").map(|size| size.trim_end_matches(['G', 'g', 'B']).to_owned());
            point.put("size", size.and_then(|size| size.parse::<i64>().ok()).filter(|_| place == "storage"));
            for (key, there) in [
                ("readOnly", "read_only"),
                ("backup", "backup"),
                ("quota", "quota"),
                ("acl", "acl"),
                ("replicate", "replicate"),
            ] {
                point.put(key, mount.bool(there));
            }
            point.put_full("mountOptions", json!(mount.texts("mount_options")));
            written.insert(format!("mp{index}"), Json::Object(point));
        }
        guest.put_full("mountPoints", Json::Object(written));
    }
    if let Some(user) = user {
        guest.put_full("sshKeys", json!(user.texts("ssh_public_keys")));
        user.get("username");
        if let Some(password) = user.text("password") {
            let reference = import.secret("container_password", &password);
            guest.insert("password".into(), reference);
        }
    }
    true
}
