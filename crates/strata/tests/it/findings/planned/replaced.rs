//! What goes with a guest that is deleted, and what a template is made from.

use serde_json::{Value, json};

use crate::world::World;

const DB: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1}
vms:
  db:
    vmId: 9100
    iso: {url: "https://images.example/rescue.iso"}
    memory: 512
    disks: {scsi0: {storage: local-lvm, size: 4}, scsi1: {storage: tank, size: 100}}
    network: [{bridge: vmbr0, ip: 192.0.2.10/24}]
    cloudInit: {user: debian, onChange: recreate}
    pool: production
    started: false
"#;

fn call(world: &World, method: &str, path: &str, params: Value) -> Value {
    let answer = world.sim.control().change(&json!({"method": method, "path": path, "params": params}));
    assert_eq!(answer["status"], 200, "{method} {path}: {answer}");
    answer
}

fn job_names(world: &World, vmid: &str) -> bool {
    let jobs = call(world, "GET", "/cluster/backup", json!({}));
    jobs["data"].as_array().into_iter().flatten().any(|job| job["vmid"].to_string().contains(vmid))
}

#[test]
fn a7_a_replacement_says_what_goes_and_keeps_the_backups() {
    let world = World::instant(DB);
    world.strata().run(&["apply", "--yes"]).ok();
    call(
        &world,
        "POST",
        "/cluster/backup",
        json!({"id": "nightly", "vmid": "9100,200", "schedule": "02:00", "storage": "local"}),
    );
    call(
        &world,
        "PUT",
        "/access/acl",
        json!({"path": "/vms/9100", "roles": "PVEVMUser", "users": "root@pam"}),
    );
    world.repo.edit("stacks/web/stack.yaml", "user: debian", "user: other");
    let plan = world.strata().run(&["plan"]).ok();
    let text = plan.all();
    for said in [
        "scsi0 4 GiB on local-lvm",
        "scsi1 100 GiB on tank",
        "it stays in backup job `nightly`",
        "PVEVMUser for root@pam",
    ] {
        assert!(text.contains(said), "`{said}` is missing in {text}");
    }
    assert!(!text.contains("leaves pool"), "{text}");
    world.strata().run(&["apply", "--yes"]).ok();
    assert!(job_names(&world, "9100"));
    world.assert_settled();
    // A destroy takes it out of everything, and says so.
    let plan = world.strata().run(&["plan", "--destroy"]).ok();
    for said in ["removed from backup job `nightly`", "scsi1 100 GiB on tank", "leaves pool `production`"] {
        assert!(plan.all().contains(said), "`{said}` is missing in {}", plan.all());
    }
}

#[test]
fn a7_a_backup_job_of_one_guest_is_told_to_go_with_it() {
    let world = World::instant(DB);
    world.strata().run(&["apply", "--yes"]).ok();
    call(
        &world,
        "POST",
        "/cluster/backup",
        json!({"id": "only", "vmid": "9100", "schedule": "02:00", "storage": "local"}),
    );
    let plan = world.strata().run(&["plan", "--destroy"]).ok();
    assert!(plan.all().contains("backup job `only` is removed with it"), "{}", plan.all());
}

#[test]
fn a7_what_ha_manages_is_not_replaced_in_silence() {
    let world = World::instant(DB);
    world.strata().run(&["apply", "--yes"]).ok();
    call(&world, "POST", "/cluster/ha/resources", json!({"sid": "vm:9100", "state": "stopped"}));
    world.repo.edit("stacks/web/stack.yaml", "user: debian", "user: other");
    let before = world.export();
    let plan = world.strata().run(&["plan"]).code(3);
    assert!(plan.all().contains("HA manages it (`vm:9100`)"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).code(3);
    assert_eq!(world.export(), before);
    let plan = world.strata().run(&["plan", "--destroy"]).ok();
    assert!(plan.all().contains("HA resource `vm:9100` is removed with it"), "{}", plan.all());
}

const IMAGES: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: DISK}}
templates:
  debian:
    vmId: 9000
    image: {url: "https://images.example/debian-12-genericcloud-amd64.qcow2"}
    disk: 10
vms:
  app:
    vmId: 9100
    template: debian
    clone: MODE
    disks: {scsi0: {storage: DISK, size: 10}}
    started: false
  db:
    vmId: 9110
    image: {url: "https://images.example/debian-12-genericcloud-amd64.qcow2"}
    disk: {storage: DISK, size: 10}
    started: false
containers:
  dns:
    vmId: 9200
    image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}
    disk: 4
    memory: 256
    started: false
"#;

fn images(mode: &str, disk: &str) -> World {
    let world = World::instant(&IMAGES.replace("MODE", mode).replace("DISK", disk));
    world.strata().run(&["apply", "--yes"]).ok();
    world
}

/// How many VMs were deleted.
fn deleted(world: &World) -> u64 {
    let requests = world.sim.control().requests();
    let rows = requests["counts"].as_array().unwrap().iter();
    let deletes = rows.filter(|row| row["method"] == "DELETE" && row["path"] == "/nodes/{node}/qemu/{vmid}");
    deletes.filter_map(|row| row["count"].as_u64()).sum()
}

fn shown(world: &World, address: &str) -> String {
    world.strata().run(&["state", "show", address]).ok().stdout
}

#[test]
fn a5_a_changed_image_recreates_the_template_and_nothing_else() {
    let world = images("{full: true}", "local-lvm");
    world.repo.edit("stacks/web/stack.yaml", "debian-12-genericcloud", "debian-13-genericcloud");
    world.repo.edit("stacks/web/stack.yaml", "debian-12-standard", "debian-13-standard");
    let plan = world.strata().run(&["plan"]).ok();
    let text = plan.all();
    assert!(text.contains("-/+ web/template/debian"), "{text}");
    assert!(text.contains("its image changed: a template is what it was made from"), "{text}");
    assert!(!text.contains("-/+ web/vm/") && !text.contains("-/+ web/container/"), "{text}");
    for kept in ["web/vm/db", "web/container/dns"] {
        assert!(
            text.contains(&format!("`{kept}` was made from the former one and stays as it is")),
            "{text}"
        );
    }
    world.sim.control().reset_requests();
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(deleted(&world), 1, "the template and no other guest is deleted");
    assert!(shown(&world, "web/template/debian").contains("debian-13-genericcloud"));
    // Whatever the source says now, these were made from the former images.
    for address in ["web/vm/db", "web/container/dns"] {
        let text = shown(&world, address);
        assert!(text.contains("debian-12-") && !text.contains("debian-13-"), "{address}: {text}");
    }
    world.assert_settled();
    // A later change of them does not rewrite where they come from either.
    world.repo.edit("stacks/web/stack.yaml", "memory: 256", "memory: 300");
    world.strata().run(&["apply", "--yes"]).ok();
    assert!(shown(&world, "web/container/dns").contains("debian-12-standard"));
}

#[test]
fn a5_another_content_under_a_chosen_name_recreates_image_and_template() {
    let world = images("{full: true}", "local-lvm");
    world.repo.edit(
        "stacks/web/stack.yaml",
        "    image: {url: \"https://images.example/debian-12-genericcloud-amd64.qcow2\"}\n    disk: 10",
        "    image: {url: \"https://images.example/one.qcow2\", fileName: base.qcow2}\n    disk: 10",
    );
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    world.repo.edit("stacks/web/stack.yaml", "images.example/one.qcow2", "images.example/two.qcow2");
    let plan = world.strata().run(&["plan"]).ok();
    assert!(plan.all().contains("another image takes the name of the former one"), "{}", plan.all());
    assert!(plan.all().contains("-/+ web/template/debian"), "{}", plan.all());
    world.sim.control().reset_requests();
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(deleted(&world), 1);
    world.assert_settled();
}

#[test]
fn a5_linked_clones_hold_their_template() {
    let world = images("{full: false}", "tank");
    world.repo.edit("stacks/web/stack.yaml", "debian-12-genericcloud", "debian-13-genericcloud");
    let before = world.export();
    let plan = world.strata().run(&["plan"]).code(3);
    assert!(plan.all().contains("linked clones") && plan.all().contains("9100"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).code(3);
    assert_eq!(world.export(), before);
    // Where the clones go too, nothing is in the way.
    world.strata().run(&["plan", "--destroy"]).ok();
    world.strata().run(&["destroy", "--yes"]).ok();
}
