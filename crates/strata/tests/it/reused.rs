//! An address that something left is given to something new: both live, and share neither hardware addresses nor volumes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::world::World;

/// A stack with these guests, and what it says was moved.
fn stack(name: &str, moved: &str, guests: &[(&str, u32)]) -> String {
    let mut text =
        format!("metadata: {{name: {name}, environment: test}}\nproxmox: {{target: pve, node: pve1}}\n");
    if !moved.is_empty() {
        text.push_str(&format!("moved: [{moved}]\n"));
    }
    text.push_str("vms:\n");
    for (key, vmid) in guests {
        text.push_str(&format!(
            "  {key}:\n    vmId: {vmid}\n    iso: {{url: \"https://images.example/rescue.iso\"}}\n    memory: 256\n    disk: 2\n    \
             network: [{{bridge: vmbr0}}]\n    cloudInit: {{user: debian}}\n",
        ));
    }
    text
}

fn guest(world: &World, vmid: u32) -> Value {
    crate::windows::guest(&world.export(), &vmid.to_string())
}

/// The hardware address of a guest's first network device.
fn hardware_address(world: &World, vmid: u32) -> String {
    let net = guest(world, vmid)["config"]["net0"].as_str().unwrap_or_default().to_owned();
    let address = net.split(',').find_map(|part| Some(part.split_once('=')?.1));
    address.unwrap_or_else(|| panic!("{vmid}: {net}")).to_owned()
}

fn volumes(world: &World, guest: &Value) -> BTreeSet<String> {
    let export = world.export();
    let all = export["volumes"].as_array().unwrap().iter().filter_map(|one| one["volid"].as_str());
    all.filter(|volume| guest.to_string().contains(volume)).map(str::to_owned).collect()
}

fn applied(world: &World) {
    let applied = world.strata().run(&["apply", "--yes", "--allow-removed-stacks"]);
    assert_eq!(applied.code, 0, "{}", applied.all());
    world.assert_settled();
}

/// Both guests are told apart by everything that the network and the storages know of them.
fn assert_apart(world: &World, one: u32, other: u32) {
    assert_ne!(hardware_address(world, one), hardware_address(world, other), "both have it");
    let (one, other) = (guest(world, one), guest(world, other));
    let shared: Vec<String> = volumes(world, &one).intersection(&volumes(world, &other)).cloned().collect();
    assert!(shared.is_empty(), "both have {shared:?}");
}

#[test]
fn a_key_that_was_renamed_is_given_to_another_guest() {
    let world = World::instant(&stack("web", "", &[("app", 9110)]));
    applied(&world);
    let before = hardware_address(&world, 9110);
    let moved = "{from: web/vm/app, to: web/vm/old}";
    world.repo.write("stacks/web/stack.yaml", &stack("web", moved, &[("old", 9110)]));
    applied(&world);
    world.repo.write("stacks/web/stack.yaml", &stack("web", "", &[("old", 9110), ("app", 9111)]));
    applied(&world);
    assert_eq!(hardware_address(&world, 9110), before);
    assert_ne!(hardware_address(&world, 9111), before, "both have it");
}

#[test]
fn the_name_of_a_stack_that_was_renamed_is_given_to_another() {
    let world = World::instant(&stack("web", "", &[("app", 9110)]));
    applied(&world);
    world.repo.remove("stacks/web/stack.yaml");
    world.repo.write("stacks/shop/stack.yaml", &stack("shop", "{from: web, to: shop}", &[("app", 9110)]));
    applied(&world);
    world.repo.write("stacks/shop/stack.yaml", &stack("shop", "", &[("app", 9110)]));
    world.repo.write("stacks/web/stack.yaml", &stack("web", "", &[("app", 9111)]));
    applied(&world);
    assert_apart(&world, 9110, 9111);
    // Either can go without the other.
    let before = guest(&world, 9111);
    world.strata().run(&["destroy", "shop", "--yes"]).ok();
    assert_eq!(guest(&world, 9111), before);
    world.repo.remove("stacks/shop/stack.yaml");
    world.assert_settled();
    world.strata().run(&["destroy", "web", "--yes"]).ok();
    let left = world.export()["volumes"].to_string();
    assert!(!left.contains("strata-"), "{left}");
}

/// A guest that is moved on and on keeps its volume, and each new one under the first name has its own.
#[test]
fn what_moves_twice_stays_as_it_is() {
    let world = World::instant(&stack("web", "", &[("app", 9110)]));
    applied(&world);
    let (before, volumes_before) = (hardware_address(&world, 9110), volumes(&world, &guest(&world, 9110)));
    let file = |stack: &str| format!("stacks/{stack}/stack.yaml");
    world.repo.write(&file("web"), &stack("web", "", &[("app", 9111)]));
    world.repo.write(&file("shop"), &stack("shop", "{from: web/vm/app, to: shop/vm/app}", &[("app", 9110)]));
    let refused = world.strata().run(&["apply", "--yes"]);
    assert!(refused.all().contains("is still in the source"), "{}", refused.all());
    for (number, (from, to)) in [("web", "shop"), ("shop", "data")].into_iter().enumerate() {
        world.repo.remove(&file(from));
        let moved = format!("{{from: {from}, to: {to}}}");
        world.repo.write(&file(to), &stack(to, &moved, &[("app", 9110)]));
        applied(&world);
        world.repo.write(&file(to), &stack(to, "", &[("app", 9110)]));
        if from == "web" {
            continue;
        }
        // The names that were left are given to others.
        for (name, vmid) in [("web", 9111), ("shop", 9112)] {
            world.repo.write(&file(name), &stack(name, "", &[("app", vmid)]));
        }
        applied(&world);
        assert_eq!(number, 1);
    }
    assert_eq!(hardware_address(&world, 9110), before);
    assert_eq!(volumes(&world, &guest(&world, 9110)), volumes_before);
    for (one, other) in [(9110, 9111), (9110, 9112), (9111, 9112)] {
        assert_apart(&world, one, other);
    }
    world.strata().run(&["destroy", "--yes"]).ok();
    let left = world.export()["volumes"].to_string();
    assert!(!left.contains("strata-"), "{left}");
}

/// The run that makes the second one is killed; the next one finds what it made.
#[test]
fn a_kill_while_the_second_one_is_made_loses_nothing() {
    let world = || {
        let world = World::instant(&stack("web", "", &[("app", 9110)]));
        applied(&world);
        world.repo.remove("stacks/web/stack.yaml");
        world.repo.write("stacks/shop/stack.yaml", &stack("shop", "{from: web, to: shop}", &[("app", 9110)]));
        applied(&world);
        world.repo.write("stacks/shop/stack.yaml", &stack("shop", "", &[("app", 9110)]));
        world.repo.write("stacks/web/stack.yaml", &stack("web", "", &[("app", 9111)]));
        world
    };
    let undisturbed = world();
    applied(&undisturbed);
    for (kind, path) in [
        ("hold-after", "/nodes/pve1/storage/local/download-url"),
        ("hold-before", "/nodes/pve1/qemu"),
        ("hold-after", "/nodes/pve1/qemu"),
    ] {
        let world = world();
        let fault = json!({"kind": kind, "method": "POST", "path": path});
        let killed = world.strata().kill_at(&world.sim.control(), &fault, &["apply", "--yes"]);
        assert!(killed.struck_or_good(path), "{kind} {path}");
        applied(&world);
        crate::kill::assert_same(&world.export(), &undisturbed.export(), &format!("{kind} {path}"));
    }
}
