//! Where the real Proxmox VE API behaves otherwise than a call's answer suggests.

use serde_json::{Value, json};
use strata_sim::{Pace, ROOT_TOKEN};

use crate::world::World;

const STACK: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: tank}
templates:
  base: {vmId: 9000, image: {url: "https://images.example/debian-12-genericcloud-amd64.qcow2", storage: tank}, disk: 4}
vms:
  app:
    vmId: 9100
    template: base
    cores: 1
    memory: 1024
    disks: {scsi0: {storage: tank, size: 6}}
    network: [vmbr0]
    cloudInit: {user: debian}
"#;
const FILE: &str = "stacks/web/stack.yaml";

/// Reads something as root would, of a server that may be at work.
fn read(world: &World, path: &str) -> Value {
    let answer = world.sim.control().change(&json!({"method": "GET", "path": path}));
    assert_eq!(answer["status"], 200, "{answer}");
    answer["data"].clone()
}

fn change(world: &World, method: &str, path: &str, params: &Value) {
    let answer = world.sim.control().change(&json!({"method": method, "path": path, "params": params}));
    assert_eq!(answer["status"], 200, "{answer}");
}

fn guest(world: &World, vmid: u32) -> Value {
    let export = world.export();
    let mut guests = export["guests"].as_array().unwrap().iter();
    guests.find(|guest| guest["vmid"] == vmid).cloned().unwrap_or_default()
}

/// The process of a guest, which is another one after each start.
fn process(world: &World, node: &str, vmid: u32) -> Value {
    let status = read(world, &format!("/nodes/{node}/qemu/{vmid}/status/current"));
    assert_eq!(status["status"], "running", "{status}");
    status["pid"].clone()
}

/// Looks until high availability knows a service in a state.
pub(crate) fn wait_for_ha(world: &World, sid: &str, state: &str) {
    let id = format!("service:{sid}");
    for _ in 0..1000 {
        let rows = read(world, "/cluster/ha/status/current");
        if rows.as_array().unwrap().iter().any(|row| row["id"] == id && row["state"] == state) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{sid} never was {state}");
}

/// A guest that runs and is left to high availability.
fn managed(stack: &str) -> World {
    let world = World::with(Pace::FAST, stack);
    world.strata().run(&["apply", "--yes"]).ok();
    change(&world, "POST", "/cluster/ha/resources", &json!({"sid": "vm:9100"}));
    wait_for_ha(&world, "vm:9100", "started");
    world
}

#[test]
fn r1_a_restart_is_done_when_the_guest_runs_again() {
    let world = World::with(Pace::FAST, STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    let before = process(&world, "pve1", 9100);
    world.repo.edit(FILE, "memory: 1024", "memory: 2048");
    world.strata().run(&["apply", "--yes"]).ok();
    // At this very moment, not some time later.
    assert_ne!(process(&world, "pve1", 9100), before);
    world.assert_settled();
}

#[test]
fn r1_a_start_that_fails_after_a_reboot_is_told() {
    let world = World::with(Pace::FAST, STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    let text = "start failed: QEMU exited with code 1";
    let order = json!({"kind": "fail-task", "path": "/tasks/qmstart/9100", "user": "root@pam", "text": text});
    world.sim.control().fault(&order);
    world.repo.edit(FILE, "memory: 1024", "memory: 2048");
    let told = world.strata().run(&["apply", "--yes"]).code(1);
    assert!(told.all().contains(text) && told.all().contains("restart VM 9100"), "{}", told.all());
    assert_eq!(guest(&world, 9100)["power"], "stopped");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(guest(&world, 9100)["power"], "running");
    world.assert_settled();
}

#[test]
fn r1_a_guest_that_nobody_starts_again_is_started() {
    // Others' tasks are not shown to this token: only the guest itself tells that it is off.
    let world = World::with(Pace::FAST, STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    let order = json!({"kind": "fail-task", "path": "/tasks/qmstart/9100", "user": "root@pam", "count": 0});
    world.sim.control().fault(&order);
    world.sim.control().fault(
        &json!({"kind": "refuse", "status": 403, "method": "GET", "path": "/nodes/pve1/tasks", "count": 0}),
    );
    world.repo.edit(FILE, "memory: 1024", "memory: 2048");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(guest(&world, 9100)["power"], "running");
    world.sim.control().clear_faults();
    world.assert_settled();
}

#[test]
fn a10_a_managed_guest_is_restarted_stopped_started_and_moved() {
    let world = managed(STACK);
    let before = process(&world, "pve1", 9100);
    world.repo.edit(FILE, "memory: 1024", "memory: 2048");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_ne!(process(&world, "pve1", 9100), before);
    world.assert_settled();
    // What cloud-init reads is written while it is down.
    world.repo.edit(FILE, "user: debian", "user: admin");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(guest(&world, 9100)["power"], "running");
    world.assert_settled();
    world.repo.edit(FILE, "    template: base\n", "    template: base\n    node: pve2\n");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(guest(&world, 9100)["node"], "pve2");
    world.assert_settled();
    world.repo.edit(FILE, "    cores: 1\n", "    cores: 1\n    started: false\n");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(guest(&world, 9100)["power"], "stopped");
    world.assert_settled();
    world.repo.edit(FILE, "    started: false\n", "");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(guest(&world, 9100)["power"], "running");
    world.assert_settled();
}

/// What high availability was asked to do it does without us: one interrupt ends the wait for it, and the next run sees the end.
#[test]
fn a10_an_interrupt_ends_the_wait_for_high_availability() {
    let world = managed(STACK);
    let text = "the agent is slow";
    let order = json!({"kind": "fail-task", "path": "/tasks/qmshutdown/9100", "count": 0, "text": text});
    let slow = json!({"kind": "hold-after", "method": "GET", "path": "*/9100/status/current", "nth": 3});
    world.repo.edit(FILE, "    cores: 1\n", "    cores: 1\n    started: false\n");
    let control = world.sim.control();
    control.fault(&order);
    let asked =
        control.fault(&json!({"kind": "hold-after", "method": "POST", "path": "*/9100/status/shutdown"}));
    let mut child = world.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(asked, 60.0));
    let looked = control.fault(&slow);
    control.release(asked);
    // It has looked whether the guest is off, and looks again.
    assert!(control.wait_fault(looked, 60.0));
    crate::interrupts::interrupt(&child);
    std::thread::sleep(std::time::Duration::from_millis(500));
    control.release(looked);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    control.clear_faults();
    change(&world, "PUT", "/cluster/ha/resources/vm:9100", &json!({"state": "disabled"}));
    wait_for_ha(&world, "vm:9100", "stopped");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(guest(&world, 9100)["power"], "stopped");
    world.assert_settled();
}

#[test]
fn a10_a_managed_guest_is_destroyed_in_order() {
    let world = managed(STACK);
    world.strata().run(&["destroy", "--yes"]).ok();
    assert_eq!(guest(&world, 9100), Value::Null);
    assert_eq!(read(&world, "/cluster/ha/resources"), json!([]));
}

#[test]
fn a10_a_managed_guest_is_not_stopped_for_a_replacement_that_cannot_be() {
    let stack = STACK.replace("    cores: 1\n", "    cores: 1\n    onChange: recreate\n");
    let world = managed(&stack);
    let before = process(&world, "pve1", 9100);
    world.repo.edit(FILE, "user: debian", "user: admin");
    let plan = world.strata().run(&["plan"]);
    assert!(plan.code != 0 && plan.all().contains("HA manages it"), "{}", plan.all());
    // A token that may not list the resources finds out before it stops anything.
    let text = "Permission check failed (/, Sys.Audit)";
    let order = json!({"kind": "refuse", "status": 403, "method": "GET", "path": "/cluster/ha/resources", "count": 0, "text": text});
    world.sim.control().fault(&order);
    let told = world.strata().run(&["apply", "--yes"]);
    assert!(told.code != 0 && told.all().contains("high availability manages VM 9100"), "{}", told.all());
    assert_eq!(process(&world, "pve1", 9100), before);
    world.sim.control().clear_faults();
    change(&world, "DELETE", "/cluster/ha/resources/vm:9100", &json!({}));
    world.strata().run(&["apply", "--yes"]).ok();
    let made = guest(&world, 9100);
    assert!(made["config"]["ciuser"] == "admin" && made["power"] == "running", "{made}");
    assert_ne!(process(&world, "pve1", 9100), before);
    world.assert_settled();
}

#[test]
fn a10_what_high_availability_does_not_do_is_not_done() {
    let world = managed(STACK);
    // The agent is asked to stop it and cannot.
    world
        .sim
        .control()
        .fault(&json!({"kind": "fail-task", "path": "/tasks/qmshutdown/9100", "count": 0, "text": "no way"}));
    world.repo.edit(FILE, "    cores: 1\n", "    cores: 1\n    started: false\n");
    let told = world.strata().run(&["apply", "--yes"]).code(1);
    assert!(told.all().contains("high availability has given VM 9100 up"), "{}", told.all());
    assert_eq!(guest(&world, 9100)["power"], "running");
    world.strata().run(&["destroy", "--yes"]).code(1);
    assert_ne!(guest(&world, 9100), Value::Null);
}

#[test]
fn r3_a_changed_alias_keeps_its_mark_and_its_comment() {
    let world = World::instant(STACK);
    world.repo.remove("stacks/web/stack.yaml");
    world.repo.write("sim-token", ROOT_TOKEN);
    let source = "metadata: {name: dc, environment: test}\nproxmox: {target: pve, nodes: [pve1]}\nfirewall:\n  aliases: {admin: 192.0.2.200/32}\n";
    world.repo.write("hypervisors/dc.yaml", source);
    world.strata().run(&["apply", "--yes"]).ok();
    let comment = || read(&world, "/cluster/firewall/aliases/admin")["comment"].clone();
    let before = comment();
    assert!(before.as_str().unwrap().contains("[strata "), "{before}");
    world.repo.edit("hypervisors/dc.yaml", "192.0.2.200/32", "192.0.2.201/32");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(comment(), before);
    assert_eq!(read(&world, "/cluster/firewall/aliases/admin")["cidr"], "192.0.2.201");
    // Ours by its ownership mark alone, without a state.
    std::fs::remove_dir_all(world.repo.file(".strata/state")).unwrap();
    let plan = world.strata().run(&["plan"]);
    assert!(plan.code != 3 && !plan.all().contains("stranger"), "{}", plan.all());
}

#[test]
fn r4_a_kill_after_the_start_costs_no_restart() {
    let stack = STACK.replace("cloudInit: {user: debian}", "cloudInit: {userData: \"own.yaml\"}");
    for stack in [STACK.replace("{user: debian}", "{user: debian, password: {env: APP_PASSWORD}}"), stack] {
        let world = World::instant(&stack);
        let control = world.sim.control();
        let held =
            control.fault(&json!({"kind": "hold-after", "method": "POST", "path": "*/9100/status/start"}));
        let mut child = world.strata().spawn(&["apply", "--yes"]);
        assert!(control.wait_fault(held, 60.0));
        child.kill().unwrap();
        child.wait().unwrap();
        control.clear_faults();
        let before = process(&world, "pve1", 9100);
        let told = world.strata().run(&["apply", "--yes"]).ok();
        assert_eq!(process(&world, "pve1", 9100), before, "{}", told.all());
        world.assert_settled();
    }
}

#[test]
fn r4_a_source_that_changed_after_the_kill_restarts() {
    let stack = STACK.replace("cloudInit: {user: debian}", "cloudInit: {userData: \"own.yaml\"}");
    let world = World::instant(&stack);
    let control = world.sim.control();
    let held = control.fault(&json!({"kind": "hold-after", "method": "POST", "path": "*/9100/status/start"}));
    let mut child = world.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(held, 60.0));
    child.kill().unwrap();
    child.wait().unwrap();
    control.clear_faults();
    let before = process(&world, "pve1", 9100);
    world.repo.write("stacks/web/own.yaml", "#cloud-config\npackages: [nginx]\n");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_ne!(process(&world, "pve1", 9100), before);
    world.assert_settled();
}

#[test]
fn r5_a_pending_change_that_is_put_back_needs_no_restart() {
    let world = World::instant(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    let before = process(&world, "pve1", 9100);
    // What is not ours may wait for as long as it likes.
    change(
        &world,
        "PUT",
        "/nodes/pve1/qemu/9100/config",
        &json!({"memory": 4096, "cores": 8, "cpu": "host"}),
    );
    let plan = world.strata().run(&["plan"]).ok();
    assert!(plan.stdout.contains("memory") && !plan.stdout.contains("restart"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(process(&world, "pve1", 9100), before);
    assert_eq!(guest(&world, 9100)["pending"], json!({"cpu": {"set": "host"}}));
    world.assert_settled();
}

#[test]
fn r5_a_pending_change_that_stays_needs_a_restart() {
    let world = World::instant(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    let before = process(&world, "pve1", 9100);
    // Put back in part: the source asks for another value than the one that runs.
    change(&world, "PUT", "/nodes/pve1/qemu/9100/config", &json!({"memory": 4096}));
    world.repo.edit(FILE, "memory: 1024", "memory: 2048");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_ne!(process(&world, "pve1", 9100), before);
    world.assert_settled();
}

/// A guest without a system: it never releases a device.
const BLANK: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
vms:
  app:
    vmId: 9100
    iso: {url: "https://images.example/rescue.iso"}
    memory: 512
    disk: 4
    network: [{bridge: vmbr0}, {bridge: vmbr1}, {bridge: vmbr1, vlan: 7}]
"#;

#[test]
fn r5_a_device_that_the_guest_holds_on_to_is_not_told_as_gone() {
    // One device is refused with 400, two take longer than the proxy waits: 596.
    for gone in [", {bridge: vmbr1, vlan: 7}]", ", {bridge: vmbr1}, {bridge: vmbr1, vlan: 7}]"] {
        let world = World::instant(BLANK);
        world.strata().run(&["apply", "--yes"]).ok();
        let slot = guest(&world, 9100)["config"]
            .as_object()
            .unwrap()
            .iter()
            .find(|(_, value)| value.as_str().unwrap_or_default().contains("rescue"))
            .map(|(slot, _)| slot.clone());
        if let Some(slot) = slot {
            world.sim.control().change(&json!({"edit": {"vmid": 9100, "set": {slot: "none,media=cdrom"}}}));
        }
        world.repo.edit(FILE, gone, "]");
        let told = world.strata().run(&["apply", "--yes"]).code(1);
        assert!(told.all().contains("net2") || told.all().contains("net1"), "{}", told.all());
        let guest = guest(&world, 9100);
        assert!(guest["config"]["net2"].is_string() && guest["pending"]["net2"]["delete"] == true, "{guest}");
        // It is not forgotten either.
        let plan = world.strata().run(&["plan"]);
        assert!(plan.stdout.contains("restart"), "{}", plan.all());
    }
}
