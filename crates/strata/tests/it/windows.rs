//! Somebody else acts in the window between each read of an apply and what it does next: what they did is still there afterwards.

mod configs;
mod datacenter;
mod guests;
mod named;
mod volumes;

use serde_json::{Value, json};

use crate::world::{STACK, World};

/// One guest of an export.
pub(crate) fn guest(export: &Value, vmid: &str) -> Value {
    let mut guests = export["guests"].as_array().into_iter().flatten();
    let vmid: u64 = vmid.parse().unwrap();
    guests.find(|guest| guest["vmid"] == vmid).cloned().unwrap_or(Value::Null)
}

const FILE: &str = "stacks/web/stack.yaml";
const APPLY: [&str; 2] = ["apply", "--yes"];
const PLAN: &str = "reviewed.plan";
/// What is done in such a run was planned before anybody else acted.
const APPLY_PLAN: [&str; 3] = ["apply", PLAN, "--yes"];

/// Holds the answers to the k-th request of a command and to all after it, lets somebody act, and lets the run go on. Gives how many
/// requests had arrived when they acted; none if the run ended before that.
fn act_at(world: &World, command: &[&str], k: u64, act: &dyn Fn()) -> Option<usize> {
    act_on(world, command, &json!({"kind": "hold-after", "nth": k, "count": 0}), act)
}

/// Waits until everything that was on its way has arrived: what comes after it is held.
fn stand_still(world: &World) {
    let mut arrived = None;
    while arrived != Some(requests(world).len()) {
        arrived = Some(requests(world).len());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// The same at the request that a fault is about.
pub(crate) fn act_on(world: &World, command: &[&str], fault: &Value, act: &dyn Fn()) -> Option<usize> {
    let control = world.sim.control();
    control.reset_requests();
    let held = control.fault(fault);
    let mut child = world.strata().spawn(command);
    let struck = loop {
        if control.wait_fault(held, 0.5) {
            break true;
        }
        if child.try_wait().unwrap().is_some() {
            break control.wait_fault(held, 0.0);
        }
    };
    let arrived = struck.then(|| {
        stand_still(world);
        act();
        requests(world).len()
    });
    control.release(held);
    child.wait().unwrap();
    control.clear_faults();
    arrived
}

/// The requests so far, in their order: `GET /version`.
fn requests(world: &World) -> Vec<String> {
    let requests = world.sim.control().requests();
    let latest = requests["latest"].as_array().into_iter().flatten();
    latest.filter_map(|request| request.as_str().map(str::to_owned)).collect()
}

/// Whether a write overwrote what somebody did although a look in between would have shown it: the one window that stays is between the
/// last look and the write.
fn overwritten_knowingly(requests: &[String], acted: usize, look: &str, write: &str) -> bool {
    let since = &requests[acted.min(requests.len())..];
    let write = since.iter().position(|request| request.starts_with(write));
    write.is_some_and(|write| since[..write].iter().any(|request| request.starts_with(look)))
}

/// A setting that the source says nothing about, on each kind of guest that an update works on.
fn survives_updates(k: u64) -> bool {
    let world = World::new();
    world.strata().run(&["apply", "--yes"]).ok();
    let more = STACK
        .replace("memory: 4096", "memory: 6144")
        .replace("size: 20}", "size: 22}")
        .replace("memory: 256", "memory: 512")
        .replace("destinationPort: \"443\"", "destinationPort: \"8443\"");
    world.repo.write(FILE, &more);
    let struck = act_at(&world, &APPLY, k, &|| {
        for path in ["/nodes/pve1/qemu/9100/config", "/nodes/pve1/lxc/9200/config"] {
            world.sim.control().change(&json!({"method": "PUT", "path": path, "params": {"cpuunits": 77}}));
        }
        let rule = json!({"type": "in", "action": "DROP", "proto": "tcp", "dport": "9", "enable": 1, "comment": "by somebody"});
        let path = "/nodes/pve1/qemu/9101/firewall/rules";
        world.sim.control().change(&json!({"method": "POST", "path": path, "params": rule}));
    })
    .is_some();
    if struck {
        for vmid in ["9100", "9200"] {
            let guest = guest(&world.export(), vmid);
            assert!(guest.to_string().contains("77"), "{k}: the setting of {vmid} is lost: {guest}");
        }
    }
    let again = world.strata().run(&["apply", "--yes"]);
    assert_eq!(again.code, 0, "{k}: {}", again.all());
    let guest = guest(&world.export(), "9100").to_string();
    assert!(guest.contains("6144") && (!struck || guest.contains("77")), "{k}: {guest}");
    world.assert_settled();
    struck
}

/// Somebody takes a VMID that is about to be created.
fn stranger_survives_creates(k: u64) -> bool {
    let world = World::new();
    let control = world.sim.control();
    let taken = std::cell::RefCell::new(Vec::new());
    let struck = act_at(&world, &APPLY, k, &|| {
        for (vmid, kind) in [(9101, "qemu"), (9200, "qemu")] {
            let params: Value =
                json!({"vmid": vmid, "name": "somebody", "memory": 64, "description": "of somebody"});
            let change = json!({"method": "POST", "path": format!("/nodes/pve2/{kind}"), "params": params});
            if control.change(&change)["status"] == 200 {
                taken.borrow_mut().push(vmid.to_string());
            }
        }
    })
    .is_some();
    let taken = taken.into_inner();
    let whole =
        |world: &World| -> Vec<Value> { taken.iter().map(|vmid| guest(&world.export(), vmid)).collect() };
    let before = whole(&world);
    assert!(before.iter().all(|guest| guest.to_string().contains("of somebody")), "{k}: {before:?}");
    let again = world.strata().run(&["apply", "--yes"]);
    assert_eq!(again.code, if taken.is_empty() { 0 } else { 3 }, "{k}: {}", again.all());
    world.strata().run(&["destroy", "--yes"]);
    assert_eq!(whole(&world), before, "{k}: it was touched");
    struck
}

type Window = (&'static str, fn(u64) -> bool);

/// Lets somebody act after every `step`-th request of a run, `most` times, until it makes no more of them.
fn act_every(windows: &[Window], step: usize, most: usize) {
    let step = std::env::var("STRATA_STEP").ok().and_then(|step| step.parse().ok()).unwrap_or(step);
    for (name, at) in windows {
        let tried = (3..).step_by(step).take(most).take_while(|k| at(*k)).count();
        println!("{name}: somebody acted {tried} times");
        assert!(tried > 0);
    }
}

const WINDOWS: [Window; 2] = [("updates", survives_updates), ("creates", stranger_survives_creates)];

#[test]
fn what_others_do_in_between_survives() {
    act_every(&WINDOWS, 29, 3);
}

#[test]
fn what_others_do_to_a_guest_in_between_survives() {
    act_every(&guests::WINDOWS, 23, 3);
}

#[test]
fn what_others_do_to_volumes_in_between_survives() {
    act_every(&volumes::WINDOWS, 9, 2);
}

#[test]
fn what_others_do_to_a_datacenter_in_between_survives() {
    act_every(&datacenter::WINDOWS, 37, 3);
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_windows() {
    act_every(&WINDOWS, 1, usize::MAX);
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_windows_of_guests() {
    act_every(&guests::WINDOWS, 1, usize::MAX);
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_windows_of_volumes() {
    act_every(&volumes::WINDOWS, 1, usize::MAX);
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_windows_of_a_datacenter() {
    act_every(&datacenter::WINDOWS, 1, usize::MAX);
}
