//! What goes wrong before anything is done: each message says what, where and what next.

use crate::world::{STACK, World};

#[test]
fn a_folder_that_is_no_repository() {
    let repo = strata_testkit::Repo::empty();
    let output = strata_testkit::Strata::new(crate::world::BINARY, &repo).run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr, @r"
    error: there is no `strata.yaml` in `.` or above it
      hint: `strata init` makes a repository; `-C DIR` names another folder
    ");
}

#[test]
fn a_wrong_token() {
    let world = World::instant(STACK);
    world.repo.write("sim-token", "strata@pve!demo=00000000-0000-0000-0000-000000000000");
    let output = world.strata().run(&["plan"]).code(1);
    assert!(output.stderr.contains("target `pve`"), "{}", output.all());
    assert!(output.stderr.contains("token"), "{}", output.all());
}

#[test]
fn a_wrong_fingerprint() {
    let world = World::instant(STACK);
    let own = world.sim.fingerprint();
    let other = own.replace(&own[..5], if own.starts_with("00:11") { "22:33" } else { "00:11" });
    world.repo.edit("strata.yaml", &own, &other);
    let output = world.strata().run(&["plan"]).code(1);
    assert!(output.stderr.contains(&own), "the fingerprint that was shown is named: {}", output.all());
}

#[test]
fn an_endpoint_that_is_down() {
    let world = World::instant(STACK);
    world.repo.edit("strata.yaml", &world.sim.endpoint(), "https://127.0.0.1:9");
    let output = world.strata().run(&["plan"]).code(1);
    assert!(output.stderr.contains("127.0.0.1:9"), "{}", output.all());
}

#[test]
fn two_applies_at_once() {
    let world = World::instant(STACK);
    let control = world.sim.control();
    let held = control.fault(&serde_json::json!({"kind": "hold-before", "writes": true}));
    let mut first = world.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(held, 30.0));
    let second = world.strata().run(&["apply", "--yes"]).code(4);
    assert!(
        second.stderr.contains("tester@") && second.stderr.contains(&first.id().to_string()),
        "{}",
        second.all()
    );
    control.release(held);
    control.clear_faults();
    assert_eq!(first.wait().unwrap().code(), Some(0));
}

#[test]
fn a_truncated_state_is_refused_and_can_be_rolled_back() {
    let world = World::instant(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    let file = ".strata/state/test/web/state.json";
    let text = world.repo.read(file);
    world.repo.write(file, &text[..text.len() / 2]);
    let output = world.strata().run(&["plan"]).code(1);
    assert!(
        output.stderr.contains("cannot be read") && output.stderr.contains("state rollback"),
        "{}",
        output.all()
    );
    let serial = world.strata().run(&["state", "history", "web"]).ok().stdout;
    let serial = serial.split_whitespace().next().unwrap().to_owned();
    world.strata().run(&["state", "rollback", "web", &serial]).ok();
    world.assert_settled();
}

#[test]
fn a_state_of_a_newer_program() {
    let world = World::instant(STACK);
    world.repo.write(".strata/state/test/web/state.json", r#"{"format": 99}"#);
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr, @r"
    error: the state `test/web` was written by a newer Strata: its format is 99, this one knows up to 1
      hint: use the newer Strata
    ");
}

#[test]
fn a_full_storage() {
    let world = World::instant(STACK);
    world.sim.control().change(&serde_json::json!({"room": {"storage": "local-lvm", "bytes": 1_000_000}}));
    let output = world.strata().run(&["apply", "--yes"]);
    assert_ne!(output.code, 0);
    assert!(output.stderr.contains("insufficient free space"), "{}", output.all());
    // With room again the same command finishes.
    world
        .sim
        .control()
        .change(&serde_json::json!({"room": {"storage": "local-lvm", "bytes": 1_000_000_000_000_u64}}));
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}
