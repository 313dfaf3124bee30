//! The cluster at a glance: its members, its log, the next free VMID.

use serde_json::{Value, json};

use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Perm, Reply, Route, format, fuse, get, int, no, text, wrong};
use crate::endpoints::index::listing;

pub fn routes() -> Vec<Route> {
    vec![
        get("/cluster", Perm::Anyone, vec![], index),
        get("/cluster/status", on("/", &["Sys.Audit"]), vec![], status),
        get("/cluster/nextid", Perm::Anyone, vec![usual::vmid().opt()], next_id),
        get("/cluster/log", Perm::Anyone, vec![int("max").min(1.0).opt()], log),
        get("/cluster/config", on("/", &["Sys.Audit"]), vec![], |_| {
            listing("name", &["nodes", "totem", "join", "qdevice", "apiversion"])
        }),
        get("/cluster/config/nodes", on("/", &["Sys.Audit"]), vec![], members),
        get(
            "/cluster/config/join",
            on("/", &["Sys.Audit"]),
            vec![text("node").format(format::node).opt()],
            join_information,
        ),
        get("/cluster/config/totem", on("/", &["Sys.Audit"]), vec![], |call| Ok(totem(call).into())),
        get("/cluster/config/qdevice", on("/", &["Sys.Audit"]), vec![], |_| Ok(json!({}).into())),
        get("/cluster/config/apiversion", on("/", &["Sys.Audit"]), vec![], |_| Ok(json!("1").into())),
    ]
}

/// What corosync is set up with; nothing on a node that is in no cluster.
fn totem(call: &Call<'_>) -> Value {
    let name = &call.world.cluster.name;
    if name.is_empty() {
        return Value::Null;
    }
    json!({
        "cluster_name": name, "config_version": call.world.nodes.len().to_string(), "interface": { "0": { "linknumber": "0" } },
        "ip_version": "ipv4-6", "link_mode": "passive", "secauth": "on", "version": "2",
    })
}

/// What another node needs to join.
fn join_information(call: &mut Call<'_>) -> Reply {
    let world = &*call.world;
    if world.cluster.name.is_empty() {
        return Err(fuse(424, "node is not in a cluster, no join info available!"));
    }
    let first = world.nodes.keys().next().map_or("", String::as_str);
    let preferred = call.args.text("node").unwrap_or(first);
    if !world.nodes.contains_key(preferred) {
        return Err(no(format!("could not find node '{preferred}' in corosync config")));
    }
    let nodes = world.nodes.values().enumerate().map(|(n, node)| {
        json!({
            "name": node.name, "nodeid": (n + 1).to_string(), "quorum_votes": "1", "ring0_addr": node.ip,
            "pve_addr": node.ip, "pve_fp": strata_sim_core::cert::fingerprint(),
        })
    });
    let nodes: Vec<Value> = nodes.collect();
    let digest = crate::world::made_up::sha1_hex(&json!(nodes).to_string());
    Ok(json!({
        "nodelist": nodes, "preferred_node": preferred, "totem": totem(call), "config_digest": digest,
    })
    .into())
}

fn index(_: &mut Call<'_>) -> Reply {
    listing(
        "name",
        &[
            "acme",
            "backup",
            "backup-info",
            "bulk-action",
            "ceph",
            "config",
            "firewall",
            "ha",
            "jobs",
            "log",
            "mapping",
            "metrics",
            "notifications",
            "nextid",
            "options",
            "replication",
            "resources",
            "status",
            "tasks",
            "sdn",
        ],
    )
}

fn status(call: &mut Call<'_>) -> Reply {
    let world = &*call.world;
    let clustered = !world.cluster.name.is_empty();
    let mut rows: Vec<Value> = Vec::new();
    let up = world.nodes.values().filter(|node| !node.down).count();
    if clustered {
        rows.push(json!({
            "type": "cluster", "id": "cluster", "name": world.cluster.name, "nodes": world.nodes.len(),
            "quorate": u8::from(up * 2 > world.nodes.len()), "version": world.nodes.len(),
        }));
    }
    for (n, node) in world.nodes.values().enumerate() {
        rows.push(json!({
            "type": "node", "id": format!("node/{}", node.name), "name": node.name, "ip": node.ip, "level": "",
            "online": u8::from(!node.down), "local": u8::from(n == 0), "nodeid": if clustered { n + 1 } else { 0 },
        }));
    }
    Ok(Value::Array(rows).into())
}

fn next_id(call: &mut Call<'_>) -> Reply {
    if let Some(given) = call.args.text("vmid") {
        if call.world.guests.contains_key(&call.vmid()) {
            return Err(wrong("vmid", format!("VM {given} already exists")));
        }
        return Ok(json!(given).into());
    }
    let range = call.world.cluster.options.get("next-id").map_or("", String::as_str);
    let bound = |key: &str| range.split(',').find_map(|part| part.strip_prefix(key)?.parse::<u32>().ok());
    let (lower, upper) = (bound("lower=").unwrap_or(100), bound("upper=").unwrap_or(1_000_000));
    match call.world.free_vmid(lower, upper) {
        Some(vmid) => Ok(json!(vmid.to_string()).into()),
        None => Err(no(format!("unable to get any free VMID in range [{lower}, {upper}]"))),
    }
}

/// Ended tasks, newest first: what else the original logs does not happen here.
fn log(call: &mut Call<'_>) -> Reply {
    let most = call.args.int("max").and_then(|n| usize::try_from(n).ok()).unwrap_or(50);
    let all = call.may("/", "Sys.Syslog");
    let rows: Vec<Value> = call
        .world
        .tasks
        .iter()
        .filter(|task| task.end.is_some() && (all || task.upid.user == call.user()))
        .take(most)
        .enumerate()
        .map(|(n, task)| {
            let exit = task.exit.as_deref().unwrap_or_default();
            json!({
                "id": format!("{n}:{}", task.upid.node), "node": task.upid.node, "pid": task.upid.pid,
                "time": task.end, "uid": n, "user": task.upid.user, "tag": "pvedaemon",
                "pri": if task.failed() { 3 } else { 6 }, "msg": format!("end task {} {exit}", task.text),
            })
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn members(call: &mut Call<'_>) -> Reply {
    if call.world.cluster.name.is_empty() {
        return Ok(json!([]).into());
    }
    let rows: Vec<Value> = call
        .world
        .nodes
        .values()
        .enumerate()
        .map(|(n, node)| {
            json!({
                "node": node.name, "name": node.name, "nodeid": (n + 1).to_string(), "quorum_votes": "1",
                "ring0_addr": node.ip,
            })
        })
        .collect();
    Ok(Value::Array(rows).into())
}
