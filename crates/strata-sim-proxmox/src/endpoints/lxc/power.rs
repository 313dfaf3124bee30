//! Starting and stopping containers.

use serde_json::Value;

use super::{apply, mount, schema};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Param, Refusal, Reply, Route, flag, int, no, post, wrong};
use crate::endpoints::guest::check_lock;
use crate::task::{Cont, LockKey, Step, work};
use crate::world::guest::Power;
use crate::world::ha::Command;
use crate::world::{GuestKind, World};

pub fn routes() -> Vec<Route> {
    let perm = || on("/vms/{vmid}", &["VM.PowerMgmt"]);
    let with = |extra: Vec<Param>| [vec![usual::node(), usual::vmid()], extra].concat();
    let timeout = || int("timeout").min(0.0).opt();
    vec![
        post(
            "/nodes/{node}/lxc/{vmid}/status/start",
            perm(),
            with(vec![flag("debug").opt(), flag("skiplock").opt()]),
            start,
        ),
        post(
            "/nodes/{node}/lxc/{vmid}/status/stop",
            perm(),
            with(vec![flag("skiplock").opt(), flag("overrule-shutdown").opt()]),
            stop,
        ),
        post(
            "/nodes/{node}/lxc/{vmid}/status/shutdown",
            perm(),
            with(vec![timeout(), flag("forceStop").opt()]),
            shutdown,
        ),
        post("/nodes/{node}/lxc/{vmid}/status/reboot", perm(), with(vec![timeout()]), reboot),
        post("/nodes/{node}/lxc/{vmid}/status/suspend", perm(), with(vec![]), suspend),
        post("/nodes/{node}/lxc/{vmid}/status/resume", perm(), with(vec![]), resume),
    ]
}

fn is_running(call: &Call<'_>) -> bool {
    let guest = call.world.guests.get(&call.vmid());
    guest.is_some_and(|g| g.kind == GuestKind::Lxc && g.node == call.args.must("node") && g.power.running)
}

fn check_skiplock(call: &Call<'_>) -> Result<bool, Refusal> {
    let skip = call.args.is_set("skiplock");
    if skip && !call.caller.is_root() {
        return Err(wrong("skiplock", "Only root may use this option."));
    }
    Ok(skip)
}

fn start(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    let skiplock = check_skiplock(call)?;
    if is_running(call) {
        return Err(no(format!("CT {vmid} already running")));
    }
    if call.world.is_ha_managed(vmid) {
        let user = call.user().to_owned();
        return Ok(Value::String(call.world.request_ha_start(&node, "ct", vmid, &user)).into());
    }
    Ok(call.spawn(&node.clone(), "vzstart", vmid.to_string(), starting(node, vmid, skiplock)).into())
}

/// Starts a container on behalf of a task or a daemon. Gives the task.
pub fn spawn_start(world: &mut World, node: &str, vmid: u32, user: &str) -> String {
    let work = starting(node.to_owned(), vmid, false);
    world.start_task(node, "vzstart", &vmid.to_string(), user, work)
}

/// A shutdown by the agent of high availability; without any time it is a stop. Gives the task.
pub fn spawn_stop(world: &mut World, node: &str, vmid: u32, timeout: u32) -> String {
    let (kind, work) = match timeout {
        0 => ("vzstop", stopping(node.to_owned(), vmid, false, false)),
        _ => ("vzshutdown", going_down(node.to_owned(), vmid, 2.0)),
    };
    world.start_task(node, kind, &vmid.to_string(), "root@pam", work)
}

pub fn starting(node: String, vmid: u32, skiplock: bool) -> Cont {
    work(move |_, _| {
        Ok(Step::lock(LockKey::Lxc(vmid), move |world, _| {
            let guest = world.guest(&node, vmid, GuestKind::Lxc)?;
            if guest.flag("template") {
                return Err("you can't start a CT if it's a template".to_owned());
            }
            if !skiplock && guest.lock() != Some("mounted") {
                check_lock(guest)?;
            }
            let quota = mount::mounts(&guest.config).iter().any(|m| m.props.is_set("quota"));
            if guest.flag("unprivileged") && quota {
                return Err("Quotas are not supported by unprivileged containers.".to_owned());
            }
            apply_pending(world, &node, vmid)?;
            Ok(Step::wait(1.0, move |world, job| {
                if let Some(problem) = obstacle(world, &node, vmid) {
                    job.log(world, problem);
                    return Err(format!("startup for container '{vmid}' failed"));
                }
                switch_on(world, &node, vmid)?;
                Ok(Step::Done)
            }))
        }))
    })
}

fn switch_on(world: &mut World, node: &str, vmid: u32) -> Result<(), Refusal> {
    let (since, pid) = (world.now(), world.new_pid());
    let guest = world.guest_mut(node, vmid, GuestKind::Lxc)?;
    guest.starts += 1;
    guest.power = Power { running: true, since, pid, ..Power::default() };
    Ok(())
}

fn apply_pending(world: &mut World, node: &str, vmid: u32) -> Result<(), Refusal> {
    let mut guest = world.guest(node, vmid, GuestKind::Lxc)?.clone();
    apply::stopped(world, &mut guest, None);
    world.guests.insert(vmid, guest);
    // Volumes that are gone are found out before anything starts.
    let guest = world.guest(node, vmid, GuestKind::Lxc)?;
    for m in mount::mounts(&guest.config).iter().filter(|m| m.source() == mount::Source::Volume) {
        mount::existing(world, m.volume(), node)?;
    }
    Ok(())
}

/// What keeps a container from coming up.
fn obstacle(world: &World, node: &str, vmid: u32) -> Option<String> {
    let guest = world.guest(node, vmid, GuestKind::Lxc).ok()?;
    let host = world.nodes.get(node)?;
    let nets = guest.config.iter().filter(|(key, _)| schema::is_net(key));
    let mut bridges = nets.filter_map(|(_, value)| {
        let net = schema::parse_net(value);
        net.get("bridge").filter(|_| !net.is_set("link_down")).map(str::to_owned)
    });
    bridges.find(|bridge| !host.has_bridge(bridge)).map(|bridge| format!("bridge '{bridge}' does not exist"))
}

fn running_or_refuse(call: &Call<'_>, word: &str) -> Result<(), Refusal> {
    if is_running(call) { Ok(()) } else { Err(no(format!("{word} {} not running", call.vmid()))) }
}

fn stop(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    let skiplock = check_skiplock(call)?;
    running_or_refuse(call, "CT")?;
    let overrule = call.args.is_set("overrule-shutdown");
    if call.world.is_ha_managed(vmid) {
        if overrule {
            return Err(wrong("overrule-shutdown", "Not applicable for HA resources."));
        }
        return Ok(request_stop(call, &node, vmid, 0).into());
    }
    let work = stopping(node.clone(), vmid, overrule, skiplock);
    Ok(call.spawn(&node, "vzstop", vmid.to_string(), work).into())
}

fn request_stop(call: &mut Call<'_>, node: &str, vmid: u32, timeout: u32) -> Value {
    let user = call.user().to_owned();
    Value::String(call.world.request_ha(node, "ct", vmid, &user, Command::Stop { timeout }))
}

fn stopping(at: String, vmid: u32, overrule: bool, skiplock: bool) -> Cont {
    work(move |world, job| {
        if overrule {
            let shutdowns: Vec<String> = world
                .tasks
                .iter()
                .filter(|t| t.end.is_none() && t.upid.kind == "vzshutdown" && t.upid.id == vmid.to_string())
                .map(|t| {
                    t.stop.ask();
                    t.text.clone()
                })
                .collect();
            if !shutdowns.is_empty() {
                job.log(world, format!("overruled vzshutdown tasks: {}", shutdowns.join(", ")));
            }
        }
        Ok(Step::lock(LockKey::Lxc(vmid), move |world, _| {
            let guest = world.guest(&at, vmid, GuestKind::Lxc)?;
            if !skiplock && guest.lock() != Some("mounted") {
                check_lock(guest)?;
            }
            Ok(Step::wait(0.5, move |world, _| {
                halt(world, &at, vmid)?;
                Ok(Step::Done)
            }))
        }))
    })
}

/// The container is off.
pub fn halt(world: &mut World, node: &str, vmid: u32) -> Result<(), Refusal> {
    world.guest_mut(node, vmid, GuestKind::Lxc)?.power = Power::default();
    Ok(())
}

fn shutdown(call: &mut Call<'_>) -> Reply {
    running_or_refuse(call, "CT")?;
    let (node, vmid) = (call.node(), call.vmid());
    if call.world.is_ha_managed(vmid) {
        let timeout = call.args.int("timeout").and_then(|t| u32::try_from(t).ok()).unwrap_or(60);
        return Ok(request_stop(call, &node, vmid, timeout).into());
    }
    Ok(off(call, "vzshutdown", 2.0).into())
}

/// A container has an operating system, so it goes down when told to.
fn off(call: &mut Call<'_>, kind: &str, seconds: f64) -> Value {
    let (node, vmid) = (call.node(), call.vmid());
    let work = going_down(node.clone(), vmid, seconds);
    call.spawn(&node, kind, vmid.to_string(), work)
}

fn going_down(at: String, vmid: u32, seconds: f64) -> Cont {
    work(move |_, _| {
        Ok(Step::lock(LockKey::Lxc(vmid), move |world, _| {
            check_lock(world.guest(&at, vmid, GuestKind::Lxc)?)?;
            Ok(Step::wait(seconds, move |world, _| {
                halt(world, &at, vmid)?;
                Ok(Step::Done)
            }))
        }))
    })
}

fn reboot(call: &mut Call<'_>) -> Reply {
    running_or_refuse(call, "VM")?;
    let (node, vmid) = (call.node(), call.vmid());
    let at = node.clone();
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Lxc(vmid), move |_, _| {
            Ok(Step::wait(2.0, move |world, _| {
                halt(world, &at, vmid)?;
                apply_pending(world, &at, vmid)?;
                if obstacle(world, &at, vmid).is_some() {
                    return Err(format!("startup for container '{vmid}' failed"));
                }
                switch_on(world, &at, vmid)?;
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "vzreboot", vmid.to_string(), work).into())
}

fn suspend(call: &mut Call<'_>) -> Reply {
    running_or_refuse(call, "CT")?;
    let (node, vmid) = (call.node(), call.vmid());
    let at = node.clone();
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Lxc(vmid), move |world, _| {
            check_lock(world.guest(&at, vmid, GuestKind::Lxc)?)?;
            Ok(Step::wait(1.0, move |world, _| {
                halt(world, &at, vmid)?;
                world.guest_mut(&at, vmid, GuestKind::Lxc)?.power.paused = true;
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "vzsuspend", vmid.to_string(), work).into())
}

fn resume(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    if is_running(call) {
        return Err(no(format!("CT {vmid} already running")));
    }
    let suspended = call.world.guest(&node, vmid, GuestKind::Lxc).is_ok_and(|guest| guest.power.paused);
    let work = if suspended {
        starting(node.clone(), vmid, true)
    } else {
        // There is nothing to go back to.
        work(move |_, _| -> Result<Step, String> {
            let command = format!("lxc-checkpoint -n {vmid} -r --foreground -D /var/lib/vz/dump");
            Err(format!("command '{command}' failed: exit code 1"))
        })
    };
    Ok(call.spawn(&node, "vzresume", vmid.to_string(), work).into())
}
