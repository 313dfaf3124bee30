//! A2, A8 and A12: no operation is done because a call or a task said so.

use serde_json::{Value, json};

use crate::world::World;

const ONE: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
vms:
  app: {vmId: 9100, iso: {url: "https://images.example/rescue.iso"}, disk: 4, network: [{bridge: vmbr0}]}
"#;

const DELETE: &str = "/nodes/pve1/qemu/9100";

fn known(world: &World) -> String {
    world.strata().run(&["state", "list", "web"]).ok().stdout
}

fn is_there(world: &World) -> bool {
    world.export()["guests"].to_string().contains("9100")
}

/// The DELETE is answered with something that sounds as if the guest were gone, or its task is forgotten.
#[test]
fn a2_a_refused_delete_is_not_told_as_destroyed() {
    let refused =
        |status: u16, text: &str| json!({"kind": "refuse", "status": status, "text": text, "count": 0});
    let answers = [
        refused(500, "hostname lookup 'pve1' failed - failed to get address info for: pve1"),
        refused(404, "<html><head><title>404 Not Found</title></head></html>"),
        refused(500, "no such file or directory"),
        refused(500, "storage 'other' does not exist"),
        refused(500, "Configuration file 'nodes/pve1/qemu-server/9200.conf' does not exist"),
        json!({"kind": "forget-task", "count": 0}),
    ];
    for mut answer in answers {
        let world = World::instant(ONE);
        world.strata().run(&["apply", "--yes"]).ok();
        (answer["method"], answer["path"]) = (json!("DELETE"), json!(DELETE));
        world.sim.control().fault(&answer);
        let destroy = world.strata().run(&["destroy", "--yes"]).code(1);
        assert!(is_there(&world), "{answer}: {}", destroy.all());
        assert!(known(&world).contains("web/vm/app"), "{answer}: {}", destroy.all());
        world.sim.control().clear_faults();
        world.strata().run(&["destroy", "--yes"]).ok();
        assert!(!is_there(&world) && known(&world).trim().is_empty());
    }
}

#[test]
fn a2_a_volume_whose_deletion_did_nothing_stays_known() {
    let world = World::instant(ONE);
    world.strata().run(&["apply", "--yes"]).ok();
    let path = "/nodes/pve1/storage/local/content/*";
    world.sim.control().fault(&json!({"kind": "forget-task", "method": "DELETE", "path": path, "count": 0}));
    let destroy = world.strata().run(&["destroy", "--yes"]).code(1);
    assert!(known(&world).contains("web/image/"), "{}", destroy.all());
    world.sim.control().clear_faults();
    world.strata().run(&["destroy", "--yes"]).ok();
}

/// The tasks of an update are forgotten and did nothing: none of them counts as done.
#[test]
fn a2_a_forgotten_task_proves_nothing() {
    let grown = ONE.replace("disk: 4", "disk: 8");
    let moved = ONE.replace("vmId: 9100,", "vmId: 9100, node: pve2,");
    let stopped = ONE.replace("vmId: 9100,", "vmId: 9100, started: false,");
    let changes = [
        (grown, "PUT", "/nodes/pve1/qemu/9100/resize"),
        (moved, "POST", "/nodes/pve1/qemu/9100/migrate"),
        (stopped, "POST", "/nodes/pve1/qemu/9100/status/*"),
    ];
    for (changed, method, path) in changes {
        let world = World::instant(ONE);
        world.strata().run(&["apply", "--yes"]).ok();
        world.repo.write("stacks/web/stack.yaml", &changed);
        world
            .sim
            .control()
            .fault(&json!({"kind": "forget-task", "method": method, "path": path, "count": 0}));
        let apply = world.strata().run(&["apply", "--yes"]);
        assert_eq!(apply.code, 1, "{path}: {}", apply.all());
        world.sim.control().clear_faults();
        world.strata().run(&["apply", "--yes"]).ok();
        world.assert_settled();
    }
}

/// The task that makes a template is forgotten and did nothing: that is said soon, and not after the hour that copying a disk may take.
#[test]
fn a2_a_forgotten_task_is_not_waited_for() {
    let world = World::instant(
        r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
templates:
  debian: {vmId: 9000, image: {url: "https://images.example/debian.qcow2"}, disk: 10}
"#,
    );
    let fault = json!({"kind": "forget-task", "method": "POST", "path": "/nodes/pve1/qemu/9000/template", "count": 0});
    world.sim.control().fault(&fault);
    let failed = world.strata().run(&["apply", "--yes"]).code(1);
    assert!(failed.all().contains("its task has ended"), "{}", failed.all());
    world.sim.control().clear_faults();
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}

#[test]
fn a12_warnings_of_a_task_are_told() {
    let world = World::instant(ONE);
    world.sim.control().fault(&json!({"kind": "warn-task", "method": "POST", "path": "/nodes/pve1/qemu"}));
    let apply = world.strata().run(&["apply", "--yes"]).ok();
    assert!(apply.all().contains("WARN: this is a warning"), "{}", apply.all());
    world.repo.edit("stacks/web/stack.yaml", "vmId: 9100,", "vmId: 9100, started: false,");
    world.sim.control().fault(&json!({"kind": "warn-task", "method": "POST", "path": "*/status/shutdown"}));
    let apply = world.strata().run(&["--json", "apply", "--yes"]).ok();
    assert!(apply.stdout.contains("step-warning"), "{}", apply.all());
    world.assert_settled();
}

/// While a guest shuts down somebody attaches a disk, or replaces its notes: it is not deleted.
#[test]
fn a8_the_delete_of_a_running_guest_compares_again() {
    let edits: [Value; 3] = [
        json!({"method": "PUT", "path": "/nodes/pve1/qemu/9100/config", "params": {"scsi5": "local-lvm:1"}}),
        json!({"method": "PUT", "path": "/nodes/pve1/qemu/9100/config", "params": {"description": "mine now"}}),
        json!({"edit": {"vmid": 9100, "set": {"smbios1": "uuid=11111111-2222-3333-4444-555555555555"}, "delete": ["description"]}}),
    ];
    for edit in edits {
        let world = World::instant(ONE);
        world.strata().run(&["apply", "--yes"]).ok();
        let control = world.sim.control();
        let fault =
            control.fault(&json!({"kind": "hold-after", "method": "POST", "path": "*/9100/status/shutdown"}));
        let mut child = world.strata().spawn(&["destroy", "--yes"]);
        assert!(control.wait_fault(fault, 60.0));
        control.change(&edit);
        control.release(fault);
        assert_eq!(child.wait().unwrap().code(), Some(1), "{edit}");
        assert!(is_there(&world), "{edit}: it was deleted");
    }
}
