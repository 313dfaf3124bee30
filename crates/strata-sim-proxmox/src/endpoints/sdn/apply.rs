//! Bringing networks into effect, going back, and keeping others from changing them meanwhile.

use serde_json::{Value, json};

use super::{PARTS, check_lock, die_at, file, lock_token, running};
use crate::api::permission::on;
use crate::api::{Call, Reply, Route, delete, flag, post, put};
use crate::endpoints::network::reloading;
use crate::endpoints::section;
use crate::task::{Step, work};
use crate::world::World;
use crate::world::cluster::Section;
use crate::world::node::Iface;

pub fn routes() -> Vec<Route> {
    let allocate = || on("/sdn", &["SDN.Allocate"]);
    let release = || vec![lock_token(), flag("release-lock").opt()];
    vec![
        put("/cluster/sdn", allocate(), release(), apply),
        post("/cluster/sdn/rollback", allocate(), release(), rollback),
        post("/cluster/sdn/lock", allocate(), vec![flag("allow-pending").opt()], lock),
        delete("/cluster/sdn/lock", allocate(), vec![lock_token(), flag("force").opt()], unlock),
    ]
}

const LOCK: &str = "sdn/lock";

fn release(call: &mut Call<'_>) {
    if call.args.is_set("release-lock") && call.args.has("lock-token") {
        call.world.cluster.file_mut(LOCK).clear();
    }
}

fn apply(call: &mut Call<'_>) -> Reply {
    check_lock(call, "could not commit SDN config")?;
    for part in PARTS {
        let new = call.world.cluster.files.get(&file(part)).cloned().unwrap_or_default();
        *call.world.cluster.file_mut(&running(part)) = new;
    }
    release(call);
    plug(call.world);
    let nodes: Vec<String> = call.world.nodes.keys().cloned().collect();
    let first = nodes.first().cloned().unwrap_or_default();
    // Each node reloads in a task of its own, which belongs to the system.
    for node in &nodes {
        call.world.start_task(node, "srvreload", "networking", "root@pam", reloading(node.clone()));
    }
    let work = work(move |world, job| {
        for node in nodes {
            job.log(world, format!("{node}: reloading network config"));
        }
        Ok(Step::wait(1.5, |_, _| Ok(Step::Done)))
    });
    Ok(call.spawn(&first, "reloadnetworkall", "", work).into())
}

/// Every node gets a bridge for each network of the zones that it is in.
fn plug(world: &mut World) {
    let vnets: Vec<(String, Option<String>)> = world
        .cluster
        .file(&running("vnets"))
        .map(|(id, vnet)| {
            let zone = vnet.props.get("zone").and_then(|id| world.cluster.section(&running("zones"), id));
            (id.to_owned(), zone.and_then(|zone| zone.props.get("nodes").cloned()))
        })
        .collect();
    for node in world.nodes.values_mut() {
        let here: Vec<&String> = vnets
            .iter()
            .filter(|(_, nodes)| nodes.as_ref().is_none_or(|list| list.split(',').any(|n| n == node.name)))
            .map(|(id, _)| id)
            .collect();
        for ifaces in std::iter::once(&mut node.ifaces).chain(&mut node.staged) {
            ifaces.retain(|_, iface| iface.kind != "vnet");
            for id in &here {
                let iface = Iface { kind: "vnet".into(), active: true, ..Iface::default() };
                ifaces.insert((*id).clone(), iface);
            }
        }
    }
}

fn rollback(call: &mut Call<'_>) -> Reply {
    check_lock(call, "could not rollback SDN configuration")?;
    for part in PARTS {
        let old = call.world.cluster.files.get(&running(part)).cloned().unwrap_or_default();
        *call.world.cluster.file_mut(&file(part)) = old;
    }
    release(call);
    Ok(().into())
}

fn lock(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "could not acquire lock for SDN config";
    check_lock(call, WHAT)?;
    let files = &call.world.cluster.files;
    let empty = Default::default();
    // Fabrics do not count.
    let pending = PARTS
        .iter()
        .filter(|part| **part != "fabrics")
        .any(|part| files.get(&file(part)).unwrap_or(&empty) != files.get(&running(part)).unwrap_or(&empty));
    if pending && !call.args.is_set("allow-pending") {
        return Err(section::failed(WHAT)(die_at("configuration has pending changes", "", 100)));
    }
    let token = call.world.uuid(&["sdn-lock", call.user()]);
    let props = [("token".to_owned(), token.clone())].into_iter().collect();
    call.world.cluster.file_mut(LOCK).insert("token".into(), Section { kind: "lock".into(), props });
    Ok(json!(token).into())
}

fn unlock(call: &mut Call<'_>) -> Reply {
    if !call.args.is_set("force") {
        check_lock(call, "could not release lock")?;
    }
    call.world.cluster.file_mut(LOCK).clear();
    Ok(Value::Null.into())
}
