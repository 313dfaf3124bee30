//! A saved plan runs exactly as it was reviewed, or not at all.

use serde_json::json;

use crate::world::World;

const TWO: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1}
vms:
  app:
    vmId: 9100
    iso: {url: "https://images.example/rescue.iso"}
    memory: 512
    disk: 4
    started: false
"#;

fn planned() -> World {
    let world = World::instant(TWO);
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.edit("stacks/web/stack.yaml", "memory: 512", "memory: 1024");
    world.strata().run(&["plan", "-o", "reviewed.plan"]).ok();
    world
}

#[test]
fn a_fresh_plan_runs() {
    let world = planned();
    world.strata().run(&["apply", "reviewed.plan", "--yes"]).ok();
    world.assert_settled();
    // It cannot run twice: the state has moved on.
    let again = world.strata().run(&["apply", "reviewed.plan", "--yes"]).code(3);
    assert!(again.stderr.contains("the state went from serial"), "{}", again.all());
}

#[test]
fn a_plan_is_stale_after_the_source_changed() {
    let world = planned();
    world.repo.edit("stacks/web/stack.yaml", "memory: 1024", "memory: 2048");
    let before = world.export();
    let refused = world.strata().run(&["apply", "reviewed.plan", "--yes"]).code(3);
    assert!(refused.stderr.contains("the source changed"), "{}", refused.all());
    assert_eq!(world.export(), before);
}

#[test]
fn a_plan_is_stale_after_a_live_object_changed() {
    let world = planned();
    world.sim.control().change(&json!({
        "method": "PUT", "path": "/nodes/pve1/qemu/9100/config", "params": {"cores": 3},
    }));
    let before = world.export();
    let refused = world.strata().run(&["apply", "reviewed.plan", "--yes"]).code(3);
    assert!(refused.stderr.contains("`web/vm/app` was changed"), "{}", refused.all());
    assert_eq!(world.export(), before);
}

#[test]
fn a_plan_is_stale_after_the_state_changed() {
    let world = planned();
    world.strata().run(&["state", "rm", "web/image/app@pve1"]).ok();
    let refused = world.strata().run(&["apply", "reviewed.plan", "--yes"]).code(3);
    assert!(refused.stderr.contains("serial"), "{}", refused.all());
}

#[test]
fn a_tampered_plan_is_refused() {
    let world = planned();
    world.repo.edit("reviewed.plan", "1024", "4096");
    let refused = world.strata().run(&["apply", "reviewed.plan", "--yes"]).code(3);
    assert!(refused.stderr.contains("was changed after it was made"), "{}", refused.all());
}

#[test]
fn a_change_between_our_read_and_our_write_is_refused_by_digest() {
    let world = planned();
    let control = world.sim.control();
    let held = control.fault(&json!({"kind": "hold-before", "writes": true, "path": "*/qemu/9100/config"}));
    let mut child = world.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(held, 30.0));
    control.change(&json!({"edit": {"vmid": 9100, "set": {"cores": "7"}}}));
    control.release(held);
    assert_ne!(child.wait().unwrap().code(), Some(0));
    let config = world.export().to_string();
    assert!(config.contains("\"cores\":7") || config.contains("\"cores\":\"7\""), "{config}");
    control.clear_faults();
    // The next apply sees the change and says what it does about it.
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}
