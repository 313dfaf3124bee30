//! What containers are doing: the list of a node, one in detail, its network interfaces, its features.

use serde_json::{Map, Value, json};

use super::config::snapname;
use super::{mount, schema};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Param, Perm, Reply, Route, get, no, text};
use crate::endpoints::index::subdirs;
use crate::endpoints::node_storage::history_of;
use crate::endpoints::qemu::agent::lease;
use crate::world::{Guest, GuestKind, World};

pub fn routes() -> Vec<Route> {
    let own = || vec![usual::node(), usual::vmid()];
    let with = |extra: Vec<Param>| [vec![usual::node(), usual::vmid()], extra].concat();
    let audit = || on("/vms/{vmid}", &["VM.Audit"]);
    let history = vec![
        text("timeframe").one_of(&["hour", "day", "week", "month", "year"]),
        text("cf").one_of(&["AVERAGE", "MAX"]).opt(),
    ];
    let feature = vec![text("feature").one_of(&["snapshot", "clone", "copy"]), snapname("snapname").opt()];
    vec![
        get("/nodes/{node}/lxc", Perm::Anyone, vec![usual::node()], list),
        get("/nodes/{node}/lxc/{vmid}", Perm::Anyone, own(), index),
        get("/nodes/{node}/lxc/{vmid}/status", Perm::Anyone, own(), |call| {
            call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Lxc)?;
            subdirs(&["current", "start", "stop", "shutdown", "reboot", "migrate"])
        }),
        get("/nodes/{node}/lxc/{vmid}/status/current", audit(), own(), current),
        get("/nodes/{node}/lxc/{vmid}/interfaces", audit(), own(), interfaces),
        get("/nodes/{node}/lxc/{vmid}/feature", audit(), with(feature), has_feature),
        get("/nodes/{node}/lxc/{vmid}/rrddata", audit(), with(history), |call| Ok(history_of(call).into())),
    ]
}

fn index(call: &mut Call<'_>) -> Reply {
    call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Lxc)?;
    subdirs(&[
        "config",
        "pending",
        "status",
        "vncproxy",
        "termproxy",
        "vncwebsocket",
        "spiceproxy",
        "migrate",
        "clone",
        "rrd",
        "rrddata",
        "firewall",
        "snapshot",
        "resize",
        "interfaces",
    ])
}

fn list(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let here = call.world.guests.values().filter(|g| g.kind == GuestKind::Lxc && g.node == node);
    let visible = here.filter(|g| call.may(&format!("/vms/{}", g.vmid), "VM.Audit"));
    let rows: Vec<Value> = visible.map(|guest| Value::Object(row(call.world, guest))).collect();
    Ok(Value::Array(rows).into())
}

fn current(call: &mut Call<'_>) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Lxc)?;
    let mut row = row(call.world, guest);
    let state = call.world.ha_state(&format!("ct:{}", guest.vmid));
    row.insert("ha".into(), crate::endpoints::qemu::status::ha(state));
    Ok(Value::Object(row).into())
}

/// A row of the list.
pub fn row(world: &World, guest: &Guest) -> Map<String, Value> {
    let number = |key: &str| guest.get(key).and_then(|v| v.parse::<u64>().ok());
    let cpus = world.nodes.get(&guest.node).map_or(1, |node| node.cpus);
    let limit = guest.get("cpulimit").filter(|limit| limit.parse::<f64>().is_ok_and(|n| n > 0.0));
    let cpus = match (guest.get("cores"), limit) {
        (Some(cores), _) => schema::shown("cores", cores),
        (None, Some(limit)) => json!(limit),
        (None, None) => json!(cpus),
    };
    let root = mount::mounts(&guest.config).into_iter().find(|m| m.key == "rootfs");
    let size = root.and_then(|root| root.size()).unwrap_or(4 << 30);
    let mut row = Map::new();
    row.insert("type".into(), json!("lxc"));
    row.insert("vmid".into(), json!(guest.vmid));
    row.insert("status".into(), json!(if guest.power.running { "running" } else { "stopped" }));
    row.insert("name".into(), json!(name(guest)));
    row.insert("cpus".into(), cpus);
    row.insert("disk".into(), json!(0));
    row.insert("maxdisk".into(), json!(size));
    row.insert("maxmem".into(), json!(number("memory").unwrap_or(512) << 20));
    row.insert("maxswap".into(), json!(number("swap").unwrap_or(0) << 20));
    for key in ["mem", "swap", "uptime", "cpu", "netin", "netout", "diskread", "diskwrite"] {
        row.insert(key.into(), json!(0));
    }
    for key in ["tags", "lock"] {
        if let Some(value) = guest.get(key) {
            row.insert(key.into(), json!(value));
        }
    }
    if guest.flag("template") {
        row.insert("template".into(), json!(1));
    }
    if guest.power.running {
        let calm = "0.00";
        let measured = json!({
            "pid": guest.power.pid, "uptime": (world.now() - guest.power.since).max(0),
            "mem": 32 << 20, "disk": size / 16,
            "pressurecpusome": calm, "pressurecpufull": calm, "pressureiosome": calm, "pressureiofull": calm,
            "pressurememorysome": calm, "pressurememoryfull": calm,
        });
        row.extend(measured.as_object().cloned().unwrap_or_default());
    }
    row
}

/// Containers without a name are named after their number.
pub fn name(guest: &Guest) -> String {
    guest.get("hostname").map_or_else(|| format!("CT{}", guest.vmid), str::to_owned)
}

/// What a running container's network looks like from inside.
fn interfaces(call: &mut Call<'_>) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Lxc)?;
    if !guest.power.running {
        return Ok(().into());
    }
    let mut rows = vec![interface("lo", "00:00:00:00:00:00", &[])];
    for (key, value) in guest.config.iter().filter(|(key, _)| schema::is_net(key)) {
        let net = schema::parse_net(value);
        let lease = format!("{}/24", lease(guest.vmid, key.trim_start_matches("net")));
        let given = |key: &&str| {
            let ip = net.get(key)?;
            if *key == "ip" && ip == "dhcp" { Some(lease.as_str()) } else { Some(ip) }
        };
        let fixed: Vec<&str> = ["ip", "ip6"].iter().filter_map(given).filter(|ip| ip.contains('/')).collect();
        let address = net.get("hwaddr").unwrap_or_default().to_lowercase();
        rows.push(interface(net.get("name").unwrap_or_default(), &address, &fixed));
    }
    Ok(Value::Array(rows).into())
}

fn interface(name: &str, address: &str, cidrs: &[&str]) -> Value {
    let mut row = json!({ "name": name, "hwaddr": address, "hardware-address": address });
    let mut list = Vec::new();
    for cidr in cidrs {
        let family = if cidr.contains(':') { "inet6" } else { "inet" };
        let (ip, prefix) = cidr.split_once('/').unwrap_or((cidr, "32"));
        row[family] = json!(cidr);
        let prefix = prefix.parse::<u8>().unwrap_or(32);
        list.push(json!({ "ip-address-type": family, "ip-address": ip, "prefix": prefix }));
    }
    row["ip-addresses"] = Value::Array(list);
    row
}

fn has_feature(call: &mut Call<'_>) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Lxc)?;
    let config = match call.args.text("snapname") {
        None => &guest.config,
        Some(name) => {
            let snapshot = guest.snapshots.get(name);
            snapshot.ok_or_else(|| no(format!("snapshot '{name}' does not exist")))?
        }
    };
    let feature = call.args.must("feature");
    let possible = mount::mounts(config).iter().all(|m| match feature {
        "snapshot" => mount::can_snapshot(call.world, m.volume()),
        "clone" => mount::can_link(call.world, m.volume()),
        _ => true,
    });
    Ok(json!({ "hasFeature": u8::from(possible) }).into())
}
