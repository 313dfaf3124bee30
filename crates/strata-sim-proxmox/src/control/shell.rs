//! Changes that bypass the API, as an administrator with a shell or a restored backup would make them.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::world::guest::Config;
use crate::world::{Volume, World};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Change {
    /// A copy of a guest under another VMID with everything its configuration says, notes and identifiers included.
    Restore { from: u32, vmid: u32, node: Option<String> },
    /// Options set and removed directly in a guest's configuration.
    Edit {
        vmid: u32,
        #[serde(default)]
        set: Config,
        #[serde(default)]
        delete: Vec<String>,
    },
    /// The guest stops or starts without a task.
    Power { vmid: u32, running: bool },
    /// A volume appears.
    Volume { volid: String, node: String, size: u64, content: Option<String>, vmid: Option<u32> },
    /// A volume disappears.
    Remove { volid: String, node: String },
    /// A hypervisor crashes: its tasks and guests end where they are, and nobody reaches it until it is up again.
    Host { node: String, up: bool },
    /// What a hypervisor could upgrade from now on; nothing once somebody did it there.
    Updates { node: String, packages: Vec<(String, String)> },
    /// A storage has this many bytes left.
    Room { storage: String, bytes: u64 },
}

pub fn apply(world: &mut World, change: &Value) -> Result<Value, String> {
    let change: Change = serde_json::from_value(change.clone()).map_err(|e| e.to_string())?;
    match change {
        Change::Restore { from, vmid, node } => restore(world, from, vmid, node)?,
        Change::Edit { vmid, set, delete } => {
            let guest = world.guests.get_mut(&vmid).ok_or("no such guest")?;
            for key in delete {
                guest.config.remove(&key);
            }
            guest.config.extend(set);
        }
        Change::Power { vmid, running } => {
            let (now, pid) = (world.now(), world.new_pid());
            let guest = world.guests.get_mut(&vmid).ok_or("no such guest")?;
            guest.starts += u64::from(running && !guest.power.running);
            guest.power.pid = pid;
            guest.power.running = running;
            guest.power.paused = false;
            guest.power.since = now;
        }
        Change::Volume { volid, node, size, content, vmid } => {
            let place = world.place(&volid, &node).ok_or("no such storage")?;
            let format = place.2.rsplit_once('.').map_or("raw", |(_, ext)| ext).to_owned();
            let content = content.unwrap_or_else(|| "images".to_owned());
            let ctime = world.now();
            world.volumes.insert(place, Volume { content, format, size, vmid, ctime, ..Volume::default() });
        }
        Change::Remove { volid, node } => {
            world.free(&volid, &node).ok_or("no such volume")?;
        }
        Change::Host { node, up } => {
            world.nodes.get(&node).ok_or("no such node")?;
            world.set_power(&node, up);
        }
        Change::Updates { node, packages } => {
            world.nodes.get_mut(&node).ok_or("no such node")?.updates = packages;
        }
        Change::Room { storage, bytes } => {
            let node = world.nodes.keys().next().cloned().unwrap_or_default();
            let stored = world.storages.get(&storage).ok_or("no such storage")?;
            let own = world.volumes.used(&storage, &stored.scope(&node));
            if let Some(storage) = world.storages.get_mut(&storage) {
                storage.taken = storage.capacity.saturating_sub(own).saturating_sub(bytes);
            }
        }
    }
    Ok(json!({ "status": 200 }))
}

fn restore(world: &mut World, from: u32, vmid: u32, node: Option<String>) -> Result<(), String> {
    if world.guests.contains_key(&vmid) {
        return Err(format!("guest {vmid} exists"));
    }
    let mut guest = world.guests.get(&from).ok_or("no such guest")?.clone();
    let source = guest.node.clone();
    let node = node.unwrap_or_else(|| source.clone());
    // Its volumes come along under names of their own.
    for value in guest.config.values_mut() {
        let Some(volid) = value.split(',').next().map(str::to_owned) else { continue };
        let Some(place) = world.place(&volid, &source) else { continue };
        let Some(volume) = world.volumes.get(&place).filter(|v| v.vmid == Some(from)).cloned() else {
            continue;
        };
        let storage = place.0.clone();
        let file = match place.2.contains("cloudinit") {
            true => format!("vm-{vmid}-cloudinit"),
            false => world.free_disk_name(&world.storage(&storage)?.clone(), &node, vmid),
        };
        let copy = Volume { vmid: Some(vmid), parent: None, ..volume };
        let new = world.allocate(&storage, &node, copy, &file)?;
        *value = value.replacen(&volid, &new, 1);
    }
    guest.vmid = vmid;
    guest.node = node;
    guest.created = world.now_ms();
    guest.power = Default::default();
    world.guests.insert(vmid, guest);
    Ok(())
}
