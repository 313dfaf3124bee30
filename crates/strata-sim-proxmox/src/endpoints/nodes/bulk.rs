//! Starting and stopping all guests of a node, or some of them.

use crate::api::args::split_list;
use crate::api::param::usual;
use crate::api::{Call, Perm, Refusal, Reply, Route, flag, format, int, post, text};
use crate::endpoints::{lxc, qemu};
use crate::task::{Cont, Job, LockKey, Step, work};
use crate::world::{Guest, GuestKind, World};

pub fn routes() -> Vec<Route> {
    let vms = || text("vms").each(format::vmid).opt();
    let workers = || int("max-workers").min(1.0).max(64.0).opt();
    let stop = vec![
        usual::node(),
        vms(),
        flag("force-stop").opt(),
        int("timeout").min(0.0).max(7200.0).opt(),
        workers(),
    ];
    vec![
        post(
            "/nodes/{node}/startall",
            Perm::Anyone,
            vec![usual::node(), vms(), flag("force").opt(), workers()],
            start_all,
        ),
        post("/nodes/{node}/stopall", Perm::Anyone, stop, stop_all),
        post("/nodes/{node}/suspendall", Perm::Anyone, vec![usual::node(), vms(), workers()], suspend_all),
    ]
}

fn check(call: &Call<'_>) -> Result<(), Refusal> {
    if call.may("/", "VM.PowerMgmt") {
        return Ok(());
    }
    let list = call.args.list("vms");
    if list.is_empty() {
        return call.check("/", &["VM.PowerMgmt"]);
    }
    list.iter().try_for_each(|vmid| call.check(&format!("/vms/{vmid}"), &["VM.PowerMgmt"]))
}

/// The position of a guest in the startup order; those without one come last.
fn position(guest: &Guest) -> u32 {
    let order = guest.get("startup").and_then(|startup| {
        startup.split(',').find_map(|part| part.strip_prefix("order=").unwrap_or(part).parse().ok())
    });
    order.unwrap_or(u32::MAX)
}

/// The guests meant, in the order in which they start.
pub fn chosen(world: &World, node: &str, list: &str, auto_only: bool) -> Vec<u32> {
    let wanted: Vec<u32> = split_list(list).filter_map(|id| id.parse().ok()).collect();
    let mut guests: Vec<&Guest> = world
        .guests
        .values()
        .filter(|g| g.node == node && !g.flag("template"))
        .filter(|g| wanted.is_empty() || wanted.contains(&g.vmid))
        .filter(|g| !auto_only || !wanted.is_empty() || g.flag("onboot"))
        .collect();
    guests.sort_by_key(|g| (position(g), g.vmid));
    guests.into_iter().map(|g| g.vmid).collect()
}

fn start_all(call: &mut Call<'_>) -> Reply {
    check(call)?;
    let node = call.node();
    let list = call.args.owned("vms").unwrap_or_default();
    let force = call.args.is_set("force");
    let at = node.clone();
    let work = work(move |world, job| {
        let started: Vec<String> = chosen(world, &at, &list, !force)
            .into_iter()
            .filter_map(|vmid| start_one(world, job, &at, vmid))
            .collect();
        Ok(await_all(started))
    });
    Ok(call.spawn(&node, "startall", "", work).into())
}

pub fn start_one(world: &mut World, job: &Job, node: &str, vmid: u32) -> Option<String> {
    let guest = world.guests.get(&vmid)?;
    if guest.power.running {
        return None;
    }
    let (kind, word) = (guest.kind, guest.word());
    job.log(world, format!("Starting {word} {vmid}"));
    let (name, work) = match kind {
        GuestKind::Qemu => ("qmstart", qemu::power::start_work(node.to_owned(), vmid, false)),
        GuestKind::Lxc => ("vzstart", lxc::power::starting(node.to_owned(), vmid, false)),
    };
    Some(world.start_task(node, name, &vmid.to_string(), &job.user, work))
}

fn stop_all(call: &mut Call<'_>) -> Reply {
    check(call)?;
    let node = call.node();
    let list = call.args.owned("vms").unwrap_or_default();
    let timeout = call.args.number("timeout").unwrap_or(180.0);
    let force = call.args.flag("force-stop").unwrap_or(true);
    let at = node.clone();
    let work = work(move |world, job| {
        let stopped: Vec<String> = chosen(world, &at, &list, false)
            .into_iter()
            .rev()
            .filter_map(|vmid| stop_one(world, job, &at, vmid, timeout, force))
            .collect();
        Ok(await_all(stopped))
    });
    Ok(call.spawn(&node, "stopall", "", work).into())
}

pub fn stop_one(
    world: &mut World,
    job: &Job,
    node: &str,
    vmid: u32,
    timeout: f64,
    force: bool,
) -> Option<String> {
    let guest = world.guests.get(&vmid)?;
    if !guest.power.running {
        return None;
    }
    let (kind, word) = (guest.kind, guest.word());
    job.log(world, format!("Stopping {word} {vmid} (timeout = {timeout} seconds)"));
    let (name, work) = match kind {
        GuestKind::Qemu => {
            ("qmshutdown", qemu::power::shutdown_work(node.to_owned(), vmid, Some(timeout), force, false))
        }
        GuestKind::Lxc => ("vzshutdown", halt_container(node.to_owned(), vmid)),
    };
    Some(world.start_task(node, name, &vmid.to_string(), &job.user, work))
}

fn suspend_all(call: &mut Call<'_>) -> Reply {
    check(call)?;
    let node = call.node();
    let list = call.args.owned("vms").unwrap_or_default();
    let at = node.clone();
    let work = work(move |world, job| {
        let guests = chosen(world, &at, &list, false);
        let paused = guests.into_iter().rev().filter_map(|vmid| suspend_one(world, job, &at, vmid)).collect();
        Ok(await_all(paused))
    });
    Ok(call.spawn(&node, "suspendall", "", work).into())
}

/// Only VMs can be paused.
pub fn suspend_one(world: &mut World, job: &Job, node: &str, vmid: u32) -> Option<String> {
    let guest = world.guests.get(&vmid).filter(|guest| guest.kind == GuestKind::Qemu)?;
    if !guest.power.running {
        job.log(world, format!("VM {vmid} not running, skipping suspension"));
        return None;
    }
    job.log(world, format!("Suspending VM {vmid}"));
    let node = node.to_owned();
    let at = node.clone();
    let pause = work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |world, _| {
            world.guest_mut(&at, vmid, GuestKind::Qemu)?.power.paused = true;
            Ok(Step::Done)
        }))
    });
    Some(world.start_task(&node, "qmpause", &vmid.to_string(), &job.user, pause))
}

/// Containers go down when they are told to.
fn halt_container(node: String, vmid: u32) -> Cont {
    work(move |_, _| {
        Ok(Step::lock(LockKey::Lxc(vmid), move |_, _| {
            Ok(Step::wait(1.0, move |world, _| {
                lxc::power::halt(world, &node, vmid)?;
                Ok(Step::Done)
            }))
        }))
    })
}

/// Done when all of these tasks are.
pub fn await_all(tasks: Vec<String>) -> Step {
    Step::wait(1.0, move |world, _| {
        // With no time to pass they run right after this one, which is as good as waiting.
        let instant = world.clock.second == 0.0;
        let running = tasks.iter().any(|upid| world.tasks.get(upid).is_some_and(|task| task.end.is_none()));
        if running && !instant { Ok(await_all(tasks)) } else { Ok(Step::Done) }
    })
}
