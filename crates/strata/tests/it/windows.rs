//! Somebody else acts in the window between each read of an apply and what it does next: what they did is still there afterwards.

use serde_json::{Value, json};

use crate::world::{STACK, World};

/// One guest of an export.
pub(crate) fn guest(export: &Value, vmid: &str) -> Value {
    let mut guests = export["guests"].as_array().into_iter().flatten();
    let vmid: u64 = vmid.parse().unwrap();
    guests.find(|guest| guest["vmid"] == vmid).cloned().unwrap_or(Value::Null)
}

const FILE: &str = "stacks/web/stack.yaml";

/// Holds the answer to the k-th request, lets somebody act, and lets the run go on. False if the run ended before that.
fn act_at(world: &World, k: u64, act: &dyn Fn()) -> bool {
    let control = world.sim.control();
    let held = control.fault(&json!({"kind": "hold-after", "nth": k}));
    let mut child = world.strata().spawn(&["apply", "--yes"]);
    let struck = loop {
        if control.wait_fault(held, 0.5) {
            break true;
        }
        if child.try_wait().unwrap().is_some() {
            break control.wait_fault(held, 0.0);
        }
    };
    if struck {
        act();
    }
    control.release(held);
    child.wait().unwrap();
    control.clear_faults();
    struck
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
    let struck = act_at(&world, k, &|| {
        for path in ["/nodes/pve1/qemu/9100/config", "/nodes/pve1/lxc/9200/config"] {
            world.sim.control().change(&json!({"method": "PUT", "path": path, "params": {"cpuunits": 77}}));
        }
        let rule = json!({"type": "in", "action": "DROP", "proto": "tcp", "dport": "9", "enable": 1, "comment": "by somebody"});
        let path = "/nodes/pve1/qemu/9101/firewall/rules";
        world.sim.control().change(&json!({"method": "POST", "path": path, "params": rule}));
    });
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
    let struck = act_at(&world, k, &|| {
        for (vmid, kind) in [(9101, "qemu"), (9200, "qemu")] {
            let params: Value =
                json!({"vmid": vmid, "name": "somebody", "memory": 64, "description": "of somebody"});
            let change = json!({"method": "POST", "path": format!("/nodes/pve2/{kind}"), "params": params});
            if control.change(&change)["status"] == 200 {
                taken.borrow_mut().push(vmid.to_string());
            }
        }
    });
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

fn act_every(step: usize, most: usize) {
    for (name, at) in [
        ("updates", survives_updates as fn(u64) -> bool),
        ("creates", stranger_survives_creates as fn(u64) -> bool),
    ] {
        let tried = (3..).step_by(step).take(most).take_while(|k| at(*k)).count();
        println!("{name}: somebody acted {tried} times");
        assert!(tried > 0);
    }
}

#[test]
fn what_others_do_in_between_survives() {
    act_every(29, 3);
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_windows() {
    act_every(1, usize::MAX);
}
