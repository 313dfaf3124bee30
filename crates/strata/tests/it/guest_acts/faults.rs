//! Acts that are killed, answered with half the truth, or disturbed: whatever happens, the guest stays ours and whole, nothing of others is
//! touched, and the next command ends as an undisturbed one.

use serde_json::json;
use strata_sim::Pace;

use super::{FILE, backups, change, config, world};
use crate::findings::unlock_as_told;
use crate::world::World;

type Act = (&'static str, fn(&World), &'static [&'static str], fn(&World) -> bool);

fn nothing(_: &World) {}

fn with_backup(world: &World) {
    super::backup_run(world, "web/vm/db");
    world.repo.edit(FILE, "memory: 512", "memory: 768");
    world.strata().run(&["apply", "--yes"]).ok();
}

fn with_container_backup(world: &World) {
    super::backup_run(world, "web/container/dns");
    world.repo.edit(FILE, "memory: 256", "memory: 384");
    world.strata().run(&["apply", "--yes"]).ok();
}

fn with_snapshot(world: &World) {
    world.strata().run(&["snapshot", "create", "web/vm/db", "one"]).ok();
    change(world, "PUT", "/nodes/pve1/qemu/9100/config", &json!({"cpuunits": 77}));
}

fn has_snapshot(world: &World) -> bool {
    let rows = change(world, "GET", "/nodes/pve1/qemu/9100/snapshot", &json!({}));
    rows.as_array().unwrap().iter().any(|row| row["name"] == "one" && row["snapstate"].is_null())
}

/// What is done, and what shows that it was.
const ACTS: [Act; 6] = [
    ("backup", nothing, &["backup", "run", "web/vm/db", "--storage", "local"], |world| {
        !backups(world).is_empty()
    }),
    ("restore", with_backup, &["backup", "restore", "web/vm/db", "latest", "--yes"], |world| {
        config(world, "qemu", "9100")["memory"].to_string().contains("512")
    }),
    (
        "restore a container",
        with_container_backup,
        &["backup", "restore", "web/container/dns", "latest", "--yes"],
        |world| config(world, "lxc", "9200")["memory"].to_string().contains("256"),
    ),
    ("snapshot", nothing, &["snapshot", "create", "web/vm/db", "one"], has_snapshot),
    ("rollback", with_snapshot, &["snapshot", "rollback", "web/vm/db", "one", "--yes"], |world| {
        config(world, "qemu", "9100")["cpuunits"].is_null()
    }),
    ("delete", with_snapshot, &["snapshot", "delete", "web/vm/db", "one", "--yes"], |world| {
        !has_snapshot(world)
    }),
];

/// Runs the act until it is done, as a person who reads what it says; what was done already may be said to be so.
fn finish(world: &World, command: &[&str], is_done: fn(&World) -> bool, what: &str) {
    let mut told = String::new();
    for _ in 0..4 {
        let run = world.strata().run(command);
        told = format!("{told}\n{}", run.all());
        assert!(!run.all().contains("panicked"), "{what}: {told}");
        unlock_as_told(world, &run.all());
        let there_already = told.contains("already") || told.contains("has no snapshot `one`");
        if run.code == 0 || (there_already && is_done(world)) {
            assert!(is_done(world), "{what}: {told}");
            // The guest is ours, and a plan brings it to its source.
            world.strata().run(&["apply", "--yes"]).ok();
            world.assert_settled();
            return;
        }
        assert!(run.stderr.contains("error:"), "{what}: {told}");
    }
    panic!("{what}: {told}");
}

/// Kills the act at its k-th request. False if it ended before it came that far.
fn kill_at(act: &Act, kind: &str, k: u64) -> bool {
    let (name, before, command, is_done) = act;
    let world = world(Pace::FAST);
    before(&world);
    let fault = json!({"kind": kind, "nth": k});
    let what = format!("{name}: {kind} {k}");
    let struck = world.strata().kill_at(&world.sim.control(), &fault, command).struck_or_good(&what);
    // A plan of somebody who comes after the dead run shows what it left, and touches nothing.
    let plan = world.strata().run(&["plan"]);
    assert!(matches!(plan.code, 0 | 1), "{what}: {}", plan.all());
    finish(&world, command, *is_done, &what);
    struck
}

fn kill_every(step: usize, most: usize) {
    for (number, act) in ACTS.iter().enumerate() {
        for kind in ["hold-before", "hold-after"] {
            let killed = (1 + number as u64 % 3..)
                .step_by(step)
                .take(most)
                .take_while(|k| kill_at(act, kind, *k))
                .count();
            println!("{}: {kind}: killed {killed} times", act.0);
        }
    }
}

#[test]
fn a_kill_at_some_requests_of_an_act_loses_nothing() {
    kill_every(9, 2);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_requests_of_acts() {
    let step = std::env::var("STRATA_STEP").ok().and_then(|step| step.parse().ok()).unwrap_or(1);
    kill_every(step, usize::MAX);
}

/// The k-th write of an act is not what its answer says.
fn twist(act: &Act, kind: &str, k: u64) -> bool {
    let (name, before, command, is_done) = act;
    let world = world(Pace::INSTANT);
    before(&world);
    let control = world.sim.control();
    let fault = control.fault(&json!({"kind": kind, "writes": true, "nth": k}));
    let run = world.strata().run(command);
    let struck = control.wait_fault(fault, 0.0);
    let what = format!("{name}: {kind} {k}: {}", run.all());
    if run.code == 0 {
        assert!(is_done(&world), "{what}");
        if kind == "warn-task" && struck {
            assert!(run.stderr.contains("WARNINGS"), "{what}");
        }
    } else {
        assert!(run.stderr.contains("error:") && !run.all().contains("panicked"), "{what}");
    }
    unlock_as_told(&world, &run.all());
    finish(&world, command, *is_done, &what);
    struck
}

const KINDS: [&str; 5] = ["forget-task", "no-worker", "warn-task", "lost", "cut"];

#[test]
fn half_true_answers_to_acts_are_not_believed() {
    for act in &ACTS {
        for kind in KINDS {
            assert!(twist(act, kind, 1), "{}: {kind}", act.0);
        }
    }
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_half_true_answers_to_acts() {
    for act in &ACTS {
        for kind in KINDS {
            let struck = (1..).take_while(|k| twist(act, kind, *k)).count();
            println!("{}: {kind}: {struck} writes", act.0);
            assert!(struck > 0);
        }
    }
}

/// A task that fails says so, and the guest is not lost.
#[test]
fn a_failed_task_is_told_with_its_reason() {
    for (act, task) in
        ACTS.iter().zip(["vzdump", "qmrestore", "vzrestore", "qmsnapshot", "qmrollback", "qmdelsnapshot"])
    {
        let (name, before, command, is_done) = act;
        let world = world(Pace::INSTANT);
        before(&world);
        let fault = json!({"kind": "fail-task", "path": format!("/tasks/{task}/*"), "text": "disk on fire"});
        world.sim.control().fault(&fault);
        let run = world.strata().run(command).code(1);
        assert!(run.stderr.contains("disk on fire"), "{name}: {}", run.all());
        assert!(!is_done(&world), "{name}");
        unlock_as_told(&world, &run.all());
        let run = world.strata().run(&["plan"]);
        unlock_as_told(&world, &run.all());
        finish(&world, command, *is_done, name);
    }
}

/// Somebody else does something to the guest after the k-th request of an act.
fn disturbed(act: &Act, k: u64, disturb: &dyn Fn(&World)) -> bool {
    let (_, before, command, _) = act;
    let world = world(Pace::FAST);
    before(&world);
    let held = json!({"kind": "hold-after", "nth": k, "count": 0});
    let acted = crate::windows::act_on(&world, command, &held, &|| disturb(&world));
    // Whatever came of it: nobody else's guest is touched, and ours is brought to its source.
    let stranger = crate::windows::guest(&world.export(), "200");
    assert!(stranger.to_string().contains("not yours"), "{}: {k}: {stranger}", act.0);
    let again = world.strata().run(&["apply", "--yes"]);
    unlock_as_told(&world, &again.all());
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    acted.is_some()
}

fn lock(world: &World) {
    world.sim.control().change(&json!({"edit": {"vmid": 9100, "set": {"lock": "backup"}}}));
    std::thread::sleep(std::time::Duration::from_millis(100));
    world.sim.control().change(&json!({"edit": {"vmid": 9100, "delete": ["lock"]}}));
}

fn delete(world: &World) {
    world.sim.control().change(&json!({"power": {"vmid": 9100, "running": false}}));
    world
        .sim
        .control()
        .change(&json!({"method": "DELETE", "path": "/nodes/pve1/qemu/9100", "params": {"purge": 1}}));
}

fn change_settings(world: &World) {
    let path = "/nodes/pve1/qemu/9100/config";
    world.sim.control().change(&json!({"method": "PUT", "path": path, "params": {"memory": 640}}));
}

fn disturb_every(step: usize, most: usize) {
    type Disturbance = (&'static str, fn(&World));
    let disturbances: [Disturbance; 3] = [("locks", lock), ("deletes", delete), ("changes", change_settings)];
    for act in ACTS.iter().filter(|act| act.0 != "restore a container") {
        for (number, (name, disturb)) in disturbances.iter().enumerate() {
            let ks = (4 + number as u64..).step_by(step).take(most);
            let acted = ks.take_while(|k| disturbed(act, *k, disturb)).count();
            println!("{}: somebody {name} it {acted} times", act.0);
            assert!(acted > 0);
        }
    }
}

#[test]
fn what_others_do_during_an_act_survives() {
    disturb_every(11, 1);
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_windows_of_acts() {
    let step = std::env::var("STRATA_STEP").ok().and_then(|step| step.parse().ok()).unwrap_or(1);
    disturb_every(step, usize::MAX);
}
