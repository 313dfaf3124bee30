//! A container of a state, as a stack says it.

use crate::records::{Console, Container, ContainerNic, Features, Guest, MountPoint, RootFs};
use serde_json::{Value as Json, json};

use super::guest::{addresses, common, number};
use super::repository::Writing;
use super::{CONTAINER, StateNote, vm_id};
use crate::output::{Object, Put};
use strata_tofu::{Attributes, TofuResource};

pub(super) fn write(writing: &mut Writing<'_>, resource: &TofuResource) -> Option<Object> {
    let attributes = resource.attributes();
    let vm_id = vm_id(attributes)?;
    let node = attributes.text("node_name").unwrap_or_default();
    if attributes.flag("template") == Some(true) {
        let message = "a template of containers stays as it is: Strata makes containers of images";
        writing.notes.push(StateNote::new(&resource.address, message));
        return None;
    }
    let mut container = Object::new();
    container.set(Guest::vm_id, json!(vm_id));
    container.extend(common(
        attributes,
        writing.node,
        "start_on_boot",
        writing.pools.get(&vm_id).map(String::as_str),
    ));
    let system = attributes.block("operating_system");
    let image = system.and_then(|system| system.text("template_file_id"));
    let image = image.map(str::to_owned).or_else(|| image_of_source(writing, attributes));
    let Some(image) = image else {
        let message = "it was cloned from a container that the state does not know: set `image` by hand and import again";
        writing.notes.push(StateNote::new(&resource.address, message));
        return None;
    };
    container.set(Container::image, json!(writing.images.reference(&image, node)));
    container.put(Container::os_type, system.and_then(|system| system.text("type")));
    container.set(Guest::started, json!(attributes.flag("started").unwrap_or(true)));
    container.put(Container::unprivileged, attributes.flag("unprivileged"));
    if let Some(cpu) = attributes.block("cpu") {
        container.put(Container::cores, cpu.positive("cores"));
        container.put(Container::cpu_units, cpu.positive("units"));
        container.put(Container::cpu_limit, cpu.number("limit").map(number));
    }
    if let Some(memory) = attributes.block("memory") {
        container.put(Container::memory, memory.positive("dedicated"));
        container.put(Container::swap, memory.int("swap"));
    }
    if let Some(disk) = attributes.block("disk") {
        let mut own = Object::new();
        own.put(RootFs::storage, disk.text("datastore_id"));
        own.put(RootFs::size, disk.positive("size"));
        for (key, there) in [(RootFs::acl, "acl"), (RootFs::quota, "quota"), (RootFs::replicate, "replicate")]
        {
            own.put(key, disk.flag(there).filter(|on| *on));
        }
        own.put_full(RootFs::mount_options, json!(disk.texts("mount_options")));
        container.set(Container::disk, Json::Object(own));
    }
    container.put_full(Container::mount_points, mount_points(attributes, vm_id));
    container.put_full(Container::network, networks(attributes));
    if let Some(features) = attributes.block("features") {
        let mut own = Object::new();
        for (key, there) in [
            (Features::nesting, "nesting"),
            (Features::keyctl, "keyctl"),
            (Features::fuse, "fuse"),
            (Features::mknod, "mknod"),
        ] {
            own.put(key, features.flag(there).filter(|on| *on));
        }
        own.put_full(Features::mount, json!(features.texts("mount")));
        container.put_full(Container::features, Json::Object(own));
    }
    if let Some(console) = attributes.block("console") {
        let mut own = Object::new();
        own.set(Console::enabled, json!(console.flag("enabled").unwrap_or(true)));
        own.put(Console::tty, console.int("tty_count"));
        own.put(Console::mode, console.text("type"));
        container.set(Container::console, Json::Object(own));
    }
    initialization(writing, &mut container, attributes, vm_id);
    if let Some(firewall) = super::firewall::of_guest(writing.state, vm_id) {
        container.set(Guest::firewall, firewall);
    }
    let hook = attributes.text("hook_script_file_id");
    container.put_full(Guest::options, hook.map(|hook| json!({"hookscript": hook})).unwrap_or_default());
    for block in ["device_passthrough", "idmap"] {
        if attributes.block(block).is_some() {
            let message = format!("`{block}` has no field in Strata: what is set stays as it is");
            writing.notes.push(StateNote::new(&resource.address, message));
        }
    }
    Some(container)
}

/// The image of the container that this one was cloned from.
fn image_of_source(writing: &Writing<'_>, attributes: Attributes<'_>) -> Option<String> {
    let source = attributes.block("clone")?.positive("vm_id")?;
    let is_source = |resource: &&TofuResource| {
        resource.kind == CONTAINER && vm_id(resource.attributes()).is_some_and(|id| i64::from(id) == source)
    };
    let found = writing.state.resources.iter().find(is_source)?;
    Some(found.attributes().block("operating_system")?.text("template_file_id")?.to_owned())
}

fn mount_points(attributes: Attributes<'_>, vm_id: u32) -> Json {
    let mut points = Object::new();
    for (index, point) in attributes.blocks("mount_point").into_iter().enumerate() {
        let mut own = Object::new();
        own.put(MountPoint::path, point.text("path"));
        let volume = point.text("volume").unwrap_or_default();
        let storage = volume.split(':').next().unwrap_or_default();
        // A volume of its own has the container's number in its name, and would be recreated with it.
        let is_own =
            !volume.starts_with('/') && (storage == volume || volume.contains(&format!("-{vm_id}-")));
        if is_own {
            own.put(MountPoint::storage, Some(storage));
            own.put(MountPoint::size, point.text("size"));
        } else {
            own.put(MountPoint::volume, Some(volume));
        }
        for (key, field) in [
            (MountPoint::read_only, "read_only"),
            (MountPoint::backup, "backup"),
            (MountPoint::quota, "quota"),
            (MountPoint::acl, "acl"),
            (MountPoint::shared, "shared"),
        ] {
            own.put(key, point.flag(field).filter(|on| *on));
        }
        own.put(MountPoint::replicate, point.flag("replicate").filter(|on| !*on));
        own.put_full(MountPoint::mount_options, json!(point.texts("mount_options")));
        points.insert(format!("mp{index}"), Json::Object(own));
    }
    Json::Object(points)
}

fn networks(attributes: Attributes<'_>) -> Json {
    let configs =
        attributes.block("initialization").map(|inner| inner.blocks("ip_config")).unwrap_or_default();
    let mut devices = Object::new();
    for (index, device) in attributes.blocks("network_interface").into_iter().enumerate() {
        if device.flag("enabled") == Some(false) {
            continue;
        }
        let mut own = Object::new();
        own.put(ContainerNic::bridge, device.text("bridge"));
        own.put(ContainerNic::name, device.text("name").filter(|name| *name != format!("eth{index}")));
        own.put(ContainerNic::mac, device.text("mac_address").map(str::to_ascii_uppercase));
        own.put(ContainerNic::vlan, device.positive("vlan_id"));
        own.put(ContainerNic::mtu, device.positive("mtu"));
        own.put(ContainerNic::firewall, device.flag("firewall"));
        own.put(ContainerNic::rate, device.number("rate_limit").map(number));
        addresses(&mut own, configs.get(index).copied());
        devices.insert(format!("net{index}"), Json::Object(own));
    }
    Json::Object(devices)
}

fn initialization(writing: &mut Writing<'_>, container: &mut Object, attributes: Attributes<'_>, vm_id: u32) {
    let Some(initialization) = attributes.block("initialization") else { return };
    if let Some(dns) = initialization.block("dns") {
        let servers = dns.texts("servers");
        let one = dns.text("server").map(|server| server.split([' ', ',']).collect()).unwrap_or_default();
        container.put_full(Container::nameservers, json!(if servers.is_empty() { one } else { servers }));
        container.put(Container::search_domain, dns.text("domain"));
    }
    if let Some(account) = initialization.block("user_account") {
        let keys: Vec<&str> = account.texts("keys").into_iter().map(str::trim).collect();
        container.put_full(Container::ssh_keys, json!(keys));
        if let Some(password) = account.text("password") {
            container.set(Container::password, writing.secret(&format!("password_{vm_id}"), password));
        }
    }
}
