//! A stack that left the source: its state is in the store, and what it made is still there.

use std::fs;

use serde_json::Value;

use crate::cluster::lab::{Lab, Shape};
use crate::world::World;

const WEB: &str = r#"
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

const OTHER: &str = r#"
metadata: {name: other, environment: test}
proxmox: {target: pve, node: pve1}
vms:
  keep:
    vmId: 9150
    iso: {url: "https://images.example/rescue.iso"}
    memory: 512
    disk: 4
    started: false
"#;

const POOLS: &str = r#"
metadata: {name: dc, environment: test}
proxmox: {target: pve}
pools: {workloads: {comment: "for the web"}}
"#;

fn guests(world: &World) -> Vec<u64> {
    let export = world.export();
    let mut ids: Vec<u64> = Vec::new();
    collect(&export, &mut ids);
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The VMIDs of guests, wherever the export has them.
fn collect(value: &Value, ids: &mut Vec<u64>) {
    let text = value["guests"].as_object();
    ids.extend(text.into_iter().flat_map(|guests| guests.keys()).filter_map(|key| key.parse::<u64>().ok()));
    ids.extend(value["guests"].as_array().into_iter().flatten().filter_map(|guest| guest["vmid"].as_u64()));
}

fn two() -> World {
    let world = World::instant(WEB);
    world.repo.write("stacks/other/stack.yaml", OTHER);
    world.strata().run(&["apply", "--yes"]).ok();
    world
}

fn leave(world: &World, folder: &str) {
    fs::remove_dir_all(world.repo.file(folder)).unwrap();
}

#[test]
fn a4_a_stack_that_left_the_source_is_planned_as_a_removal() {
    let world = two();
    leave(&world, "stacks/web");
    let plan = world.strata().run(&["plan", "--detailed-exitcode"]).code(2);
    let text = plan.all();
    assert!(text.contains("stack `web` is not in the source any more"), "{text}");
    assert!(text.contains("web/vm/app") && text.contains("to destroy"), "{text}");
    assert!(text.contains("--allow-removed-stacks"), "{text}");
    let drift = world.strata().run(&["drift"]).code(2);
    assert!(drift.all().contains("stack `web` is not in the source any more"), "{}", drift.all());
    let doctor = world.strata().run(&["doctor"]).code(1);
    assert!(doctor.all().contains("stack `web` is not in the source any more"), "{}", doctor.all());
    let listed = world.strata().run(&["state", "list", "web"]).ok();
    assert!(listed.stdout.contains("web/vm/app"), "{}", listed.all());
    assert!(world.strata().run(&["state", "list"]).ok().stdout.contains("web/vm/app"));
    let shown = world.strata().run(&["state", "show", "web/vm/app"]).ok();
    assert!(shown.stdout.contains("9100"), "{}", shown.all());
}

#[test]
fn a4_yes_alone_does_not_remove_a_stack() {
    let world = two();
    leave(&world, "stacks/web");
    let before = world.export();
    let refused = world.strata().run(&["apply", "--yes"]).code(3);
    assert!(
        refused.all().contains("`web`") && refused.all().contains("--allow-removed-stacks"),
        "{}",
        refused.all()
    );
    assert_eq!(world.export(), before);
    // What the other stack asks for can still be applied, by its name.
    world.strata().run(&["apply", "other", "--yes"]).ok();
    assert_eq!(world.export(), before);
    world.strata().run(&["apply", "--yes", "--allow-removed-stacks"]).ok();
    assert_eq!(guests(&world), [200, 9150], "{}", world.export());
    let plan = world.strata().run(&["plan", "--detailed-exitcode"]).code(0);
    assert!(!plan.all().contains("web"), "{}", plan.all());
    world.strata().run(&["state", "list", "web"]).code(1);
}

#[test]
fn a4_an_empty_source_destroys_nothing_in_silence() {
    let world = two();
    leave(&world, "stacks");
    let before = world.export();
    let plan = world.strata().run(&["plan"]).ok();
    assert!(plan.all().contains("web/vm/app") && plan.all().contains("other/vm/keep"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).code(3);
    let saved = world.repo.file("all.plan");
    world.strata().run(&["plan", "-o", saved.to_str().unwrap()]).ok();
    world.strata().run(&["apply", saved.to_str().unwrap(), "--yes"]).code(3);
    assert_eq!(world.export(), before);
    world.strata().run(&["apply", saved.to_str().unwrap(), "--yes", "--allow-removed-stacks"]).ok();
    assert_eq!(guests(&world), [200]);
}

#[test]
fn a4_a_removed_stack_is_destroyed_by_its_name_and_by_its_folder() {
    for name in ["web", "stacks/web/"] {
        let world = two();
        leave(&world, "stacks/web");
        world.strata().run(&["destroy", name, "--yes"]).ok();
        assert_eq!(guests(&world), [200, 9150]);
    }
    // Everything is to go: what left the source is part of it.
    let world = two();
    leave(&world, "stacks/web");
    world.strata().run(&["destroy", "--yes"]).ok();
    assert_eq!(guests(&world), [200]);
    world.strata().run(&["destroy", "nothing", "--yes"]).code(1);
}

#[test]
fn a4_protect_holds_what_left_the_source() {
    let world = World::instant(&WEB.replace("started: false", "started: false\n    protect: true"));
    world.repo.write("stacks/other/stack.yaml", OTHER);
    world.strata().run(&["apply", "--yes"]).ok();
    leave(&world, "stacks/web");
    let before = world.export();
    for arguments in [
        &["plan"][..],
        &["apply", "--yes", "--allow-removed-stacks"],
        &["destroy", "web", "--yes"],
        &["destroy", "--yes"],
    ] {
        let refused = world.strata().run(arguments).code(3);
        assert!(refused.all().contains("protect"), "{}", refused.all());
        assert!(refused.all().contains("put the stack back"), "{}", refused.all());
    }
    assert_eq!(world.export(), before);
}

#[test]
fn a4_a_stack_that_left_an_overlay_is_found_in_its_environment() {
    let world = two();
    let overlay = "stacks:\n  web: {vms: {app: {vmId: 9300, name: stage-app}}}\n  other: {vms: {keep: {vmId: 9350, name: stage-keep}}}\n";
    world.repo.write("environments/stage.yaml", overlay);
    world.strata().run(&["-e", "stage", "apply", "--yes"]).ok();
    assert_eq!(guests(&world), [200, 9100, 9150, 9300, 9350]);
    world.repo.write(
        "environments/stage.yaml",
        "stacks:\n  other: {vms: {keep: {vmId: 9350, name: stage-keep}}}\n",
    );
    let plan = world.strata().run(&["-e", "stage", "plan", "--detailed-exitcode"]).code(2);
    assert!(plan.all().contains("stage:web/vm/stage-app"), "{}", plan.all());
    // The stack's own environment has nothing to do with it.
    world.strata().run(&["plan", "--detailed-exitcode"]).code(0);
    world.strata().run(&["-e", "stage", "destroy", "web", "--yes"]).ok();
    assert_eq!(guests(&world), [200, 9100, 9150, 9350]);
    // A whole environment that left: whoever plans is told where it is found.
    world.repo.remove("environments/stage.yaml");
    let told = world.strata().run(&["plan"]).ok();
    assert!(told.all().contains("stage/other") && told.all().contains("-e stage"), "{}", told.all());
    world.strata().run(&["-e", "stage", "destroy", "--yes"]).ok();
    assert_eq!(guests(&world), [200, 9100, 9150]);
}

#[test]
fn a4_a_layer_0_file_that_left_is_a_removal_too() {
    let world = two();
    world.repo.write("hypervisors/dc.yaml", POOLS);
    world.strata().run(&["apply", "--yes"]).ok();
    assert!(world.export().to_string().contains("for the web"));
    world.repo.remove("hypervisors/dc.yaml");
    let plan = world.strata().run(&["plan", "--detailed-exitcode"]).code(2);
    assert!(plan.all().contains("dc/pool/workloads"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).code(3);
    world.strata().run(&["apply", "--yes", "--allow-removed-stacks"]).ok();
    assert!(!world.export().to_string().contains("for the web"));
    assert_eq!(guests(&world), [200, 9100, 9150]);
}

/// A cluster: its machines, their Talos and what is in it, without the file of its secrets too.
#[test]
fn a4_a_cluster_that_left_is_a_removal_too() {
    let lab = Lab::booted(&Shape::new(1, 1));
    fs::remove_dir_all(lab.repo.file("clusters/lab")).unwrap();
    let before = lab.export();
    let plan = lab.run(&["plan", "--detailed-exitcode"]).code(2);
    for words in ["stack `lab` is not in the source any more", "lab/vm/lab-cp-1", "lab/machine/lab-worker-1"]
    {
        assert!(plan.all().contains(words), "{words}: {}", plan.all());
    }
    let drift = lab.run(&["drift"]).code(2);
    assert!(drift.all().contains("stack `lab` is not in the source any more"), "{}", drift.all());
    let refused = lab.run(&["apply", "--yes"]).code(3);
    assert!(refused.all().contains("--allow-removed-stacks"), "{}", refused.all());
    assert_eq!(lab.export(), before);
    lab.run(&["destroy", "lab", "--yes"]).ok();
    let left = lab.export()["guests"].to_string();
    assert!(!left.contains("lab-cp-1") && !left.contains("lab-worker-1"), "{left}");
    lab.run(&["plan", "--detailed-exitcode"]).code(0);
}

#[test]
fn a4_states_of_another_repository_in_the_same_store_are_not_ours() {
    let world = two();
    let other = World::instant(WEB);
    // Another repository that keeps its states in our folder.
    let folder = world.repo.file(".strata/state");
    let settings = other.repo.read("strata.yaml").replace("repository: test", "repository: elsewhere");
    other.repo.write("strata.yaml", &format!("{settings}state: {{path: \"{}\"}}\n", folder.display()));
    other.repo.write("stacks/web/stack.yaml", &WEB.replace("name: web", "name: foreign"));
    other.strata().run(&["apply", "--yes"]).ok();
    let plan = world.strata().run(&["plan", "--detailed-exitcode"]).code(0);
    assert!(!plan.all().contains("foreign"), "{}", plan.all());
    assert!(!world.strata().run(&["state", "list"]).ok().stdout.contains("foreign"));
}

#[test]
fn a4_what_a_dead_first_apply_began_is_found_without_its_source() {
    let world = World::instant(OTHER);
    world.repo.write("stacks/web/stack.yaml", OTHER);
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.write("stacks/late/stack.yaml", &WEB.replace("name: web", "name: late"));
    let control = world.sim.control();
    let held = control
        .fault(&serde_json::json!({"kind": "hold-after", "method": "POST", "path": "*/nodes/pve1/qemu"}));
    let mut child = world.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(held, 30.0));
    child.kill().unwrap();
    child.wait().unwrap();
    control.clear_faults();
    leave(&world, "stacks/late");
    let plan = world.strata().run(&["plan"]);
    assert!(plan.all().contains("late/vm/app"), "{}", plan.all());
    world.strata().run(&["destroy", "late", "--yes"]).ok();
    assert_eq!(guests(&world), [200, 9150]);
    world.strata().run(&["plan", "--detailed-exitcode"]).code(0);
}
