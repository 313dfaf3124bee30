//! A disk that somebody took away is never replaced by an empty one.

use serde_json::{Value, json};

use crate::world::World;

const STACK: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1}
vms:
  db:
    vmId: 9100
    iso: {url: "https://images.example/rescue.iso"}
    memory: 512
    disks: {scsi0: {storage: local-lvm, size: 4}, scsi1: {storage: tank, size: 5, ssd: true}}
    started: false
containers:
  dns:
    vmId: 9200
    image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}
    disk: 4
    memory: 256
    mountPoints: {mp0: {storage: local-lvm, size: 3, path: /data}}
    started: false
"#;

fn world() -> World {
    let world = World::instant(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    world
}

fn call(world: &World, method: &str, path: &str, params: Value) {
    let answer = world.sim.control().change(&json!({"method": method, "path": path, "params": params}));
    assert_eq!(answer["status"], 200, "{method} {path}: {answer}");
}

/// The volume in a slot.
fn volume(world: &World, path: &str, slot: &str) -> Option<String> {
    let answer = world.sim.control().change(&json!({"method": "GET", "path": path, "params": {}}));
    let text = answer["data"][slot].as_str()?.to_owned();
    Some(text.split(',').next().unwrap_or_default().to_owned())
}

const VM: &str = "/nodes/pve1/qemu/9100/config";
const CONTAINER: &str = "/nodes/pve1/lxc/9200/config";

#[test]
fn a6_a_detached_disk_is_attached_again_with_its_data() {
    for (path, slot) in [(VM, "scsi1"), (VM, "scsi0"), (CONTAINER, "mp0")] {
        let world = world();
        let former = volume(&world, path, slot).unwrap();
        call(&world, "PUT", path, json!({"delete": slot}));
        assert_eq!(volume(&world, path, slot), None);
        let plan = world.strata().run(&["plan"]).ok();
        assert!(
            plan.all().contains("is attached again") && plan.all().contains(&former),
            "{slot}: {}",
            plan.all()
        );
        world.strata().run(&["apply", "--yes"]).ok();
        assert_eq!(volume(&world, path, slot), Some(former), "{slot}");
        world.assert_settled();
    }
}

#[test]
fn a6_a_detached_disk_that_is_to_grow_is_the_same_disk() {
    let world = world();
    let former = volume(&world, VM, "scsi1").unwrap();
    call(&world, "PUT", VM, json!({"delete": "scsi1"}));
    world.repo.edit("stacks/web/stack.yaml", "size: 5, ssd: true", "size: 8, ssd: true");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(volume(&world, VM, "scsi1"), Some(former));
    world.assert_settled();
}

#[test]
fn a6_a_disk_that_somebody_deleted_is_not_replaced_by_an_empty_one() {
    let world = world();
    let former = volume(&world, VM, "scsi1").unwrap();
    call(&world, "PUT", VM, json!({"delete": "scsi1"}));
    call(&world, "PUT", VM, json!({"delete": "unused0"}));
    let before = world.export();
    let plan = world.strata().run(&["plan"]).code(3);
    assert!(plan.all().contains("`disks.scsi1` is gone") && plan.all().contains(&former), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).code(3);
    assert_eq!(world.export(), before);
    // The way that the hint names.
    let text = world.repo.read("stacks/web/stack.yaml");
    world.repo.edit("stacks/web/stack.yaml", ", scsi1: {storage: tank, size: 5, ssd: true}", "");
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.write("stacks/web/stack.yaml", &text);
    world.strata().run(&["apply", "--yes"]).ok();
    assert!(volume(&world, VM, "scsi1").is_some());
}

#[test]
fn a6_a_disk_that_somebody_moved_elsewhere_is_named() {
    // Into another slot.
    let world = world();
    let former = volume(&world, VM, "scsi1").unwrap();
    call(&world, "PUT", VM, json!({"delete": "scsi1"}));
    call(&world, "PUT", VM, json!({"scsi5": former.clone()}));
    let plan = world.strata().run(&["plan"]).code(3);
    assert!(plan.all().contains("is attached as `scsi5`"), "{}", plan.all());
    // To another guest.
    let world = self::world();
    call(
        &world,
        "POST",
        "/nodes/pve1/qemu/9100/move_disk",
        json!({"disk": "scsi1", "target-vmid": 200, "target-disk": "scsi3"}),
    );
    let plan = world.strata().run(&["plan"]).code(3);
    assert!(plan.all().contains("given to another guest"), "{}", plan.all());
}

#[test]
fn a6_a_disk_that_is_renamed_in_the_source_keeps_its_data() {
    let world = world();
    world.repo.edit("stacks/web/stack.yaml", "scsi1: {storage: tank", "scsi2: {storage: tank");
    let before = world.export();
    let plan = world.strata().run(&["plan"]).code(3);
    assert!(plan.all().contains("`disks.scsi1` leaves and `disks.scsi2`"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).code(3);
    assert_eq!(world.export(), before);
}
