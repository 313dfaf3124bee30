//! A3 and A11: what is not shown, or does not answer, is unknown. It is never created over and never forgotten; the rest is planned.

use serde_json::{Value, json};

use crate::world::World;

const TWO: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
vms:
  seen: {vmId: 9400, iso: {url: "https://images.example/rescue.iso"}, disk: 4}
  hidden: {vmId: 9500, node: pve2, iso: {url: "https://images.example/other.iso"}, disk: 4}
containers:
  box: {vmId: 9600, node: pve2, image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}, disk: 4}
"#;

fn root(world: &World, method: &str, path: &str, params: &Value) {
    let answer = world.sim.control().change(&json!({"method": method, "path": path, "params": params}));
    assert_eq!(answer["status"], 200, "{method} {path}: {answer}");
}

/// The user of the token sees nothing on the path any more, or again.
fn hide(world: &World, path: &str, hidden: bool) {
    let params =
        json!({"path": path, "users": "strata@pve", "roles": "NoAccess", "delete": u8::from(!hidden)});
    root(world, "PUT", "/access/acl", &params);
}

fn known(world: &World) -> String {
    world.strata().run(&["state", "list", "web"]).ok().stdout
}

fn has_guest(world: &World, vmid: u32) -> bool {
    world.export()["guests"].to_string().contains(&vmid.to_string())
}

#[test]
fn a3_invisible_is_not_absent() {
    let world = World::instant(TWO);
    world.strata().run(&["apply", "--yes"]).ok();
    hide(&world, "/vms/9500", true);
    let plan = world.strata().run(&["plan", "--detailed-exitcode"]).code(2);
    let said = "a guest with VMID 9500 exists, and this login cannot see it";
    assert!(
        plan.stdout.contains(said) && plan.stdout.contains("`VM.Audit` on `/vms/9500`"),
        "{}",
        plan.all()
    );
    assert!(!plan.stdout.contains("to create"), "{}", plan.all());
    let drift = world.strata().run(&["drift"]).code(2);
    assert!(drift.stdout.contains(said) && !drift.stdout.contains("it is gone"), "{}", drift.all());
    // The others are changed; what is not seen stays as it is, and in the state.
    world.repo.edit("stacks/web/stack.yaml", "seen: {vmId: 9400,", "seen: {vmId: 9400, memory: 768,");
    let apply = world.strata().run(&["apply", "--yes"]).code(1);
    assert!(apply.all().contains("cannot be seen"), "{}", apply.all());
    assert!(world.export()["guests"].to_string().contains("768"));
    assert!(known(&world).contains("web/vm/hidden"));
    let destroy = world.strata().run(&["destroy", "--yes"]).code(1);
    assert!(
        destroy.all().contains("1 destroyed") || destroy.all().contains("destroyed"),
        "{}",
        destroy.all()
    );
    assert!(has_guest(&world, 9500) && !has_guest(&world, 9400), "{}", destroy.all());
    assert!(known(&world).contains("web/vm/hidden"), "{}", destroy.all());
    hide(&world, "/vms/9500", false);
    world.strata().run(&["destroy", "--yes"]).ok();
    assert!(!has_guest(&world, 9500));
    assert_eq!(known(&world).trim(), "");
}

/// Nobody has it in a state, and it must not be created over either.
#[test]
fn a3_an_invisible_guest_is_not_created_over() {
    let world = World::instant(TWO);
    world.stranger(9400);
    hide(&world, "/vms/9400", true);
    let plan = world.strata().run(&["plan"]);
    assert!(plan.stdout.contains("VMID 9400") && plan.stdout.contains("cannot see"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).code(1);
    assert!(has_guest(&world, 9500) && world.export().to_string().contains("not yours"));
    assert!(!known(&world).contains("web/vm/seen"));
}

/// Removed from the source while it cannot be seen: it is kept in the state until it can be.
#[test]
fn a3_an_invisible_guest_that_left_the_source_is_not_forgotten() {
    let world = World::instant(TWO);
    world.strata().run(&["apply", "--yes"]).ok();
    hide(&world, "/vms/9600", true);
    let stack = world.repo.read("stacks/web/stack.yaml");
    world.repo.write("stacks/web/stack.yaml", &stack[..stack.find("containers:").unwrap()]);
    let apply = world.strata().run(&["apply", "--yes"]).code(1);
    assert!(apply.all().contains("VMID 9600"), "{}", apply.all());
    assert!(known(&world).contains("web/container/box"));
    // The image that it was made from stays too: it may be needed.
    assert!(known(&world).contains("web/image/"), "{}", known(&world));
    hide(&world, "/vms/9600", false);
    world.strata().run(&["apply", "--yes"]).ok();
    assert!(!has_guest(&world, 9600));
    world.assert_settled();
}

#[test]
fn a3_a_hidden_storage_does_not_hide_its_volumes_for_good() {
    let world = World::instant(TWO);
    world.strata().run(&["apply", "--yes"]).ok();
    hide(&world, "/storage/local", true);
    let plan = world.strata().run(&["plan", "--detailed-exitcode"]).code(2);
    assert!(plan.stdout.contains("/storage/local"), "{}", plan.all());
    assert!(!plan.stdout.contains("to create") && !plan.stdout.contains("to destroy"), "{}", plan.all());
    let before = known(&world);
    world.strata().run(&["apply", "--yes"]).code(1);
    assert_eq!(known(&world), before);
    hide(&world, "/storage/local", false);
    world.assert_settled();
}

/// A hypervisor is down: its guests and volumes are unknown, the others are planned.
#[test]
fn a11_a_hypervisor_that_does_not_answer_blocks_only_its_own() {
    let world = World::instant(TWO);
    world.strata().run(&["apply", "--yes"]).ok();
    let host = |up: bool| world.sim.control().change(&json!({"host": {"node": "pve2", "up": up}}));
    host(false);
    world.repo.edit("stacks/web/stack.yaml", "seen: {vmId: 9400,", "seen: {vmId: 9400, memory: 768,");
    world.sim.control().reset_requests();
    let plan = world.strata().run(&["plan", "--detailed-exitcode"]).code(2);
    assert!(plan.stdout.contains("the hypervisor `pve2` is unreachable"), "{}", plan.all());
    assert!(plan.stdout.contains("1 to change") && !plan.stdout.contains("to create"), "{}", plan.all());
    assert!(world.sim.requests() < 60, "it is asked a few times, not until a deadline");
    world.strata().run(&["apply", "--yes"]).code(1);
    assert!(world.export()["guests"].to_string().contains("768"));
    assert!(known(&world).contains("web/vm/hidden") && known(&world).contains("web/container/box"));
    let drift = world.strata().run(&["drift"]).code(2);
    assert!(drift.stdout.contains("`pve2` is unreachable"), "{}", drift.all());
    world.strata().run(&["destroy", "--yes"]).code(1);
    assert!(!has_guest(&world, 9400) && has_guest(&world, 9500) && has_guest(&world, 9600));
    host(true);
    world.strata().run(&["destroy", "--yes"]).ok();
    assert!(!has_guest(&world, 9500) && !has_guest(&world, 9600));
    assert_eq!(known(&world).trim(), "");
}

/// A run dies, its hypervisor goes down, and the source changes: the entry stays open until somebody can look.
#[test]
fn a11_an_open_entry_on_a_dead_hypervisor_does_not_block_the_others() {
    let world = World::with(strata_sim::Pace::FAST, TWO);
    let control = world.sim.control();
    let fault = control.fault(&json!({"kind": "hold-after", "method": "POST", "path": "/nodes/pve2/qemu"}));
    let mut child = world.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(fault, 60.0));
    child.kill().unwrap();
    child.wait().unwrap();
    control.release(fault);
    control.clear_faults();
    control.change(&json!({"host": {"node": "pve2", "up": false}}));
    let stack = world.repo.read("stacks/web/stack.yaml");
    let begin = stack.find("  hidden:").unwrap();
    let end = stack.find("containers:").unwrap();
    world.repo.write("stacks/web/stack.yaml", &stack[..begin]);
    assert!(end > begin);
    let apply = world.strata().run(&["apply", "--yes"]).code(1);
    assert!(has_guest(&world, 9400), "{}", apply.all());
    control.change(&json!({"host": {"node": "pve2", "up": true}}));
    let mut again = world.strata().run(&["apply", "--yes"]);
    while again.code != 0 && super::unlock_as_told(&world, &again.all()) {
        again = world.strata().run(&["apply", "--yes"]);
    }
    assert_eq!(again.code, 0, "{}", again.all());
    assert!(!has_guest(&world, 9500), "{}", again.all());
    world.assert_settled();
}
