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
    assert!(plan.all().contains("write another `vmId` for it, such as 9001"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).code(3);
    assert_eq!(world.export(), before);
    // Where the clones go too, nothing is in the way.
    world.strata().run(&["plan", "--destroy"]).ok();
    world.strata().run(&["destroy", "--yes"]).ok();
}

fn vmids(world: &World) -> Vec<u64> {
    let export = world.export();
    let mut found: Vec<u64> =
        export["guests"].as_array().unwrap().iter().map(|guest| guest["vmid"].as_u64().unwrap()).collect();
    found.retain(|vmid| *vmid >= 9000);
    found.sort_unstable();
    found
}

/// Another image and the VMID that the refused plan names.
fn renew(world: &World) {
    world.repo.edit("stacks/web/stack.yaml", "debian-12-genericcloud", "debian-13-genericcloud");
    world.repo.edit("stacks/web/stack.yaml", "vmId: 9000", "vmId: 9001");
}

/// The new template is made beside the one that linked clones stand on, and that one goes when its last clone is gone.
#[test]
fn a5_a_template_is_rebuilt_beside_its_linked_clones() {
    let world = images("{full: false}", "tank");
    let before = vmids(&world);
    assert!(before.contains(&9000) && !before.contains(&9001), "{before:?}");
    renew(&world);
    let plan = world.strata().run(&["plan"]).ok().stdout;
    assert!(plan.contains("template 9000 stays for its linked clones: VMID 9100"), "{plan}");
    assert!(plan.contains("  + web/template/debian") && !plan.contains("/vm/app  "), "{plan}");
    world.sim.control().reset_requests();
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(deleted(&world), 0, "nothing goes");
    let with = |more: &[u64]| {
        let mut all: Vec<u64> = before.iter().copied().chain(more.iter().copied()).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(vmids(&world), with(&[9001]));
    world.assert_settled();
    world.strata().run(&["drift"]).code(0);
    let again = world.strata().run(&["plan"]).ok().stdout;
    assert!(again.contains("template 9000 stays for its linked clones: VMID 9100"), "{again}");
    // The clone moves to the new one, and the former template goes in the same run, after it.
    world.strata().run(&["apply", "--yes", "--replace", "web/vm/app"]).ok();
    let left: Vec<u64> = with(&[9001]).into_iter().filter(|vmid| *vmid != 9000).collect();
    assert_eq!(vmids(&world), left);
    world.assert_settled();
    let quiet = world.strata().run(&["plan"]).ok().stdout;
    assert!(!quiet.contains("stays for"), "{quiet}");
    world.strata().run(&["destroy", "--yes"]).ok();
}

/// A destroy takes both templates, once the clones are gone; a clone of somebody else holds them.
#[test]
fn a5_a_clone_of_somebody_else_holds_its_template_too() {
    let world = images("{full: false}", "tank");
    let params = json!({"newid": 700, "name": "theirs"});
    call(&world, "POST", "/nodes/pve1/qemu/9000/clone", params);
    renew(&world);
    world.strata().run(&["apply", "--yes", "--replace", "web/vm/app"]).ok();
    let plan = world.strata().run(&["plan"]).ok().stdout;
    assert!(plan.contains("template 9000 stays for its linked clones: VMID 700"), "{plan}");
    let refused = world.strata().run(&["destroy", "--yes"]).code(3);
    assert!(
        refused.all().contains("template 9000 has linked clones and cannot be deleted: VMID 700"),
        "{}",
        refused.all()
    );
    call(&world, "DELETE", "/nodes/pve1/qemu/700", json!({}));
    world.strata().run(&["destroy", "--yes"]).ok();
    assert!(vmids(&world).is_empty());
}

/// Killed at any write, the next apply ends where an undisturbed one does.
#[test]
fn a5_a_killed_rebuild_is_finished() {
    let reference = images("{full: false}", "tank");
    renew(&reference);
    reference.strata().run(&["apply", "--yes"]).ok();
    let (mut nth, mut struck) = (0, 0);
    loop {
        nth += 1;
        let world = images("{full: false}", "tank");
        renew(&world);
        let kind = if nth % 2 == 0 { "hold-after" } else { "hold-before" };
        let fault = json!({"kind": kind, "writes": true, "nth": nth});
        let killed = world.strata().kill_at(&world.sim.control(), &fault, &["apply", "--yes"]);
        if !killed.struck {
            break;
        }
        struck += 1;
        world.sim.control().clear_faults();
        world.strata().run(&["apply", "--yes"]).ok();
        assert_eq!(vmids(&world), vmids(&reference), "{kind} {nth}");
        world.assert_settled();
        world.strata().run(&["apply", "--yes", "--replace", "web/vm/app"]).ok();
        assert!(!vmids(&world).contains(&9000), "{kind} {nth}");
    }
    assert!(struck > 3, "{struck} writes");
}
