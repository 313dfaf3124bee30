//! Everything in the cluster in one list, as the last round of statistics knew it.

use serde_json::{Map, Value, json};

use super::{nodes, qemu};
use crate::api::{Call, Perm, Reply, Route, get, text};
use crate::world::{Guest, GuestKind, Storage, World};

/// How often statistics are collected, in real seconds.
const ROUND: f64 = 10.0;

pub fn routes() -> Vec<Route> {
    let kind = text("type").one_of(&["vm", "storage", "node", "sdn"]).opt();
    vec![get("/cluster/resources", Perm::Anyone, vec![kind], list)]
}

impl World {
    /// Takes note of names, once in a round of statistics: the list shows what they were then.
    fn measure_names(&mut self) {
        let (now, round) = (self.now_ms(), (ROUND * 1000.0 * self.clock.second) as i64);
        let name = |guest: &Guest| match guest.kind {
            GuestKind::Qemu => qemu::status::name(guest),
            GuestKind::Lxc => super::lxc::status::name(guest),
        };
        let seen = &mut self.daemons.names;
        seen.retain(|vmid, (at, _)| now - *at < round && self.guests.contains_key(vmid));
        for (vmid, guest) in &self.guests {
            seen.entry(*vmid).or_insert_with(|| (now, name(guest)));
        }
    }

    fn measured_name(&self, vmid: u32) -> Option<&str> {
        self.daemons.names.get(&vmid).map(|(_, name)| name.as_str())
    }
}

/// Whether a round of statistics has seen this guest.
fn is_measured(world: &World, guest: &Guest) -> bool {
    let round = (ROUND * 1000.0 * world.clock.second) as i64;
    let down = world.nodes.get(&guest.node).is_some_and(|node| node.down);
    !down && world.now_ms() - guest.created >= round
}

/// A guest; only its place is known before it was measured.
pub fn guest(world: &World, guest: &Guest) -> Map<String, Value> {
    let kind = guest.kind.name();
    let mut row = Map::new();
    row.insert("id".into(), json!(format!("{kind}/{}", guest.vmid)));
    row.insert("vmid".into(), json!(guest.vmid));
    row.insert("node".into(), json!(guest.node));
    row.insert("type".into(), json!(kind));
    if !is_measured(world, guest) {
        row.insert("status".into(), json!("unknown"));
        return row;
    }
    let mut measured = match guest.kind {
        GuestKind::Qemu => qemu::status::row(world, guest, false),
        GuestKind::Lxc => super::lxc::status::row(world, guest),
    };
    let cpus = measured.remove("cpus");
    row.insert("maxcpu".into(), cpus.unwrap_or(json!(1)));
    row.insert("template".into(), json!(u8::from(guest.flag("template"))));
    for key in ["diskread", "diskwrite"] {
        row.insert(key.into(), json!(0));
    }
    for key in
        ["name", "status", "uptime", "cpu", "mem", "memhost", "maxmem", "disk", "maxdisk", "netin", "netout"]
    {
        row.insert(key.into(), measured.remove(key).unwrap_or(json!(0)));
    }
    if let Some(name) = world.measured_name(guest.vmid) {
        row.insert("name".into(), json!(name));
    }
    row
}

/// A storage on a node.
pub fn storage(world: &World, storage: &Storage, node: &str) -> Map<String, Value> {
    let available = !storage.is_disabled() && storage.is_on(node);
    let mut row = Map::new();
    row.insert("id".into(), json!(format!("storage/{node}/{}", storage.id)));
    row.insert("type".into(), json!("storage"));
    row.insert("storage".into(), json!(storage.id));
    row.insert("node".into(), json!(node));
    row.insert("plugintype".into(), json!(storage.kind));
    row.insert("content".into(), json!(storage.contents().join(",")));
    row.insert("shared".into(), json!(u8::from(storage.is_shared())));
    row.insert("status".into(), json!(if available { "available" } else { "unknown" }));
    if available {
        row.insert("disk".into(), json!(world.storage_used(storage, node)));
        row.insert("maxdisk".into(), json!(storage.capacity));
    }
    row
}

fn list(call: &mut Call<'_>) -> Reply {
    let wanted = call.args.text("type");
    let asked = |kind: &str| wanted.is_none_or(|w| w == kind);
    call.world.measure_names();
    let world = &*call.world;
    let mut rows: Vec<Value> = Vec::new();
    if wanted.is_none() {
        let visible = world.pools.keys().filter(|id| call.may(&format!("/pool/{id}"), "Pool.Audit"));
        rows.extend(visible.map(|id| json!({ "id": format!("/pool/{id}"), "pool": id, "type": "pool" })));
    }
    if asked("vm") {
        let visible = world.guests.values().filter(|g| call.may(&format!("/vms/{}", g.vmid), "VM.Audit"));
        rows.extend(visible.map(|g| Value::Object(guest_in_cluster(world, g))));
    }
    if asked("node") {
        rows.extend(world.nodes.values().map(|node| {
            let mut row = json!({
                "id": format!("node/{}", node.name), "type": "node", "node": node.name,
                "status": if node.down { "offline" } else { "online" },
                "level": "", "cgroup-mode": 2,
            });
            if call.may(&format!("/nodes/{}", node.name), "Sys.Audit")
                && let Some(row) = row.as_object_mut()
            {
                row.extend(nodes::statistics(node, call.world.now()));
            }
            row
        }));
    }
    if asked("storage") {
        let visible = world.storages.values().filter(|s| super::storage::is_visible(call, &s.id));
        for s in visible.filter(|s| !s.is_disabled()) {
            let on = world.nodes.keys().filter(|node| s.is_on(node));
            rows.extend(on.map(|node| Value::Object(storage(world, s, node))));
        }
    }
    if asked("sdn") {
        rows.extend(networks(call));
    }
    Ok(Value::Array(rows).into())
}

/// What the cluster adds to a guest: pool, lock, tags, state of high availability.
fn guest_in_cluster(world: &World, g: &Guest) -> Map<String, Value> {
    let mut row = guest(world, g);
    if let Some(pool) = world.pool_of(g.vmid) {
        row.insert("pool".into(), json!(pool));
    }
    for key in ["lock", "tags"] {
        if let Some(value) = g.get(key) {
            row.insert(key.into(), json!(value));
        }
    }
    let sid = match g.kind {
        GuestKind::Qemu => format!("vm:{}", g.vmid),
        GuestKind::Lxc => format!("ct:{}", g.vmid),
    };
    if let Some(state) = world.ha_state(&sid) {
        row.insert("hastate".into(), json!(state));
    }
    row
}

/// The zones that each node has.
fn networks(call: &Call<'_>) -> Vec<Value> {
    let zones = std::iter::once("localnetwork")
        .chain(call.world.cluster.file("sdn/running/zones").map(|(id, _)| id))
        .filter(|zone| call.check_any(&format!("/sdn/zones/{zone}"), &["SDN.Audit", "SDN.Use"]).is_ok());
    let mut rows = Vec::new();
    for zone in zones {
        for node in call.world.nodes.keys() {
            rows.push(json!({
                "id": format!("network/{node}/zone/{zone}"), "network": zone, "network-type": "zone",
                "type": "network", "node": node, "status": "ok",
            }));
        }
    }
    rows
}
