//! A container.

use std::net::IpAddr;

use serde_json::Value as Json;
use strata_resource::Spec;
use strata_source::machine::container::{Console, Container, ContainerOs, Features, MountPoint, RootFs};
use strata_yaml::Choice;

use crate::fields::{Fields, Object, Put, short, size};
use crate::{StackDefaults, Written, guest, network};

/// What a container was made from cannot be read. It is needed only if the container is ever made again.
pub const IMAGE_STANDS_IN: &str = "local:vztmpl/replace-me.tar.zst";

const MEMORY: i64 = 512;
const ROOT_GIB: i64 = 8;

/// The entry of `containers` with this key that is drawn to the spec of a live container.
pub fn container(key: &str, spec: &Spec, stack: &StackDefaults) -> Written {
    let mut left = Fields::of(spec);
    let (mut yaml, mut notes) = (Object::new(), Vec::new());
    let firewalled = guest::begin(key, &mut left, stack, &mut yaml);
    left.forget(&["image", "password", "ssh_keys"]);
    yaml.set(Container::image, IMAGE_STANDS_IN);
    notes.push("what it was made from cannot be read: set `image` before it may be recreated".to_owned());
    yaml.put(Container::os_type, left.word("ostype", ContainerOs::WORDS));
    yaml.put(Container::unprivileged, left.unless("unprivileged", true));
    let mut cpu = left.map("cpu").unwrap_or_default();
    yaml.put(Container::cores, cpu.int("cores"));
    yaml.put(Container::cpu_units, cpu.int("units"));
    yaml.put(Container::cpu_limit, cpu.number("limit"));
    let mut memory = left.map("memory").unwrap_or_default();
    yaml.put(Container::memory, memory.int("size").filter(|size| *size != MEMORY));
    yaml.put(Container::swap, memory.int("swap").filter(|swap| *swap != MEMORY));
    yaml.put(Container::disk, root(&mut left, stack, &mut notes));
    yaml.put_full(Container::mount_points, Json::Object(mounts(&mut left, stack, &mut notes)));
    yaml.put_full(Container::network, network::of_container(&mut left, firewalled));
    yaml.put_full(Container::features, features(&mut left, &mut notes));
    let servers = left.texts("nameservers").unwrap_or_default();
    match servers.iter().all(|server| server.parse::<IpAddr>().is_ok()) {
        true => yaml.put_full(Container::nameservers, servers.into()),
        false => notes.push("its name servers are no addresses: they stay as they are".to_owned()),
    }
    yaml.put(Container::search_domain, left.text("searchdomain"));
    yaml.put(Container::timezone, left.text("timezone"));
    if let Some(mut live) = left.map("console") {
        let mut console = Object::new();
        console.put(Console::enabled, live.unless("enabled", true));
        console.put(Console::tty, live.int("tty").filter(|tty| *tty != 2));
        console.put(Console::mode, live.text("mode").filter(|mode| mode != "tty"));
        yaml.put_full(Container::console, Json::Object(console));
    }
    guest::end(&mut left, Object::new(), &mut yaml);
    left.told("", &mut notes);
    Written { yaml: Json::Object(yaml), notes }
}

fn root(left: &mut Fields, stack: &StackDefaults, notes: &mut Vec<String>) -> Option<Json> {
    let mut live = left.map("rootfs")?;
    let mut yaml = Object::new();
    live.forget(&["volume"]);
    let bytes = live.int("size").filter(|bytes| *bytes != ROOT_GIB << 30);
    yaml.put(RootFs::size, bytes.and_then(size));
    yaml.put(RootFs::storage, live.text("storage").filter(|storage| storage != stack.disks()));
    yaml.put(RootFs::acl, flag(&mut live, "acl"));
    yaml.put(RootFs::quota, live.unless("quota", false));
    yaml.put(RootFs::replicate, live.unless("replicate", true));
    yaml.put(RootFs::read_only, live.unless("readonly", false));
    yaml.put_full(RootFs::mount_options, options(&mut live));
    live.told("rootfs.", notes);
    (!yaml.is_empty()).then(|| short(yaml, RootFs::size))
}

fn mounts(left: &mut Fields, stack: &StackDefaults, notes: &mut Vec<String>) -> Object {
    let mut yaml = Object::new();
    for (slot, mut live) in left.slots("mounts") {
        let mut mount = Object::new();
        mount.put(MountPoint::path, live.text("path"));
        let (volume, storage) = (live.text("volume"), live.text("storage"));
        match (storage, live.int("size").and_then(size)) {
            (Some(storage), Some(size)) => {
                mount.put(MountPoint::storage, Some(storage).filter(|storage| storage != stack.disks()));
                mount.set(MountPoint::size, size);
            }
            // A folder of the host.
            _ => mount.put(MountPoint::volume, volume),
        }
        mount.put(MountPoint::read_only, live.unless("readonly", false));
        mount.put(MountPoint::backup, live.unless("backup", false));
        mount.put(MountPoint::quota, live.unless("quota", false));
        mount.put(MountPoint::acl, flag(&mut live, "acl"));
        mount.put(MountPoint::replicate, live.unless("replicate", true));
        mount.put(MountPoint::shared, live.unless("shared", false));
        mount.put_full(MountPoint::mount_options, options(&mut live));
        live.told(&format!("mounts.{slot}."), notes);
        yaml.insert(slot, Json::Object(mount));
    }
    yaml
}

fn flag(live: &mut Fields, field: &str) -> Option<bool> {
    live.bool(field).or_else(|| live.text(field).map(|text| text == "1"))
}

fn options(live: &mut Fields) -> Json {
    let text = live.text("mountoptions").unwrap_or_default();
    text.split(';').filter(|option| !option.is_empty()).collect::<Vec<&str>>().into()
}

fn features(left: &mut Fields, notes: &mut Vec<String>) -> Json {
    let mut live = left.map("features").unwrap_or_default();
    let mut yaml = Object::new();
    yaml.put(Features::nesting, live.unless("nesting", false));
    yaml.put(Features::keyctl, live.unless("keyctl", false));
    yaml.put(Features::fuse, live.unless("fuse", false));
    yaml.put(Features::mknod, live.unless("mknod", false));
    yaml.put_full(Features::mount, live.texts("mount").unwrap_or_default().into());
    live.told("features.", notes);
    Json::Object(yaml)
}
