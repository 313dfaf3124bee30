//! What tests do to machines behind everyone's back, through the control interface.

use serde::Deserialize;
use serde_json::{Value, json};

use super::hypervisor::vmid;
use super::image::Image;
use super::machine::{Machine, Metal};
use super::version::Version;
use crate::world::World;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// DHCP gives this address to that card.
    Reserve {
        mac: String,
        address: String,
    },
    /// A bare machine that boots this version, in maintenance mode at these addresses.
    Metal {
        name: String,
        addresses: Vec<String>,
        version: String,
        schematic: Option<String>,
    },
    /// A bare machine is switched on or off, or taken away with everything on it.
    MetalPower {
        name: String,
        on: bool,
    },
    MetalRemove {
        name: String,
    },
    /// The clock of a machine is so many seconds ahead.
    Skew {
        machine: String,
        seconds: i64,
    },
    /// The machine's certificate has expired, or is good again.
    Expired {
        machine: String,
        expired: bool,
    },
    /// Nothing reaches the machine, or everything does again.
    CutOff {
        machine: String,
        cut_off: bool,
    },
    /// Somebody who has the keys gives the machine another configuration: its own with this laid over the main document, as a merge patch.
    /// It takes effect at once, or is `staged` until the next boot.
    Configure {
        machine: String,
        patch: Value,
        #[serde(default)]
        staged: bool,
    },
    /// The machine reboots by itself.
    Reboot {
        machine: String,
    },
    /// Everything on the machine's disk is gone.
    Wipe {
        machine: String,
    },
    /// Somebody resets the machine: these partitions are wiped (`STATE`, `EPHEMERAL`), and it reboots. Nobody says goodbye to etcd.
    Reset {
        machine: String,
        partitions: Vec<String>,
    },
    /// Somebody removes a machine's member from etcd, by way of another one. The machine keeps its data.
    RemoveMember {
        machine: String,
    },
    /// Every alarm of a machine's etcd ends.
    Disarm {
        machine: String,
    },
    /// An alarm is raised at a machine's etcd: `nospace` or `corrupt`.
    Alarm {
        machine: String,
        alarm: String,
    },
    /// Counters and the list of reboots begin again.
    ResetCounters {},
}

/// Carries one out. A machine is named by its key (`vm/101`, `metal/NAME`), hostname or an address.
pub fn apply(world: &mut World, change: &Value) -> Result<Value, String> {
    let change: Change = serde_json::from_value(change.clone()).map_err(|e| e.to_string())?;
    world.advance();
    match change {
        Change::Reserve { mac, address } => {
            world.talos.reservations.insert(mac.to_uppercase(), address);
            world.answer_dhcp();
        }
        Change::Metal { name, addresses, version, schematic } => {
            Version::parse(&version).ok_or("no such version")?;
            let version = format!("v{}", version.trim_start_matches('v'));
            let schematic = schematic.unwrap_or_default();
            let image = Image { version, schematic, platform: "metal".to_owned(), secure_boot: false };
            let metal = Metal { image, addresses, on: true, disk: None, starts: 1 };
            let key = format!("metal/{name}");
            world.talos.machines.insert(key.clone(), Machine { metal: Some(metal), ..Machine::default() });
            world.talos_boot(&key, world.now_ms());
        }
        Change::MetalPower { name, on } => {
            let key = format!("metal/{name}");
            let machine = world.talos.machines.get_mut(&key).ok_or("no such machine")?;
            let metal = machine.metal.as_mut().ok_or("no such machine")?;
            let was = std::mem::replace(&mut metal.on, on);
            if !on {
                machine.boot = None;
            } else if !was {
                metal.starts += 1;
                world.talos_boot(&key, world.now_ms());
            }
        }
        Change::MetalRemove { name } => {
            world.talos.machines.remove(&format!("metal/{name}")).ok_or("no such machine")?;
        }
        Change::Skew { machine, seconds } => named(world, &machine)?.skew = seconds,
        Change::Expired { machine, expired } => named(world, &machine)?.expired = expired,
        Change::CutOff { machine, cut_off } => named(world, &machine)?.cut_off = cut_off,
        Change::Configure { machine, patch, staged } => {
            let key = find(world, &machine)?;
            let boot = world.talos.machines.get(&key).and_then(|machine| machine.boot.as_ref());
            let config = boot.and_then(|boot| boot.config.as_ref()).ok_or("it has no configuration")?;
            let config = config.patched(&patch)?;
            let kept = config.clone();
            world.edit_talos_disk(&key, |disk| disk.config = Some(kept));
            if !staged && let Some(boot) = named(world, &key)?.boot.as_mut() {
                boot.config = Some(config);
            }
        }
        Change::Reboot { machine } => {
            let key = find(world, &machine)?;
            world.begin_reboot(&key, "power");
        }
        Change::Wipe { machine } => {
            let key = find(world, &machine)?;
            world.wipe_talos_disk(&key);
        }
        Change::Reset { machine, partitions } => {
            let key = find(world, &machine)?;
            for partition in partitions {
                world.edit_talos_disk(&key, |disk| match partition.as_str() {
                    "STATE" => disk.config = None,
                    "EPHEMERAL" => disk.etcd = None,
                    _ => {}
                });
            }
            world.begin_reboot(&key, "reset");
        }
        Change::RemoveMember { machine } => {
            let key = find(world, &machine)?;
            let (cluster, member) = world.etcd_of(&key).ok_or("no etcd member")?;
            let (id, member) = (cluster.id.clone(), member.id);
            world.etcd_remove(&id, member).map_err(|why| why.to_string())?;
        }
        Change::Disarm { machine } => {
            let key = find(world, &machine)?;
            let id = world.etcd_of(&key).ok_or("no etcd member")?.0.id.clone();
            if let Some(cluster) = world.talos.etcd.get_mut(&id) {
                cluster.alarms.clear();
            }
        }
        Change::Alarm { machine, alarm } => {
            let key = find(world, &machine)?;
            let kind = match alarm.as_str() {
                "nospace" => 1,
                "corrupt" => 2,
                _ => return Err("`alarm` is `nospace` or `corrupt`".to_owned()),
            };
            let (cluster, member) = world.etcd_of(&key).ok_or("no etcd member")?;
            let (id, member) = (cluster.id.clone(), member.id);
            if let Some(cluster) = world.talos.etcd.get_mut(&id) {
                cluster.alarms.push((member, kind));
            }
        }
        Change::ResetCounters {} => {
            world.talos.reboots.clear();
            for counters in world.talos.counters.values_mut() {
                // How many clusters were made is a fact, not a measurement.
                counters.most_down = 0;
                counters.quorum_lost = false;
                counters.was_healthy = false;
                counters.had_quorum = false;
            }
        }
    }
    world.advance();
    Ok(json!({ "status": 200 }))
}

impl World<'_> {
    /// Machines that ask and got no answer so far get one; the others keep what they have until they boot again.
    fn answer_dhcp(&mut self) {
        let given: Vec<(String, Vec<String>)> = self
            .talos
            .machines
            .iter()
            .filter_map(|(key, machine)| {
                let boot = machine.boot.as_ref().filter(|boot| boot.leases.is_empty())?;
                Some((key.clone(), self.leases_of(vmid(key)?, boot.image.as_ref()?)))
            })
            .collect();
        for (key, leases) in given {
            if let Some(boot) = self.talos.machines.get_mut(&key).and_then(|machine| machine.boot.as_mut()) {
                boot.leases = leases;
            }
        }
    }
}

fn find(world: &World, name: &str) -> Result<String, String> {
    if world.talos.machines.contains_key(name) {
        return Ok(name.to_owned());
    }
    let found = world.talos.machines.iter().find(|(key, machine)| {
        let addresses = machine.boot.as_ref().map(|boot| boot.addresses()).unwrap_or_default();
        addresses.iter().any(|address| address == name) || world.talos_hostname(key) == name
    });
    found.map(|(key, _)| key.clone()).ok_or_else(|| format!("no machine `{name}`"))
}

fn named<'w>(world: &'w mut World, name: &str) -> Result<&'w mut Machine, String> {
    let key = find(world, name)?;
    world.talos.machines.get_mut(&key).ok_or_else(|| format!("no machine `{name}`"))
}
