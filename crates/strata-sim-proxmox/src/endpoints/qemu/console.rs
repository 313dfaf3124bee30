//! Consoles, the monitor, keys, statistics, and which features a VM's storages give it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{config::snapname, copy, cpu, drive, snapshot};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Reply, Route, flag, get, no, post, put, text};
use crate::task::{Step, work};
use crate::world::{GuestKind, World};
use strata_sim_core::cert;

pub fn routes() -> Vec<Route> {
    let with = |extra: Vec<crate::api::Param>| [vec![usual::node(), usual::vmid()], extra].concat();
    let console = || on("/vms/{vmid}", &["VM.Console"]);
    let audit = || on("/vms/{vmid}", &["VM.Audit"]);
    let timeframe = || {
        vec![
            text("timeframe").one_of(&["hour", "day", "week", "month", "year"]),
            text("cf").one_of(&["AVERAGE", "MAX"]).opt(),
        ]
    };
    vec![
        post(
            "/nodes/{node}/qemu/{vmid}/vncproxy",
            console(),
            with(vec![flag("websocket").opt(), flag("generate-password").opt()]),
            vncproxy,
        ),
        post(
            "/nodes/{node}/qemu/{vmid}/monitor",
            on("/", &["Sys.Audit"]),
            with(vec![text("command")]),
            monitor,
        ),
        put(
            "/nodes/{node}/qemu/{vmid}/sendkey",
            console(),
            with(vec![flag("skiplock").opt(), text("key")]),
            send_key,
        ),
        get(
            "/nodes/{node}/qemu/{vmid}/feature",
            audit(),
            with(vec![text("feature").one_of(&["snapshot", "clone", "copy"]), snapname("snapname").opt()]),
            feature,
        ),
        get("/nodes/{node}/qemu/{vmid}/rrddata", audit(), with(timeframe()), |call| {
            call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Qemu)?;
            Ok(json!([]).into())
        }),
    ]
}

/// How many other tasks end on a server within the ten seconds for which a console waits, and how long it waits at most where none does. Tasks of the
/// simulator go at its pace and requests at the client's own, so seconds alone do not tell what comes after what.
const CONSOLE_TASKS: u64 = 8;
const CONSOLE_MS: i64 = 3000;

/// The end of a console to which nobody connects.
fn connection_timed_out(world: &mut World, until: i64, ended: u64) -> Result<Step, String> {
    if world.clock.second > 0.0 && world.now_ms() < until && world.tasks.count_ended() < ended {
        return Ok(Step::wait(1.0, move |world, _| connection_timed_out(world, until, ended)));
    }
    Err("connection timed out".to_owned())
}

fn vncproxy(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    call.world.guest(&node, vmid, GuestKind::Qemu)?;
    let (until, ended) = (call.world.now_ms() + CONSOLE_MS, call.world.tasks.count_ended() + CONSOLE_TASKS);
    let waiting =
        work(move |_, _| Ok(Step::wait(10.0, move |world, _| connection_timed_out(world, until, ended))));
    let upid = call.spawn(&node, "vncproxy", vmid.to_string(), waiting);
    let stamp = format!("{:08X}", call.world.now());
    let signature = STANDARD.encode(call.world.derive(&["vnc", &stamp, call.user()]).repeat(8));
    Ok(json!({
        "user": call.user(), "upid": upid, "port": "5900", "cert": cert::CA_PEM,
        "ticket": format!("PVEVNC:{stamp}::{signature}"),
    })
    .into())
}

fn monitor(call: &mut Call<'_>) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Qemu)?;
    if !guest.power.running {
        return Ok(format!("ERROR: VM {} not running\n", guest.vmid).into());
    }
    let text = match call.args.must("command") {
        "info version" => format!("{}\r\n", cpu::QEMU_VERSION),
        "info status" if guest.power.paused => "VM status: paused\r\n".to_owned(),
        "info status" => "VM status: running\r\n".to_owned(),
        other => format!("unknown command: '{}'\r\n", other.split_whitespace().next().unwrap_or_default()),
    };
    Ok(text.into())
}

fn send_key(call: &mut Call<'_>) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Qemu)?;
    if !guest.power.running {
        return Err(no(format!("VM {} not running", guest.vmid)));
    }
    Ok(().into())
}

fn feature(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let guest = call.world.guest(&node, call.vmid(), GuestKind::Qemu)?;
    let config = match call.args.text("snapname") {
        None => &guest.config,
        Some(name) => {
            let found = guest.snapshots.get(name);
            found.ok_or_else(|| no(format!("snapshot '{name}' does not exist")))?
        }
    };
    let mut disks = drive::drives(config).filter(|d| !d.is_cdrom());
    let has = match call.args.must("feature") {
        "snapshot" => snapshot::is_possible(call.world, config),
        "clone" => disks.all(|d| copy::can_link(call.world, d.file())),
        _ => true,
    };
    let shared = drive::drives(config).filter_map(|d| d.volid().map(str::to_owned)).all(|volid| {
        let id = volid.split(':').next().unwrap_or_default();
        call.world.storages.get(id).is_some_and(|s| s.is_shared())
    });
    let nodes: Vec<&str> = match shared {
        true => call.world.nodes.keys().map(String::as_str).collect(),
        false => vec![&node],
    };
    Ok(json!({ "hasFeature": u8::from(has), "nodes": nodes }).into())
}
