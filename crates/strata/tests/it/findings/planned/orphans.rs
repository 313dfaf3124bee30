//! What carries our mark and is in no state is named at the end of each run.

use serde_json::json;

use crate::world::World;

const STACK: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1}
vms:
  app:
    count: 2
    vmId: 9100
    iso: {url: "https://images.example/rescue.iso"}
    memory: 512
    disk: 4
    started: false
"#;

fn guests(world: &World) -> Vec<u64> {
    let export = world.export();
    let mut ids: Vec<u64> =
        export["guests"].as_object().into_iter().flatten().filter_map(|(id, _)| id.parse().ok()).collect();
    ids.extend(export["guests"].as_array().into_iter().flatten().filter_map(|guest| guest["vmid"].as_u64()));
    ids.sort_unstable();
    ids
}

#[test]
fn f19_a_rollback_with_a_scale_down_leaves_nothing_out_of_sight() {
    let world = World::instant(&STACK.replace("count: 2", "count: 1"));
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.write("stacks/web/stack.yaml", STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    let serial: u64 = {
        let history = world.strata().run(&["state", "history", "web"]).ok().stdout;
        // The oldest version that has one machine.
        let serials: Vec<u64> =
            history.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
        *serials.last().unwrap()
    };
    world.strata().run(&["state", "rollback", "web", &serial.to_string()]).ok();
    world.repo.write("stacks/web/stack.yaml", &STACK.replace("count: 2", "count: 1"));
    let named = |text: &str| {
        text.contains("9101") && text.contains("is in no state") && text.contains("state recover web")
    };
    let plan = world.strata().run(&["plan"]);
    assert!(named(&plan.all()), "{}", plan.all());
    let drift = world.strata().run(&["drift"]).code(2);
    assert!(named(&drift.all()), "{}", drift.all());
    let doctor = world.strata().run(&["doctor"]).code(1);
    assert!(named(&doctor.all()), "{}", doctor.all());
    let apply = world.strata().run(&["apply", "--yes"]);
    assert!(named(&apply.all()), "{}", apply.all());
    // The command that the hint names.
    world.strata().run(&["state", "recover", "web"]).ok();
    let plan = world.strata().run(&["plan"]).ok();
    assert!(plan.all().contains("1 to destroy") && !plan.all().contains("is in no state"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(guests(&world), [200, 9100]);
    world.assert_settled();
}

#[test]
fn what_was_forgotten_and_left_the_source_is_named() {
    let world = World::instant(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    world.strata().run(&["state", "rm", "web/vm/app-2"]).ok();
    // The source still asks for it: it is found by its mark, and is no orphan.
    let plan = world.strata().run(&["plan"]).ok();
    assert!(!plan.all().contains("is in no state"), "{}", plan.all());
    let text = world.repo.read("stacks/web/stack.yaml");
    world.repo.write("stacks/web/stack.yaml", &text.replace("count: 2", "count: 1"));
    let plan = world.strata().run(&["plan"]);
    assert!(plan.all().contains("9101"), "{}", plan.all());
    let destroy = world.strata().run(&["destroy", "--yes"]);
    assert!(destroy.all().contains("9101") && destroy.all().contains("is in no state"), "{}", destroy.all());
    // A state that is gone altogether.
    world.strata().run(&["state", "recover", "web"]).ok();
    world.strata().run(&["destroy", "web", "--yes"]).ok();
    assert_eq!(guests(&world), [200]);
}

#[test]
fn copies_and_others_are_no_orphans() {
    let world = World::instant(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    let clone = json!({"method": "POST", "path": "/nodes/pve1/qemu/9100/clone", "params": {"newid": 9300, "full": 1}});
    assert_eq!(world.sim.control().change(&clone)["status"], 200);
    let foreign = json!({
        "method": "POST", "path": "/nodes/pve1/qemu",
        "params": {"vmid": 9105, "name": "foreign", "memory": 64, "description": "strata: 0123456789abcdef0123456789abcdef web/vm/x vmid=9105"},
    });
    assert_eq!(world.sim.control().change(&foreign)["status"], 200);
    let plan = world.strata().run(&["plan"]).ok();
    assert!(!plan.all().contains("is in no state"), "{}", plan.all());
}

#[test]
fn the_price_of_the_look_has_a_bound() {
    let world = World::instant(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    for vmid in 300..400 {
        world.stranger(vmid);
    }
    world.sim.control().reset_requests();
    world.strata().run(&["plan"]).ok();
    let requests = world.sim.requests();
    assert!(requests < 64 + 20, "{requests} requests");
}
