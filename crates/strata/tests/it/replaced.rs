//! `--replace`: an object is deleted and made again although nothing about it asks for that. Once, whatever ends the run.

use serde_json::{Value, json};

use crate::kill::assert_same;
use crate::world::World;

const WEB: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1}
vms:
  db:
    vmId: 9110
    iso: {url: "https://images.example/rescue.iso"}
    memory: 512
    disk: 4
    started: false
  dev:
    vmId: 9111
    iso: {url: "https://images.example/other.iso"}
    memory: 512
    disk: 4
    started: false
"#;

fn applied() -> World {
    let world = World::instant(WEB);
    world.strata().run(&["apply", "--yes"]).ok();
    world
}

/// Leaves a trace in a guest that only this one has: the source says nothing of it.
fn trace(world: &World, vmid: u64, key: &str) -> bool {
    let path = format!("/nodes/pve1/qemu/{vmid}/config");
    let change = json!({"method": "PUT", "path": path, "params": {key: 1}});
    world.sim.control().change(&change)["status"] == 200
}

fn has_trace(world: &World, vmid: u64, key: &str) -> bool {
    let export = world.export();
    let guests = export["guests"].as_array().cloned().unwrap_or_default();
    guests.iter().any(|guest| guest["vmid"] == vmid && guest["config"].get(key).is_some())
}

fn without_traces(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            map.retain(|key, _| !matches!(key.as_str(), "tdf" | "autostart" | "digest"));
            map.values_mut().for_each(|inner| *inner = without_traces(inner.take()));
        }
        Value::Array(list) => list.iter_mut().for_each(|inner| *inner = without_traces(inner.take())),
        _ => {}
    }
    value
}

#[test]
fn d2_a_guest_is_replaced_because_somebody_asks_for_it() {
    let world = applied();
    assert!(trace(&world, 9110, "tdf") && trace(&world, 9111, "tdf"));
    world.assert_settled();
    let plan = world.strata().run(&["plan", "--replace", "web/vm/db"]).ok();
    insta::assert_snapshot!(plan.stdout, @r"
    web (workloads, test/web)
    -/+ web/vm/db  VM 9110 on pve1, replaced: destroyed and recreated
          `--replace` asks for it
          its volumes are deleted: scsi0 4 GiB on local-lvm

    1 to replace, 3 unchanged
    blast radius: workloads: 1 in 1 stack
    ");
    world.strata().run(&["apply", "--replace", "web/vm/db", "--yes"]).ok();
    world.assert_settled();
    assert!(!has_trace(&world, 9110, "tdf") && has_trace(&world, 9111, "tdf"));
    // Of what is selected, too, and with nothing else.
    assert!(trace(&world, 9110, "tdf"));
    world.repo.edit("stacks/web/stack.yaml", "    vmId: 9111\n", "    vmId: 9111\n    tags: [new]\n");
    world.strata().run(&["apply", "web/vm/db", "--replace", "web/vm/db", "--yes"]).ok();
    assert!(!has_trace(&world, 9110, "tdf"));
    world.strata().run(&["plan", "--detailed-exitcode"]).code(2);
}

#[test]
fn d2_what_is_protected_or_unknown_is_not_replaced() {
    let world = applied();
    let before = world.export();
    let unknown = world.strata().run(&["apply", "--replace", "web/vm/bd", "--yes"]).code(1);
    assert!(unknown.all().contains("did you mean `web/vm/db`?"), "{}", unknown.all());
    let pattern = world.strata().run(&["apply", "--replace", "web/vm/*", "--yes"]).code(1);
    assert!(pattern.all().contains("nothing is called `web/vm/*`"), "{}", pattern.all());
    world.repo.edit("stacks/web/stack.yaml", "    vmId: 9110\n", "    vmId: 9110\n    protect: true\n");
    let protected = world.strata().run(&["apply", "--replace", "web/vm/db", "--yes"]).code(3);
    assert!(
        protected.all().contains("it is protected, and the plan would replace it"),
        "{}",
        protected.all()
    );
    assert_eq!(world.export(), before);
}

#[test]
fn d2_a_saved_plan_replaces_what_it_says_once() {
    let world = applied();
    assert!(trace(&world, 9110, "tdf"));
    let file = world.repo.file("replace.plan");
    let file = file.to_str().unwrap_or_default();
    world.strata().run(&["plan", "--replace", "web/vm/db", "-o", file]).ok();
    let shown = world.strata().run(&["show", file]).ok();
    assert!(shown.stdout.contains("replaced: web/vm/db"), "{}", shown.all());
    // Removed from the file, what it does is another plan.
    let text = world.repo.read("replace.plan");
    world.repo.write("other.plan", &text.replace("\"web/vm/db\"\n  ],", "\"web/vm/dev\"\n  ],"));
    let other = world.repo.file("other.plan");
    world.strata().run(&["apply", other.to_str().unwrap_or_default(), "--yes"]).code(3);
    world.strata().run(&["apply", file, "--replace", "web/vm/db", "--yes"]).code(64);
    assert!(has_trace(&world, 9110, "tdf"));
    world.strata().run(&["apply", file, "--yes"]).ok();
    assert!(!has_trace(&world, 9110, "tdf"));
    assert!(trace(&world, 9110, "autostart"));
    let again = world.strata().run(&["apply", file, "--yes"]).code(3);
    assert!(again.all().contains("stale"), "{}", again.all());
    assert!(has_trace(&world, 9110, "autostart"));
}

#[test]
fn a_replacement_that_was_killed_is_not_done_twice() {
    let world = applied();
    assert!(trace(&world, 9110, "tdf"));
    let control = world.sim.control();
    let made = control.fault(&json!({"kind": "hold-after", "method": "POST", "path": "*/nodes/pve1/qemu"}));
    let mut child = world.strata().spawn(&["apply", "--replace", "web/vm/db", "--yes"]);
    assert!(control.wait_fault(made, 30.0));
    let _ = child.kill();
    let _ = child.wait();
    control.release(made);
    control.clear_faults();
    assert!(!has_trace(&world, 9110, "tdf"), "it is the new one");
    assert!(trace(&world, 9110, "autostart"));
    // The same command again: what it asked for is there.
    world.strata().run(&["apply", "--replace", "web/vm/db", "--yes"]).ok();
    assert!(has_trace(&world, 9110, "autostart"), "it was replaced a second time");
    world.assert_settled();
}

/// Killed at some requests, then applied: made once more, and as it was but for what the server makes up.
fn kill_replacements(step: usize) {
    let world = applied();
    world.sim.control().reset_requests();
    world.strata().run(&["apply", "--replace", "web/vm/db", "--yes"]).ok();
    let (requests, expected) = (world.sim.requests(), without_traces(world.export()));
    for kind in ["hold-before", "hold-after"] {
        for k in (1..=requests).step_by(step) {
            let world = applied();
            let fault = json!({"kind": kind, "nth": k});
            world.strata().kill_at(
                &world.sim.control(),
                &fault,
                &["apply", "--replace", "web/vm/db", "--yes"],
            );
            // Whichever is there now stays: only one that is gone is made again.
            let there = trace(&world, 9110, "autostart");
            world.strata().run(&["apply", "--yes"]).ok();
            world.assert_settled();
            assert_eq!(has_trace(&world, 9110, "autostart"), there, "{kind} {k}");
            let found = without_traces(world.export());
            assert_same(&found, &expected, &format!("{kind} {k}"));
        }
    }
}

#[test]
fn a_kill_at_some_requests_of_a_replacement_loses_nothing() {
    kill_replacements(9);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_requests_of_a_replacement() {
    kill_replacements(1);
}
