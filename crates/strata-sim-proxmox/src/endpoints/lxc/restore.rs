//! Containers from backups: what the backup says, and what was asked for instead.

use super::create::CreateRequest;
use super::mount::{Mount, Source};
use super::{apply, schema};
use crate::api::{Refusal, no};
use crate::world::guest::Config;
use crate::world::{Volume, World};

/// The configuration inside a backup.
pub fn inner(volume: &Volume) -> Config {
    let text = volume.inner.as_deref().unwrap_or_default();
    let mut config = Config::new();
    let mut description = String::new();
    for line in text.lines() {
        if line.starts_with('[') {
            break;
        }
        if let Some(line) = line.strip_prefix('#') {
            description.push_str(line);
            description.push('\n');
        } else if let Some((key, value)) = line.split_once(": ") {
            config.insert(key.to_owned(), value.to_owned());
        }
    }
    if !description.is_empty() {
        config.insert("description".into(), description);
    }
    config
}

/// Takes over the mount points of the backup, unless others were given.
pub fn prepare(world: &World, order: &mut CreateRequest, log: &mut Vec<String>) -> Result<(), Refusal> {
    log.push(format!("recovering backed-up configuration from '{}'", order.archive));
    let Some(volume) = world.volume(&order.archive, &order.node) else {
        return Err(no(format!("volume '{}' does not exist", order.archive)));
    };
    let backed_up = inner(volume);
    if order.unprivileged.is_none() {
        order.unprivileged = backed_up.get("unprivileged").map(|value| value == "1");
    }
    let may_modify = order.is_root || world.may(&order.user, "/", "Sys.Modify");
    if order.unprivileged != Some(true) && !may_modify {
        return Err(crate::api::forbidden("/, Sys.Modify"));
    }
    if !order.mounts.is_empty() {
        return Ok(());
    }
    for mut m in super::mount::mounts(&backed_up) {
        if m.source() != Source::Volume {
            let kind = m.source().name();
            if !order.is_root {
                return Err(no(format!("restoring '{}' to {kind} mount is only possible for root", m.key)));
            }
            order.mounts.push(m);
            continue;
        }
        let Some(size) = m.size() else {
            return Err(no(format!("unable to detect disk size - please specify {} (size)", m.key)));
        };
        let gib = size as f64 / f64::from(1 << 30);
        m.props.remove("size");
        m.props.set("volume", format!("{}:{gib}", order.storage));
        order.mounts.push(m);
    }
    if !order.mounts.iter().any(|m: &Mount| m.key == "rootfs") {
        let text = "rootfs configuration could not be recovered, please check and specify manually!";
        return Err(no(text));
    }
    Ok(())
}

/// Adds what the backup says and the request does not.
pub fn merge(world: &World, order: &CreateRequest, volume: &Volume, config: &mut Config) {
    let never = ["lock", "template", "parent", "snaptime", "digest", "unprivileged"];
    for (key, value) in inner(volume) {
        let skipped = never.contains(&key.as_str()) || schema::is_mount(&key) || schema::is_unused(&key);
        if skipped || config.contains_key(&key) {
            continue;
        }
        let value = if schema::is_net(&key) && order.unique {
            let mut net = schema::parse_net(&value);
            net.remove("hwaddr");
            let bare = schema::net().print(&net);
            apply::with_address(world, order.vmid, &key, &order.user, &bare)
        } else {
            value
        };
        config.insert(key, value);
    }
}
