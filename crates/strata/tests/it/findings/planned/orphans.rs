//! What carries our mark and is in no state is named at the end of each run.

use serde_json::json;
use strata_sim::{Pace, SimOptions};
use strata_testkit::TestSim;

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
    // The source still asks for it: it is found by its ownership mark, and is no orphan.
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

/// Two datacenters can have guests with the same VMIDs, pools with the same names: what a state knows of the one says nothing of the other.
#[test]
fn what_was_forgotten_in_one_datacenter_is_named_though_another_has_the_same() {
    let world = World::instant(&STACK.replace("    count: 2\n", ""));
    let far = TestSim::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() });
    let settings = world.repo.read("strata.yaml");
    let target = format!(
        "  far:\n    proxmox:\n      endpoint: {}\n      token: {{file: sim-token}}\n      tls: {{fingerprint: \"{}\"}}\n",
        far.endpoint(),
        far.fingerprint()
    );
    world.repo.write("strata.yaml", &(settings + &target));
    let there = STACK
        .replace("    count: 2\n", "")
        .replace("name: web", "name: there")
        .replace("target: pve", "target: far");
    world.repo.write("stacks/there/stack.yaml", &there);
    let pool = |name: &str, target: &str| {
        format!(
            "metadata: {{name: {name}, environment: test}}\nproxmox: {{target: {target}, node: pve1}}\npools: {{shared: {{comment: of {name}}}}}\n"
        )
    };
    world.repo.write("hypervisors/dc.yaml", &pool("dc", "pve"));
    world.repo.write("hypervisors/other.yaml", &pool("other", "far"));
    world.strata().run(&["apply", "--yes"]).ok();
    let all = world.strata().run(&["drift", "--orphans"]).ok();
    assert!(!all.all().contains("is in no state"), "{}", all.all());
    world.strata().run(&["state", "rm", "there/vm/app"]).ok();
    world.strata().run(&["state", "rm", "other/pool/shared"]).ok();
    world.repo.write("stacks/there/stack.yaml", &there.replace("vmId: 9100", "vmId: 9300"));
    world.repo.edit("hypervisors/other.yaml", "shared:", "another:");
    let plan = world.strata().run(&["plan"]).ok();
    assert!(plan.all().contains("`there/vm/app` and is in no state"), "{}", plan.all());
    let all = world.strata().run(&["drift", "--orphans"]).code(2);
    for forgotten in ["`there/vm/app`", "`other/pool/shared`"] {
        assert!(all.all().contains(&format!("{forgotten} and is in no state")), "{}", all.all());
    }
}

/// `state recover` looks first and takes the lock then: what a run recorded in between says more than a mark does.
#[test]
fn what_is_recorded_meanwhile_is_not_recorded_with_less() {
    let source = STACK.replace("    count: 2\n", "");
    let world = World::instant(&source);
    world.strata().run(&["apply", "--yes"]).ok();
    let known = world.strata().run(&["state", "show", "web/vm/app"]).ok().stdout;
    world.strata().run(&["state", "rm", "web/vm/app"]).ok();
    // Who recovers does not have the newest commit.
    world.repo.write("stacks/web/stack.yaml", &source.replace("  app:", "  new:").replace("9100", "9150"));
    let control = world.sim.control();
    // The look at the notes: everything of it is known before anybody has the lock.
    let held = control
        .fault(&json!({"kind": "hold-after", "method": "GET", "path": "/nodes/pve1/qemu/9100/pending"}));
    std::thread::scope(|scope| {
        let recovering = scope.spawn(|| world.strata().run(&["state", "recover", "web"]));
        let struck = control.wait_fault(held, 60.0);
        world.repo.write("stacks/web/stack.yaml", &source);
        let applied = world.strata().run(&["apply", "--yes"]);
        control.clear_faults();
        recovering.join().unwrap().ok();
        assert!(struck);
        applied.ok();
    });
    assert_eq!(world.strata().run(&["state", "show", "web/vm/app"]).ok().stdout, known);
    world.assert_settled();
}
