//! What snapshots of VMs and of containers have in common.

use serde_json::{Map, Value, json};

use super::guest::check_lock;
use crate::api::{Call, Refusal, Reply, no};
use crate::task::{Job, LockKey, Step, work};
use crate::world::guest::Config;
use crate::world::{Guest, GuestKind, World};

/// The snapshots and, last, the current state. Containers show no `vmstate`.
pub fn rows(guest: &Guest, vmstate: bool) -> Value {
    let mut rows: Vec<Value> = guest
        .snapshots
        .iter()
        .map(|(name, config)| {
            let get = |key: &str| config.get(key);
            let mut row = Map::new();
            row.insert("name".into(), json!(name));
            row.insert("description".into(), json!(get("description").map_or("", String::as_str)));
            let time = get("snaptime").and_then(|t| t.parse::<i64>().ok()).unwrap_or_default();
            row.insert("snaptime".into(), json!(time));
            if vmstate {
                row.insert("vmstate".into(), json!(u8::from(get("vmstate").is_some())));
            }
            for key in ["parent", "snapstate"] {
                if let Some(value) = get(key) {
                    row.insert(key.into(), json!(value));
                }
            }
            Value::Object(row)
        })
        .collect();
    let mut current = json!({
        "name": "current", "description": "You are here!", "digest": guest.digest(),
        "running": u8::from(guest.power.running),
    });
    if let Some(parent) = guest.get("parent") {
        current["parent"] = json!(parent);
    }
    rows.push(current);
    Value::Array(rows)
}

pub fn missing(name: &str) -> Refusal {
    no(format!("snapshot '{name}' does not exist"))
}

/// The configuration that a guest had; none is an answer of the server.
pub fn config_of<'g>(guest: &'g Guest, name: &str) -> Result<&'g Config, Refusal> {
    guest.snapshots.get(name).ok_or_else(|| missing(name))
}

/// Which snapshot of which guest.
pub struct SnapshotRequest {
    pub kind: GuestKind,
    pub node: String,
    pub vmid: u32,
    pub name: String,
}

/// Does something with the volumes of a snapshot.
type OnVolumes = fn(&SnapshotRequest, &mut World, &Config);

impl SnapshotRequest {
    pub fn of(call: &Call<'_>, kind: GuestKind) -> Self {
        Self { kind, node: call.node(), vmid: call.vmid(), name: call.args.must("snapname").to_owned() }
    }

    pub fn lock_key(&self) -> LockKey {
        match self.kind {
            GuestKind::Qemu => LockKey::Qemu(self.vmid),
            GuestKind::Lxc => LockKey::Lxc(self.vmid),
        }
    }

    pub fn guest<'w>(&self, world: &'w mut World) -> Result<&'w mut Guest, Refusal> {
        world.guest_mut(&self.node, self.vmid, self.kind)
    }

    /// Starts a task on the guest's host.
    pub fn spawn(
        self,
        call: &mut Call<'_>,
        task: &str,
        first: impl FnOnce(Self, &mut World) -> Result<Step, String> + Send + 'static,
    ) -> Reply {
        let (node, vmid, key) = (self.node.clone(), self.vmid, self.lock_key());
        let work = work(move |_, _| Ok(Step::lock(key, move |world, _| first(self, world))));
        Ok(call.spawn(&node, task, vmid.to_string(), work).into())
    }

    /// Changes what is said of it.
    pub fn edit(&self, call: &mut Call<'_>, describe: impl FnOnce(&mut Config)) -> Reply {
        call.lock(self.lock_key())?;
        let guest = self.guest(call.world)?;
        check_lock(guest)?;
        describe(guest.snapshots.get_mut(&self.name).ok_or_else(|| missing(&self.name))?);
        Ok(().into())
    }

    /// Whether the guest may have it now.
    pub fn check_new(&self, world: &World) -> Result<(), Refusal> {
        let guest = world.guest(&self.node, self.vmid, self.kind)?;
        if guest.flag("template") {
            return Err(no("you can't take a snapshot if it's a template"));
        }
        check_lock(guest)?;
        if guest.snapshots.contains_key(&self.name) {
            return Err(no(format!("snapshot name '{}' already used", self.name)));
        }
        Ok(())
    }

    /// The guest goes on from it.
    pub fn taken(&self, world: &mut World) -> Result<(), Refusal> {
        let guest = self.guest(world)?;
        guest.config.remove("lock");
        guest.config.insert("parent".into(), self.name.clone());
        if let Some(snapshot) = guest.snapshots.get_mut(&self.name) {
            snapshot.remove("snapstate");
        }
        Ok(())
    }

    /// Whether it is there, and nothing else is done to the guest.
    fn check_there(&self, guest: &Guest) -> Result<(), String> {
        if !guest.snapshots.contains_key(&self.name) {
            return Err(missing(&self.name).text());
        }
        Ok(check_lock(guest)?)
    }

    pub fn remove(self, call: &mut Call<'_>, task: &str, on_volumes: OnVolumes) -> Reply {
        self.spawn(call, task, move |order, world| {
            let guest = order.guest(world)?;
            order.check_there(guest)?;
            guest.config.insert("lock".into(), "snapshot-delete".into());
            Ok(Step::wait(0.5, move |world, _| {
                let snapshot = order.forget(world)?;
                on_volumes(&order, world, &snapshot);
                Ok(Step::Done)
            }))
        })
    }

    /// Those that were made from it are from its parent now.
    fn forget(&self, world: &mut World) -> Result<Config, Refusal> {
        let (guest, name) = (self.guest(world)?, &self.name);
        let snapshot = guest.snapshots.shift_remove(name).ok_or_else(|| missing(name))?;
        let parent = snapshot.get("parent").cloned();
        for config in guest.snapshots.values_mut().chain(std::iter::once(&mut guest.config)) {
            if config.get("parent") == Some(name) {
                match &parent {
                    Some(parent) => config.insert("parent".into(), parent.clone()),
                    None => config.remove("parent"),
                };
            }
        }
        guest.config.remove("lock");
        Ok(snapshot)
    }

    pub fn roll_back(
        self,
        call: &mut Call<'_>,
        task: &str,
        restore: fn(&mut World, &Self) -> Result<(), Refusal>,
        start: impl FnOnce(&mut World, &Self, &Job) + Send + 'static,
    ) -> Reply {
        self.spawn(call, task, move |order, world| {
            let guest = order.guest(world)?;
            if guest.flag("template") {
                return Err("you can't rollback if vm is a template".to_owned());
            }
            order.check_there(guest)?;
            guest.power = Default::default();
            guest.config.insert("lock".into(), "rollback".into());
            Ok(Step::wait(1.0, move |world, job| {
                restore(world, &order)?;
                start(world, &order, job);
                Ok(Step::Done)
            }))
        })
    }
}
