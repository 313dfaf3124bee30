//! The nodes: their list, what each says about itself, the files it lets one edit.

mod apt;
pub mod bulk;
mod certificates;
mod control;
mod disks;
mod files;
mod migrate_all;
mod reports;
mod scan;
mod services;
mod subscription;

use serde_json::{Map, Value, json};

use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Perm, Reply, Route, get};
use crate::world::Node;
use strata_sim_core::cert;

pub fn routes() -> Vec<Route> {
    let node = || vec![usual::node()];
    let audit = || on("/nodes/{node}", &["Sys.Audit"]);
    let own = vec![
        get("/nodes", Perm::Anyone, vec![], list),
        get("/nodes/{node}", Perm::Anyone, node(), index).anywhere(),
        get("/nodes/{node}/status", audit(), node(), status),
        get("/nodes/{node}/netstat", audit(), node(), |_| Ok(json!([]).into())),
    ];
    let families: [fn() -> Vec<Route>; 11] = [
        files::routes,
        reports::routes,
        bulk::routes,
        migrate_all::routes,
        disks::routes,
        certificates::routes,
        services::routes,
        apt::routes,
        scan::routes,
        subscription::routes,
        control::routes,
    ];
    own.into_iter().chain(families.into_iter().flat_map(|family| family())).collect()
}

fn list(call: &mut Call<'_>) -> Reply {
    let rows: Vec<Value> = call.world.nodes.values().map(|node| Value::Object(row(call, node))).collect();
    Ok(Value::Array(rows).into())
}

/// The statistics are only for those who may look at the node.
fn row(call: &Call<'_>, node: &Node) -> Map<String, Value> {
    let mut row = Map::new();
    row.insert("id".into(), json!(format!("node/{}", node.name)));
    row.insert("node".into(), json!(node.name));
    row.insert("type".into(), json!("node"));
    row.insert("status".into(), json!(if node.down { "offline" } else { "online" }));
    row.insert("level".into(), json!(""));
    row.insert("ssl_fingerprint".into(), json!(cert::fingerprint()));
    if call.may(&format!("/nodes/{}", node.name), "Sys.Audit") {
        row.extend(statistics(node, call.world.now()));
    }
    row
}

/// Load and sizes, as listings show them.
pub fn statistics(node: &Node, now: i64) -> Map<String, Value> {
    let value = json!({
        "cpu": 0.02, "maxcpu": node.cpus, "mem": node.memory / 16, "maxmem": node.memory,
        "disk": node.disk / 6, "maxdisk": node.disk, "uptime": node.uptime(now),
    });
    value.as_object().cloned().unwrap_or_default()
}

fn index(_: &mut Call<'_>) -> Reply {
    super::index::listing(
        "name",
        &[
            "aplinfo",
            "apt",
            "capabilities",
            "ceph",
            "certificates",
            "config",
            "disks",
            "dns",
            "firewall",
            "hardware",
            "hosts",
            "journal",
            "lxc",
            "migrateall",
            "netstat",
            "network",
            "qemu",
            "query-oci-repo-tags",
            "query-url-metadata",
            "replication",
            "report",
            "rrd",
            "rrddata",
            "scan",
            "sdn",
            "services",
            "spiceshell",
            "startall",
            "status",
            "stopall",
            "storage",
            "subscription",
            "suspendall",
            "syslog",
            "tasks",
            "termproxy",
            "time",
            "version",
            "vncshell",
            "vzdump",
            "wakeonlan",
        ],
    )
}

fn status(call: &mut Call<'_>) -> Reply {
    let name = call.node();
    let node = &call.world.nodes[&name];
    Ok(json!({
        "uptime": node.uptime(call.world.now()), "cpu": 0.02, "wait": 0, "idle": 0, "loadavg": ["0.10", "0.10", "0.10"],
        "pveversion": format!("pve-manager/{}/{}", super::index::VERSION, super::index::REPOSITORY_ID),
        "kversion": "Linux 6.17.2-1-pve #1 SMP PREEMPT_DYNAMIC",
        "current-kernel": {
            "sysname": "Linux", "release": "6.17.2-1-pve", "version": "#1 SMP PREEMPT_DYNAMIC", "machine": "x86_64",
        },
        "boot-info": { "mode": "efi", "secureboot": 0 },
        "cpuinfo": {
            "cores": node.cpus, "cpus": node.cpus, "sockets": 1, "hvm": "1", "mhz": "2400.000", "user_hz": 100,
            "model": "Simulated Processor", "flags": "fpu vme de pse tsc msr pae aes avx avx2",
        },
        "memory": {
            "total": node.memory, "used": node.memory / 16, "free": node.memory - node.memory / 16,
            "available": node.memory - node.memory / 16,
        },
        "swap": { "total": 0, "used": 0, "free": 0 },
        "rootfs": { "total": node.disk, "used": node.disk / 6, "free": node.disk / 6 * 5, "avail": node.disk / 6 * 5 },
        "ksm": { "shared": 0 },
    })
    .into())
}
