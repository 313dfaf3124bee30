//! Removing a container and what belongs to it.

use super::{mount, power};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Refusal, Reply, Route, delete, flag, no};
use crate::endpoints::guest::{check_lock, check_protection};
use crate::endpoints::ha;
use crate::endpoints::qemu::destroy::{check_replication, purge_from_jobs};
use crate::task::{Job, LockKey, Step, work};
use crate::world::guest::Pending;
use crate::world::{GuestKind, World};

pub fn routes() -> Vec<Route> {
    let params = vec![
        usual::node(),
        usual::vmid(),
        flag("force").opt(),
        flag("purge").opt(),
        flag("destroy-unreferenced-disks").opt(),
    ];
    vec![delete("/nodes/{node}/lxc/{vmid}", on("/vms/{vmid}", &["VM.Allocate"]), params, destroy)]
}

#[derive(Clone)]
struct DestroyRequest {
    node: String,
    vmid: u32,
    force: bool,
    purge: bool,
    unreferenced: bool,
}

fn check(world: &World, order: &DestroyRequest) -> Result<(), Refusal> {
    let vmid = order.vmid;
    let guest = world.guest(&order.node, vmid, GuestKind::Lxc)?;
    check_protection(guest, &format!("can't remove CT {vmid}"))?;
    check_lock(guest)?;
    if !order.purge && world.cluster.section("ha/resources", &format!("ct:{vmid}")).is_some() {
        return Err(no(format!(
            "unable to remove CT {vmid} - used in HA resources and purge parameter not set."
        )));
    }
    if !order.purge {
        check_replication(world, vmid)?;
    }
    if guest.power.running && !order.force {
        return Err(no(format!("unable to destroy CT {vmid} - container is running")));
    }
    Ok(())
}

fn destroy(call: &mut Call<'_>) -> Reply {
    let order = DestroyRequest {
        node: call.node(),
        vmid: call.vmid(),
        force: call.args.is_set("force"),
        purge: call.args.is_set("purge"),
        unreferenced: call.args.is_set("destroy-unreferenced-disks"),
    };
    check(call.world, &order)?;
    let (node, vmid) = (order.node.clone(), order.vmid);
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Lxc(vmid), move |world, job| {
            check(world, &order)?;
            if world.guest(&order.node, vmid, GuestKind::Lxc)?.power.running {
                job.log(world, format!("forced to stop CT {vmid} before destroying!"));
                power::halt(world, &order.node, vmid)?;
            }
            check_bases(world, &order)?;
            Ok(Step::wait(0.5, move |world, job| {
                remove(world, job, &order);
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "vzdestroy", vmid.to_string(), work).into())
}

/// A template whose volumes are still read from cannot go.
fn check_bases(world: &World, order: &DestroyRequest) -> Result<(), Refusal> {
    let guest = world.guest(&order.node, order.vmid, GuestKind::Lxc)?;
    for volid in mount::volumes(&guest.config) {
        let place = world.place(&volid, &order.node);
        if place.is_some_and(|place| world.clones_of(&place).next().is_some()) {
            let name = volid.split_once(':').map_or("", |(_, name)| name);
            return Err(no(format!("base volume '{name}' is still in use by linked clones")));
        }
    }
    Ok(())
}

fn remove(world: &mut World, job: &Job, order: &DestroyRequest) {
    let DestroyRequest { node, vmid, .. } = order;
    let mut doomed = Vec::new();
    if let Some(guest) = world.guests.get(vmid) {
        doomed.extend(mount::volumes(&guest.config));
        doomed.extend(guest.snapshots.values().flat_map(mount::volumes));
        for (key, change) in &guest.pending {
            if let Pending::Set(value) = change {
                let config = [(key.clone(), value.clone())].into_iter().collect();
                doomed.extend(mount::volumes(&config));
            }
        }
    }
    if order.unreferenced {
        for storage in world.storages.values().filter(|s| !s.is_disabled() && s.is_on(node)) {
            let on_it = world.volumes.on(&storage.id, &storage.scope(node));
            let own = on_it
                .filter(|(_, v)| v.vmid == Some(*vmid) && matches!(v.content.as_str(), "images" | "rootdir"));
            doomed.extend(own.map(|(name, _)| format!("{}:{name}", storage.id)));
        }
    }
    for volid in doomed {
        if world.volume(&volid, node).is_some_and(|v| v.vmid == Some(*vmid)) {
            world.free(&volid, node);
        }
    }
    if order.purge {
        job.log(world, format!("purging CT {vmid} from related configurations.."));
        purge_from_jobs(world, *vmid);
        if ha::purge(world, &format!("ct:{vmid}")) {
            job.log(world, format!("NOTE: removed CT {vmid} from HA resource configuration."));
        }
    }
    world.forget_guest(*vmid);
}
