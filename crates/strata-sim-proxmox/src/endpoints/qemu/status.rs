//! What VMs are doing: the list of a node, and one VM in detail.

use serde_json::{Map, Value, json};

use super::{boot, cpu, drive, schema};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Perm, Reply, Route, flag, get};
use crate::endpoints::index::subdirs;
use crate::world::{Guest, GuestKind, World};

pub fn routes() -> Vec<Route> {
    let own = || vec![usual::node(), usual::vmid()];
    let audit = || on("/vms/{vmid}", &["VM.Audit"]);
    vec![
        get("/nodes/{node}/qemu", Perm::Anyone, vec![usual::node(), flag("full").opt()], list),
        get("/nodes/{node}/qemu/{vmid}", Perm::Anyone, own(), index),
        get("/nodes/{node}/qemu/{vmid}/status", Perm::Anyone, own(), |_| {
            subdirs(&["current", "start", "stop", "reset", "shutdown", "suspend", "reboot"])
        }),
        get("/nodes/{node}/qemu/{vmid}/status/current", audit(), own(), current),
    ]
}

fn index(_: &mut Call<'_>) -> Reply {
    subdirs(&[
        "config",
        "cloudinit",
        "pending",
        "status",
        "unlink",
        "vncproxy",
        "termproxy",
        "migrate",
        "resize",
        "move",
        "rrd",
        "rrddata",
        "monitor",
        "agent",
        "snapshot",
        "spiceproxy",
        "sendkey",
        "firewall",
        "mtunnel",
        "remote_migrate",
    ])
}

fn list(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let full = call.args.is_set("full");
    let here = call.world.guests.values().filter(|g| g.kind == GuestKind::Qemu && g.node == node);
    let visible = here.filter(|g| call.may(&format!("/vms/{}", g.vmid), "VM.Audit"));
    let rows: Vec<Value> = visible.map(|guest| Value::Object(row(call.world, guest, full))).collect();
    Ok(Value::Array(rows).into())
}

fn current(call: &mut Call<'_>) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Qemu)?;
    let mut row = row(call.world, guest, true);
    let state = call.world.ha_state(&format!("vm:{}", guest.vmid));
    row.insert("ha".into(), ha(state));
    if let Some(vga) = guest.get("vga") {
        let vga = schema::parse_vga(vga);
        let spice = vga.get("type").is_some_and(|t| t.starts_with("virtio") || t.starts_with("qxl"));
        if spice {
            row.insert("spice".into(), json!(1));
        }
        row.insert("clipboard".into(), json!(vga.get("clipboard")));
    }
    if agent_enabled(guest) {
        row.insert("agent".into(), json!(1));
    }
    Ok(Value::Object(row).into())
}

/// What is said about high availability. A resource that is ignored is one that the manager does not look at.
pub fn ha(state: Option<String>) -> Value {
    match state {
        None => json!({ "managed": 0 }),
        Some(state) => json!({ "managed": 1, "state": state }),
    }
}

pub fn agent_enabled(guest: &Guest) -> bool {
    guest.get("agent").is_some_and(|agent| schema::parse_agent(agent).is_set("enabled"))
}

/// The processors a VM has: not more than the host.
pub fn cpus(world: &World, guest: &Guest) -> u32 {
    let number = |key: &str| guest.get(key).and_then(|v| v.parse::<u32>().ok());
    if let Some(vcpus) = number("vcpus") {
        return vcpus;
    }
    let wanted = number("sockets").unwrap_or(1) * number("cores").unwrap_or(1);
    wanted.min(world.nodes.get(&guest.node).map_or(wanted, |node| node.cpus))
}

/// A row of the list; with what the monitor says if `full`.
pub fn row(world: &World, guest: &Guest, full: bool) -> Map<String, Value> {
    let mut row = Map::new();
    let memory = schema::parse_memory(guest.get("memory")) << 20;
    row.insert("vmid".into(), json!(guest.vmid));
    row.insert("status".into(), json!(if guest.power.running { "running" } else { "stopped" }));
    row.insert("disk".into(), json!(0));
    row.insert("maxdisk".into(), json!(boot::boot_disk(&guest.config).and_then(|d| d.size()).unwrap_or(0)));
    row.insert("cpus".into(), json!(cpus(world, guest)));
    row.insert("name".into(), json!(name(guest)));
    row.insert("maxmem".into(), json!(memory));
    for key in ["uptime", "cpu", "mem", "memhost", "netin", "netout"] {
        row.insert(key.into(), json!(0));
    }
    if let Some(balloon) = guest.get("balloon").and_then(|b| b.parse::<u64>().ok()).filter(|b| *b > 0) {
        let shares = guest.get("shares").and_then(|s| s.parse::<u64>().ok()).unwrap_or(1000);
        row.insert("balloon_min".into(), json!(balloon << 20));
        row.insert("shares".into(), json!(shares));
    }
    if guest.flag("template") {
        row.insert("template".into(), json!(1));
    }
    if guest.config.keys().any(|key| key.starts_with("serial")) {
        row.insert("serial".into(), json!(1));
    }
    for key in ["lock", "tags"] {
        if let Some(value) = guest.get(key) {
            row.insert(key.into(), json!(value));
        }
    }
    if guest.power.running {
        running(world, guest, &mut row, memory, full);
    }
    if full {
        let paused = if guest.power.paused { "paused" } else { "running" };
        row.insert("qmpstatus".into(), json!(if guest.power.running { paused } else { "stopped" }));
    }
    row
}

/// VMs without a name are named after their number.
pub fn name(guest: &Guest) -> String {
    guest.get("name").map_or_else(|| format!("VM {}", guest.vmid), str::to_owned)
}

fn running(world: &World, guest: &Guest, row: &mut Map<String, Value>, memory: u64, full: bool) {
    let used = memory / 2;
    let measured = json!({
        "pid": guest.power.pid, "uptime": (world.now() - guest.power.since).max(0),
        "mem": used, "memhost": used, "cpu": 0.01,
        "pressurecpusome": 0, "pressurecpufull": 0, "pressureiosome": 0, "pressureiofull": 0,
        "pressurememorysome": 0, "pressurememoryfull": 0,
    });
    row.extend(measured.as_object().cloned().unwrap_or_default());
    if !full {
        return;
    }
    let nics: Map<String, Value> = guest
        .config
        .keys()
        .filter(|key| key.starts_with("net") && schema::exists(key))
        .map(|key| {
            let tap = format!("tap{}i{}", guest.vmid, key.trim_start_matches("net"));
            (tap, json!({ "netin": 0, "netout": 0 }))
        })
        .collect();
    let blocks: Map<String, Value> = drive::drives(&guest.config)
        .map(|drive| {
            (drive.slot, json!({ "rd_bytes": 0, "wr_bytes": 0, "rd_operations": 0, "wr_operations": 0 }))
        })
        .collect();
    let monitor = json!({
        "diskread": 0, "diskwrite": 0, "nics": nics, "blockstat": blocks,
        "balloon": memory, "ballooninfo": { "actual": memory, "max_mem": memory },
        "running-machine": guest.power.machine, "running-qemu": cpu::QEMU_VERSION,
        "proxmox-support": {
            "backup-access-api": true, "backup-fleecing": true, "backup-max-workers": true,
            "pbs-dirty-bitmap": true, "pbs-dirty-bitmap-migration": true, "pbs-dirty-bitmap-savevm": true,
            "pbs-library-version": "2.0.2", "pbs-masterkey": true, "query-bitmap-info": true,
        },
    });
    row.extend(monitor.as_object().cloned().unwrap_or_default());
}
