//! Stacks of OpenTofu with Ansible Vault: groups of machines in `resources`, with a code that is the same for all of them.

use crate::output::only;
use crate::records::{
    CloudInit, Container, Disk, Features, Guest, Hardware, Image, Metadata, Nic, RootFs, Stack, StackProxmox,
    StorageDefaults, Vm,
};
use serde_json::{Value as Json, json};

use super::guest;
use super::output::{self, Object, Put};
use super::roots::Root;
use super::tree::{Content, SourceLine, Tree};
use super::{Guests, Import, base, name};

/// Whether these are the variables of such a stack.
pub(super) fn fits(values: &Tree) -> bool {
    values.map("resources").iter().any(|(_, group)| group.has("nodes"))
}

struct Context {
    endpoint: String,
    datastore: Option<String>,
    stack: String,
    document: String,
}

pub(super) fn import(import: &mut Import<'_>, root: &Root<'_>, values: &Tree) {
    let place =
        values.get("resources").map_or_else(|| SourceLine::new(&root.folder, 1), |tree| tree.place.clone());
    let inner = root.folder.split_once("stacks/").map_or(root.folder.as_str(), |(_, rest)| rest);
    let mut parts: Vec<String> = inner.split('/').map(name).collect();
    let last = parts.pop().unwrap_or_default();
    let wanted = match &root.variant {
        Some(variant) => format!("{last}-{variant}"),
        None => last,
    };
    let own = import.stack_name(&wanted, &place);
    parts.push(own.clone());
    let mut proxmox = Object::new();
    let (target, endpoint) = connection(import, root, values);
    proxmox.set(StackProxmox::target, json!(target));
    let node = values.text("target_node");
    proxmox.put(StackProxmox::node, node.clone());
    let datastore = values.text("target_datastore");
    proxmox.put(StackProxmox::storage, datastore.clone().map(|disk| only(StorageDefaults::disk, disk)));
    let document = format!("stacks/{}/stack.yaml", parts.join("/"));
    let context = Context { endpoint, datastore, stack: own.clone(), document: document.clone() };
    let mut guests = Guests::default();
    let credentials = values.get("user_credentials");
    for (group, resource) in values.map("resources") {
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
            proxmox.entry(StackProxmox::node.name()).or_insert_with(|| json!("pve"));
        }
        self::group(import, &context, group, resource, credentials, &mut guests);
    }
    machinery(import, root);
    if guests.is_empty() {
        import.stacks.remove(&own);
        return;
    }
    let mut written = Object::new();
    let mut metadata = Object::new();
    metadata.set(Metadata::name, json!(own));
    metadata.put(Metadata::environment, root.variant.as_deref().map(name));
    written.set(Stack::metadata, Json::Object(metadata));
    written.set(Stack::proxmox, Json::Object(proxmox));
    guests.put_into(&mut written);
    import.write(document, written, &place);
}

/// The code turns the variables into machines, which Strata does itself.
pub(super) fn machinery(import: &mut Import<'_>, root: &Root<'_>) {
    let blocks: Vec<(SourceLine, String)> = root
        .module
        .blocks
        .iter()
        .filter(|block| {
            matches!(block.kind.as_str(), "resource" | "module")
                || block.kind == "provider" && block.label(0) == "proxmox"
        })
        .map(|block| (block.place.clone(), format!("{} `{}`", block.kind, block.labels.join("."))))
        .collect();
    for (place, what) in blocks {
        import.note(
            Some(&place),
            format!("the {what} was not carried over: Strata makes the machines of `resources` itself"),
        );
    }
}

pub(super) fn connection(import: &mut Import<'_>, root: &Root<'_>, values: &Tree) -> (String, String) {
    let Some(connection) = values.get("proxmox_connection").filter(|tree| !tree.entries().is_empty()) else {
        // Often in the encrypted file.
        return import.some_target(&SourceLine::new(&root.folder, 1), "`proxmox_connection`");
    };
    let url = connection.text_if("url", |url| url.starts_with("http"));
    let insecure = connection.bool("insecure_tls").unwrap_or(false);
    let token = token(import, connection);
    match url {
        Some(url) => (import.target(&url, insecure, token.as_deref()), base(&url)),
        None => import.some_target(&connection.place, "`proxmox_connection.url`"),
    }
}

fn token(import: &mut Import<'_>, connection: &Tree) -> Option<String> {
    let method = connection.text("auth_method").unwrap_or_else(|| "token".to_owned());
    if method != "token" {
        import.note(
            Some(&connection.place),
            format!("the connection uses `{method}`: Strata wants an API token"),
        );
    }
    import.needless(connection, &["password_auth", "ticket_auth"], "Strata wants an API token");
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
    if !["vm", "lxc"].contains(&kind.as_str()) {
        import.note(
            Some(&resource.place),
            format!("the group `{group}` is of the kind `{kind}`, which is not known: it was left out"),
        );
        resource.take_all();
        return;
    }
    let mut tags = resource.texts("tags");
    ansible(import, resource, &mut tags);
    let section = if kind == "lxc" { "lxc_config" } else { "vm_config" };
    for (node, own) in resource.map("nodes") {
        if own.bool("enabled") == Some(false) {
            own.take_all();
            import.note(Some(&own.place), format!("`{node}` of `{group}` is not enabled and was left out"));
            continue;
        }
        let Some(vm_id) = own.int("vm_id") else {
            import.note(Some(&own.place), format!("`{node}` of `{group}` has no `vm_id` and was left out"));
            own.take_all();
            continue;
        };
        if !import.claim(&context.endpoint, vm_id, &format!("{}/{node}", context.stack), &own.place) {
            own.take_all();
            continue;
        }
        // The nearer a key is to the node, the more it counts.
        let layers: Vec<&Tree> = [own.get(section), Some(own), resource.get(section), Some(resource)]
            .into_iter()
            .flatten()
            .collect();
        let layered = Layered(&layers);
        let mut guest = Object::new();
        guest.set(Guest::vm_id, json!(vm_id));
        guest.put(Guest::node, layered.text("node_name"));
        guest.put(Guest::notes, layered.text("description"));
        let mut all = tags.clone();
        all.extend(own.texts("tags"));
        ansible(import, own, &mut all);
        guest.put_full(Guest::tags, output::tags(&all));
        guest.put(Guest::onboot, layered.bool("on_boot"));
        guest.put(Guest::started, layered.bool("started"));
        let user = layered
            .get("cloud_init_user")
            .map(|tree| (tree.place.clone(), tree.as_text().unwrap_or_default()));
        let keys = user.as_ref().and_then(|(_, user)| credentials?.get(user));
        if let Some((place, user)) = user.filter(|_| keys.is_none()) {
            import.note(
                Some(&place),
                format!("who `{user}` is stands in `user_credentials`, which is in no file that could be read: `{node}` has no user and no keys"),
            );
        }
        let section = if kind == "lxc" {
            if !container(import, context, &layered, keys, &mut guest, own) {
                own.take_all();
                continue;
            }
            "containers"
        } else {
            machine(import, &layered, keys, &mut guest);
            "vms"
        };
        import.drop_taken_addresses(
            &context.endpoint,
            &mut guest,
            &format!("{}/{node}", context.stack),
            &own.place,
        );
        let unique = import.unique(&context.endpoint, node, &context.stack, &own.place);
        import.origin(&context.document, section, &unique, &own.place);
        let all = if kind == "lxc" { &mut guests.containers } else { &mut guests.vms };
        all.insert(unique, Json::Object(guest));
    }
}

/// Groups of Ansible become tags; their variables stay Ansible's.
fn ansible(import: &mut Import<'_>, tree: &Tree, tags: &mut Vec<String>) {
    let Some(groups) = tree.get("ansible_groups") else { return };
    groups.take_all();
    tags.extend(groups.entries().iter().map(|(name, _)| name.clone()));
    import.note(
        Some(&groups.place),
        "groups of Ansible become tags; their variables were not carried over and belong into an inventory of your own",
    );
}

struct Layered<'t>(&'t [&'t Tree]);

impl<'t> Layered<'t> {
    fn get(&self, key: &str) -> Option<&'t Tree> {
        self.0.iter().find_map(|tree| tree.get(key))
    }

    fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.as_text()
    }

    fn int(&self, key: &str, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        self.get(key)?.as_int_in(range)
    }

    fn bool(&self, key: &str) -> Option<bool> {
        self.get(key)?.as_bool()
    }
}

fn nic(layered: &Layered<'_>) -> Json {
    let mut nic = Object::new();
    nic.set(Nic::bridge, json!(layered.text("vlan_bridge").unwrap_or_else(|| "vmbr0".to_owned())));
    nic.put(Nic::vlan, layered.int("vlan_id", 0..=4094).filter(|vlan| *vlan > 0));
    let is_address = |text: &str| text == "dhcp" || output::with_prefix(text);
    let address = layered.get("ipv4_address").and_then(|tree| tree.as_text_if(is_address));
    let address = address.unwrap_or_else(|| "dhcp".to_owned());
    if address.contains('/') {
        nic.put(
            Nic::gateway,
            layered.get("ipv4_gateway").and_then(|tree| tree.as_text_if(output::is_address)),
        );
    }
    nic.set(Nic::ip, json!(address));
    json!([nic])
}

const SIZES: std::ops::RangeInclusive<i64> = 1..=1_048_576;

fn machine(import: &mut Import<'_>, layered: &Layered<'_>, user: Option<&Tree>, guest: &mut Object) {
    guest.set(Hardware::cores, json!(layered.int("cpu_cores", 1..=1024).unwrap_or(1)));
    guest.set(Hardware::sockets, json!(layered.int("cpu_sockets", 1..=16).unwrap_or(1)));
    guest.set(Hardware::memory, json!(layered.int("memory_size", 16..=i64::from(u32::MAX)).unwrap_or(1024)));
    let mut disks = Object::new();
    let mut first = Object::new();
    first.set(Disk::size, json!(layered.int("disk_size", SIZES).unwrap_or(8)));
    first.put(Disk::storage, layered.text("disk_datastore_id"));
    first.put(Disk::ssd, layered.bool("disk_ssd"));
    disks.insert("scsi0".into(), Json::Object(first));
    if let Some(more) = layered.get("additional_disks") {
        for (index, disk) in more.items().iter().enumerate() {
            let slot =
                disk.text_if("interface", output::is_slot).unwrap_or_else(|| format!("scsi{}", index + 1));
            let mut written = Object::new();
            written.set(Disk::size, json!(disk.int_in("size", SIZES).unwrap_or(8)));
            written.put(Disk::storage, disk.text("datastore_id"));
            output::disk_flags(disk, &mut written);
            disks.insert(slot, Json::Object(written));
        }
    }
    guest.set(Hardware::disks, Json::Object(disks));
    for key in ["os_version", "os_type"] {
        if let Some(version) = layered.get(key).filter(|tree| !matches!(tree.content, Content::Null)) {
            let place = version.place.clone();
            let text = version.as_text().unwrap_or_default();
            import.note(
                Some(&place),
                format!(
                    "`{key} = {text}` names an image that only the module knows: set `image` or `template`"
                ),
            );
        }
    }
    guest.set(Hardware::network, nic(layered));
    if let Some(user) = user {
        let mut cloud_init = Object::new();
        cloud_init.put(CloudInit::user, user.text("username"));
        cloud_init.put_full(CloudInit::ssh_keys, json!(guest::keys(user, "ssh_public_keys")));
        if let Some(password) = user.text("password") {
            let who = user.get("username").and_then(Tree::peek).unwrap_or_else(|| "user".to_owned());
            let reference = import.secret(&format!("{}_password", name(&who).replace('-', "_")), &password);
            cloud_init.set(CloudInit::password, reference);
        }
        guest.put_full(Vm::cloud_init, Json::Object(cloud_init));
    }
}

fn container(
    import: &mut Import<'_>,
    context: &Context,
    layered: &Layered<'_>,
    user: Option<&Tree>,
    guest: &mut Object,
    own: &Tree,
) -> bool {
    let there = layered.get("template_file_id").and_then(|tree| tree.as_text_if(|text| text.contains(':')));
    let image = match (layered.text("template_url"), there) {
        (Some(url), _) => {
            let mut image = Object::new();
            image.set(Image::url, json!(url));
            let from = layered.0.iter().find(|tree| tree.has("template_checksum"));
            let sum = from.and_then(|tree| {
                output::checksum_of(tree, "template_checksum", "template_checksum_algorithm")
            });
            image.put(Image::checksum, sum);
            image.put(Image::storage, layered.text("template_datastore_id"));
            Json::Object(image)
        }
        (None, Some(volume)) => json!(volume),
        (None, None) => {
            import.note(
                Some(&own.place),
                "a container without `template_url` or `template_file_id` was left out",
            );
            return false;
        }
    };
    guest.set(Container::image, image);
    let known = |text: &str| output::DISTRIBUTIONS.contains(&text);
    guest.put(Container::os_type, layered.get("os_type").and_then(|tree| tree.as_text_if(known)));
    guest.put(Container::unprivileged, layered.bool("unprivileged"));
    guest.set(Container::cores, json!(layered.int("cpu_cores", 1..=8192).unwrap_or(1)));
    guest.set(Container::memory, json!(layered.int("memory_size", 16..=i64::from(u32::MAX)).unwrap_or(1024)));
    let mut disk = Object::new();
    disk.set(RootFs::size, json!(layered.int("disk_size", SIZES).unwrap_or(2)));
    disk.put(RootFs::storage, layered.text("disk_datastore_id").or_else(|| context.datastore.clone()));
    guest.set(Container::disk, Json::Object(disk));
    let mut features = Object::new();
    features.set(Features::nesting, json!(layered.bool("nesting").unwrap_or(true)));
    for (key, feature) in [(Features::fuse, "fuse"), (Features::keyctl, "keyctl")] {
        if layered.bool(feature) == Some(true) {
            features.set(key, json!(true));
            import.note(
                Some(&own.place),
                format!("`{feature}` needs a login as root@pam: a token may not set it"),
            );
        }
    }
    guest.set(Container::features, Json::Object(features));
    guest.set(Container::network, nic(layered));
    if let Some(mounts) = layered.get("mount_points") {
        let mut written = Object::new();
        for (index, mount) in mounts.items().iter().enumerate() {
            if let Some(point) = output::mount_point(mount) {
                written.insert(format!("mp{index}"), Json::Object(point));
            }
        }
        guest.put_full(Container::mount_points, Json::Object(written));
    }
    if let Some(user) = user {
        guest.put_full(Container::ssh_keys, json!(guest::keys(user, "ssh_public_keys")));
        import.needless(user, &["username"], "the only user of a new container is root");
        if let Some(password) = user.text("password") {
            let reference = import.secret("container_password", &password);
            guest.set(Container::password, reference);
        }
    }
    true
}
