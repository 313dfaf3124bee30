//! A1: whatever fails after the first write, the state knows what was written.

use serde_json::{Value, json};

use crate::world::World;

const HEAD: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
templates:
  debian: {vmId: 9000, image: {url: "https://images.example/debian.qcow2"}, disk: 10}
"#;

const VM: &str = r#"
vms:
  app:
    vmId: 9100
    template: debian
    memory: 2048
    disk: {storage: local-lvm, size: 20}
    network: [{bridge: vmbr0}]
"#;

const CONTAINER: &str = r#"
containers:
  dns:
    vmId: 9200
    image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}
    disk: 4
    network: [{bridge: vmbr0}]
    firewall: {rules: [{direction: in, action: ACCEPT}]}
"#;

const FILE: &str = "stacks/web/stack.yaml";

/// Refusals of the kinds that say "this call did nothing".
fn refusals() -> Vec<Value> {
    [
        (403, "Permission check failed (/vms/9100, VM.Config.Memory)"),
        (400, "Parameter verification failed."),
        (401, "Authentication failed!"),
        (500, "checksum mismatch (file change by other user?)"),
        (500, "only root can set 'args' config"),
        (501, "Method not implemented"),
    ]
    .iter()
    .map(|(status, text)| json!({"kind": "refuse", "status": status, "text": text, "count": 0}))
    .collect()
}

/// What is left of a stack whose disturbed part is removed from the source again.
fn leaves_nothing(whole: &str, rest: &str, method: &str, path: &str) {
    let undisturbed = World::instant(rest);
    undisturbed.strata().run(&["apply", "--yes"]).ok();
    let expected = undisturbed.export();
    for mut fault in refusals() {
        (fault["method"], fault["path"]) = (json!(method), json!(path));
        let world = World::instant(rest);
        world.strata().run(&["apply", "--yes"]).ok();
        world.repo.write(FILE, whole);
        world.sim.control().fault(&fault);
        let failed = world.strata().run(&["apply", "--yes"]).code(1);
        world.sim.control().clear_faults();
        let what = format!("{fault}\n{}", failed.all());
        let drift = world.strata().run(&["drift"]);
        assert_eq!(drift.code, 2, "what is half made is told: {what}\n{}", drift.all());
        world.repo.write(FILE, rest);
        let plan = world.strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 2, "{what}\n{}", plan.all());
        world.strata().run(&["apply", "--yes"]).ok();
        assert_eq!(world.export(), expected, "{what}");
        world.assert_settled();
    }
}

#[test]
fn a1_a_clone_whose_configuration_is_refused_is_known() {
    leaves_nothing(&format!("{HEAD}{VM}"), HEAD, "PUT", "/nodes/pve1/qemu/9100/config");
}

#[test]
fn a1_a_clone_whose_start_is_refused_is_known() {
    leaves_nothing(&format!("{HEAD}{VM}"), HEAD, "POST", "/nodes/pve1/qemu/9100/status/start");
}

/// Also a read that is refused comes after the write.
#[test]
fn a1_a_clone_that_cannot_be_read_back_is_known() {
    leaves_nothing(&format!("{HEAD}{VM}"), HEAD, "GET", "/nodes/pve1/qemu/9100/pending");
}

#[test]
fn a1_a_container_whose_firewall_is_refused_is_known() {
    leaves_nothing(&format!("{HEAD}{CONTAINER}"), HEAD, "POST", "/nodes/pve1/lxc/9200/firewall/rules");
}

#[test]
fn a1_a_template_that_is_not_finished_is_known() {
    let empty = "metadata: {name: web, environment: test}\nproxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}\nvms: {}\n";
    leaves_nothing(HEAD, empty, "POST", "/nodes/pve1/qemu/9000/template");
}

/// `net1` went in, the resize after it was refused, the source is put back: `net1` goes.
#[test]
fn a1_what_an_update_added_before_it_failed_is_ours_to_remove() {
    let before = format!("{HEAD}{VM}");
    let after = before.replace("size: 20", "size: 24").replace(
        "network: [{bridge: vmbr0}]",
        "network: [{bridge: vmbr0}, {bridge: vmbr1, vlan: 7}]\n    tags: [new]",
    );
    for mut fault in refusals() {
        (fault["method"], fault["path"]) = (json!("PUT"), json!("/nodes/pve1/qemu/9100/resize"));
        let world = World::instant(&before);
        world.strata().run(&["apply", "--yes"]).ok();
        let expected = world.export();
        world.repo.write(FILE, &after);
        world.sim.control().fault(&fault);
        world.strata().run(&["apply", "--yes"]).code(1);
        world.sim.control().clear_faults();
        assert!(world.export().to_string().contains("tag=7"), "the network device went in");
        world.repo.write(FILE, &before);
        world.strata().run(&["apply", "--yes"]).ok();
        assert_eq!(world.export(), expected, "{fault}");
        world.assert_settled();
    }
}

/// The state was lost, the guest is ours by its ownership mark, and its first change fails: from then on it is in the state.
#[test]
fn a1_a_guest_that_only_its_mark_proves_is_recorded_by_a_failed_change() {
    let before = format!("{HEAD}{VM}");
    for (method, path) in [("PUT", "/nodes/pve1/qemu/9100/config"), ("PUT", "/nodes/pve1/qemu/9100/resize")] {
        let world = World::instant(&before);
        world.strata().run(&["apply", "--yes"]).ok();
        std::fs::remove_dir_all(world.repo.file(".strata/state")).unwrap();
        world.repo.write(FILE, &before.replace("size: 20", "size: 24").replace("2048", "4096"));
        world.sim.control().fault(&json!({
            "kind": "refuse", "status": 403, "text": "Permission check failed", "method": method, "path": path, "count": 0,
        }));
        world.strata().run(&["apply", "--yes"]).code(1);
        world.sim.control().clear_faults();
        world.repo.write(FILE, HEAD);
        world.strata().run(&["apply", "--yes"]).ok();
        assert!(!world.export().to_string().contains("9100"), "{path}");
        world.assert_settled();
    }
}
