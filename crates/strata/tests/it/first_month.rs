//! What a user meets in the first month, as it is shown: each case of part D of what was proven wrong once (docs/testing.md) has a page here.

use std::fs;

use serde_json::Value;
use strata_testkit::{Output, Strata};

use crate::bad_input::shown;
use crate::world::{BINARY, World};

const FILE: &str = "stacks/web/stack.yaml";
const DB: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: tank}
vms:
  db: {vmId: 9110, memory: 512, disk: 1, started: false, network: [vmbr0]}
"#;

/// A command, and all that a person reads of it, without what differs from run to run.
fn page(world: &World, arguments: &[&str]) -> String {
    let Output { code, stdout, stderr } = world.strata().run(arguments);
    let stderr = shown(world, &Output { code, stdout: String::new(), stderr });
    let stdout =
        stdout.replace(&world.sim.endpoint(), "ENDPOINT").replace(&world.sim.fingerprint(), "FINGERPRINT");
    format!("$ strata {}\n{stdout}{stderr}exit code {code}\n", arguments.join(" "))
}

/// `1 done, 1 failed in 0.3 s` ends differently each time.
fn without_time(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    for place in 1..words.len() {
        if words[place].trim_end_matches(':') == "s" && words[place - 1].parse::<f64>().is_ok() {
            words[place - 1] = "…";
        }
    }
    words.join(" ")
}

fn other(world: &World, name: &str, vms: &str) {
    let stack = format!(
        "metadata: {{name: {name}, environment: test}}\nproxmox: {{target: pve, node: pve1, storage: tank}}\nvms: {{{vms}}}\n"
    );
    world.repo.write(&format!("stacks/{name}/stack.yaml"), &stack);
}

/// A renamed guest is the user's own, and the line that says so is there to paste.
#[test]
fn d1_a_rename_is_shown_with_what_to_write() {
    let world = World::instant(DB);
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.edit(FILE, "  db: {", "  database: {");
    let refused = page(&world, &["plan"]);
    let moved = format!("{}moved: [{{from: web/vm/db, to: web/vm/database}}]\n", world.repo.read(FILE));
    world.repo.write(FILE, &moved);
    insta::assert_snapshot!("d1", format!("{refused}\n{}", page(&world, &["plan"])));
}

/// What an apply could not do is said by the plan, with the line of the source.
#[test]
fn d3_a_plan_that_cannot_be_applied_says_so() {
    let world = World::instant(DB);
    world.repo.edit(
        FILE,
        "disk: 1, started: false, network: [vmbr0]",
        "disk: {size: 1, storage: local}, started: false, network: [vmbr77]",
    );
    other(&world, "nowhere", "x: {vmId: 9120, node: pve9, memory: 64, disk: 1, started: false}");
    insta::assert_snapshot!("d3", page(&world, &["plan"]));
}

/// A target that nobody is on is asked all the same, and a role for nothing is no role.
#[test]
fn d4_doctor_says_what_does_not_answer() {
    let world = World::instant(DB);
    fs::remove_dir_all(world.repo.file("stacks/web")).unwrap();
    let role = page(&world, &["doctor", "--role"]);
    world.repo.edit("strata.yaml", &world.sim.endpoint(), "https://127.0.0.1:9");
    let told = page(&world, &["doctor"]);
    assert!(
        told.contains("cannot connect to `127.0.0.1:9`") && !told.contains("every target answers"),
        "{told}"
    );
    insta::assert_snapshot!("d4", role);
}

/// A wrong endpoint is shown with its line, at once.
#[test]
fn d5_a_wrong_endpoint_is_shown_with_its_line() {
    let world = World::instant(DB);
    let (endpoint, port) =
        (world.sim.endpoint(), world.sim.endpoint().rsplit(':').next().unwrap().to_owned());
    world.repo.edit("strata.yaml", &endpoint, "https://127.0.0.1:9");
    let dead = page(&world, &["plan"]);
    world.repo.edit("strata.yaml", "https://127.0.0.1:9", &endpoint.replace("https://", "http://"));
    let plain = page(&world, &["plan"]).replace(&port, "PORT");
    insta::assert_snapshot!("d5", format!("{dead}\n{plain}"));
}

/// A failure is shown with what it stopped, and nothing else is stopped.
#[test]
fn d6_a_failure_says_what_is_left_and_why() {
    let world = World::instant(DB);
    other(&world, "alone", "y: {vmId: 9130, memory: 64, disk: 1, started: false}");
    other(&world, "needs", "z: {vmId: 9140, memory: 64, disk: 1, started: false}");
    world.repo.edit("stacks/needs/stack.yaml", "environment: test}", "environment: test, dependsOn: [web]}");
    let fault = serde_json::json!({"kind": "fail-task", "path": "/tasks/qmcreate/9110", "text": "no space left", "count": 0});
    world.sim.control().fault(&fault);
    let run = world.strata().run(&["apply", "--yes"]).code(1).all();
    assert!(run.contains("no space left"), "{run}");
    let listed = world.strata().run(&["state", "list"]).ok().stdout;
    assert_eq!(
        listed.lines().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>(),
        ["alone/vm/y"],
        "{run}"
    );
    // The end of the run, below what was done side by side.
    let (_, end) = run.rsplit_once("no space left").unwrap();
    insta::assert_snapshot!("d6", end.lines().skip(1).map(without_time).collect::<Vec<_>>().join("\n"));
}

/// Proxmox allows it: a word of warning, and no more.
#[test]
fn d7_equal_names_in_two_stacks_are_a_warning() {
    let world = World::instant(DB);
    other(&world, "data", "db: {vmId: 9150, memory: 64, disk: 1, started: false}");
    insta::assert_snapshot!("d7", page(&world, &["validate"]));
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}

/// Every line says which event it is, of which version and when; a wrong command line is no drift.
#[test]
fn d9_lines_for_programs_name_themselves() {
    let world = World::instant(DB);
    assert_eq!(world.strata().run(&["plan", "--no-such-flag"]).code, 64);
    for arguments in [
        &["--json", "validate"][..],
        &["--json", "graph"],
        &["--json", "plan"],
        &["--json", "apply", "--yes"],
    ] {
        let run = world.strata().run(arguments).ok();
        assert!(!run.stdout.is_empty(), "{arguments:?}");
        for line in run.stdout.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let has = |key: &str| !line[key].is_null();
            assert!(has("event") && has("version") && has("time"), "{arguments:?}: {line}");
        }
    }
    insta::assert_snapshot!("d9", page(&world, &["plan", "--no-such-flag"]));
}

/// What the first hour asks: a key that must be kept, checks without it, a tree that is not larger than what it is for.
#[test]
fn d10_the_first_hour_needs_no_search() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("infra");
    let begun =
        Strata::at(BINARY, folder.path()).run(&["init", "--example", "homelab", path.to_str().unwrap()]).ok();
    assert!(begun.all().contains("keep a copy of `age.key`"), "{}", begun.all());
    fs::remove_file(path.join("age.key")).unwrap();
    Strata::at(BINARY, &path).run(&["validate"]).ok();
    let world = World::instant(DB);
    world.strata().run(&["apply", "--yes"]).ok();
    let history = world.strata().run(&["state", "history", "web"]).ok().stdout;
    assert!(history.contains('@') && history.contains("apply"), "{history}");
    let synced = world.strata().run(&["sync"]).ok();
    let files = world.repo.all_files();
    let foreign = |(path, _): &&(std::path::PathBuf, Vec<u8>)| {
        let path = path.to_string_lossy();
        ["aws", "oci", "gcp", "azure"].iter().any(|word| path.contains(&format!("modules/{word}")))
    };
    assert_eq!(files.iter().find(foreign).map(|(path, _)| path), None, "{}", synced.all());
}
