//! Bringing pending changes of a container into effect: all of them while it is stopped, some while it runs.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::mount::{self, Mount, Source};
use super::schema;
use crate::api::{Refusal, no};
use crate::world::guest::{Config, Pending};
use crate::world::{Guest, World};

/// Options that a running container does not care about, or takes at once.
const AT_ONCE: &[&str] =
    &["description", "onboot", "startup", "protection", "hostname", "hookscript", "cores", "tags", "lock"];

/// Texts for each option that could not be applied.
pub type Errors = Map<String, Value>;

/// Drops changes that change nothing.
pub fn forget_idle(guest: &mut Guest) {
    let config = &guest.config;
    guest.pending.retain(|key, change| match change {
        Pending::Set(value) => config.get(key) != Some(value),
        Pending::Delete { .. } => config.contains_key(key),
    });
}

/// Applies everything (of a selection) to a container that is stopped.
pub fn stopped(world: &mut World, guest: &mut Guest, only: Option<&BTreeSet<String>>) -> Errors {
    let mut errors = Errors::new();
    let wanted = |key: &str| only.is_none_or(|only| only.contains(key));
    for (key, change) in std::mem::take(&mut guest.pending) {
        if !wanted(&key) {
            guest.pending.insert(key, change);
            continue;
        }
        let outcome = match &change {
            Pending::Delete { .. } => {
                remove(world, guest, &key);
                Ok(())
            }
            Pending::Set(value) => set(world, guest, &key, value),
        };
        if let Err(refusal) = outcome {
            let text = format!("unable to apply pending change {key} : {}\n", refusal.text());
            errors.insert(key.clone(), json!(text));
            guest.pending.insert(key, change);
        }
    }
    errors
}

/// Applies what can be applied while the container runs; the rest stays pending.
pub fn running(world: &mut World, guest: &mut Guest, only: &BTreeSet<String>) -> Errors {
    let mut errors = Errors::new();
    for (key, change) in std::mem::take(&mut guest.pending) {
        let now = only.contains(&key)
            && match &change {
                Pending::Delete { .. } => {
                    AT_ONCE.contains(&key.as_str())
                        || schema::is_unused(&key)
                        || schema::is_net(&key)
                        || matches!(key.as_str(), "swap" | "cpulimit" | "cpuunits")
                }
                Pending::Set(_) => {
                    let fresh = !guest.config.contains_key(&key);
                    AT_ONCE.contains(&key.as_str())
                        || schema::is_net(&key)
                        || matches!(key.as_str(), "cpulimit" | "cpuunits" | "memory" | "swap")
                        || (fresh && (schema::is_device(&key) || (schema::is_mount(&key) && key != "rootfs")))
                }
            };
        if !now {
            guest.pending.insert(key, change);
            continue;
        }
        let outcome = match &change {
            Pending::Delete { .. } => {
                remove(world, guest, &key);
                Ok(())
            }
            Pending::Set(value) => {
                check_plug(world, guest, &key, value).and_then(|()| set(world, guest, &key, value))
            }
        };
        if let Err(refusal) = outcome {
            let text = format!("unable to hotplug {key}: {}\n", refusal.text());
            errors.insert(key.clone(), json!(text));
            guest.pending.insert(key, change);
        }
    }
    errors
}

/// A running container cannot be plugged into a bridge that is not there.
fn check_plug(world: &World, guest: &Guest, key: &str, value: &str) -> Result<(), Refusal> {
    if !schema::is_net(key) {
        return Ok(());
    }
    let net = schema::parse_net(value);
    let Some(bridge) = net.get("bridge").filter(|_| !net.is_set("link_down")) else { return Ok(()) };
    if world.nodes.get(&guest.node).is_some_and(|node| node.has_bridge(bridge)) {
        return Ok(());
    }
    Err(no(format!("bridge '{bridge}' does not exist")))
}

fn remove(world: &mut World, guest: &mut Guest, key: &str) {
    let Some(old) = guest.config.remove(key) else { return };
    if schema::is_mount(key) {
        let old = Mount::parse(key, &old);
        if old.source() == Source::Volume && !is_in_use(guest, old.volume()) {
            mount::keep_unused(guest, old.volume());
        }
    } else if schema::is_unused(key) && !is_in_use(guest, &old) {
        let own = world.volume(&old, &guest.node).is_some_and(|v| v.vmid == Some(guest.vmid));
        if own {
            world.free(&old, &guest.node);
        }
    }
}

/// Mounted, in a snapshot, or about to be mounted.
pub fn is_in_use(guest: &Guest, volid: &str) -> bool {
    let pending: Config = guest
        .pending
        .iter()
        .filter_map(|(key, change)| match change {
            Pending::Set(value) => Some((key.clone(), value.clone())),
            Pending::Delete { .. } => None,
        })
        .collect();
    let mounted = |config: &Config| mount::is_mounted(config, volid);
    mounted(&guest.config) || mounted(&pending) || guest.snapshots.values().any(mounted)
}

fn set(world: &mut World, guest: &mut Guest, key: &str, value: &str) -> Result<(), Refusal> {
    let value = if schema::is_mount(key) && key != "rootfs" {
        set_mount(world, guest, key, value)?
    } else if schema::is_net(key) {
        with_address(world, guest.vmid, key, &guest.creator, value)
    } else if key == "description" {
        if value.trim_end_matches('\n').is_empty() {
            guest.config.remove(key);
            return Ok(());
        }
        schema::whole_lines(value)
    } else if value.is_empty() {
        // An empty line of the file reads as its blank.
        " ".to_owned()
    } else {
        value.to_owned()
    };
    guest.config.insert(key.to_owned(), value);
    Ok(())
}

fn set_mount(world: &mut World, guest: &mut Guest, key: &str, value: &str) -> Result<String, Refusal> {
    let mut new = Mount::parse(key, value);
    if let Some((storage, size)) = new.new_volume().map(|(s, n)| (s.to_owned(), n)) {
        let volid = mount::allocate(world, &guest.node, guest.vmid, &storage, size, &mut Vec::new())?;
        new.set_volume(&volid, size);
    } else if new.source() == Source::Volume
        && let Some(volume) = world.volume(new.volume(), &guest.node)
    {
        let (volid, size) = (new.volume().to_owned(), volume.size);
        new.set_volume(&volid, size);
    }
    if let Some(old) = guest.config.remove(key).map(|old| Mount::parse(key, &old))
        && old.source() == Source::Volume
        && old.volume() != new.volume()
    {
        mount::keep_unused(guest, old.volume());
    }
    let reused: Vec<String> = guest
        .config
        .iter()
        .filter(|(key, volid)| schema::is_unused(key) && volid.as_str() == new.volume())
        .map(|(key, _)| key.clone())
        .collect();
    for key in reused {
        guest.config.remove(&key);
    }
    Ok(new.print())
}

/// A network card with its kind and a MAC address, made up if it has none.
pub fn with_address(world: &World, vmid: u32, slot: &str, user: &str, value: &str) -> String {
    let mut net = schema::parse_net(value);
    net.set("type", "veth");
    if net.get("hwaddr").is_none() {
        net.set("hwaddr", world.mac(&[&vmid.to_string(), slot, user]));
    }
    schema::net().print(&net)
}
