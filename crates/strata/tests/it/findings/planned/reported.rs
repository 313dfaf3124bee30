//! Hints that lead the wrong way, and what apply refuses although everything before it said yes.

use serde_json::{Value, json};

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

fn call(world: &World, method: &str, path: &str, params: Value) -> Value {
    let answer = world.sim.control().change(&json!({"method": method, "path": path, "params": params}));
    assert_eq!(answer["status"], 200, "{method} {path}: {answer}");
    answer["data"].clone()
}

#[test]
fn r7_after_a_failed_destroy_the_hint_names_destroy() {
    let world = World::instant(ONE);
    world.strata().run(&["apply", "--yes"]).ok();
    world.sim.control().fault(&json!({
        "kind": "refuse", "status": 500, "method": "DELETE", "path": "*/nodes/pve1/qemu/9100*", "text": "internal trouble",
    }));
    let failed = world.strata().run(&["destroy", "web", "--yes"]).code(1);
    assert!(failed.all().contains("`strata destroy web` goes on from here"), "{}", failed.all());
    assert!(!failed.all().contains("`strata apply"), "{}", failed.all());
    world.strata().run(&["destroy", "web", "--yes"]).ok();
    // An apply goes on with an apply.
    world.sim.control().fault(&json!({
        "kind": "refuse", "status": 500, "method": "POST", "path": "*/nodes/pve1/qemu", "text": "internal trouble",
    }));
    let failed = world.strata().run(&["apply", "--yes"]).code(1);
    assert!(failed.all().contains("`strata apply` goes on from here"), "{}", failed.all());
}

#[test]
fn r7_drift_on_a_taken_vmid_is_not_said_to_be_corrected() {
    let world = World::instant(ONE);
    world.strata().run(&["apply", "--yes"]).ok();
    call(&world, "DELETE", "/nodes/pve1/qemu/9100", json!({}));
    world.stranger(9100);
    let drift = world.strata().run(&["drift"]).code(2);
    assert!(drift.all().contains("`strata apply` cannot correct"), "{}", drift.all());
    assert!(!drift.all().contains("`strata apply` corrects it"), "{}", drift.all());
}

#[test]
fn r7_a_plan_beside_a_running_apply_says_who_works() {
    let world = World::instant(ONE);
    let control = world.sim.control();
    let held = control.fault(&json!({"kind": "hold-before", "method": "POST", "path": "*/nodes/pve1/qemu"}));
    let mut child = world.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(held, 30.0));
    let plan = world.strata().run(&["plan"]);
    assert!(plan.all().contains("a run is about to create it"), "{}", plan.all());
    assert!(!plan.all().contains("interrupted"), "{}", plan.all());
    let doctor = world.strata().run(&["doctor"]);
    assert!(!doctor.all().contains("interrupted"), "{}", doctor.all());
    control.release(held);
    assert!(child.wait().unwrap().success());
}

#[test]
fn e8_doctor_says_what_apply_refuses() {
    let world = World::instant(ONE);
    world.stranger(9100);
    world.strata().run(&["apply", "--yes"]).code(3);
    let doctor = world.strata().run(&["doctor"]).code(1);
    assert!(doctor.all().contains("9100"), "{}", doctor.all());
    assert!(!doctor.all().contains("✓ `web` can be applied"), "{}", doctor.all());
}

#[test]
fn r8_a_pool_with_unmanaged_members_is_foreseen() {
    let world = World::instant(ONE);
    world.repo.write(
        "hypervisors/dc.yaml",
        "metadata: {name: dc, environment: test}\nproxmox: {target: pve}\npools: {shared: {}}\n",
    );
    world.strata().run(&["apply", "--yes"]).ok();
    call(&world, "PUT", "/pools", json!({"poolid": "shared", "vms": "200"}));
    let before = world.export();
    let plan = world.strata().run(&["plan", "--destroy"]).code(3);
    assert!(plan.all().contains("200") && plan.all().contains("pool `shared`"), "{}", plan.all());
    world.strata().run(&["destroy", "--yes"]).code(3);
    assert_eq!(world.export(), before);
    call(&world, "PUT", "/pools", json!({"poolid": "shared", "vms": "200", "delete": 1}));
    // Guests of our own in it go first.
    call(&world, "PUT", "/pools", json!({"poolid": "shared", "vms": "9100"}));
    world.strata().run(&["destroy", "--yes"]).ok();
}

#[test]
fn r8_one_described_storage_does_not_require_the_others() {
    let world = World::instant(&ONE.replace("disk: 4", "disk: {storage: tank, size: 4}"));
    world.repo.write(
        "hypervisors/dc.yaml",
        "metadata: {name: dc, environment: test}\nproxmox: {target: pve}\nstorages: {backups: {type: dir, path: /srv/backups, content: [backup]}}\n",
    );
    world.strata().run(&["validate"]).ok();
    world.strata().run(&["apply", "--yes"]).ok();
}

#[test]
fn r8_the_cloud_init_drive_lies_beside_the_disk_that_boots() {
    let world = World::instant(
        &ONE.replace(
            "disk: 4",
            "disks: {scsi0: {storage: tank, size: 4}, scsi1: {storage: local-lvm, size: 4}}",
        )
        .replace("started: false", "network: [{bridge: vmbr0, ip: 192.0.2.10/24}]\n    started: false"),
    );
    world.strata().run(&["apply", "--yes"]).ok();
    let config = call(&world, "GET", "/nodes/pve1/qemu/9100/config", json!({})).to_string();
    assert!(config.contains("tank:") && !config.contains("local-lvm:vm-9100-cloudinit"), "{config}");
    assert!(config.contains("cloudinit"), "{config}");
    world.assert_settled();
}

#[test]
fn r8_a_reorder_of_rules_with_an_addition_is_shown() {
    let rule =
        |port: &str| format!("{{direction: in, action: ACCEPT, protocol: tcp, destinationPort: \"{port}\"}}");
    let with = |rules: &[&str]| {
        let rules: Vec<String> = rules.iter().map(|port| rule(port)).collect();
        ONE.replace(
            "started: false",
            &format!("firewall: {{rules: [{}]}}\n    started: false", rules.join(", ")),
        )
    };
    let world = World::instant(&with(&["80", "443"]));
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.write("stacks/web/stack.yaml", &with(&["443", "22", "80"]));
    let plan = world.strata().run(&["plan"]).ok();
    assert!(plan.all().contains("22") && plan.all().contains("in another order"), "{}", plan.all());
    // An addition alone moves nothing.
    world.repo.write("stacks/web/stack.yaml", &with(&["22", "80", "443"]));
    let plan = world.strata().run(&["plan"]).ok();
    assert!(!plan.all().contains("in another order"), "{}", plan.all());
}

#[test]
fn a14_disks_of_clones_go_to_the_storage_of_the_stack() {
    let stack = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: tank}}
templates:
  debian:
    vmId: 9000
    storage: local-lvm
    image: {url: "https://images.example/debian-12-genericcloud-amd64.qcow2"}
    disk: 4
vms:
  short: {vmId: 9100, template: debian, disk: 12, started: false}
  slots: {vmId: 9101, template: debian, disks: {scsi0: 12, scsi1: 5}, started: false}
  linked: {vmId: 9102, template: debian, clone: false, disks: {scsi0: 4, scsi1: 5}, started: false}
"#;
    let world = World::instant(stack);
    world.strata().run(&["validate"]).ok();
    world.strata().run(&["plan"]).ok();
    world.strata().run(&["apply", "--yes"]).ok();
    for (vmid, slot, storage) in [
        (9100, "scsi0", "tank"),
        (9101, "scsi0", "tank"),
        (9101, "scsi1", "tank"),
        (9102, "scsi0", "local-lvm"),
        (9102, "scsi1", "tank"),
    ] {
        let config = call(&world, "GET", &format!("/nodes/pve1/qemu/{vmid}/config"), json!({}));
        let disk = config[slot].as_str().unwrap_or_default();
        assert!(disk.starts_with(&format!("{storage}:")), "{vmid} {slot}: {disk}");
    }
    world.assert_settled();
}

#[test]
fn r6_a_privilege_that_this_version_does_not_know_is_refused_in_the_plan() {
    let world = World::instant(ONE);
    world.repo.write(
        "hypervisors/dc.yaml",
        "metadata: {name: dc, environment: test}\nproxmox: {target: pve}\nroles: {Ops: [VM.Audit, VM.Monitoring]}\n",
    );
    let before = world.export();
    let plan = world.strata().run(&["plan"]);
    assert_ne!(plan.code, 0, "{}", plan.all());
    assert!(plan.all().contains("VM.Monitoring"), "{}", plan.all());
    assert_ne!(world.strata().run(&["apply", "--yes"]).code, 0);
    assert_eq!(world.export(), before);
}

#[test]
fn r6_all_lines_of_a_refusal_are_shown() {
    let world = World::instant(ONE);
    world.sim.control().fault(&json!({
        "kind": "refuse", "status": 500, "method": "POST", "path": "*/nodes/pve1/qemu",
        "text": "cannot do that\nbecause of the second line",
    }));
    let failed = world.strata().run(&["apply", "--yes"]).code(1);
    assert!(failed.all().contains("because of the second line"), "{}", failed.all());
}

#[test]
fn r6_the_computed_role_of_several_stacks_has_nothing_twice() {
    let world = World::instant(ONE);
    world.repo.write(
        "hypervisors/dc.yaml",
        "metadata: {name: dc, environment: test}\nproxmox: {target: pve}\npools: {shared: {}}\nfirewall: {aliases: {admin: 192.0.2.200/32}}\n",
    );
    let role = world.strata().run(&["doctor", "--role"]).ok().stdout;
    // Whoever may modify the system needs no privilege of its own to download.
    assert!(role.contains("Sys.Modify") && role.contains("Sys.Audit"), "{role}");
    for surplus in ["Datastore.Audit", "SDN.Audit", "Sys.AccessNetwork"] {
        assert!(!role.contains(surplus), "{surplus}: {role}");
    }
}

#[test]
fn r6_giving_rights_away_needs_permissions_modify_or_all_of_them() {
    let world = World::instant(ONE);
    world.repo.write(
        "hypervisors/dc.yaml",
        "metadata: {name: dc, environment: test}\nproxmox: {target: pve}\npools: {shared: {}}\nroles: {Ops: [VM.Audit, VM.Console]}\ngroups: {ops: {}}\nacl: [{path: /pool/shared, role: Ops, group: ops}]\n",
    );
    let role = world.strata().run(&["--json", "doctor", "--role"]).ok().stdout;
    let role: Value = serde_json::from_str(role.lines().next().unwrap()).unwrap();
    let all: Vec<&str> = role["privileges"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(all.contains(&"Permissions.Modify"), "{all:?}");
    let set = |privileges: &[&str]| {
        let _ = world
            .sim
            .control()
            .change(&json!({"method": "DELETE", "path": "/access/roles/Least", "params": {}}));
        call(&world, "POST", "/access/roles", json!({"roleid": "Least", "privs": privileges.join(",")}));
        call(&world, "PUT", "/access/acl", json!({"path": "/", "users": "least@pve", "roles": "Least"}));
    };
    call(&world, "POST", "/access/users", json!({"userid": "least@pve"}));
    let rest: Vec<&str> =
        all.iter().copied().filter(|privilege| *privilege != "Permissions.Modify").collect();
    set(&rest);
    let token = call(&world, "POST", "/access/users/least@pve/token/least", json!({"privsep": 0}));
    world.repo.write("sim-token", &format!("least@pve!least={}", token["value"].as_str().unwrap()));
    for arguments in [&["doctor"][..], &["apply", "--yes"]] {
        let refused = world.strata().run(arguments);
        assert_ne!(refused.code, 0, "{}", refused.all());
        assert!(refused.all().contains("Permissions.Modify"), "{}", refused.all());
    }
    // Whoever has every privilege of the role may hand it on.
    set(&[&rest[..], &["VM.Console"]].concat());
    let doctor = world.strata().run(&["doctor"]);
    assert!(!doctor.all().contains("Permissions.Modify"), "{}", doctor.all());
}
