//! Applies pending changes: all of them to a stopped VM, to a running one only what can be done while it runs.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::create::tidy;
use super::drive::{self, Drive};
use super::{net, permit, schema};
use crate::api::args::split_list;
use crate::api::{PropertyString, Refusal, wrong_many};
use crate::world::guest::Pending;
use crate::world::{Guest, GuestKind, World};

/// Options that do not touch a running machine.
const HARMLESS: &[&str] = &[
    "description",
    "hookscript",
    "lock",
    "migrate_downtime",
    "migrate_speed",
    "name",
    "onboot",
    "protection",
    "shares",
    "startup",
    "tags",
    "vmstatestorage",
];

fn is_harmless(key: &str) -> bool {
    HARMLESS.contains(&key) || permit::CLOUDINIT.contains(&key) || (key.starts_with("ipconfig"))
}

/// How long an unplug is waited for before it is given up.
const UNPLUG_SECONDS: u64 = 23;

/// How long the proxy in front of the API waits for an answer.
const PROXY_SECONDS: u64 = 30;

/// Whether someone inside reacts to ACPI and releases devices.
pub fn has_system(world: &World, guest: &Guest) -> bool {
    drive::drives(&guest.config).any(|drive| {
        let volume = drive.volid().and_then(|volid| world.volume(volid, &guest.node));
        volume.is_some_and(|v| v.bootable || (drive.is_plain_cdrom() && v.content == "iso"))
    })
}

/// Forgets pending changes that change nothing.
pub fn forget_idle(guest: &mut Guest) {
    let config = &guest.config;
    guest.pending.retain(|key, change| match change {
        Pending::Set(value) => config.get(key) != Some(value),
        Pending::Delete { .. } => config.contains_key(key),
    });
}

/// A disk that is no longer attached stays as `unusedN`, if it is this VM's own.
pub fn keep_unused(guest: &mut Guest, drive: &Drive) {
    let own = format!("-{}-", guest.vmid);
    let Some(volid) = drive.volid().filter(|volid| volid.contains(&own)) else { return };
    if drive.is_plain_cdrom() || drive.is_cloudinit() {
        return;
    }
    add_unused(guest, volid);
}

/// Adds a volume under the first free `unusedN`; gives that name.
pub fn add_unused(guest: &mut Guest, volid: &str) -> Option<String> {
    let known = guest.config.iter().any(|(key, value)| drive::is_unused(key) && value == volid);
    if known {
        return None;
    }
    let key = (0..256).map(|n| format!("unused{n}")).find(|key| !guest.config.contains_key(key))?;
    guest.config.insert(key.clone(), volid.to_owned());
    Some(key)
}

fn replace_drive(world: &mut World, node: &str, vmid: u32, key: &str, new: Option<&str>) {
    let Ok(guest) = world.guest_mut(node, vmid, GuestKind::Qemu) else { return };
    let Some(old) = guest.get(key).and_then(|value| Drive::parse(key, value)) else { return };
    let same = new.and_then(|v| Drive::parse(key, v)).is_some_and(|new| new.file() == old.file());
    if same {
        return;
    }
    if old.is_cloudinit() {
        // Recreated whenever it is needed, so it goes.
        let volid = old.file().to_owned();
        if new.is_none() {
            world.free(&volid, node);
        }
    } else {
        keep_unused(guest, &old);
    }
}

/// Applies everything.
pub fn apply_stopped(world: &mut World, node: &str, vmid: u32) {
    let Ok(guest) = world.guest_mut(node, vmid, GuestKind::Qemu) else { return };
    let changes = std::mem::take(&mut guest.pending);
    for (key, change) in &changes {
        if let Pending::Delete { force } = change {
            if drive::is_slot(key) {
                detach(world, node, vmid, key, *force);
            }
            if let Ok(guest) = world.guest_mut(node, vmid, GuestKind::Qemu) {
                guest.config.remove(key);
            }
        }
    }
    for (key, change) in changes {
        let Pending::Set(value) = change else { continue };
        if drive::is_slot(&key) {
            replace_drive(world, node, vmid, &key, Some(&value));
        }
        if let Ok(guest) = world.guest_mut(node, vmid, GuestKind::Qemu) {
            guest.config.insert(key, value);
        }
    }
    if let Ok(guest) = world.guest_mut(node, vmid, GuestKind::Qemu) {
        tidy(&mut guest.config);
    }
}

fn detach(world: &mut World, node: &str, vmid: u32, key: &str, force: bool) {
    let value = world.guest(node, vmid, GuestKind::Qemu).ok().and_then(|g| g.get(key).map(str::to_owned));
    let Some(drive) = value.and_then(|v| Drive::parse(key, &v)) else { return };
    if !force || drive.is_plain_cdrom() {
        return replace_drive(world, node, vmid, key, None);
    }
    let owned = world.volume(drive.file(), node).is_some_and(|v| v.vmid == Some(vmid));
    if owned {
        world.free(drive.file(), node);
    }
}

/// What became of one change to a running VM.
enum Done {
    Applied,
    Later,
    Failed(String),
}

/// Applies what can be applied while the VM runs; the rest stays pending. Failures are reported together.
pub fn apply_running(
    world: &mut World,
    node: &str,
    vmid: u32,
    selection: &BTreeSet<String>,
) -> Result<(), Refusal> {
    let guest = world.guest(node, vmid, GuestKind::Qemu)?;
    let features: Vec<String> = match guest.get("hotplug") {
        Some("0") => Vec::new(),
        None | Some("1") => ["network", "disk", "usb"].map(str::to_owned).to_vec(),
        Some(list) => split_list(list).map(str::to_owned).collect(),
    };
    let system = has_system(world, guest);
    let changes = guest.pending.clone();
    let mut errors: Map<String, Value> = Map::new();
    let deletes = changes.iter().filter(|(_, c)| matches!(c, Pending::Delete { .. }));
    let sets = changes.iter().filter(|(_, c)| matches!(c, Pending::Set(_)));
    for (key, change) in deletes.chain(sets) {
        let guest = world.guest(node, vmid, GuestKind::Qemu)?;
        let plug = Plug { guest, features: &features, system };
        let selected = selection.contains(key) || is_harmless(key);
        let done = match change {
            _ if !selected => Done::Later,
            Pending::Delete { .. } => plug.remove(key),
            Pending::Set(value) => plug.set(key, value),
        };
        match done {
            Done::Later => {}
            Done::Failed(text) => {
                errors.insert(key.clone(), Value::String(format!("hotplug problem - {text}")));
            }
            Done::Applied => commit(world, node, vmid, key, change),
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    let seconds = UNPLUG_SECONDS * errors.len() as u64;
    let then = match seconds > PROXY_SECONDS {
        // What the call did is done; its answer finds nobody.
        true => Refusal::Error { status: 596, message: "Connection timed out\n".to_owned(), errors: None },
        false => wrong_many(errors),
    };
    Err(Refusal::After { seconds: seconds.min(PROXY_SECONDS), then: Box::new(then) })
}

fn commit(world: &mut World, node: &str, vmid: u32, key: &str, change: &Pending) {
    match change {
        Pending::Delete { force } if drive::is_slot(key) => detach(world, node, vmid, key, *force),
        Pending::Set(value) if drive::is_slot(key) => replace_drive(world, node, vmid, key, Some(value)),
        _ => {}
    }
    let Ok(guest) = world.guest_mut(node, vmid, GuestKind::Qemu) else { return };
    guest.pending.remove(key);
    match change {
        Pending::Delete { .. } => guest.config.remove(key),
        Pending::Set(value) => guest.config.insert(key.to_owned(), value.clone()),
    };
    tidy(&mut guest.config);
}

struct Plug<'g> {
    guest: &'g Guest,
    features: &'g [String],
    system: bool,
}

impl Plug<'_> {
    fn can(&self, feature: &str) -> bool {
        self.features.iter().any(|f| f == feature)
    }

    /// A device is gone only when the guest releases it.
    fn unplug(&self, key: &str) -> Done {
        let alone = !key.starts_with("scsi") || self.guest.get("scsihw") == Some("virtio-scsi-single");
        if self.system || !alone {
            return Done::Applied;
        }
        Done::Failed(format!("error on hot-unplugging device '{key}' - still busy in guest?\n"))
    }

    fn usb_ready(&self) -> bool {
        let modern =
            self.guest.get("ostype").is_some_and(|os| matches!(os, "l26" | "win8" | "win10" | "win11"));
        self.can("usb") && modern
    }

    fn remove(&self, key: &str) -> Done {
        if is_harmless(key) || matches!(key, "cpuunits" | "cpulimit") {
            return Done::Applied;
        }
        let feature = match key {
            "tablet" => return if self.can("usb") { Done::Applied } else { Done::Later },
            "hotplug" => {
                let sized = self.guest.get(key).is_some_and(|h| h.contains("cpu") || h.contains("memory"));
                return if sized { Done::Later } else { Done::Applied };
            }
            "balloon" => return if self.guest.get(key) == Some("0") { Done::Later } else { Done::Applied },
            "vcpus" => return if self.can("cpu") { Done::Applied } else { Done::Later },
            "memory" => return if self.can("memory") { Done::Applied } else { Done::Later },
            _ if key.starts_with("net") && schema::exists(key) => "network",
            _ if key.starts_with("usb") => {
                return if self.usb_ready() { self.unplug(key) } else { Done::Later };
            }
            _ if drive::is_slot(key) => match drive::bus(key) {
                Some("scsi" | "virtio") => "disk",
                _ => return Done::Later,
            },
            _ => return Done::Later,
        };
        if self.can(feature) { self.unplug(key) } else { Done::Later }
    }

    fn set(&self, key: &str, value: &str) -> Done {
        if is_harmless(key) || matches!(key, "cpuunits" | "cpulimit") {
            return Done::Applied;
        }
        match key {
            "hotplug" => {
                let sized = |text: &str| text.contains("memory") || text.contains("cpu");
                let either = sized(value) || self.guest.get(key).is_some_and(sized);
                if either { Done::Later } else { Done::Applied }
            }
            "tablet" => match self.can("usb") {
                false => Done::Later,
                true if value == "0" => self.unplug(key),
                true => Done::Applied,
            },
            "vcpus" if self.can("cpu") => Done::Applied,
            "memory" if self.can("memory") => Done::Applied,
            "balloon" => {
                let enabled = |v: Option<&str>| v.is_none_or(|v| v != "0");
                let same = enabled(self.guest.get(key)) == enabled(Some(value));
                if same { Done::Applied } else { Done::Later }
            }
            "agent" => self.agent(value),
            _ if key.starts_with("net") && schema::exists(key) => self.net(key, value),
            _ if key.starts_with("usb") && self.usb_ready() => Done::Applied,
            _ if drive::is_slot(key) => self.disk(key, value),
            _ => Done::Later,
        }
    }

    fn agent(&self, value: &str) -> Done {
        let Some(old) = self.guest.get("agent") else { return Done::Later };
        let strip = |text: &str| {
            let mut agent = schema::parse_agent(text);
            agent.remove("fstrim_cloned_disks");
            let mut pairs: Vec<_> = agent.0.into_iter().collect();
            pairs.sort();
            pairs
        };
        if strip(old) == strip(value) { Done::Applied } else { Done::Later }
    }

    fn net(&self, key: &str, value: &str) -> Done {
        let new = net::parse(value);
        let Some(old) = self.guest.get(key).map(net::parse) else {
            return if self.can("network") { Done::Applied } else { Done::Later };
        };
        let differs = |field: &str| field_of(&old, field) != field_of(&new, field);
        let replug = ["model", "macaddr", "queues", "mtu"].iter().any(|field| differs(field))
            || old.get("bridge").is_none()
            || new.get("bridge").is_none();
        if !replug {
            return Done::Applied;
        }
        if self.can("network") { self.unplug(key) } else { Done::Later }
    }

    fn disk(&self, key: &str, value: &str) -> Done {
        if matches!(key, "efidisk0" | "tpmstate0") {
            return Done::Later;
        }
        let Some(new) = Drive::parse(key, value) else { return Done::Later };
        let Some(old) = self.guest.get(key).and_then(|v| Drive::parse(key, v)) else {
            let pluggable = matches!(drive::bus(key), Some("scsi" | "virtio"));
            return if self.can("disk") && pluggable { Done::Applied } else { Done::Later };
        };
        if old.is_cdrom() != new.is_cdrom() {
            return Done::Failed("unable to change media type\n".to_owned());
        }
        if old.is_cdrom() {
            return Done::Applied;
        }
        if old.file() != new.file() {
            return if self.can("disk") { self.unplug(key) } else { Done::Later };
        }
        let fixed = ["aio", "discard", "iothread", "queues", "product", "cache", "ssd", "vendor", "ro"];
        let differs = fixed.iter().any(|field| field_of(&old.props, field) != field_of(&new.props, field));
        if differs { Done::Later } else { Done::Applied }
    }
}

/// An option that is off counts as one that is not there.
fn field_of<'p>(props: &'p PropertyString, field: &str) -> Option<&'p str> {
    props.get(field).filter(|value| *value != "0")
}
