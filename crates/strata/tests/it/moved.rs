//! Objects that get another address: renamed, counted, moved between stacks, with their stack. Nothing but ownership mark and name changes,
//! and a run that is killed anywhere leaves each object in one state.

use serde_json::{Value, json};

use crate::kill::assert_same;
use crate::world::World;

const WEB: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1}
vms:
  db:
    vmId: 9110
    iso: {url: "https://images.example/rescue.iso"}
    memory: 512
    disk: 4
    network: [{bridge: vmbr0, ip: 192.0.2.10/24}]
    cloudInit: {user: debian, password: {env: APP_PASSWORD}}
  other:
    vmId: 9111
    iso: {url: "https://images.example/other.iso"}
    memory: 512
    disk: 4
    started: false
containers:
  dns:
    vmId: 9200
    image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}
    disk: 4
    memory: 256
    password: {env: APP_PASSWORD}
    network: [{bridge: vmbr0, ip: 192.0.2.53/24, gateway: 192.0.2.1}]
"#;

const DATA: &str = r#"
metadata: {name: data, environment: test}
proxmox: {target: pve, node: pve1}
moved:
  - {from: web/vm/db, to: data/vm/database}
  - {from: web/container/dns, to: data/container/dns}
vms:
  database:
    vmId: 9110
    iso: {url: "https://images.example/rescue.iso"}
    memory: 512
    disk: 4
    network: [{bridge: vmbr0, ip: 192.0.2.10/24}]
    cloudInit: {user: debian, password: {env: APP_PASSWORD}}
containers:
  dns:
    vmId: 9200
    image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}
    disk: 4
    memory: 256
    password: {env: APP_PASSWORD}
    network: [{bridge: vmbr0, ip: 192.0.2.53/24, gateway: 192.0.2.1}]
"#;

/// What is left in `web` when `db` and `dns` have gone to `data`.
const REST: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1}
vms:
  other:
    vmId: 9111
    iso: {url: "https://images.example/other.iso"}
    memory: 512
    disk: 4
    started: false
"#;

fn applied(stack: &str) -> World {
    let world = World::instant(stack);
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    world
}

fn config(world: &World, vmid: u64) -> Value {
    let export = world.export();
    let guests = export["guests"].as_array().cloned().unwrap_or_default();
    let found = guests.into_iter().find(|guest| guest["vmid"] == vmid);
    found.unwrap_or_else(|| panic!("no guest {vmid} in {export}"))
}

/// Everything of a guest that a move may not change.
fn lasting(world: &World, vmid: u64) -> String {
    let mut guest = config(world, vmid);
    strip(&mut guest);
    guest.to_string()
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !matches!(key.as_str(), "description" | "name" | "hostname" | "digest"));
            map.values_mut().for_each(strip);
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}

/// The addresses that each state has, without the environment.
fn states(world: &World) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for stack in ["data", "frontend", "web"] {
        let listed = world.strata().run(&["state", "list", stack]);
        found.extend(
            listed.stdout.lines().map(|line| line.split_whitespace().next().unwrap_or("").to_owned()),
        );
    }
    found.retain(|address| address.contains('/'));
    found.sort();
    found
}

#[test]
fn d1_a_renamed_guest_stays_as_it_is_but_for_mark_and_name() {
    let world = applied(WEB);
    let before = lasting(&world, 9110);
    world.repo.edit("stacks/web/stack.yaml", "  db:\n", "  database:\n");
    world.repo.edit(
        "stacks/web/stack.yaml",
        "vms:\n",
        "moved: [{from: web/vm/db, to: web/vm/database}]\nvms:\n",
    );
    let plan = world.strata().run(&["plan", "--detailed-exitcode"]).code(2);
    let text = plan.all();
    assert!(text.contains("→ web/vm/database  moved from web/vm/db"), "{text}");
    assert!(text.contains("db → database"), "{text}");
    assert!(
        !text.contains("to create") && !text.contains("to destroy") && !text.contains("to replace"),
        "{text}"
    );
    assert!(!text.contains("restart") && !text.contains("password") && !text.contains("networks"), "{text}");
    let events = world.strata().run(&["--json", "plan"]).stdout;
    assert!(
        events.lines().any(|line| line.contains(r#""action":"moved""#) && line.contains("web/vm/db")),
        "{events}"
    );
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    assert_eq!(lasting(&world, 9110), before);
    assert!(config(&world, 9110).to_string().contains("web/vm/database vmid=9110"));
    // The entry may stay: what it speaks of is done.
    world.repo.edit(
        "stacks/web/stack.yaml",
        "    memory: 512\n    disk: 4\n    network",
        "    memory: 768\n    disk: 4\n    network",
    );
    let plan = world.strata().run(&["plan"]).ok();
    assert!(!plan.stdout.contains("moved from") && plan.stdout.contains("memory"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}

#[test]
fn d1_a_guest_becomes_the_first_of_a_count_and_back() {
    let world = applied(WEB);
    let before = lasting(&world, 9110);
    let single = world.repo.read("stacks/web/stack.yaml");
    let counted = single.replace("  db:\n    vmId: 9110\n", "  db:\n    count: 1\n    vmId: 9110\n");
    let counted = counted.replace("vms:\n", "moved: [{from: web/vm/db, to: web/vm/db-1}]\nvms:\n");
    world.repo.write("stacks/web/stack.yaml", &counted);
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    assert_eq!(lasting(&world, 9110), before);
    let back = single.replace("vms:\n", "moved: [{from: web/vm/db-1, to: web/vm/db}]\nvms:\n");
    world.repo.write("stacks/web/stack.yaml", &back);
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    assert_eq!(lasting(&world, 9110), before);
    // It is where it was made, and nothing says otherwise.
    world.repo.write("stacks/web/stack.yaml", &single);
    world.assert_settled();
}

/// A world in which two guests of `web` are about to move to `data`.
fn parting() -> World {
    let world = applied(WEB);
    world.repo.write("stacks/web/stack.yaml", REST);
    world.repo.write("stacks/data/stack.yaml", DATA);
    world
}

const APART: [&str; 6] = [
    "data/container/dns",
    "data/image/database@pve1",
    "data/image/dns@pve1",
    "data/vm/database",
    "web/image/other@pve1",
    "web/vm/other",
];

#[test]
fn d1_guests_move_between_stacks_with_their_images() {
    let world = parting();
    let (vm, container) = (lasting(&world, 9110), lasting(&world, 9200));
    let plan = world.strata().run(&["plan"]).ok();
    let text = plan.all();
    for line in [
        "→ data/vm/database  moved from web/vm/db",
        "→ data/container/dns  moved from web/container/dns",
        "→ data/image/database@pve1  moved from web/image/db@pve1",
        "→ web/vm/db  moved to data/vm/database",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
    assert!(
        !text.contains("to create") && !text.contains("to destroy") && !text.contains("to replace"),
        "{text}"
    );
    assert!(!text.contains("restart") && !text.contains("password"), "{text}");
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    assert_eq!((lasting(&world, 9110), lasting(&world, 9200)), (vm, container));
    assert_eq!(states(&world), APART);
    world.strata().run(&["destroy", "--yes"]).ok();
    let left = world.export().to_string();
    assert!(!left.contains("9110") && !left.contains("strata-"), "{left}");
}

#[test]
fn d1_a_run_about_one_of_the_stacks_moves_and_does_nothing_else_to_the_other() {
    for named in ["data", "web"] {
        let world = parting();
        // Another change of each stack, which nobody asked for.
        world.repo.edit("stacks/web/stack.yaml", "memory: 512", "memory: 640");
        world.repo.edit("stacks/data/stack.yaml", "memory: 256", "memory: 320");
        world.strata().run(&["apply", named, "--yes"]).ok();
        assert_eq!(states(&world), APART, "{named}");
        let text = world.export().to_string();
        assert_eq!(text.contains("640"), named == "web", "{text}");
        assert_eq!(text.contains("320"), named == "data", "{text}");
        world.strata().run(&["apply", "--yes"]).ok();
        world.assert_settled();
    }
}

#[test]
fn d1_a_whole_stack_is_renamed() {
    let world = applied(WEB);
    let before = [9110, 9111, 9200].map(|vmid| lasting(&world, vmid));
    let renamed = WEB
        .replace("name: web", "name: frontend")
        .replace("vms:\n", "moved: [{from: web, to: frontend}]\nvms:\n");
    world.repo.remove("stacks/web/stack.yaml");
    world.repo.write("stacks/frontend/stack.yaml", &renamed);
    let plan = world.strata().run(&["plan"]).ok();
    assert!(!plan.all().contains("to destroy") && !plan.all().contains("to create"), "{}", plan.all());
    // Also by its name alone, and although nobody agreed to the removal of a stack.
    world.strata().run(&["apply", "frontend", "--yes"]).ok();
    world.assert_settled();
    assert_eq!([9110, 9111, 9200].map(|vmid| lasting(&world, vmid)), before);
    assert!(states(&world).iter().all(|address| address.starts_with("frontend/")), "{:?}", states(&world));
}

#[test]
fn d1_a_saved_plan_moves_what_it_says_or_is_stale() {
    let world = parting();
    let file = world.repo.file("move.plan");
    let file = file.to_str().unwrap_or_default();
    world.strata().run(&["plan", "data", "-o", file]).ok();
    world.strata().run(&["apply", file, "--yes"]).ok();
    assert_eq!(states(&world), APART);
    let again = world.strata().run(&["apply", file, "--yes"]).code(3);
    assert!(again.all().contains("stale"), "{}", again.all());
}

/// Killed at every request, then applied again: each object is in one state, and all is as if nothing had happened.
fn kill_moves(step: usize) {
    let world = parting();
    world.sim.control().reset_requests();
    world.strata().run(&["apply", "--yes"]).ok();
    let (requests, expected) = (world.sim.requests(), world.export());
    for kind in ["hold-before", "hold-after"] {
        for k in (1..=requests).step_by(step) {
            let world = parting();
            let fault = json!({"kind": kind, "nth": k});
            world.strata().kill_at(&world.sim.control(), &fault, &["apply", "--yes"]);
            let known = states(&world);
            let guests = |name: &str| known.iter().filter(|address| address.ends_with(name)).count();
            assert_eq!(
                (guests("/vm/db") + guests("/vm/database"), guests("/container/dns")),
                (1, 1),
                "{known:?}"
            );
            world.strata().run(&["apply", "--yes"]).ok();
            world.assert_settled();
            assert_eq!(states(&world), APART, "{kind} {k}");
            assert_same(&world.export(), &expected, &format!("{kind} {k}"));
        }
    }
}

#[test]
fn a_kill_at_some_requests_of_a_move_loses_nothing() {
    kill_moves(5);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_requests_of_a_move() {
    kill_moves(1);
}

#[test]
fn state_mv_moves_at_once_between_stacks_too() {
    let world = parting();
    world
        .repo
        .write("stacks/data/stack.yaml", &DATA.replace("  - {from: web/vm/db, to: data/vm/database}\n", ""));
    let before = lasting(&world, 9200);
    world.strata().run(&["state", "mv", "web/vm/db", "data/vm/database"]).ok();
    let known = states(&world);
    assert!(
        known.contains(&"data/vm/database".to_owned()) && !known.contains(&"web/vm/db".to_owned()),
        "{known:?}"
    );
    world.strata().run(&["state", "mv", "web/vm/db", "data/vm/database"]).code(1);
    world.strata().run(&["state", "mv", "web/vm/other", "data/container/x"]).code(3);
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    assert_eq!(states(&world), APART);
    assert_eq!(lasting(&world, 9200), before);
    let mac = |world: &World| config(world, 9110).to_string();
    assert!(mac(&world).contains("data/vm/database vmid=9110"), "{}", mac(&world));
}

#[test]
fn mistakes_in_moved_are_underlined() {
    let world = World::instant(WEB);
    let told = |moved: &str| {
        world
            .repo
            .write("stacks/web/stack.yaml", &WEB.replace("vms:\n", &format!("moved: [{moved}]\nvms:\n")));
        let found = world.strata().run(&["validate"]).code(1);
        assert!(found.all().contains("stacks/web/stack.yaml:4"), "{}", found.all());
        found.all()
    };
    let still = told("{from: web/vm/db, to: web/vm/x}");
    assert!(still.contains("`web/vm/db` is still in the source"), "{still}");
    let chain = told("{from: web/vm/a, to: web/vm/b}, {from: web/vm/b, to: web/vm/c}");
    assert!(chain.contains("write `{from: web/vm/a, to: web/vm/c}` instead of these"), "{chain}");
    let cycle = told("{from: web/vm/a, to: web/vm/b}, {from: web/vm/b, to: web/vm/a}");
    assert!(cycle.contains("`web/vm/a` moves in a circle"), "{cycle}");
    let twice = told("{from: web/vm/a, to: web/vm/x}, {from: web/vm/b, to: web/vm/x}");
    assert!(twice.contains("two objects cannot both become `web/vm/x`"), "{twice}");
    let kinds = told("{from: web/vm/a, to: web/container/a}");
    assert!(kinds.contains("a vm is no container"), "{kinds}");
    let stack = told("{from: web/vm/a, to: wob/vm/a}");
    assert!(stack.contains("there is no stack `wob`") && stack.contains("did you mean `web`?"), "{stack}");
    let shape = told("{from: web/vm, to: web/vm/a}");
    assert!(shape.contains("a stack such as `web`, or an address such as `web/vm/db`"), "{shape}");
    told("{from: web, to: web}");
}

#[test]
fn a_move_onto_another_object_or_to_nothing_is_refused() {
    let world = applied(WEB);
    let moved = |to: &str| {
        let stack = REST.replace("vms:\n", &format!("moved: [{{from: web/vm/db, to: {to}}}]\nvms:\n"));
        world.repo.write("stacks/web/stack.yaml", &stack);
        let plan = world.strata().run(&["plan"]).code(3);
        assert!(plan.all().contains("stacks/web/stack.yaml:4"), "{}", plan.all());
        plan.all()
    };
    let before = world.export();
    let onto = moved("web/vm/other");
    assert!(onto.contains("the state has another object under this address"), "{onto}");
    let nothing = moved("web/vm/nobody");
    assert!(nothing.contains("the source has nothing of this name"), "{nothing}");
    world.strata().run(&["apply", "--yes"]).code(3);
    assert_eq!(world.export(), before);
}

const WEB_STATE: &str = ".strata/state/test/web/state.json";

/// What was moved is in one state: a rollback that would bring it back into the other is refused.
#[test]
fn a_rollback_to_before_a_move_is_refused() {
    let world = parting();
    let history = world.strata().run(&["state", "history", "web"]).ok().stdout;
    let serial = history.lines().find_map(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let serial = serial.unwrap().to_string();
    world.strata().run(&["apply", "--yes"]).ok();
    let refused = world.strata().run(&["state", "rollback", "web", &serial]).code(3).all();
    assert!(refused.contains("of the state `test/data` by now"), "{refused}");
    assert_eq!(states(&world), APART);
    // Within a stack nothing is in two states.
    world.strata().run(&["state", "rollback", "data"]).ok();
}

/// A file that somebody put back from a copy knows what another state has by now: neither removes it.
#[test]
fn a_state_from_before_a_move_takes_nothing_from_the_other() {
    let world = parting();
    let old = world.repo.read(WEB_STATE);
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.write(WEB_STATE, &old);
    assert!(states(&world).contains(&"web/vm/db".to_owned()), "{:?}", states(&world));
    // The entries were done, and are removed.
    let data = world.repo.read("stacks/data/stack.yaml");
    let kept = data.lines().filter(|line| !line.contains("from:") && !line.starts_with("moved:"));
    world.repo.write("stacks/data/stack.yaml", &(kept.collect::<Vec<_>>().join("\n") + "\n"));
    let before = world.export();
    for command in [&["plan"][..], &["apply", "--yes"], &["destroy", "web", "--yes"]] {
        let refused = world.strata().run(command).code(3).all();
        assert!(
            refused.contains("the state `test/data` has the same object as `data/vm/database`"),
            "{refused}"
        );
        assert_same(&world.export(), &before, &format!("{command:?}"));
    }
    let own = ["web/vm/other", "web/image/other@pve1"];
    for address in states(&world).iter().filter(|one| one.starts_with("web/") && !own.contains(&one.as_str()))
    {
        world.strata().run(&["state", "rm", address]).ok();
    }
    world.strata().run(&["apply", "--yes"]).ok();
    assert_same(&world.export(), &before, "at the end");
    assert_eq!(states(&world), APART);
}

/// Moved, killed before the state knows of the new mark, and moved back.
#[test]
fn a_move_that_was_killed_can_be_taken_back() {
    let world = applied(WEB);
    let before = [9110, 9111, 9200].map(|vmid| lasting(&world, vmid));
    let moved = |from: &str, to: &str| {
        let entry = format!("moved: [{{from: {from}, to: {to}}}]\nvms:\n");
        WEB.replace("name: web", &format!("name: {to}")).replace("vms:\n", &entry)
    };
    world.repo.remove("stacks/web/stack.yaml");
    world.repo.write("stacks/data/stack.yaml", &moved("web", "data"));
    let fault = json!({"kind": "hold-after", "method": "PUT", "path": "/nodes/*/lxc/9200/config"});
    assert!(world.strata().kill_at(&world.sim.control(), &fault, &["apply", "--yes"]).struck);
    world.repo.remove("stacks/data/stack.yaml");
    world.repo.write("stacks/web/stack.yaml", &moved("data", "web"));
    // The first one finishes what was begun.
    world.strata().run(&["apply", "--yes"]).code(3);
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    assert_eq!([9110, 9111, 9200].map(|vmid| lasting(&world, vmid)), before);
}

/// An image is called by the first guest that uses it. If that one goes to another stack, the image stays with those that still use it.
#[test]
fn an_image_that_others_still_use_is_in_one_state() {
    let guest = |key: &str, vmid: u32| {
        format!(
            "  {key}:\n    vmId: {vmid}\n    iso: {{url: \"https://images.example/rescue.iso\"}}\n    disk: 4\n    started: false\n"
        )
    };
    let stack = |name: &str, rest: &str| {
        format!("metadata: {{name: {name}, environment: test}}\nproxmox: {{target: pve, node: pve1}}\n{rest}")
    };
    let world = applied(&stack("web", &format!("vms:\n{}{}", guest("a", 9110), guest("b", 9111))));
    world.repo.write("stacks/web/stack.yaml", &stack("web", &format!("vms:\n{}", guest("b", 9111))));
    let moved = format!("moved: [{{from: web/vm/a, to: data/vm/a}}]\nvms:\n{}", guest("a", 9110));
    world.repo.write("stacks/data/stack.yaml", &stack("data", &moved));
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    let images = || {
        let export = world.export();
        let volumes = export["volumes"].as_array().unwrap().iter();
        volumes.filter(|one| one["volid"].as_str().unwrap().starts_with("local:iso/strata-")).count()
    };
    assert_eq!(images(), 2, "one for each stack: {:?}", states(&world));
    // What one stack removes is not what the other has.
    world.repo.remove("stacks/data/stack.yaml");
    world.strata().run(&["apply", "--yes", "--allow-removed-stacks"]).ok();
    world.assert_settled();
    assert_eq!(images(), 1);
}
