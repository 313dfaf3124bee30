//! The leak test: a marker secret goes through everything and is found only where it must be.

use serde_json::json;

use crate::world::{STACK, World};

const MARKER: &str = "MARKER-7f3a-correct-horse";

fn search(world: &World, outputs: &[String]) {
    for (number, output) in outputs.iter().enumerate() {
        assert!(!output.contains(MARKER), "output {number} holds the secret:\n{output}");
    }
    for (path, bytes) in world.repo.all_files() {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(MARKER), "`{}` holds the secret", path.display());
    }
}

#[test]
fn a_secret_is_in_no_file_and_no_output() {
    let world = World::instant(STACK);
    let strata =
        || strata_testkit::Strata::new(crate::world::BINARY, &world.repo).env("APP_PASSWORD", MARKER);
    let mut outputs = Vec::new();
    let mut run = |arguments: &[&str]| outputs.push(strata().run(arguments).all());
    run(&["plan"]);
    run(&["--json", "plan"]);
    run(&["-v", "plan", "-o", "saved.plan"]);
    // A failing apply, whose error the server words itself and repeats what it was sent.
    world.sim.control().fault(&json!({
        "kind": "refuse", "status": 400, "writes": true, "path": "*/qemu/9100/config", "count": 0,
        "text": format!("cannot set cipassword '{MARKER}'"),
    }));
    run(&["-v", "apply", "--yes"]);
    world.sim.control().clear_faults();
    run(&["-v", "apply", "--yes"]);
    run(&["--json", "apply", "--yes"]);
    run(&["state", "pull", "web"]);
    run(&["state", "show", "web/vm/app-1"]);
    run(&["graph"]);
    run(&["drift"]);
    search(&world, &outputs);
    // It reached the guest, where it must be.
    assert!(world.sim.control().requests().to_string().contains("config"));
    // A changed secret is still seen.
    let changed =
        strata_testkit::Strata::new(crate::world::BINARY, &world.repo).env("APP_PASSWORD", "another");
    let plan = changed.run(&["plan", "--detailed-exitcode"]).code(2);
    assert!(plan.stdout.contains("cloudinit.password") && plan.stdout.contains("(secret)"), "{}", plan.all());
}
