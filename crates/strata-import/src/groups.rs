//! The older layout of stacks of OpenTofu with Ansible Vault: `resource_groups`, whose machines have their sizes from profiles.

use crate::output::only;
use crate::records::{
    CloudInit, Container, Disk, Guest, Hardware, Metadata, Nic, RootFs, Stack, StackProxmox, Vm,
};
use serde_json::{Value as Json, json};

use super::guest::{self, RootReferences};
use super::output::{self, Object, Put};
use super::roots::Root;
use super::tree::{SourceLine, Tree};
use super::{Guests, Import, name, stacks};

/// Whether these are the variables of such a stack.
pub(super) fn fits(values: &Tree) -> bool {
    values.map("resource_groups").iter().any(|(_, group)| group.has("nodes") && group.has("type"))
}

/// What all groups of a stack share.
struct Context<'t> {
    values: &'t Tree,
    around: RootReferences<'t>,
    stack: String,
    document: String,
}

pub(super) fn import(import: &mut Import<'_>, root: &Root<'_>, values: &Tree) {
    let place = values
        .get("resource_groups")
        .map_or_else(|| SourceLine::new(&root.folder, 1), |tree| tree.place.clone());
    let environment = values.text("environment_name").or_else(|| root.variant.clone());
    let wanted = environment.clone().unwrap_or_else(|| super::roots::own_name(root));
    let own = import.stack_name(&wanted, &place);
    let (target, endpoint) = stacks::connection(import, root, values);
    let mut proxmox = Object::new();
    proxmox.set(StackProxmox::target, json!(target));
    let defaults = values.get("resource_defaults");
    let node = defaults.and_then(|defaults| defaults.text("target_node"));
    if node.is_none() {
        import.note(
            Some(&place),
            "which node the groups are on is in no file that was read: `pve` was written down",
        );
    }
    proxmox.set(StackProxmox::node, json!(node.unwrap_or_else(|| "pve".to_owned())));
    proxmox.put(StackProxmox::storage, defaults.and_then(|defaults| defaults.text("storage_pool")));
    let document = format!("stacks/{own}/stack.yaml");
    let around = RootReferences { resources: &[], templates: Vec::new(), key: None, endpoint };
    let context = Context { values, around, stack: own.clone(), document: document.clone() };
    let mut guests = Guests::default();
    for (key, group) in values.map("resource_groups") {
        self::group(import, &context, key, group, &mut guests);
    }
    unused(import, values);
    stacks::machinery(import, root);
    if guests.is_empty() {
        import.stacks.remove(&own);
        return;
    }
    let mut written = Object::new();
    let mut metadata = Object::new();
    metadata.set(Metadata::name, json!(own));
    metadata.put(Metadata::environment, environment.as_deref().map(name));
    written.set(Stack::metadata, Json::Object(metadata));
    written.set(Stack::proxmox, Json::Object(proxmox));
    guests.put_into(&mut written);
    import.write(document, written, &place);
}

fn group(import: &mut Import<'_>, context: &Context<'_>, key: &str, group: &Tree, guests: &mut Guests) {
    if group.bool("enabled") == Some(false) {
        group.take_all();
        import.note(Some(&group.place), format!("the group `{key}` is not enabled and was left out"));
        return;
    }
    let Some(kind) = group.text_if("type", |kind| ["qemu", "lxc"].contains(&kind)) else {
        group.take_all();
        import.note(
            Some(&group.place),
            format!("the group `{key}` is of no kind that is known: it was left out"),
        );
        return;
    };
    let profile = group.text("hardware_profile_key");
    let profile = profile.and_then(|profile| context.values.at(&["hardware_profiles", &kind, &profile]));
    if profile.is_none() {
        import.note(
            Some(&group.place),
            format!("the sizes of the group `{key}` are in no file that was read: Strata's own are used"),
        );
    }
    let endpoint = context.around.endpoint.clone();
    for (node, own) in group.map("nodes") {
        let Some(vm_id) = own.int("id") else {
            import.note(Some(&own.place), format!("`{node}` of `{key}` has no `id` and was left out"));
            own.take_all();
            continue;
        };
        let what = format!("{}/{node}", context.stack);
        if !import.claim(&endpoint, vm_id, &what, &own.place) {
            own.take_all();
            continue;
        }
        let mut guest = Object::new();
        guest.set(Guest::vm_id, json!(vm_id));
        let made = match kind.as_str() {
            "lxc" => container(import, context, group, profile, own, node, &mut guest),
            _ => machine(import, context, group, profile, own, node, &mut guest),
        };
        let Some(section) = made else {
            own.take_all();
            continue;
        };
        guest.put_full(Guest::tags, output::tags_of(group, "tags"));
        import.drop_taken_addresses(&endpoint, &mut guest, &what, &own.place);
        let unique = import.unique(&endpoint, node, &context.stack, &own.place);
        import.origin(&context.document, section, &unique, &own.place);
        let all = if section == "containers" { &mut guests.containers } else { &mut guests.vms };
        all.insert(unique, Json::Object(guest));
    }
}

/// The address of a node has its prefix and its router elsewhere.
fn network(import: &mut Import<'_>, context: &Context<'_>, own: &Tree) -> Json {
    let mut nic = Object::new();
    let bridge = context.values.at(&["resource_defaults", "network_bridge"]).and_then(Tree::as_text);
    nic.set(Nic::bridge, json!(bridge.unwrap_or_else(|| "vmbr0".to_owned())));
    let fits = |text: &str| text == "dhcp" || output::is_address(text) || output::with_prefix(text);
    let mut ip = own.text_if("ip", fits).unwrap_or_else(|| "dhcp".to_owned());
    let defaults = context.values.get("network_defaults");
    if output::is_address(&ip) {
        let length = defaults.and_then(|defaults| defaults.int_in("cidr_mask", 1..=32));
        if length.is_none() {
            import.note(
                Some(&own.place),
                "the length of the network's prefix is not written down: /24 was assumed",
            );
        }
        ip = format!("{ip}/{}", length.unwrap_or(24));
    }
    if ip.contains('/') {
        let gateway = defaults.and_then(|defaults| defaults.text_if("gateway", output::is_address));
        nic.put(Nic::gateway, gateway);
    }
    nic.set(Nic::ip, json!(ip));
    json!([nic])
}

/// Keys and a password; who logs in with them is said apart.
fn credentials(import: &mut Import<'_>, values: &Tree, secret: &str, written: &mut Object) {
    let Some(found) = values.get("user_credentials") else { return };
    written.put_full(CloudInit::ssh_keys, json!(guest::keys(found, "ssh_public_keys")));
    if let Some(password) = found.text("password") {
        let reference = import.secret(secret, &password);
        written.set(CloudInit::password, reference);
    }
}

fn machine(
    import: &mut Import<'_>,
    context: &Context<'_>,
    group: &Tree,
    profile: Option<&Tree>,
    own: &Tree,
    node: &str,
    guest: &mut Object,
) -> Option<&'static str> {
    if let Some(template) = group.get("template")
        && let Some(source) = template.as_text()
    {
        match context.around.template(import, &source) {
            Some(known) => {
                guest.set(Vm::template, json!(known));
            }
            None => import.note(Some(&template.place), guest::unknown_template(node, &source)),
        }
    }
    if let Some(profile) = profile {
        guest.put(Hardware::cores, profile.int_in("cores", 1..=1024));
        guest.put(Hardware::memory, profile.int_in("memory", 16..=i64::from(u32::MAX)));
        guest.put(
            Hardware::disks,
            output::size(profile, "disk_size").map(|size| json!({"scsi0": only(Disk::size, size)})),
        );
    }
    guest.set(Hardware::network, network(import, context, own));
    let mut cloud_init = Object::new();
    if let Some(user) = context.values.get("user_profile") {
        cloud_init.put(CloudInit::user, user.text("username"));
        cloud_init.put(CloudInit::upgrade, user.bool("package_upgrade"));
    }
    credentials(import, context.values, "user_password", &mut cloud_init);
    guest.put_full(Vm::cloud_init, Json::Object(cloud_init));
    Some("vms")
}

fn container(
    import: &mut Import<'_>,
    context: &Context<'_>,
    group: &Tree,
    profile: Option<&Tree>,
    own: &Tree,
    node: &str,
    guest: &mut Object,
) -> Option<&'static str> {
    let Some(image) = group.text_if("template", |volume| volume.contains(':')) else {
        import.note(
            Some(&own.place),
            format!("the container `{node}` has no template that is known here: it was left out"),
        );
        return None;
    };
    guest.set(Container::image, json!(image));
    if let Some(profile) = profile {
        guest.put(Container::cores, profile.int_in("cores", 1..=8192));
        guest.put(Container::memory, profile.int_in("memory", 16..=i64::from(u32::MAX)));
        guest.put(Container::disk, output::size(profile, "rootfs_size").map(|size| only(RootFs::size, size)));
    }
    guest.set(Container::network, network(import, context, own));
    credentials(import, context.values, "user_password", guest);
    Some("containers")
}

/// Profiles are there for all; which of them nobody has is told in one line.
fn unused(import: &mut Import<'_>, values: &Tree) {
    let Some(profiles) = values.get("hardware_profiles") else { return };
    let mut names = Vec::new();
    let used = profiles.left();
    for (kind, of_kind) in profiles.entries() {
        for (key, profile) in of_kind.entries() {
            let path = format!("{kind}.{key}");
            if used.iter().any(|left| left.path == path || left.path == *kind) {
                names.push(format!("`{path}`"));
                profile.take_all();
            }
        }
    }
    if !names.is_empty() {
        import.note(
            Some(&profiles.place),
            format!("no group has the profile {}: not carried over", names.join(", ")),
        );
    }
}
