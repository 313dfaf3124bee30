//! What is not ours is never adopted, changed or deleted, and the error names it.

use serde_json::json;

use crate::world::World;

const ONE: &str = r#"
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

#[test]
fn a_stranger_on_a_planned_vmid_is_named_and_left_alone() {
    let world = World::instant(ONE);
    world.stranger(9100);
    let before = world.export();
    let plan = world.strata().run(&["plan"]).code(3);
    assert!(plan.stdout.contains("9100") && plan.stdout.contains("stranger"), "{}", plan.all());
    assert!(plan.stdout.contains("stacks/web/stack.yaml:"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).code(3);
    world.strata().run(&["destroy", "--yes"]).ok();
    assert_eq!(world.export(), before);
}

#[test]
fn a_stranger_that_appears_between_plan_and_create_is_left_alone() {
    let world = World::instant(ONE);
    let control = world.sim.control();
    let fault = control.fault(&json!({"kind": "hold-before", "method": "POST", "path": "*/nodes/pve1/qemu"}));
    let mut child = world.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(fault, 30.0));
    world.stranger(9100);
    control.release(fault);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let guests = world.export().to_string();
    assert!(guests.contains("not yours"), "{guests}");
    let again = world.strata().run(&["apply", "--yes"]).code(3);
    assert!(again.stdout.contains("9100"), "{}", again.all());
    world.strata().run(&["destroy", "--yes"]).ok();
    assert!(world.export().to_string().contains("not yours"));
}

#[test]
fn a_stranger_that_appears_while_our_create_is_retried_is_left_alone() {
    let world = World::instant(ONE);
    let control = world.sim.control();
    // The create is refused as busy once; before it is sent again somebody takes the VMID.
    control.fault(&json!({
        "kind": "refuse", "status": 500, "method": "POST", "path": "*/nodes/pve1/qemu",
        "text": "can't lock file '/var/lock/qemu-server/lock-9100.conf' - got timeout",
    }));
    let held = control.fault(&json!({"kind": "hold-before", "method": "POST", "path": "*/nodes/pve1/qemu"}));
    let mut child = world.strata().spawn(&["apply", "--yes"]);
    if control.wait_fault(held, 20.0) {
        world.stranger(9100);
        control.release(held);
    }
    let code = child.wait().unwrap().code();
    assert_ne!(code, Some(0));
    control.clear_faults();
    assert!(world.export().to_string().contains("not yours"));
}

#[test]
fn copies_of_our_guests_are_not_ours() {
    let world = World::instant(ONE);
    world.strata().run(&["apply", "--yes"]).ok();
    // Somebody clones our guest, notes and all, and restores a backup of it under another VMID that we plan next.
    let clone = json!({"method": "POST", "path": "/nodes/pve1/qemu/9100/clone", "params": {"newid": 9300, "full": 1}});
    assert_eq!(world.sim.control().change(&clone)["status"], 200);
    world.sim.control().change(&json!({"restore": {"from": 9100, "vmid": 9101}}));
    world.repo.edit(
        "stacks/web/stack.yaml",
        "  app:\n    vmId: 9100",
        "  app:\n    count: 2\n    vmId: 9100",
    );
    let plan = world.strata().run(&["plan"]);
    assert_eq!(plan.code, 3, "{}", plan.all());
    assert!(plan.stdout.contains("9101"), "{}", plan.all());
    world.strata().run(&["destroy", "--yes"]).ok();
    let left = world.export().to_string();
    assert!(left.contains("9300") && left.contains("9101"), "the copies stay: {left}");
}

#[test]
fn a_guest_whose_notes_were_edited_is_still_ours() {
    let world = World::instant(ONE);
    world.strata().run(&["apply", "--yes"]).ok();
    world.sim.control().change(&json!({
        "method": "PUT", "path": "/nodes/pve1/qemu/9100/config", "params": {"description": "mine now"},
    }));
    let drift = world.strata().run(&["drift"]).code(2);
    assert!(drift.stdout.contains("web/vm/app"), "{}", drift.all());
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    assert!(world.export().to_string().contains("strata: "));
}

#[test]
fn a_volume_that_bears_a_vmid_of_ours_is_not_deleted_with_it() {
    let world = World::instant(ONE);
    world.strata().run(&["apply", "--yes"]).ok();
    world.sim.control().change(&json!({
        "volume": {"volid": "local-lvm:vm-9100-disk-7", "node": "pve1", "size": 1_073_741_824_u64, "content": "images", "vmid": 9100},
    }));
    world.strata().run(&["destroy", "--yes"]).ok();
    assert!(world.export().to_string().contains("vm-9100-disk-7"));
}
