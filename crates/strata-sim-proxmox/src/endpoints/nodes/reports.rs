//! What a node reports about its hardware and software. Most of it is the same on every simulated host.

use serde_json::{Value, json};

use crate::api::param::usual;
use crate::api::permission::{on, on_any};
use crate::api::{Call, Param, Perm, Reply, Route, flag, get, text};
use crate::endpoints::index::listing;
use crate::endpoints::qemu::cpu;

pub fn routes() -> Vec<Route> {
    let with = |extra: Vec<Param>| [vec![usual::node()], extra].concat();
    let audit = || on("/nodes/{node}", &["Sys.Audit"]);
    let arch = || text("arch").one_of(&["x86_64", "aarch64"]).opt();
    let anyone = || Perm::Anyone;
    let timeframe = vec![
        text("timeframe").one_of(&["hour", "day", "week", "month", "year", "decade"]),
        text("cf").one_of(&["AVERAGE", "MAX"]).opt(),
    ];
    vec![
        get("/nodes/{node}/capabilities", anyone(), with(vec![]), |_| listing("name", &["qemu"])),
        get("/nodes/{node}/capabilities/qemu", anyone(), with(vec![]), |_| {
            listing("name", &["cpu", "machines", "migration"])
        }),
        get("/nodes/{node}/capabilities/qemu/cpu", anyone(), with(vec![arch()]), cpus),
        get("/nodes/{node}/capabilities/qemu/migration", audit(), with(vec![]), |_| {
            Ok(json!({ "has-dbus-vmstate": 1 }).into())
        }),
        get("/nodes/{node}/capabilities/qemu/machines", anyone(), with(vec![arch()]), machines),
        get("/nodes/{node}/hardware", anyone(), with(vec![]), |_| listing("type", &["pci", "usb"])),
        get(
            "/nodes/{node}/hardware/pci",
            on_any("/", &["Sys.Audit", "Sys.Modify"]),
            with(vec![text("pci-class-blacklist").opt(), flag("verbose").opt()]),
            |_| Ok(json!([]).into()),
        ),
        get("/nodes/{node}/hardware/pci/{pci-id-or-mapping}", anyone(), with(vec![pci()]), |_| {
            listing("method", &["mdev"])
        })
        .anywhere(),
        get(
            "/nodes/{node}/hardware/pci/{pci-id-or-mapping}/mdev",
            on_any("/", &["Sys.Audit", "Sys.Modify"]),
            with(vec![pci()]),
            |_| Ok(json!([]).into()),
        ),
        get("/nodes/{node}/hardware/usb", on("/", &["Sys.Modify"]), with(vec![]), |_| Ok(json!([]).into())),
        get("/nodes/{node}/aplinfo", anyone(), with(vec![]), appliances),
        get("/nodes/{node}/rrddata", audit(), with(timeframe), |_| Ok(json!([]).into())),
    ]
}

/// A device of the host, or the name of a mapping.
fn pci() -> Param {
    text("pci-id-or-mapping").pattern(
        r"(?:(?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F])|([a-zA-Z][a-zA-Z0-9_-]+)",
    )
}

/// The template that can be fetched.
pub const APPLIANCE: &str = "debian-12-standard_12.7-1_amd64.tar.zst";

fn cpus(_: &mut Call<'_>) -> Reply {
    let rows: Vec<Value> = cpu::models()
        .into_iter()
        .map(|(name, vendor)| json!({ "name": name, "vendor": vendor, "custom": 0 }))
        .collect();
    Ok(Value::Array(rows).into())
}

fn machines(_: &mut Call<'_>) -> Reply {
    let rows: Vec<Value> = cpu::MACHINES
        .iter()
        .flat_map(|version| {
            ["i440fx", "q35"].map(|kind| {
                let id = format!("pc-{kind}-{version}");
                json!({ "id": id, "type": kind, "version": version })
            })
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn appliances(_: &mut Call<'_>) -> Reply {
    Ok(json!([{
        "package": "debian-12-standard", "version": "12.7-1", "os": "debian-12", "section": "system",
        "type": "lxc", "architecture": "amd64", "headline": "Debian 12 Bookworm (standard)",
        "template": APPLIANCE,
        "description": "A small Debian system.", "source": "http://download.proxmox.com/images",
        "location": "http://download.proxmox.com/images/system/debian-12-standard_12.7-1_amd64.tar.zst",
    }])
    .into())
}
