//! Containers of the Telmate/proxmox provider: `proxmox_lxc`, and `proxmox_lxc_guest`, which says the same in other words.

use crate::records::{Console, Container, ContainerNic, Features, Guest, MountPoint, RootFs};
use serde_json::{Value as Json, json};
use strata_source::machine::container::ConsoleMode;
use strata_yaml::Choice;

use super::super::guest;
use super::super::output::{self, Object, Put};
use super::super::tree::Tree;
use super::super::{Import, name};
use super::{addresses_of, both, nic, servers};

/// A container; nothing if it has no image, which is then reported.
pub(in super::super) fn container(import: &mut Import<'_>, body: &Tree, own: &str) -> Option<Object> {
    let mut guest = Object::new();
    both(import, body, own, &mut guest);
    // `proxmox_lxc` starts what it makes only if told so; one that starts with its host runs all the same.
    if body.has("rootfs") && !body.has("power_state") {
        let told = body.flag("start");
        let with_host = body.flag("onboot") == Some(true);
        if told != Some(true) && !with_host {
            guest.set(Guest::started, json!(false));
        }
        if told.is_none() && !with_host {
            let message = format!(
                "`{own}` has no `start`, so the provider does not start it: `started: false` was written down"
            );
            import.note(Some(&body.place), message);
        }
        guest.entry(Guest::onboot.name()).or_insert_with(|| json!(false));
    }
    if body.get("clone").is_some() && image(body).is_none() {
        let message =
            format!("the container `{own}` is a clone, which Strata has only of machines: it was left out");
        import.note(Some(&body.place), message);
        body.take_all();
        return None;
    }
    let image = image(body).unwrap_or_else(|| {
        let there = body.get("ostemplate").or_else(|| body.get("template"));
        there.into_iter().for_each(Tree::take_all);
        import.some_image(own, there.map_or(&body.place, |tree| &tree.place))
    });
    guest.set(Container::image, json!(image));
    let host = ["hostname", "name"].iter().find_map(|key| body.text_if(key, output::is_host));
    guest.put(Container::hostname, host);
    let system = ["ostype", "os"]
        .iter()
        .find_map(|key| body.text_if(key, |system| output::DISTRIBUTIONS.contains(&system)));
    guest.put(Container::os_type, system);
    guest.set(Container::unprivileged, json!(body.flag("unprivileged").unwrap_or(false)));
    let _ = body.flag("privileged");
    let cpu = body.one("cpu").unwrap_or(body);
    guest.put(Container::cores, cpu.int_in("cores", 0..=8192).filter(|cores| *cores > 0));
    let units = cpu.int_in("cpuunits", 0..=500_000).or_else(|| cpu.int_in("units", 0..=500_000));
    // What the older of the two sets where nobody says it.
    let units = units.or_else(|| body.has("rootfs").then_some(1024));
    guest.put(Container::cpu_units, units.filter(|units| *units > 0));
    let limit = cpu.get("cpulimit").or_else(|| cpu.get("limit"));
    guest.put(Container::cpu_limit, limit.and_then(Tree::as_number).filter(|limit| *limit > 0.0));
    guest.set(Container::memory, json!(body.int_in("memory", 16..=i64::from(u32::MAX)).unwrap_or(512)));
    guest.set(Container::swap, json!(body.int_in("swap", 0..=i64::from(u32::MAX)).unwrap_or(0)));
    let mut root = Object::new();
    if let Some(disk) = body.one("rootfs").or_else(|| body.one("root_mount")) {
        root.put(RootFs::size, output::size(disk, "size"));
        root.put(RootFs::storage, disk.text("storage"));
        for (key, there) in [(RootFs::acl, "acl"), (RootFs::quota, "quota"), (RootFs::replicate, "replicate")]
        {
            root.put(key, disk.flag(there));
        }
    }
    guest.put_full(Container::disk, Json::Object(root));
    guest.put_full(Container::features, Json::Object(features(import, body, own)));
    guest.put_full(Container::mount_points, Json::Object(mount_points(body)));
    network(body, &mut guest);
    let dns = body.one("dns").unwrap_or(body);
    let mut names = servers(dns, "nameserver");
    names.extend(dns.texts_if("nameserver", output::is_address));
    guest.put_full(Container::nameservers, json!(names));
    guest.put(Container::search_domain, dns.text("searchdomain"));
    let mut keys = guest::keys(body, "ssh_public_keys");
    keys.extend(guest::keys(body, "ssh_public_key"));
    guest.put_full(Container::ssh_keys, json!(keys));
    let secret = format!("{}_password", name(own).replace('-', "_"));
    guest.put(Container::password, body.get("password").and_then(|tree| import.secret_of(tree, &secret)));
    let mut console = Object::new();
    console.put(Console::enabled, body.flag("console").filter(|console| !console));
    console.put(Console::mode, body.text_if("cmode", |mode| ConsoleMode::WORDS.contains(&mode)));
    console.put(Console::tty, body.int_in("tty", 0..=6));
    guest.put_full(Container::console, Json::Object(console));
    let mut options = Object::new();
    options.put_option("hookscript", body.text("hookscript"));
    guest.put_full(Guest::options, Json::Object(options));
    import.needless(
        body,
        &["force", "start", "restore", "unique", "ignore_unpack_errors", "bwlimit", "lock", "clone_storage"],
        super::WHY,
    );
    Some(guest)
}

/// The volume that the root file system begins with.
fn image(body: &Tree) -> Option<String> {
    if let Some(volume) = body.text_if("ostemplate", |volume| volume.contains(':')) {
        return Some(volume);
    }
    let template = body.one("template")?;
    let file = template.text("file")?;
    let storage = template.text("storage").unwrap_or_else(|| "local".to_owned());
    Some(if file.contains(':') { file } else { format!("{storage}:vztmpl/{file}") })
}

fn features(import: &mut Import<'_>, body: &Tree, own: &str) -> Object {
    let mut written = Object::new();
    let Some(found) = body.one("features") else { return written };
    let found = found.one("unprivileged").or_else(|| found.one("privileged")).unwrap_or(found);
    for (key, there) in [
        (Features::nesting, "nesting"),
        (Features::keyctl, "keyctl"),
        (Features::fuse, "fuse"),
        (Features::mknod, "mknod"),
    ] {
        let value = found.flag(there);
        written.put(key, value);
        if value == Some(true) && key != Features::nesting {
            let message = format!("`{key}` of `{own}` needs a login as root@pam: a token may not set it");
            import.note(Some(&body.place), message);
        }
    }
    let mut mount: Vec<String> = found
        .text("mount")
        .map(|text| text.split([';', ',']).map(|kind| kind.trim().to_owned()).collect())
        .unwrap_or_default();
    for (kind, there) in [("nfs", "nfs"), ("cifs", "smb")] {
        if found.flag(there) == Some(true) {
            mount.push(kind.to_owned());
        }
    }
    written.put_full(Features::mount, json!(mount));
    written
}

fn mount_points(body: &Tree) -> Object {
    let mut written = Object::new();
    let mut put = |slot: String, point: Option<Object>| {
        if let Some(point) = point {
            written.insert(slot, Json::Object(point));
        }
    };
    for (index, mount) in body.several("mountpoint").into_iter().enumerate() {
        let number = mount.int_in("slot", 0..=255).or_else(|| mount.int_in("key", 0..=255));
        mount.take_keys(&["slot", "key"]);
        let slot = format!("mp{}", number.unwrap_or(index as i64));
        put(slot, point(mount, "mp"));
    }
    for mount in body.several("mount") {
        let slot = mount.text_if("slot", |slot| slot.starts_with("mp"));
        let _ = mount.text_if("type", |kind| ["data", "bind"].contains(&kind));
        if let Some(slot) = slot {
            put(slot, point(mount, "guest_path"));
        }
    }
    for (slot, mount) in super::nested(body, "mounts") {
        if let Some(inner) = mount.one("data").or_else(|| mount.one("bind")) {
            put(slot.to_owned(), point(inner, "guest_path"));
        }
    }
    written
}

fn point(mount: &Tree, path: &str) -> Option<Object> {
    let mut point = Object::new();
    point.set(MountPoint::path, json!(mount.text(path)?));
    let of_host = |text: &str| text.starts_with('/') || text.contains(':');
    let volume = ["volume", "host_path", "storage"].iter().find_map(|key| mount.text_if(key, of_host));
    match volume {
        Some(volume) => {
            // The size of what is there already is only read.
            mount.take_keys(&["storage", "size"]);
            point.set(MountPoint::volume, json!(volume));
        }
        None => {
            point.put(MountPoint::storage, mount.text("storage"));
            point.put(MountPoint::size, output::size(mount, "size"));
        }
    }
    for (key, there) in [
        (MountPoint::read_only, "read_only"),
        (MountPoint::backup, "backup"),
        (MountPoint::quota, "quota"),
        (MountPoint::acl, "acl"),
        (MountPoint::replicate, "replicate"),
        (MountPoint::shared, "shared"),
    ] {
        point.put(key, mount.flag(there));
    }
    let mut options: Vec<&str> = Vec::new();
    for (there, option) in [
        ("option_discard", "discard"),
        ("option_lazy_time", "lazytime"),
        ("option_no_atime", "noatime"),
        ("option_no_device", "nodev"),
        ("option_no_exec", "noexec"),
        ("option_no_suid", "nosuid"),
    ] {
        if mount.flag(there) == Some(true) {
            options.push(option);
        }
    }
    point.put_full(MountPoint::mount_options, json!(options));
    Some(point)
}

fn network(body: &Tree, guest: &mut Object) {
    let mut nics = Vec::new();
    let mut devices = super::numbered(body.several("network"), 15);
    for (slot, device) in super::nested(body, "networks") {
        devices.extend(slot.trim_start_matches("net").parse().ok().map(|number| (number, device)));
    }
    for (number, device) in devices {
        let mut nic = nic(device);
        nic.put(ContainerNic::name, device.text("name"));
        device.take_keys(&["host_managed"]);
        nic.put(
            ContainerNic::link_down,
            device.flag("connected").filter(|connected| !connected).map(|_| true),
        );
        addresses_of(device, &mut nic);
        nics.push((number, Json::Object(nic)));
    }
    guest.put_full(Container::network, super::slots("net", nics));
}
