//! Disks: what there is, and what was made of them.

mod make;

use serde_json::{Value, json};

use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Check, Param, Perm, Refusal, Reply, Route, flag, get, no, post, put, text};
use crate::endpoints::index::listing;
use crate::task::{Step, work};
use crate::world::disks::{Disk, Disks};

pub fn routes() -> Vec<Route> {
    let with = |extra: Vec<Param>| [vec![usual::node()], extra].concat();
    let audit = || on("/", &["Sys.Audit"]);
    let disk = || text("disk").pattern(r"/dev/[a-zA-Z0-9\/]+");
    let list_perm = Perm::Check(Check::Or(vec![
        Check::All("/", &["Sys.Audit"]),
        Check::All("/nodes/{node}", &["Sys.Audit"]),
    ]));
    let filters = vec![
        flag("include-partitions").opt(),
        flag("skipsmart").opt(),
        text("type").one_of(&["unused", "journal_disks"]).opt(),
    ];
    let uuid = text("uuid").pattern(r"[a-fA-F0-9\-]+").max_len(36).opt();
    let mut routes = vec![
        get("/nodes/{node}/disks", Perm::Anyone, with(vec![]), |_| {
            let parts = ["list", "initgpt", "smart", "lvm", "lvmthin", "directory", "wipedisk", "zfs"];
            listing("name", &parts)
        }),
        get("/nodes/{node}/disks/list", list_perm, with(filters), list),
        get("/nodes/{node}/disks/smart", audit(), with(vec![disk(), flag("healthonly").opt()]), smart),
        post("/nodes/{node}/disks/initgpt", on("/", &["Sys.Modify"]), with(vec![disk(), uuid]), init),
        put("/nodes/{node}/disks/wipedisk", Perm::Root, with(vec![disk()]), wipe),
        get("/nodes/{node}/disks/lvm", audit(), with(vec![]), groups),
        get("/nodes/{node}/disks/lvmthin", audit(), with(vec![]), thin_pools),
        get("/nodes/{node}/disks/directory", audit(), with(vec![]), directories),
        get("/nodes/{node}/disks/zfs", audit(), with(vec![]), pools),
        get(
            "/nodes/{node}/disks/zfs/{name}",
            audit(),
            with(vec![text("name").format(crate::api::format::storage_id)]),
            pool,
        ),
    ];
    routes.extend(make::routes());
    routes
}

fn disks<'c>(call: &'c Call<'_>) -> &'c Disks {
    &call.world.nodes[call.args.must("node")].disks
}

fn list(call: &mut Call<'_>) -> Reply {
    let all = disks(call);
    let rows = all.all.iter().filter(|disk| match call.args.text("type") {
        Some("unused") => disk.used.is_none(),
        Some(_) => disk.used.is_none() || disk.gpt,
        None => true,
    });
    let rows = rows.map(|disk| {
        let or_unknown = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
        let mut row = json!({
            "devpath": disk.path, "model": or_unknown(&disk.model), "vendor": "unknown",
            "serial": or_unknown(&disk.serial), "wwn": "unknown", "type": "unknown", "size": disk.size,
            "gpt": u8::from(disk.gpt), "rpm": -1, "health": "UNKNOWN", "wearout": "N/A", "osdid": -1,
            "osdid-list": null,
        });
        if let Some(used) = &disk.used {
            row["used"] = json!(used);
            if used == "mounted" {
                row["mounted"] = json!(1);
            }
        }
        if let Some(link) = disk.by_id() {
            row["by_id_link"] = json!(link);
            row["type"] = json!("ssd");
        }
        row
    });
    Ok(Value::Array(rows.collect()).into())
}

/// The disk of that name, or the complaint about it.
fn device<'d>(disks: &'d Disks, name: &str) -> Result<&'d Disk, Refusal> {
    disks.find(name).ok_or_else(|| no("not a valid block device"))
}

/// The same, if nothing is on it.
fn unused<'d>(disks: &'d Disks, name: &str) -> Result<&'d Disk, Refusal> {
    let disk = device(disks, name)?;
    match disk.used {
        Some(_) => Err(no(format!("device '{}' is already in use", disk.path))),
        None => Ok(disk),
    }
}

fn smart(call: &mut Call<'_>) -> Reply {
    let disk = device(disks(call), call.args.must("disk"))?;
    let health = if disk.serial.is_empty() { "UNKNOWN" } else { "PASSED" };
    if call.args.is_set("healthonly") {
        return Ok(json!({ "health": health }).into());
    }
    Ok(json!({ "health": health, "type": "ata", "attributes": [] }).into())
}

fn init(call: &mut Call<'_>) -> Reply {
    let path = device(disks(call), call.args.must("disk"))?.path.clone();
    if call.world.nodes[call.args.must("node")].disks.find(&path).is_some_and(|disk| disk.used.is_some()) {
        return Err(no(format!("disk {path} already in use")));
    }
    let node = call.node();
    let id = path.trim_start_matches("/dev/").to_owned();
    let at = node.clone();
    let work = work(move |_, _| {
        Ok(Step::wait(1.0, move |world, _| {
            let disk = world.nodes.get_mut(&at).and_then(|node| node.disks.find_mut(&path));
            disk.into_iter().for_each(|disk| disk.gpt = true);
            Ok(Step::Done)
        }))
    });
    Ok(call.spawn(&node, "diskinit", id, work).into())
}

fn wipe(call: &mut Call<'_>) -> Reply {
    let disk = device(disks(call), call.args.must("disk"))?;
    if disk.used.as_deref() == Some("mounted") {
        return Err(no(format!("disk/partition '{}' has a holder", disk.path)));
    }
    let (node, path) = (call.node(), disk.path.clone());
    let id = path.trim_start_matches("/dev/").to_owned();
    let at = node.clone();
    let work = work(move |_, _| {
        Ok(Step::wait(1.0, move |world, _| {
            let disk = world.nodes.get_mut(&at).and_then(|node| node.disks.find_mut(&path));
            disk.into_iter().for_each(|disk| (disk.used, disk.gpt) = (None, false));
            Ok(Step::Done)
        }))
    });
    Ok(call.spawn(&node, "wipedisk", id, work).into())
}

fn groups(call: &mut Call<'_>) -> Reply {
    let all = disks(call);
    let groups = all.of("lvm").chain(all.of("lvmthin")).map(|made| {
        let taken = if made.kind == "lvm" { 0 } else { made.size };
        let parts = made.disks.iter().filter_map(|path| all.find(path));
        let children = parts.map(|disk| {
            json!({ "name": disk.path, "size": disk.size, "free": disk.size.saturating_sub(taken), "leaf": 1 })
        });
        json!({
            "name": made.name, "size": made.size, "free": made.size - taken,
            "lvcount": u8::from(made.kind == "lvmthin"), "leaf": 0, "children": children.collect::<Vec<_>>(),
        })
    });
    Ok(json!({ "leaf": 0, "children": groups.collect::<Vec<_>>() }).into())
}

fn thin_pools(call: &mut Call<'_>) -> Reply {
    let rows = disks(call).of("lvmthin").map(|made| {
        json!({
            "lv": made.name, "vg": made.name, "lv_size": made.size, "used": 0,
            "metadata_size": made.size / 100, "metadata_used": 0,
        })
    });
    Ok(Value::Array(rows.collect()).into())
}

fn directories(call: &mut Call<'_>) -> Reply {
    let node = call.args.must("node");
    let rows = disks(call).of("directory").map(|made| {
        let uuid = call.world.uuid(&["filesystem", node, &made.name]);
        json!({
            "unit": make::mount_unit(&made.name), "path": format!("/mnt/pve/{}", made.name),
            "device": format!("/dev/disk/by-uuid/{uuid}"), "type": made.layout, "options": "defaults",
        })
    });
    Ok(Value::Array(rows.collect()).into())
}

fn pools(call: &mut Call<'_>) -> Reply {
    let rows = disks(call).of("zfs").map(|made| {
        json!({
            "name": made.name, "size": made.size, "free": made.size, "alloc": 0, "frag": 0, "dedup": 1.0,
            "health": "ONLINE",
        })
    });
    Ok(Value::Array(rows.collect()).into())
}

/// A pool with its disks below what groups them.
fn pool(call: &mut Call<'_>) -> Reply {
    let name = call.args.must("name");
    let Some(made) = disks(call).made("zfs", name) else {
        return Err(no(format!("command '/sbin/zpool status -P {name}' failed: exit code 1")));
    };
    let row =
        |name: &str| json!({ "name": name, "msg": "", "state": "ONLINE", "read": 0, "write": 0, "cksum": 0 });
    let leaf = |path: &String| {
        let mut leaf = row(path);
        leaf["leaf"] = json!(1);
        leaf
    };
    let grouped = |name: String, disks: &[String]| {
        let mut group = row(&name);
        group["leaf"] = json!(0);
        group["children"] = disks.iter().map(leaf).collect();
        group
    };
    let inner: Vec<Value> = match made.layout.as_str() {
        "single" => made.disks.iter().map(leaf).collect(),
        "raid10" => {
            made.disks.chunks(2).enumerate().map(|(n, pair)| grouped(format!("mirror-{n}"), pair)).collect()
        }
        "raidz" => vec![grouped("raidz1-0".to_owned(), &made.disks)],
        level => vec![grouped(format!("{level}-0"), &made.disks)],
    };
    let mut top = row(name);
    top["leaf"] = json!(0);
    top["children"] = Value::Array(inner);
    Ok(json!({
        "name": name, "state": "ONLINE", "scan": "none requested", "errors": "No known data errors",
        "leaf": 0, "children": [top],
    })
    .into())
}
