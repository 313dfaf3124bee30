//! What storage servers offer, as a node finds it. Nobody in the simulated network offers anything; volume groups and pools are the
//! node's own.

use serde_json::{Value, json};

use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Param, Perm, Reply, Route, format, get, int, no, text};
use crate::endpoints::index::listing;

pub fn routes() -> Vec<Route> {
    let allocate = || on("/storage", &["Datastore.Allocate"]);
    let with = |extra: Vec<Param>| [vec![usual::node()], extra].concat();
    let server = || text("server").format(format::address);
    let login = || vec![text("domain").opt(), text("password").opt(), text("username").opt()];
    let backup = vec![
        server(),
        text("username"),
        text("password"),
        text("fingerprint").pattern("([A-Fa-f0-9]{2}:){31}[A-Fa-f0-9]{2}").opt(),
        int("port").min(1.0).max(65_535.0).opt(),
    ];
    let group = text("vg").pattern(r"[a-zA-Z0-9\.\+\_][a-zA-Z0-9\.\+\_\-]+").max_len(100);
    vec![
        get("/nodes/{node}/scan", Perm::Anyone, with(vec![]), |_| {
            listing("method", &["cifs", "iscsi", "lvm", "nfs", "pbs", "zfs"])
        })
        .anywhere(),
        get("/nodes/{node}/scan/nfs", allocate(), with(vec![server()]), |call| {
            let server = call.args.must("server");
            let command = format!("/sbin/showmount --no-headers --exports {server}");
            Err(no(format!("command '{command}' failed: exit code 1")))
        }),
        get("/nodes/{node}/scan/cifs", allocate(), with([vec![server()], login()].concat()), nothing),
        get("/nodes/{node}/scan/pbs", allocate(), with(backup), |call| {
            let server = call.args.must("server");
            let port = call.args.int("port").unwrap_or(8007);
            Err(no(format!(
                "error fetching datastores - 500 Can't connect to {server}:{port} (Connection refused)"
            )))
        }),
        get("/nodes/{node}/scan/iscsi", allocate(), with(vec![text("portal").format(portal)]), nothing),
        get("/nodes/{node}/scan/lvm", allocate(), with(vec![]), groups),
        get("/nodes/{node}/scan/lvmthin", allocate(), with(vec![group]), thin_pools),
        get("/nodes/{node}/scan/zfs", allocate(), with(vec![]), pools),
    ]
}

/// An address with a port or without.
fn portal(value: &str) -> Result<(), String> {
    let host = match value.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        _ => value,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    format::address(host).map_err(|_| "value does not look like a valid portal address\n".to_owned())
}

fn nothing(_: &mut Call<'_>) -> Reply {
    Ok(json!([]).into())
}

fn groups(call: &mut Call<'_>) -> Reply {
    let disks = &call.world.nodes[call.args.must("node")].disks;
    let rows = disks.of("lvm").chain(disks.of("lvmthin")).map(|made| json!({ "vg": made.name }));
    Ok(Value::Array(rows.collect()).into())
}

fn thin_pools(call: &mut Call<'_>) -> Reply {
    let group = call.args.must("vg");
    let disks = &call.world.nodes[call.args.must("node")].disks;
    if ["lvm", "lvmthin"].iter().all(|kind| disks.made(kind, group).is_none()) {
        let options = "vg_name,lv_name,lv_size,lv_attr,pool_lv,data_percent,metadata_percent,snap_percent,uuid,tags,\
                       metadata_size,time";
        return Err(no(format!(
            "command '/sbin/lvs --separator : --noheadings --units b --unbuffered --nosuffix \
             --config 'report/time_format=\"%s\"' --options {options} {group}' failed: exit code 5"
        )));
    }
    let rows = disks.of("lvmthin").filter(|made| made.name == group).map(|made| json!({ "lv": made.name }));
    Ok(Value::Array(rows.collect()).into())
}

fn pools(call: &mut Call<'_>) -> Reply {
    let disks = &call.world.nodes[call.args.must("node")].disks;
    Ok(Value::Array(disks.of("zfs").map(|made| json!({ "pool": made.name })).collect()).into())
}
