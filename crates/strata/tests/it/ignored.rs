//! `ignoreChanges`: fields that are set when a guest is made, and left to others after that.

use serde_json::{Value, json};

use crate::world::World;

const FILE: &str = "stacks/web/stack.yaml";
const WEB: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1}
vms:
  db:
    vmId: 9110
    iso: {url: "https://images.example/rescue.iso"}
    cores: 2
    memory: 512
    disk: 4
    tags: [ours]
    started: false
    cloudInit: {user: debian, password: {env: APP_PASSWORD}}
    ignoreChanges:
      - cpu.cores
      - {field: tags, reason: the backup tool sets them}
      - cloudinit
"#;

fn applied() -> World {
    let world = World::instant(WEB);
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    world
}

fn set(world: &World, params: &Value) {
    let change = json!({"method": "PUT", "path": "/nodes/pve1/qemu/9110/config", "params": params});
    assert_eq!(world.sim.control().change(&change)["status"], 200);
}

/// One key of the guest's configuration.
fn live(world: &World, key: &str) -> String {
    let export = world.export();
    let guests = export["guests"].as_array().cloned().unwrap_or_default();
    let guest = guests.into_iter().find(|guest| guest["vmid"] == 9110).unwrap_or_default();
    guest["config"][key].as_str().map_or_else(|| guest["config"][key].to_string(), str::to_owned)
}

#[test]
fn d2_what_is_left_to_others_is_made_once_and_never_corrected() {
    let world = applied();
    assert_eq!((live(&world, "cores"), live(&world, "tags")), ("2".to_owned(), "ours".to_owned()));
    set(&world, &json!({"cores": 4, "tags": "theirs"}));
    world.assert_settled();
    let drift = world.strata().run(&["drift"]).code(0);
    assert!(drift.stdout.contains("cpu.cores  applied 2, is now 4, ignored"), "{}", drift.all());
    assert!(drift.stdout.contains("ignored: the backup tool sets them"), "{}", drift.all());
    let plan = world.strata().run(&["-v", "plan"]).ok();
    assert!(plan.stdout.contains("cpu.cores  the source says 2, it is 4, ignored"), "{}", plan.all());
    // Neither what the source says of it later is sent, nor a secret that became another; the rest is.
    world.repo.edit(FILE, "cores: 2", "cores: 3");
    world.repo.edit(FILE, "memory: 512", "memory: 768");
    let other = world.strata().env("APP_PASSWORD", "another-horse-battery");
    let plan = other.run(&["plan"]).ok();
    assert!(plan.stdout.contains("memory") && !plan.stdout.contains("cores"), "{}", plan.all());
    assert!(!plan.stdout.contains("password"), "{}", plan.all());
    other.run(&["apply", "--yes"]).ok();
    assert_eq!((live(&world, "cores"), live(&world, "tags")), ("4".to_owned(), "theirs".to_owned()));
    assert_eq!(live(&world, "memory"), "768");
    world.strata().run(&["drift"]).code(0);
    // A drift beside it is still one.
    set(&world, &json!({"memory": 640, "cores": 5}));
    let drift = world.strata().run(&["drift"]).code(2);
    assert!(drift.stdout.contains("1 drifted"), "{}", drift.all());
    // A new one is made as the source says.
    world.strata().run(&["apply", "--replace", "web/vm/db", "--yes"]).ok();
    assert_eq!((live(&world, "cores"), live(&world, "tags")), ("3".to_owned(), "ours".to_owned()));
    world.assert_settled();
}

#[test]
fn d2_a_kill_does_not_bring_back_what_is_left_to_others() {
    for kind in ["hold-before", "hold-after"] {
        let world = applied();
        set(&world, &json!({"cores": 4, "tags": "theirs"}));
        world.repo.edit(FILE, "memory: 512", "memory: 768");
        let fault = json!({"kind": kind, "method": "PUT", "path": "*/qemu/9110/config"});
        let killed = world.strata().kill_at(&world.sim.control(), &fault, &["apply", "--yes"]);
        assert!(killed.struck, "{kind}");
        world.strata().run(&["apply", "--yes"]).ok();
        world.assert_settled();
        assert_eq!(live(&world, "cores"), "4", "{kind}");
        assert_eq!((live(&world, "tags"), live(&world, "memory")), ("theirs".to_owned(), "768".to_owned()));
    }
}

#[test]
fn mistakes_in_ignore_changes_are_underlined() {
    let world = World::instant(WEB);
    let told = |field: &str| {
        world.repo.write(FILE, &WEB.replace("      - cpu.cores\n", &format!("      - {field}\n")));
        let found = world.strata().run(&["validate"]).code(1).all();
        assert!(found.contains("stacks/web/stack.yaml:15:"), "{found}");
        found
    };
    let near = told("cpu.core");
    assert!(
        near.contains("a vm has no field `cpu.core`") && near.contains("did you mean `cpu.cores`?"),
        "{near}"
    );
    let slot = told("disk.scsi0.size");
    assert!(slot.contains("did you mean `disks.scsi0.size`?"), "{slot}");
    let own = told("vmid");
    assert!(own.contains("`vmid` cannot be left to others"), "{own}");
    world.repo.write(FILE, &WEB.replace("      - cpu.cores\n", "      - disks.scsi0\n"));
    world.strata().run(&["validate"]).ok();
}
