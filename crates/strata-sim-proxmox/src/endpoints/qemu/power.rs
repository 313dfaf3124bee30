//! Starting and stopping VMs.

use serde_json::Value;

use super::{hotplug, schema, start};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Param, Refusal, Reply, Route, flag, format, int, no, post, text, wrong};
use crate::endpoints::guest::check_lock;
use crate::task::{Cont, Job, LockKey, Step, work};
use crate::world::ha::Command;
use crate::world::{Guest, GuestKind, World};

pub fn routes() -> Vec<Route> {
    let perm = || on("/vms/{vmid}", &["VM.PowerMgmt"]);
    let with = |extra: Vec<Param>| {
        let own = vec![usual::node(), usual::vmid(), flag("skiplock").opt()];
        [own, extra].concat()
    };
    let timeout = || int("timeout").min(0.0).opt();
    vec![
        post("/nodes/{node}/qemu/{vmid}/status/start", perm(), with(start_params()), start_vm),
        post(
            "/nodes/{node}/qemu/{vmid}/status/stop",
            perm(),
            with(vec![
                timeout(),
                flag("keepActive").opt(),
                flag("overrule-shutdown").opt(),
                text("migratedfrom").format(format::node).opt(),
            ]),
            stop_vm,
        ),
        post(
            "/nodes/{node}/qemu/{vmid}/status/shutdown",
            perm(),
            with(vec![timeout(), flag("forceStop").opt(), flag("keepActive").opt()]),
            shutdown_vm,
        ),
        post(
            "/nodes/{node}/qemu/{vmid}/status/reboot",
            perm(),
            vec![usual::node(), usual::vmid(), timeout()],
            reboot_vm,
        ),
        post("/nodes/{node}/qemu/{vmid}/status/reset", perm(), with(vec![]), reset_vm),
        post(
            "/nodes/{node}/qemu/{vmid}/status/suspend",
            perm(),
            with(vec![
                flag("todisk").opt(),
                text("statestorage").format(format::storage_id).needs("todisk").opt(),
            ]),
            suspend_vm,
        ),
        post("/nodes/{node}/qemu/{vmid}/status/resume", perm(), with(vec![flag("nocheck").opt()]), resume_vm),
    ]
}

fn start_params() -> Vec<Param> {
    vec![
        text("stateuri").max_len(128).opt(),
        text("migratedfrom").format(format::node).opt(),
        text("migration_type").one_of(&["secure", "insecure"]).opt(),
        text("migration_network").format(format::cidr).opt(),
        text("machine").properties(schema::machine).opt(),
        text("force-cpu").opt(),
        text("targetstorage").opt(),
        int("timeout").min(0.0).opt(),
        flag("with-conntrack-state").opt(),
        text("nets-host-mtu").pattern(r"net\d+=\d+(,net\d+=\d+)*").opt(),
    ]
}

fn root_only(call: &Call<'_>, names: &[&str]) -> Result<(), Refusal> {
    let used = names.iter().find(|name| call.args.text(name).is_some_and(|v| !v.is_empty() && v != "0"));
    match used {
        Some(name) if !call.caller.is_root() => Err(wrong(*name, "Only root may use this option.")),
        _ => Ok(()),
    }
}

fn start_vm(call: &mut Call<'_>) -> Reply {
    root_only(
        call,
        &[
            "stateuri",
            "skiplock",
            "migratedfrom",
            "migration_type",
            "migration_network",
            "targetstorage",
            "force-cpu",
        ],
    )?;
    let (node, vmid) = (call.node(), call.vmid());
    if call.world.is_ha_managed(vmid) && !call.args.has("stateuri") {
        let user = call.user().to_owned();
        return Ok(Value::String(call.world.request_ha_start(&node, "vm", vmid, &user)).into());
    }
    let work = start_work(node.clone(), vmid, call.args.is_set("skiplock"));
    Ok(call.spawn(&node, "qmstart", vmid.to_string(), work).into())
}

/// A start by another task, or by a daemon. Gives the task.
pub fn spawn_start(world: &mut World, node: &str, vmid: u32, user: &str) -> String {
    let work = start_work(node.to_owned(), vmid, false);
    world.start_task(node, "qmstart", &vmid.to_string(), user, work)
}

/// A shutdown by the agent of high availability; without any time it is a stop. Gives the task.
pub fn spawn_stop(world: &mut World, node: &str, vmid: u32, timeout: u32) -> String {
    let (kind, work) = match timeout {
        0 => ("qmstop", stop_work(node.to_owned(), vmid, false, false)),
        _ => ("qmshutdown", shutdown_work(node.to_owned(), vmid, Some(f64::from(timeout)), true, false)),
    };
    world.start_task(node, kind, &vmid.to_string(), "root@pam", work)
}

pub fn start_work(node: String, vmid: u32, skiplock: bool) -> Cont {
    work(move |world, _| {
        world.guest(&node, vmid, GuestKind::Qemu)?;
        Ok(Step::lock(LockKey::Qemu(vmid), move |world, _| {
            start::check(world, &node, vmid, skiplock)?;
            Ok(Step::wait(2.0, move |world, job| {
                start::start(world, job, &node, vmid)?;
                Ok(Step::Done)
            }))
        }))
    })
}

/// The VM is off, and what waited for that comes into effect.
fn power_off(world: &mut World, node: &str, vmid: u32) {
    if let Ok(guest) = world.guest_mut(node, vmid, GuestKind::Qemu) {
        guest.power = Default::default();
        hotplug::apply_stopped(world, node, vmid);
    }
}

/// What is said where only the process of a VM is looked for, and there is no VM.
pub fn find<'w>(world: &'w World, node: &str, vmid: u32) -> Result<&'w Guest, Refusal> {
    let missing = |_| no(format!("unable to find configuration file for VM {vmid} on node '{node}'"));
    world.guest(node, vmid, GuestKind::Qemu).map_err(missing)
}

fn is_running(world: &World, node: &str, vmid: u32) -> bool {
    world.guest(node, vmid, GuestKind::Qemu).is_ok_and(|g| g.power.running)
}

fn check_running(call: &Call<'_>, node: &str, vmid: u32) -> Result<(), Refusal> {
    let running = find(call.world, node, vmid)?.power.running;
    if running { Ok(()) } else { Err(no(format!("VM {vmid} not running"))) }
}

fn stop_vm(call: &mut Call<'_>) -> Reply {
    root_only(call, &["skiplock", "keepActive", "migratedfrom"])?;
    let (node, vmid) = (call.node(), call.vmid());
    let skiplock = call.args.is_set("skiplock");
    let overrule = call.args.is_set("overrule-shutdown");
    if call.world.is_ha_managed(vmid) && !call.args.has("migratedfrom") {
        if overrule {
            return Err(wrong("overrule-shutdown", "Not applicable for HA resources."));
        }
        let user = call.user().to_owned();
        let stop = Command::Stop { timeout: 0 };
        return Ok(Value::String(call.world.request_ha(&node, "vm", vmid, &user, stop)).into());
    }
    let work = stop_work(node.clone(), vmid, overrule, skiplock);
    Ok(call.spawn(&node, "qmstop", vmid.to_string(), work).into())
}

fn stop_work(at: String, vmid: u32, overrule: bool, skiplock: bool) -> Cont {
    work(move |world, job| {
        if overrule {
            overrule_shutdowns(world, job, vmid);
        }
        find(world, &at, vmid)?;
        Ok(Step::lock(LockKey::Qemu(vmid), move |world, _| {
            let guest = find(world, &at, vmid)?;
            if !guest.power.running {
                return Ok(Step::Done);
            }
            if !skiplock {
                check_lock(guest)?;
            }
            Ok(Step::wait(1.0, move |world, _| {
                power_off(world, &at, vmid);
                Ok(Step::Done)
            }))
        }))
    })
}

fn overrule_shutdowns(world: &mut World, job: &Job, vmid: u32) {
    let id = vmid.to_string();
    let overruled: Vec<String> = world
        .tasks
        .iter()
        .filter(|task| task.end.is_none() && task.upid.kind == "qmshutdown" && task.upid.id == id)
        .map(|task| {
            task.stop.ask();
            task.text.clone()
        })
        .collect();
    if !overruled.is_empty() {
        job.log(world, format!("overruled qmshutdown tasks: {}", overruled.join(", ")));
    }
}

/// The `down` part of the startup option.
fn startup_timeout(startup: Option<&str>) -> Option<f64> {
    startup?.split(',').find_map(|part| part.strip_prefix("down=")?.parse().ok())
}

fn shutdown_vm(call: &mut Call<'_>) -> Reply {
    root_only(call, &["skiplock", "keepActive"])?;
    let (node, vmid) = (call.node(), call.vmid());
    let (skiplock, force) = (call.args.is_set("skiplock"), call.args.is_set("forceStop"));
    let paused = call.world.guest(&node, vmid, GuestKind::Qemu).is_ok_and(|g| g.power.paused);
    if paused && !force {
        return Err(no("VM is paused - cannot shutdown"));
    }
    if call.world.is_ha_managed(vmid) {
        let timeout = call.args.int("timeout").and_then(|t| u32::try_from(t).ok()).unwrap_or(60);
        let user = call.user().to_owned();
        let stop = Command::Stop { timeout };
        return Ok(Value::String(call.world.request_ha(&node, "vm", vmid, &user, stop)).into());
    }
    let work = shutdown_work(node.clone(), vmid, call.args.number("timeout"), force, skiplock);
    Ok(call.spawn(&node, "qmshutdown", vmid.to_string(), work).into())
}

/// Asks the guest to power down; after the timeout (in seconds) it is stopped by force, or the task fails.
pub fn shutdown_work(at: String, vmid: u32, timeout: Option<f64>, force: bool, skiplock: bool) -> Cont {
    work(move |world, _| {
        find(world, &at, vmid)?;
        Ok(Step::lock(LockKey::Qemu(vmid), move |world, _| {
            let guest = find(world, &at, vmid)?;
            if !guest.power.running {
                return Ok(Step::Done);
            }
            if !skiplock {
                check_lock(guest)?;
            }
            let reacts = hotplug::has_system(world, guest) || guest.power.paused;
            let timeout = timeout.or_else(|| startup_timeout(guest.get("startup"))).unwrap_or(60.0);
            let seconds = if reacts { timeout.min(3.0) } else { timeout };
            Ok(Step::wait(seconds, move |world, job| {
                if !reacts && !force {
                    return Err("VM quit/powerdown failed - got timeout".to_owned());
                }
                if !reacts {
                    job.log(world, "VM still running - terminating now with SIGTERM");
                }
                power_off(world, &at, vmid);
                Ok(Step::Done)
            }))
        }))
    })
}

fn reboot_vm(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    if find(call.world, &node, vmid)?.power.paused {
        return Err(no("VM is paused - cannot shutdown"));
    }
    check_running(call, &node, vmid)?;
    let timeout = call.args.number("timeout");
    let at = node.clone();
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |world, _| {
            let guest = world.guest(&at, vmid, GuestKind::Qemu)?;
            check_lock(guest)?;
            let reacts = hotplug::has_system(world, guest);
            let seconds = if reacts { 3.0 } else { timeout.unwrap_or(60.0) };
            Ok(Step::wait(seconds, move |world, _| {
                if !reacts {
                    return Err("VM quit/powerdown failed - got timeout".to_owned());
                }
                // The task ends when the guest is off; qmeventd starts it afterwards.
                power_off(world, &at, vmid);
                world.restart_later(&at, vmid);
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "qmreboot", vmid.to_string(), work).into())
}

fn reset_vm(call: &mut Call<'_>) -> Reply {
    root_only(call, &["skiplock"])?;
    let (node, vmid) = (call.node(), call.vmid());
    check_running(call, &node, vmid)?;
    let at = node.clone();
    let work = locked(vmid, 0.2, move |world, _| {
        let guest = world.guest_mut(&at, vmid, GuestKind::Qemu)?;
        check_lock(guest)?;
        guest.starts += 1;
        Ok(())
    });
    Ok(call.spawn(&node, "qmreset", vmid.to_string(), work).into())
}

/// A task that takes the VM's lock, some time, and then one step.
fn locked(
    vmid: u32,
    seconds: f64,
    step: impl FnOnce(&mut World, &Job) -> Result<(), String> + Send + 'static,
) -> Cont {
    work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |_, _| {
            Ok(Step::wait(seconds, move |world, job| {
                step(world, job)?;
                Ok(Step::Done)
            }))
        }))
    })
}

fn suspend_vm(call: &mut Call<'_>) -> Reply {
    root_only(call, &["skiplock"])?;
    let (node, vmid) = (call.node(), call.vmid());
    check_running(call, &node, vmid)?;
    let to_disk = call.args.is_set("todisk");
    if to_disk {
        call.check_vm(vmid, None, &["VM.Config.Disk"])?;
    }
    let at = node.clone();
    let work = locked(vmid, 0.2, move |world, _| {
        let guest = world.guest_mut(&at, vmid, GuestKind::Qemu)?;
        check_lock(guest)?;
        if to_disk {
            guest.power = Default::default();
            guest.config.insert("lock".into(), "suspended".into());
        } else {
            guest.power.paused = true;
        }
        Ok(())
    });
    let kind = if to_disk { "qmsuspend" } else { "qmpause" };
    Ok(call.spawn(&node, kind, vmid.to_string(), work).into())
}

fn resume_vm(call: &mut Call<'_>) -> Reply {
    root_only(call, &["skiplock", "nocheck"])?;
    let (node, vmid) = (call.node(), call.vmid());
    let on_disk = call.world.guest(&node, vmid, GuestKind::Qemu).is_ok_and(|g| g.lock() == Some("suspended"));
    if !on_disk && !is_running(call.world, &node, vmid) {
        return Err(no(format!("VM {vmid} not running")));
    }
    let at = node.clone();
    let work = locked(vmid, 0.2, move |world, job| {
        if on_disk {
            world.guest_mut(&at, vmid, GuestKind::Qemu)?.config.remove("lock");
            return Ok(start::start(world, job, &at, vmid)?);
        }
        let guest = world.guest_mut(&at, vmid, GuestKind::Qemu)?;
        check_lock(guest)?;
        guest.power.paused = false;
        Ok(())
    });
    Ok(call.spawn(&node, "qmresume", vmid.to_string(), work).into())
}
