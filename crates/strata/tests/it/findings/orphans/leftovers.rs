//! A13 and R2: what a crashed hypervisor or a task that never began leaves is known by the journal, and ends.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::World;

const HEAD: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
templates:
  debian: {vmId: 9000, image: {url: "https://images.example/debian.qcow2"}, disk: 10}
"#;
const GUESTS: &str = r#"
vms:
  app: {vmId: 9100, template: debian, disk: {storage: local-lvm, size: 12}, network: [{bridge: vmbr0}]}
  own: {vmId: 9110, iso: {url: "https://images.example/rescue.iso"}, disk: 4}
containers:
  dns: {vmId: 9200, image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}, disk: 4}
"#;

/// Does what the output tells a person to do: `qm unlock N` or `pct unlock N`. Gives whether there was anything.
pub(crate) fn unlock_as_told(world: &World, output: &str) -> bool {
    let mut unlocked = false;
    for part in output.split('`').filter(|part| part.contains(" unlock ")) {
        let vmid: Option<u32> = part.rsplit(' ').next().and_then(|vmid| vmid.parse().ok());
        if let Some(vmid) = vmid {
            world.sim.control().change(&json!({"edit": {"vmid": vmid, "delete": ["lock"]}}));
            unlocked = true;
        }
    }
    unlocked
}

fn with_root(world: &World) {
    world.repo.write("root-password", strata_sim::ROOT_PASSWORD);
    world.repo.edit(
        "strata.yaml",
        "token: {file: sim-token}",
        "token: {file: sim-token}\n      login: {user: root@pam, password: {file: root-password}}",
    );
}

fn undisturbed(stack: &str) -> Value {
    let world = World::instant(stack);
    world.strata().run(&["apply", "--yes"]).ok();
    world.export()
}

fn makes() -> [(&'static str, &'static str); 3] {
    [
        ("/nodes/pve1/qemu/9000/clone", "qm unlock 9100"),
        ("/nodes/pve1/qemu", "qm unlock 9110"),
        ("/nodes/pve1/lxc", "pct unlock 9200"),
    ]
}

/// The task of a create cannot be started. Without root a person is told what to do; what was begun is known after that.
#[test]
fn r2_a_create_whose_task_did_not_start_ends() {
    let whole = format!("{HEAD}{GUESTS}");
    let expected = undisturbed(&whole);
    let without = undisturbed(HEAD);
    for (path, command) in makes() {
        for keep in [true, false] {
            let world = World::instant(HEAD);
            world.strata().run(&["apply", "--yes"]).ok();
            world.repo.write("stacks/web/stack.yaml", &whole);
            world.sim.control().fault(&json!({"kind": "no-worker", "method": "POST", "path": path}));
            let failed = world.strata().run(&["apply", "--yes"]).code(1);
            assert!(failed.all().contains(command), "{path}: {}", failed.all());
            let again = world.strata().run(&["apply", "--yes"]).code(1);
            assert!(again.all().contains(command), "{path}: {}", again.all());
            assert!(unlock_as_told(&world, &again.all()));
            if !keep {
                world.repo.write("stacks/web/stack.yaml", HEAD);
            }
            let ended = world.strata().run(&["apply", "--yes"]);
            assert_eq!(ended.code, 0, "{path}: {}", ended.all());
            assert_eq!(world.export(), if keep { expected.clone() } else { without.clone() }, "{path}");
            world.assert_settled();
        }
    }
}

/// With a login as root it ends by itself.
#[test]
fn r2_root_takes_a_stale_lock_away() {
    let whole = format!("{HEAD}{GUESTS}");
    let expected = undisturbed(&whole);
    for (path, _) in makes().into_iter().filter(|(path, _)| path.contains("qemu")) {
        let world = World::instant(&whole);
        with_root(&world);
        world.sim.control().fault(&json!({"kind": "no-worker", "method": "POST", "path": path}));
        let applied = world.strata().run(&["apply", "--yes"]);
        assert_eq!(applied.code, 0, "{path}: {}", applied.all());
        assert_eq!(world.export(), expected, "{path}");
        world.assert_settled();
    }
}

/// Nothing was done by a change or a delete whose task did not start: it is sent again.
#[test]
fn r2_a_change_whose_task_did_not_start_is_tried_again() {
    let whole = format!("{HEAD}{GUESTS}");
    for path in ["*/status/start", "*/template", "*/storage/local/download-url", "*/9100/resize"] {
        let world = World::instant(&whole);
        world.sim.control().fault(&json!({"kind": "no-worker", "path": path}));
        let applied = world.strata().run(&["apply", "--yes"]);
        assert_eq!(applied.code, 0, "{path}: {}", applied.all());
        world.sim.control().fault(&json!({"kind": "no-worker", "method": "DELETE", "count": 2}));
        world.strata().run(&["destroy", "--yes"]).ok();
        assert!(!world.export()["guests"].to_string().contains("9100"), "{path}");
    }
}

/// A hypervisor crashes in the middle of a clone: a lock, a dead task, no mark. It comes back, and the apply after that ends.
#[test]
fn a13_a_clone_that_a_crashed_hypervisor_left_ends() {
    let whole = format!("{HEAD}{GUESTS}");
    let expected = undisturbed(&whole);
    for (root, source) in [(true, &whole), (false, &whole)] {
        let world = World::instant(HEAD);
        if root {
            with_root(&world);
        }
        world.strata().run(&["apply", "--yes"]).ok();
        world.repo.write("stacks/web/stack.yaml", source);
        let control = world.sim.control();
        let clone = "/nodes/pve1/qemu/9000/clone";
        control.fault(&json!({"kind": "forget-task", "method": "POST", "path": clone}));
        let held =
            control.fault(&json!({"kind": "hold-before", "method": "GET", "path": "*/tasks/*qmclone*"}));
        let mut child = world.strata().spawn(&["apply", "--yes"]);
        assert!(control.wait_fault(held, 60.0));
        control.change(&json!({"host": {"node": "pve1", "up": false}}));
        child.kill().unwrap();
        child.wait().unwrap();
        control.release(held);
        control.clear_faults();
        control.change(&json!({"host": {"node": "pve1", "up": true}}));
        let mut applied = world.strata().run(&["apply", "--yes"]);
        if !root {
            assert_eq!(applied.code, 1, "{}", applied.all());
            assert!(applied.all().contains("qm unlock 9100"), "{}", applied.all());
            assert!(unlock_as_told(&world, &applied.all()));
            applied = world.strata().run(&["apply", "--yes"]);
        }
        assert_eq!(applied.code, 0, "{}", applied.all());
        let (found, wanted) = (world.export(), &expected);
        crate::kill::assert_same(&found["guests"], &wanted["guests"], &applied.all());
        world.assert_settled();
    }
}

/// What a lock holds up is its own guest: the others are made and changed, and the run says what is left and what a person has to do.
#[test]
fn r2_a_stale_lock_blocks_only_its_own_guest() {
    let whole = format!("{HEAD}{GUESTS}");
    for (path, command) in makes() {
        let world = World::instant(HEAD);
        world.strata().run(&["apply", "--yes"]).ok();
        world.repo.write("stacks/web/stack.yaml", &whole);
        world.sim.control().fault(&json!({"kind": "no-worker", "method": "POST", "path": path}));
        world.strata().run(&["apply", "--yes"]).code(1);
        // The hypervisor will not end it, and the source goes on.
        let more = whole
            .replace(
                "disk: {storage: local-lvm, size: 12}",
                "memory: 1024, disk: {storage: local-lvm, size: 12}",
            )
            .replace("rescue.iso\"}", "rescue.iso\"}, memory: 1024")
            .replace("amd64.tar.zst\"}", "amd64.tar.zst\"}, memory: 1024");
        world.repo.write("stacks/web/stack.yaml", &more);
        let plan = world.strata().run(&["plan"]);
        assert!(plan.all().contains("is locked"), "{path}: {}", plan.all());
        let applied = world.strata().run(&["apply", "--yes"]).code(1);
        assert!(applied.all().contains(command), "{path}: {}", applied.all());
        let blocked = command.rsplit(' ').next().unwrap();
        for vmid in ["9100", "9110", "9200"].into_iter().filter(|vmid| *vmid != blocked) {
            let guest = crate::windows::guest(&world.export(), vmid);
            assert!(guest.to_string().contains("1024"), "{path}: {vmid} {guest}\n{}", applied.all());
        }
        assert!(unlock_as_told(&world, &applied.all()));
        world.strata().run(&["apply", "--yes"]).ok();
        world.assert_settled();
    }
}

/// A clone that died had made a volume: nobody knows whose it is, so it is named and stays.
#[test]
fn a13_volumes_of_a_clone_that_died_are_named() {
    let whole = format!("{HEAD}{GUESTS}");
    let world = World::instant(HEAD);
    with_root(&world);
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.write("stacks/web/stack.yaml", &whole);
    let control = world.sim.control();
    let clone = "/nodes/pve1/qemu/9000/clone";
    control.fault(&json!({"kind": "no-worker", "method": "POST", "path": clone}));
    let made = control.change(&json!({
        "method": "POST", "path": "/nodes/pve1/storage/local-lvm/content",
        "params": {"vmid": 9100, "filename": "vm-9100-disk-7", "size": "4G"},
    }));
    assert_eq!(made["status"], 200, "{made}");
    let applied = world.strata().run(&["apply", "--yes"]).ok();
    assert!(applied.all().contains("`local-lvm:vm-9100-disk-7`"), "{}", applied.all());
    assert!(world.export().to_string().contains("vm-9100-disk-7"));
    world.assert_settled();
}

/// One SIGTERM ends the wait for a lock that somebody holds.
#[test]
fn r2_a_stop_ends_the_wait_for_a_lock() {
    let whole = format!("{HEAD}{GUESTS}");
    let world = World::instant(HEAD);
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.write("stacks/web/stack.yaml", &whole);
    let control = world.sim.control();
    // The create is carried out without a task and its answer is lost: the run waits for the lock.
    let held = control
        .fault(&json!({"kind": "hold-after", "method": "GET", "path": "/nodes/pve1/qemu/9110/pending"}));
    control.fault(&json!({"kind": "forget-task", "method": "POST", "path": "/nodes/pve1/qemu"}));
    let mut command = world.strata().command(&["apply", "--yes", "--parallelism", "1"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(control.wait_fault(held, 60.0));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").arg(pid).status().unwrap().success());
    control.release(held);
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{told}");
    // What was begun is known: nobody waited for its end.
    let plan = world.strata().run(&["plan"]);
    assert!(plan.all().contains("9110"), "{}", plan.all());
    assert!(world.repo.file(".strata/state/test/web/journal").exists());
}
