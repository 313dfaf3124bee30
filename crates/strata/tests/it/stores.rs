//! The verbs of states and locks, on a server and on encrypted files.

use serde_json::json;
use strata_testkit::{Output, Repo};

use crate::state_server::{StateServer, TOKEN};
use crate::world::World;

const SMALL: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
vms:
  a: {vmId: 9100, memory: 1024, disk: {storage: local-lvm, size: 4}, network: [{bridge: vmbr0}], started: false}
  b: {vmId: 9101, memory: 1024, disk: {storage: local-lvm, size: 4}, network: [{bridge: vmbr0}], started: false}
"#;

fn world(state: &str) -> World {
    let world = World::instant(SMALL);
    set_state(&world.repo, state);
    world.repo.write("state-token", TOKEN);
    world
}

fn set_state(repo: &Repo, state: &str) {
    let settings = repo.read("strata.yaml");
    let rest: Vec<&str> = settings.lines().filter(|line| !line.starts_with("state:")).collect();
    repo.write("strata.yaml", &format!("{}\nstate: {state}\n", rest.join("\n")));
}

fn run(world: &World, arguments: &[&str]) -> Output {
    world.strata().run(arguments)
}

fn empty_plan(world: &World) {
    let plan = run(world, &["plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{}", plan.all());
}

#[test]
fn every_verb_of_states_works_on_a_server() {
    let server = StateServer::start();
    let world = world(&server.settings());
    run(&world, &["apply", "--yes"]).ok();
    world.repo.edit("stacks/web/stack.yaml", "a: {vmId: 9100, memory: 1024", "a: {vmId: 9100, memory: 2048");
    run(&world, &["apply", "--yes"]).ok();
    assert!(!world.repo.file(".strata/state").exists());
    assert!(run(&world, &["state", "list"]).ok().stdout.contains("web/vm/a"));
    assert!(run(&world, &["state", "show", "web/vm/a"]).ok().stdout.contains("9100"));
    let history = run(&world, &["state", "history", "web"]).ok().stdout;
    assert_eq!(history.lines().count(), 2, "{history}");
    // Who made each version, whatever the store is: `user@host`, the command, the run.
    let who = |line: &str| line.split("  ").skip(3).map(str::to_owned).collect::<Vec<String>>();
    let all: Vec<Vec<String>> = history.lines().map(|line| who(line.trim_start())).collect();
    assert!(all[0][0].contains('@') && all[0][1] == "apply" && all[0][2].len() == 16, "{history}");
    assert!(all[1][0] == all[0][0] && all[1][2] != all[0][2], "{history}");
    let diff = run(&world, &["state", "diff", "web"]).ok().stdout;
    assert!(diff.contains("~ web/vm/a") && diff.contains("memory"), "{diff}");
    assert!(!diff.contains("web/vm/b"), "{diff}");
    assert!(diff.ends_with("serial 1 to 2: 1 resource differs\n"), "{diff}");
    let diff = run(&world, &["state", "diff", "web", "2", "1", "--json"]).ok().stdout;
    assert!(diff.contains(r#""difference":"changed""#), "{diff}");

    let pulled = run(&world, &["state", "pull", "web"]).ok().stdout;
    run(&world, &["state", "rm", "web/vm/b"]).ok();
    assert!(!run(&world, &["state", "list"]).ok().stdout.contains("web/vm/b"));
    world.repo.write("pulled.json", &pulled);
    run(&world, &["state", "push", "web", "pulled.json"]).code(3);
    run(&world, &["state", "push", "web", "pulled.json", "--force"]).ok();
    empty_plan(&world);
    run(&world, &["state", "mv", "web/vm/b", "web/vm/c"]).ok();
    run(&world, &["state", "rollback", "web", "4"]).ok();
    empty_plan(&world);
    assert_eq!(run(&world, &["state", "history", "web"]).ok().stdout.lines().count(), 6);
}

#[test]
fn states_move_to_a_server_and_back() {
    let server = StateServer::start();
    let world = world("{backend: local}");
    run(&world, &["apply", "--yes"]).ok();
    let moved = run(&world, &["state", "migrate", "--to", &server.settings()]).ok();
    assert!(moved.stdout.contains("copied `test/web`, serial 1"), "{}", moved.all());
    let again = run(&world, &["state", "migrate", "--to", &server.settings()]).ok();
    assert!(again.stdout.contains("`test/web` is there already"), "{}", again.all());
    set_state(&world.repo, &server.settings());
    std::fs::remove_dir_all(world.repo.file(".strata/state")).unwrap();
    empty_plan(&world);
    world.repo.edit("stacks/web/stack.yaml", "b: {vmId: 9101, memory: 1024", "b: {vmId: 9101, memory: 2048");
    run(&world, &["apply", "--yes"]).ok();

    world
        .repo
        .write("back.yaml", "state:\n  backend: local\n  encryption: {passphrase: {env: PASSPHRASE}}\n");
    let strata = || world.strata().env("PASSPHRASE", "correct horse battery staple");
    strata().run(&["state", "migrate", "--to", "back.yaml"]).ok();
    set_state(&world.repo, "{backend: local, encryption: {passphrase: {env: PASSPHRASE}}}");
    let plan = strata().run(&["plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{}", plan.all());

    let wrong = run(&world, &["state", "migrate", "--to", "{backend: s4}"]).code(1);
    assert!(wrong.all().contains("s4"), "{}", wrong.all());
}

#[test]
fn the_history_moves_along() {
    let server = StateServer::start();
    let world = world("{backend: local}");
    run(&world, &["apply", "--yes"]).ok();
    for (from, to) in [("1024", "2048"), ("2048", "3072"), ("3072", "4096")] {
        let memory = |size: &str| format!("a: {{vmId: 9100, memory: {size}");
        world.repo.edit("stacks/web/stack.yaml", &memory(from), &memory(to));
        run(&world, &["apply", "--yes"]).ok();
    }
    let there = |output: Output| -> Vec<String> {
        let serial = |line: &str| line.split_whitespace().next().unwrap().to_owned();
        output.ok().stdout.lines().map(serial).collect()
    };
    let before = there(run(&world, &["state", "history", "web"]));
    assert_eq!(before, ["4", "3", "2", "1"]);
    // A version that cannot be read stays behind, and that is told.
    world.repo.write(".strata/state/test/web/history/00000002.json", "{");
    let moved = run(&world, &["state", "migrate", "--to", &server.settings()]).ok();
    assert!(moved.stdout.contains("copied `test/web`, serial 4, with 2 older versions"), "{}", moved.all());
    assert!(moved.stderr.contains("cannot be read: serial 2"), "{}", moved.all());
    set_state(&world.repo, &server.settings());
    assert_eq!(there(run(&world, &["state", "history", "web"])), ["4", "3", "1"]);
    let diff = run(&world, &["state", "diff", "web", "1", "4"]).ok().stdout;
    assert!(diff.contains("memory"), "{diff}");
    run(&world, &["state", "rollback", "web", "3"]).ok();
    assert_eq!(there(run(&world, &["state", "history", "web"])), ["5", "4", "3", "1"]);

    // A store that keeps fewer keeps the newest; and who wants none of it says so.
    let fewer = run(&world, &["state", "migrate", "--to", "{backend: local, path: few, history: 2}"]).ok();
    assert!(fewer.stdout.contains("serial 5, with 1 older version\n"), "{}", fewer.all());
    assert!(
        fewer.stderr.contains("2 older versions of `test/web` stay in the old store only"),
        "{}",
        fewer.all()
    );
    let none =
        run(&world, &["state", "migrate", "--without-history", "--to", "{backend: local, path: none}"]).ok();
    assert!(none.stdout.contains("copied `test/web`, serial 5\n"), "{}", none.all());
    assert!(
        none.stderr.contains("3 older versions of `test/web` stay in the old store only"),
        "{}",
        none.all()
    );
    for (path, serials) in [("few", ["5", "4"].as_slice()), ("none", &["5"])] {
        set_state(&world.repo, &format!("{{backend: local, path: {path}}}"));
        assert_eq!(there(run(&world, &["state", "history", "web"])), serials);
    }
}

#[test]
fn a_state_that_differs_is_not_overwritten_by_a_migration() {
    let server = StateServer::start();
    let world = world(&server.settings());
    run(&world, &["apply", "--yes"]).ok();
    set_state(&world.repo, "{backend: local}");
    run(&world, &["state", "migrate", "--to", &server.settings()]).ok();
    // The stack is found by its marks and gets a local state of its own, which goes another way.
    world.repo.edit("stacks/web/stack.yaml", "a: {vmId: 9100, memory: 1024", "a: {vmId: 9100, memory: 2048");
    run(&world, &["apply", "--yes"]).ok();
    let refused = run(&world, &["state", "migrate", "--to", &server.settings()]).code(3);
    assert!(refused.all().contains("there is a state `test/web` already"), "{}", refused.all());
}

#[test]
fn an_encrypted_state_is_read_with_the_old_key_and_written_with_the_new() {
    let world = world("{backend: local, encryption: {passphrase: {env: FIRST}}}");
    let strata =
        || world.strata().env("FIRST", "correct horse battery").env("SECOND", "battery staple horse");
    strata().run(&["apply", "--yes"]).ok();
    let text = world.repo.read(".strata/state/test/web/state.json");
    assert!(text.contains("\"serial\": 1") && !text.contains("vmbr0"), "{text}");
    for (path, bytes) in world.repo.all_files() {
        let state = path.starts_with(world.repo.file(".strata/state"));
        let bare = bytes.windows(5).any(|window| window == b"vmbr0");
        assert!(!(state && bare), "{}", path.display());
    }
    set_state(&world.repo, "{backend: local, encryption: {passphrase: {env: SECOND}}}");
    let refused = strata().run(&["plan"]).code(1);
    assert!(refused.all().contains("cannot be decrypted"), "{}", refused.all());
    set_state(
        &world.repo,
        "{backend: local, encryption: {passphrase: {env: SECOND}, previous: [{passphrase: {env: FIRST}}]}}",
    );
    strata().run(&["plan", "--detailed-exitcode"]).ok();
    world.repo.edit("stacks/web/stack.yaml", "a: {vmId: 9100, memory: 1024", "a: {vmId: 9100, memory: 2048");
    strata().run(&["apply", "--yes"]).ok();
    set_state(&world.repo, "{backend: local, encryption: {passphrase: {env: SECOND}}}");
    strata().run(&["plan", "--detailed-exitcode"]).ok();
    // And back to plain, on purpose only.
    set_state(&world.repo, "{backend: local}");
    strata().run(&["plan"]).code(1);
    set_state(&world.repo, "{backend: local, encryption: {previous: [{passphrase: {env: SECOND}}]}}");
    world.repo.edit("stacks/web/stack.yaml", "a: {vmId: 9100, memory: 2048", "a: {vmId: 9100, memory: 1024");
    strata().run(&["apply", "--yes"]).ok();
    set_state(&world.repo, "{backend: local}");
    empty_plan(&world);
}

#[test]
fn a_state_is_encrypted_for_age_recipients() {
    let world = world("local");
    let keys = Repo::empty();
    strata_testkit::Strata::new(crate::world::BINARY, &keys).run(&["init", "."]).ok();
    let key = keys.read("age.key");
    let recipient = key.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap();
    world.repo.write("age.key", &key);
    set_state(&world.repo, &format!("{{backend: local, encryption: {{age: [{recipient}]}}}}"));
    run(&world, &["apply", "--yes"]).ok();
    assert!(world.repo.read(".strata/state/test/web/state.json").contains("BEGIN AGE"));
    empty_plan(&world);
    world.repo.remove("age.key");
    let refused = run(&world, &["plan"]).code(1);
    assert!(refused.all().contains("cannot be decrypted"), "{}", refused.all());
}

/// Waits at a request, so that the lock is held meanwhile.
fn held(world: &World) -> (std::process::Child, u64) {
    let control = world.sim.control();
    let fault = control.fault(&json!({"kind": "hold-before", "nth": 1, "method": "POST"}));
    let child = world.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(fault, 60.0));
    (child, fault)
}

#[test]
fn a_lock_of_the_living_is_taken_only_on_purpose() {
    let server = StateServer::start();
    let leased = server.settings().replacen('{', "{lease: 10, ", 1);
    for state in [leased, "{backend: local}".to_owned()] {
        let world = world(&state);
        let (mut child, fault) = held(&world);
        let locked = run(&world, &["apply", "--yes"]).code(4);
        let id =
            locked.stderr.lines().find_map(|line| line.trim().strip_prefix("lock id: ")).unwrap().to_owned();
        run(&world, &["unlock", "web"]).code(4);
        run(&world, &["unlock", "web", "another-id"]).code(3);
        run(&world, &["unlock", "web", &id]).ok();
        world.sim.control().release(fault);
        world.sim.control().clear_faults();
        assert!(!child.wait().unwrap().success(), "the run whose lock was taken away stops");
        run(&world, &["apply", "--yes"]).ok();
        run(&world, &["destroy", "--yes"]).ok();
    }
}

#[test]
fn a_lock_of_the_dead_is_taken_at_once() {
    let server = StateServer::start();
    let world = world(&server.settings());
    let (mut child, fault) = held(&world);
    child.kill().unwrap();
    child.wait().unwrap();
    world.sim.control().release(fault);
    world.sim.control().clear_faults();
    let unlocked = run(&world, &["unlock", "web"]).ok();
    assert!(unlocked.stdout.contains("unlocked `test/web`"), "{}", unlocked.all());
    assert!(run(&world, &["unlock", "web"]).ok().stdout.contains("is not locked"));
    run(&world, &["apply", "--yes"]).ok();
    empty_plan(&world);
}

#[test]
fn doctor_says_where_states_are_and_what_is_wrong_there() {
    let server = StateServer::start();
    let world = world(&server.settings());
    assert!(run(&world, &["doctor"]).ok().stdout.contains("states are kept in http, http://127.0.0.1"));
    world.repo.write("state-token", "wrong");
    let told = run(&world, &["doctor"]).code(1);
    assert!(told.stdout.contains("401"), "{}", told.all());
    set_state(&world.repo, "{backend: s3}");
    assert!(run(&world, &["plan"]).code(1).stderr.contains("the state backend `s3` needs `bucket`"));
}
