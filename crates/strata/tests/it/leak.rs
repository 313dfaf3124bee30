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

#[test]
fn the_key_of_the_digests_travels_with_the_state() {
    let sim = strata_testkit::TestSim::start();
    let repo = strata_testkit::Repo::empty();
    let strata = strata_testkit::Strata::new(crate::world::BINARY, &repo);
    strata.run(&["init", "--example", "prod", "."]).ok();
    repo.edit("strata.yaml", "https://127.0.0.1:18006", &sim.endpoint());
    strata.run(&["apply", "web", "--yes"]).ok();
    let state = repo.read(".strata/state/prod/web/state.json");
    assert!(state.contains("BEGIN AGE ENCRYPTED FILE"), "{state}");
    // Another machine has the state and the age identity, not the file.
    repo.remove(".strata/digest.key");
    strata.run(&["plan", "web", "--detailed-exitcode"]).ok();
    // A new key: every secret counts as changed once.
    strata.run(&["secrets", "rotate", "--digest-key"]).ok();
    let plan = strata.run(&["plan", "web", "--detailed-exitcode"]).code(2);
    assert!(plan.stdout.contains("cloudinit.password"), "{}", plan.all());
    strata.run(&["apply", "web", "--yes"]).ok();
    strata.run(&["plan", "web", "--detailed-exitcode"]).ok();
    // Nobody else can open it.
    repo.remove("age.key");
    let refused = strata.run(&["plan", "web"]).code(1);
    assert!(refused.stderr.contains("error"), "{}", refused.all());
}
