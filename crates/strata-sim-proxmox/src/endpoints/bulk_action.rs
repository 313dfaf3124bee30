//! The same done to many guests of the cluster at once, each in a task of its own.

use super::index::listing;
use super::nodes::bulk;
use super::{lxc, qemu};
use crate::api::{Call, Param, Perm, Reply, Route, array, flag, format, get, int, no, post, text};
use crate::task::work;
use crate::world::GuestKind;

pub fn routes() -> Vec<Route> {
    let with = |extra: Vec<Param>| {
        let workers = ["max-workers", "maxworkers"].map(|name| int(name).min(1.0).max(64.0).opt());
        let vms = array("vms", int("vms").format(format::vmid).min(100.0).max(999_999_999.0)).opt();
        [vec![vms], workers.to_vec(), extra].concat()
    };
    let to_disk =
        vec![flag("to-disk").opt(), text("statestorage").format(format::storage_id).needs("to-disk").opt()];
    let migrate =
        vec![text("target").format(format::node), flag("online").opt(), flag("with-local-disks").opt()];
    let stop = vec![flag("force-stop").opt(), int("timeout").opt()];
    vec![
        get("/cluster/bulk-action", Perm::Anyone, vec![], |_| listing("name", &["guest"])),
        get("/cluster/bulk-action/guest", Perm::Anyone, vec![], |_| {
            listing("name", &["start", "shutdown", "migrate", "suspend"])
        }),
        post("/cluster/bulk-action/guest/start", Perm::Anyone, with(vec![int("timeout").opt()]), |call| {
            run(call, "bulkstart")
        }),
        post("/cluster/bulk-action/guest/shutdown", Perm::Anyone, with(stop), |call| {
            run(call, "bulkshutdown")
        }),
        post("/cluster/bulk-action/guest/suspend", Perm::Anyone, with(to_disk), |call| {
            run(call, "bulksuspend")
        }),
        post("/cluster/bulk-action/guest/migrate", Perm::Anyone, with(migrate), |call| {
            let target = call.args.must("target");
            if !call.world.nodes.contains_key(target) {
                return Err(no(format!("no such cluster node '{target}'")));
            }
            run(call, "bulkmigrate")
        }),
    ]
}

fn run(call: &mut Call<'_>, task: &'static str) -> Reply {
    let privilege = if task == "bulkmigrate" { "VM.Migrate" } else { "VM.PowerMgmt" };
    let vmids: Vec<u32> = call.args.values("vms").iter().filter_map(|id| id.parse().ok()).collect();
    if vmids.is_empty() {
        call.check("/", &[privilege])?;
    }
    vmids.iter().try_for_each(|vmid| call.check(&format!("/vms/{vmid}"), &[privilege]))?;
    let timeout = call.args.number("timeout").unwrap_or(180.0);
    let force = call.args.flag("force-stop").unwrap_or(true);
    let target = call.args.owned("target").unwrap_or_default();
    let node = call.world.nodes.keys().next().cloned().unwrap_or_default();
    let work = work(move |world, job| {
        let all: Vec<u32> = if vmids.is_empty() { world.guests.keys().copied().collect() } else { vmids };
        let mut tasks = Vec::new();
        for vmid in all {
            let Some(guest) = world.guests.get(&vmid) else { continue };
            let (at, kind, running) = (guest.node.clone(), guest.kind, guest.power.running);
            tasks.extend(match (task, kind) {
                ("bulkstart", _) => bulk::start_one(world, job, &at, vmid),
                ("bulkshutdown", _) => bulk::stop_one(world, job, &at, vmid, timeout, force),
                ("bulksuspend", _) => bulk::suspend_one(world, job, &at, vmid),
                (_, GuestKind::Qemu) => Some(qemu::migrate::spawn(world, &at, vmid, &target, running)),
                (_, GuestKind::Lxc) => Some(lxc::migrate::spawn(world, &at, vmid, &target)),
            });
        }
        Ok(bulk::await_all(tasks))
    });
    Ok(call.spawn(&node, task, "", work).into())
}
