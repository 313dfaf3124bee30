//! All guests of a node to another one, and into other clusters.

use std::sync::LazyLock;

use super::bulk::{await_all, chosen};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{
    Call, Param, Perm, Properties, Reply, Route, flag, format, int, no, number, post, text, wrong,
};
use crate::endpoints::{lxc, qemu};
use crate::task::work;
use crate::world::GuestKind;

pub fn routes() -> Vec<Route> {
    let workers = || ["max-workers", "maxworkers"].map(|name| int(name).min(1.0).max(64.0).opt());
    let all = vec![
        usual::node(),
        text("target").format(format::node),
        text("vms").each(format::vmid).opt(),
        flag("with-local-disks").opt(),
    ];
    let migrate = || on("/vms/{vmid}", &["VM.Migrate"]);
    vec![
        post("/nodes/{node}/migrateall", Perm::Anyone, [all, workers().to_vec()].concat(), migrate_all),
        post("/nodes/{node}/qemu/{vmid}/remote_migrate", migrate(), remote(true), into_other_cluster),
        post("/nodes/{node}/lxc/{vmid}/remote_migrate", migrate(), remote(false), into_other_cluster),
    ]
}

/// Where another cluster is.
static ENDPOINT: LazyLock<Properties> = LazyLock::new(|| {
    Properties::new([
        text("apitoken"),
        text("host"),
        text("fingerprint").opt(),
        int("port").min(1.0).max(65_535.0).opt(),
    ])
});

fn remote(vm: bool) -> Vec<Param> {
    let mut params = vec![
        usual::node(),
        usual::vmid(),
        flag("delete").opt(),
        flag("online").opt(),
        text("target-bridge"),
        text("target-endpoint").properties(|| &ENDPOINT),
        text("target-storage"),
        usual::vmid_as("target-vmid").opt(),
    ];
    if vm {
        params.push(int("bwlimit").min(0.0).opt());
    } else {
        params.extend([number("bwlimit").min(0.0).opt(), flag("restart").opt(), int("timeout").opt()]);
    }
    params
}

fn into_other_cluster(call: &mut Call<'_>) -> Reply {
    let host = ENDPOINT.read(call.args.must("target-endpoint"));
    let (host, port) = (host.get("host").unwrap_or_default(), host.get("port").unwrap_or("8006"));
    Err(no(format!("500 Can't connect to {host}:{port} (Connection refused)")))
}

fn migrate_all(call: &mut Call<'_>) -> Reply {
    let list = call.args.list("vms");
    if !call.may("/", "VM.Migrate") {
        if list.is_empty() {
            call.check("/", &["VM.Migrate"])?;
        }
        list.iter().try_for_each(|vmid| call.check(&format!("/vms/{vmid}"), &["VM.Migrate"]))?;
    }
    let (node, target) = (call.node(), call.args.must("target").to_owned());
    if target == node {
        return Err(wrong("target", "target is local node."));
    }
    if !call.world.nodes.contains_key(&target) {
        return Err(no(format!("no such cluster node '{target}'")));
    }
    let given = ["max-workers", "maxworkers"].iter().any(|key| call.args.has(key));
    if !given && !call.world.cluster.options.contains_key("max_workers") {
        return Err(no("either 'max-workers' parameter or max_workers in datacenter.cfg must be set!"));
    }
    let (at, list) = (node.clone(), list.join(","));
    let work = work(move |world, job| {
        let mut tasks = Vec::new();
        for vmid in chosen(world, &at, &list, false) {
            let Some(guest) = world.guests.get(&vmid) else { continue };
            let (kind, online, word) = (guest.kind, guest.power.running, guest.word());
            job.log(world, format!("Migrating {word} {vmid}"));
            tasks.push(match kind {
                GuestKind::Qemu => qemu::migrate::spawn(world, &at, vmid, &target, online),
                GuestKind::Lxc => lxc::migrate::spawn(world, &at, vmid, &target),
            });
        }
        Ok(await_all(tasks))
    });
    Ok(call.spawn(&node, "migrateall", "", work).into())
}
