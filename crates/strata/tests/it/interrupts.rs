//! Ctrl-C: the first finishes what runs and saves, the second stops at once; the next apply goes on.

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::world::World;

pub(crate) fn interrupt(child: &Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

/// An apply that waits in the middle of its first clone.
fn held() -> (World, Child, u64) {
    let world = World::new();
    let control = world.sim.control();
    let fault = control.fault(&json!({"kind": "hold-after", "method": "POST", "path": "*/qemu/9000/clone"}));
    let child = world.strata().spawn(&["apply", "--yes", "--parallelism", "1"]);
    assert!(control.wait_fault(fault, 60.0));
    (world, child, fault)
}

fn finish(world: &World) {
    world.sim.control().clear_faults();
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}

#[test]
fn the_first_interrupt_finishes_what_runs() {
    let (world, mut child, fault) = held();
    interrupt(&child);
    // Nothing ends before the answer is there.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none());
    world.sim.control().release(fault);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!world.repo.file(".strata/state/test/web/journal").exists(), "everything is saved");
    finish(&world);
}

#[test]
fn the_second_interrupt_stops_at_once() {
    let (world, mut child, fault) = held();
    interrupt(&child);
    std::thread::sleep(std::time::Duration::from_millis(300));
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    world.sim.control().release(fault);
    let plan = world.strata().run(&["plan"]);
    assert!(plan.stdout.contains("an interrupted run began to create it"), "{}", plan.all());
    finish(&world);
}
