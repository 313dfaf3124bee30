//! Writes after a lease has lapsed, and records that a run needs after it died.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use strata_testkit::{Repo, Strata, TestSim};

use crate::places::{datacenter, machine, strata};
use crate::state_server::{StateServer, TOKEN};
use crate::world::{BINARY, World};

const APPLY: [&str; 2] = ["apply", "--yes"];

/// Two guests that are off: what a late DELETE would hit.
const SMALL: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
vms:
  a: {vmId: 9100, memory: 1024, disk: {storage: local-lvm, size: 4}, network: [{bridge: vmbr0}], started: false}
  b: {vmId: 9101, memory: 1024, disk: {storage: local-lvm, size: 4}, network: [{bridge: vmbr0}], started: false}
"#;
const B: &str = "  b: {vmId: 9101, memory: 1024, disk: {storage: local-lvm, size: 4}, network: [{bridge: vmbr0}], started: false}\n";

fn small(sim: &TestSim, settings: &str, source: &str) -> Repo {
    let repo = machine(sim, settings);
    repo.write("stacks/web/stack.yaml", source);
    repo
}

pub(super) fn signal(child: &Child, name: &str) {
    let done = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(done.success());
}

fn has_guest(sim: &TestSim, vmid: u32) -> bool {
    let list = sim.control().change(&json!({"method": "GET", "path": "/cluster/resources", "params": {}}));
    list["data"].as_array().unwrap().iter().any(|row| row["vmid"] == vmid)
}

/// Applies, and lets a held request arrive as soon as the run says that it waits for just that.
pub(super) fn apply_while_it_arrives(strata: &Strata, sim: &TestSim, fault: u64) -> String {
    let mut next = strata.command(&APPLY).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = next.stdout.take().unwrap();
    let output = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.read_to_string(&mut text);
        text
    });
    let mut told = String::new();
    let mut lines = BufReader::new(next.stderr.take().unwrap()).lines();
    let waits = lines.by_ref().map_while(Result::ok).any(|line| {
        told.push_str(&line);
        told.push('\n');
        line.contains("a request of it may still arrive")
    });
    sim.control().release(fault);
    lines.map_while(Result::ok).for_each(|line| told.push_str(&line));
    let status = next.wait().unwrap();
    let told = format!("{told}\n{}", output.join().unwrap());
    assert!(waits, "{told}");
    assert!(status.success(), "{told}");
    told
}

/// A run that was stopped in the middle of a DELETE is taken for gone; what it sent arrives while the next one waits for just that.
#[test]
fn a9_a_request_of_the_former_holder_arrives_after_the_takeover() {
    let server = StateServer::start();
    let settings = server.settings();
    let sim = datacenter();
    let first = small(&sim, &settings, SMALL);
    strata(&first).run(&APPLY).ok();
    assert!(has_guest(&sim, 9101));

    first.edit("stacks/web/stack.yaml", B, "");
    let fault =
        sim.control().fault(&json!({"kind": "hold-before", "method": "DELETE", "path": "*/qemu/9101"}));
    let mut former = strata(&first).spawn(&APPLY);
    assert!(sim.control().wait_fault(fault, 60.0));
    signal(&former, "-STOP");
    server.pass(61);

    // The source has the guest again.
    let second = small(&sim, &settings, SMALL);
    let told = apply_while_it_arrives(&strata(&second), &sim, fault);
    sim.control().clear_faults();
    assert!(has_guest(&sim, 9101), "the late request deleted what the next run had made\n{told}");

    // The former holder goes on, and writes nothing more.
    sim.control().reset_requests();
    signal(&former, "-CONT");
    assert!(!former.wait().unwrap().success());
    assert!(has_guest(&sim, 9101) && has_guest(&sim, 9100));
    let plan = strata(&second).run(&["plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{}", plan.all());
}

/// Where nothing was begun there is nothing to wait for.
#[test]
fn a9_a_lapsed_lease_without_open_work_is_taken_at_once() {
    let server = StateServer::start();
    let sim = datacenter();
    let first = small(&sim, &server.settings(), SMALL);
    let fault =
        sim.control().fault(&json!({"kind": "hold-before", "method": "GET", "path": "/cluster/resources"}));
    let mut former = strata(&first).spawn(&APPLY);
    assert!(sim.control().wait_fault(fault, 60.0));
    signal(&former, "-STOP");
    server.pass(61);
    sim.control().clear_faults();
    let second = small(&sim, &server.settings(), SMALL);
    let next = strata(&second).run(&APPLY).ok();
    assert!(!next.all().contains("may still arrive"), "{}", next.all());
    former.kill().unwrap();
    former.wait().unwrap();
}

#[test]
fn a9_a_lock_without_open_work_is_taken_away_at_once() {
    let server = StateServer::start();
    let sim = datacenter();
    let first = small(&sim, &server.settings(), SMALL);
    let fault =
        sim.control().fault(&json!({"kind": "hold-before", "method": "GET", "path": "/cluster/resources"}));
    let mut former = strata(&first).spawn(&APPLY);
    assert!(sim.control().wait_fault(fault, 60.0));
    signal(&former, "-STOP");
    sim.control().clear_faults();
    let unlocked = strata(&first).run(&["unlock", "web", "--force"]).ok();
    assert!(!unlocked.all().contains("may still arrive"), "{}", unlocked.all());
    former.kill().unwrap();
    former.wait().unwrap();
}

/// A lock that is taken away by hand from a run that lives is nobody's until what that run had sent has arrived.
#[test]
fn a9_a_lock_taken_from_a_run_that_lives_is_kept_until_its_requests_have_arrived() {
    let server = StateServer::start();
    let settings = server.settings().replacen('{', "{lease: 10, ", 1);
    let sim = datacenter();
    let first = small(&sim, &settings, SMALL);
    strata(&first).run(&APPLY).ok();
    first.edit("stacks/web/stack.yaml", B, "");
    let fault =
        sim.control().fault(&json!({"kind": "hold-before", "method": "DELETE", "path": "*/qemu/9101"}));
    let mut former = strata(&first).spawn(&APPLY);
    assert!(sim.control().wait_fault(fault, 60.0));
    signal(&former, "-STOP");

    let second = small(&sim, &settings, SMALL);
    let unlock = ["unlock", "web", "--force"];
    let mut unlocking =
        strata(&second).command(&unlock).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(unlocking.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(told.any(|line| line.contains("a request of it may still arrive")), "it does not wait");
    let refused = strata(&second).run(&APPLY).code(4);
    assert!(refused.stderr.contains("for `unlock`"), "{}", refused.all());
    sim.control().release(fault);
    assert!(unlocking.wait().unwrap().success());
    sim.control().clear_faults();
    // Only now is it decided what is there.
    strata(&second).run(&APPLY).ok();
    assert!(has_guest(&sim, 9101) && has_guest(&sim, 9100));
    signal(&former, "-CONT");
    assert!(!former.wait().unwrap().success());
    let plan = strata(&second).run(&["plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{}", plan.all());
}

/// A stack with a secret, in a repository whose secrets are for an age recipient.
fn with_recipients(sim: &TestSim, settings: &str, keys: &Repo) -> Repo {
    let source = SMALL
        .replace("started: false}", "started: false, cloudInit: {user: u, password: {secret: password}}}");
    let repo = small(sim, settings, &source);
    for file in ["age.key", ".sops.yaml"] {
        repo.write(file, &keys.read(file));
    }
    repo.write("secrets.sops.yaml", "password: correct-horse-battery\n");
    strata(&repo).run(&["secrets", "encrypt", "secrets.sops.yaml"]).ok();
    let general = repo.read("strata.yaml");
    repo.write("strata.yaml", &format!("{general}secrets: [{{sops: secrets.sops.yaml}}]\n"));
    repo
}

fn keys() -> Repo {
    let keys = Repo::empty();
    Strata::new(BINARY, &keys).run(&["init", "."]).ok();
    keys
}

/// The first apply fails half way, and its machine is thrown away. What it made is not taken for changed.
#[test]
fn a16_the_key_of_the_digests_outlives_a_failed_first_apply() {
    let (server, keys) = (StateServer::start(), keys());
    let sim = datacenter();
    let runner = with_recipients(&sim, &server.settings(), &keys);
    let refused = json!({"kind": "refuse", "method": "POST", "path": "/nodes/pve1/qemu", "nth": 2, "count": 0,
                         "status": 500, "text": "out of luck"});
    sim.control().fault(&refused);
    let failed = strata(&runner).run(&APPLY);
    assert_ne!(failed.code, 0, "{}", failed.all());
    sim.control().clear_faults();
    drop(runner);
    let made: Vec<u32> = [9100, 9101].into_iter().filter(|vmid| has_guest(&sim, *vmid)).collect();
    assert_eq!(made.len(), 1, "{}", failed.all());
    let another = with_recipients(&sim, &server.settings(), &keys);
    let plan = strata(&another).run(&["plan", "--json"]);
    let changes: Vec<Value> =
        plan.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let text = serde_json::to_string(&changes).unwrap();
    assert!(!text.contains("\"password\""), "the password counts as changed: {}", plan.all());
    strata(&another).run(&APPLY).ok();
    let plan = strata(&another).run(&["plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{}", plan.all());
}

fn set_state(repo: &Repo, state: &str) {
    let general = repo.read("strata.yaml");
    let rest: Vec<&str> = general.lines().filter(|line| !line.starts_with("state:")).collect();
    repo.write("strata.yaml", &format!("{}\nstate: {state}\n", rest.join("\n")));
    repo.write("state-token", TOKEN);
}

#[test]
fn f10_a_weak_passphrase_encrypts_nothing() {
    let world = World::instant(SMALL);
    set_state(&world.repo, "{backend: local, encryption: {passphrase: {env: PASSPHRASE}}}");
    let apply = |passphrase: &str| world.strata().env("PASSPHRASE", passphrase).run(&APPLY);
    for weak in
        ["", " ", "x", "correct horse", "fifteen-letters", "aaaaaaaaaaaaaaaaaaaaaaaa", "abababababababababab"]
    {
        let refused = apply(weak);
        assert_ne!(refused.code, 0, "`{weak}`: {}", refused.all());
        assert!(refused.stderr.contains("hint: "), "{}", refused.all());
        assert!(weak.len() < 5 || !refused.all().contains(weak), "{}", refused.all());
        assert!(!world.repo.file(".strata/state/test/web/state.json").exists());
    }
    apply("a sentence that is long enough").ok();
}

fn journal_lines(world: &World) -> Vec<String> {
    let text = world.repo.read(".strata/state/test/web/journal");
    text.lines().map(str::to_owned).collect()
}

/// Whichever line is removed from the journal of a killed run, the next one says so and does nothing.
#[test]
fn f19_a_journal_with_a_line_less_is_not_believed() {
    let world = World::instant(SMALL);
    let fault = world.sim.control().fault(&json!({"kind": "hold-after", "method": "POST", "nth": 2}));
    let mut child = world.strata().spawn(&APPLY);
    assert!(world.sim.control().wait_fault(fault, 60.0));
    child.kill().unwrap();
    child.wait().unwrap();
    world.sim.control().clear_faults();
    let whole = journal_lines(&world);
    assert!(whole.len() >= 3, "{whole:?}");
    for missing in 0..whole.len() - 1 {
        let mut left = whole.clone();
        left.remove(missing);
        world.repo.write(".strata/state/test/web/journal", &format!("{}\n", left.join("\n")));
        for verb in [&["plan"][..], &APPLY] {
            let refused = world.strata().run(verb);
            assert_ne!(refused.code, 0, "line {missing}: {}", refused.all());
            assert!(refused.stderr.contains("a line is missing"), "line {missing}: {}", refused.all());
        }
    }
    world.repo.write(".strata/state/test/web/journal", &format!("{}\n", whole.join("\n")));
    world.strata().run(&APPLY).ok();
    world.assert_settled();
}

#[test]
fn f19_a_rollback_names_what_it_removes_from_state() {
    let world = World::instant(&SMALL.replace(B, ""));
    world.strata().run(&APPLY).ok();
    world.repo.write("stacks/web/stack.yaml", SMALL);
    world.strata().run(&APPLY).ok();
    let back = world.strata().run(&["state", "rollback", "web", "1"]).ok();
    assert!(back.stderr.contains("web/vm/b") && back.stderr.contains("9101"), "{}", back.all());
    assert!(back.stderr.contains("hint: ") && !back.stderr.contains("web/vm/a"), "{}", back.all());
    // Forward again nothing is lost.
    let forth = world.strata().run(&["state", "rollback", "web", "2", "--json"]).ok();
    let event: Value = serde_json::from_str(forth.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&event["event"], &event["dropped"]), (&json!("rolled-back"), &json!([])));
    world.assert_settled();
}

#[test]
fn f19_leftovers_of_a_killed_rotation_go() {
    let (server, keys) = (StateServer::start(), keys());
    let sim = datacenter();
    let repo = with_recipients(&sim, &server.settings(), &keys);
    for left in [".secrets.sops.yaml.0123456789ab", ".secrets.sops.yaml.ffffffffffff"] {
        repo.write(left, "half a file");
    }
    repo.write(".secrets.sops.yaml.notes", "somebody's own");
    strata(&repo).run(&["secrets", "rotate"]).ok();
    let left: Vec<String> = repo
        .all_files()
        .iter()
        .map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(".secrets.sops.yaml."))
        .collect();
    assert_eq!(left, [".secrets.sops.yaml.notes"]);
}

/// Nothing of a run's memory ends on a disk.
#[test]
fn c5_a_run_leaves_no_core_dump() {
    let world = World::instant(SMALL);
    let fault = world.sim.control().fault(&json!({"kind": "hold-before", "nth": 1}));
    let mut child = world.strata().spawn(&APPLY);
    assert!(world.sim.control().wait_fault(fault, 60.0));
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{core}");
    child.kill().unwrap();
    child.wait().unwrap();
    world.sim.control().clear_faults();
}

/// Somebody put another file where our image would go: a name is no proof of what is in it.
#[test]
fn a12_a_file_under_our_name_is_not_taken_for_our_image() {
    let world = World::new();
    world.strata().run(&APPLY).ok();
    let state: Value = serde_json::from_str(&world.repo.read(".strata/state/test/web/state.json")).unwrap();
    let image = state["resources"]
        .as_object()
        .unwrap()
        .values()
        .find(|known| known.to_string().contains("rescue.iso"));
    let volume = image.unwrap()["spec"]["volume"].as_str().unwrap().to_owned();
    std::fs::remove_dir_all(world.repo.file(".strata/state")).unwrap();
    // With the state lost, what is there is what would be downloaded: it is ours again.
    let plan = world.strata().run(&["plan"]).ok();
    assert!(!plan.all().contains("another"), "{}", plan.all());
    world.sim.control().change(&json!({
        "method": "DELETE", "path": format!("/nodes/pve1/storage/local/content/{volume}"), "params": {},
    }));
    let name = volume.rsplit('/').next().unwrap();
    let put = world.sim.control().change(&json!({
        "method": "POST", "path": "/nodes/pve1/storage/local/download-url",
        "params": {"content": "iso", "filename": name, "url": "https://images.example/something-else-altogether.iso"},
    }));
    assert_eq!(put["status"], 200, "{put}");
    // It is there once its task has ended.
    let plan = (0..50)
        .map(|_| world.strata().run(&["plan"]))
        .find(|plan| plan.code != 0)
        .expect("the other file was taken for our image");
    assert!(plan.all().contains(name), "{}", plan.all());
}

/// The same of an ISO that we make ourselves, where the state is lost: its size is known from the files that are in it.
#[test]
fn a12_a_file_under_our_name_is_not_taken_for_our_iso() {
    let world = World::instant(crate::world::STACK);
    world.strata().run(&APPLY).ok();
    let state: Value = serde_json::from_str(&world.repo.read(".strata/state/test/web/state.json")).unwrap();
    let volume = state["resources"]["web/cidata/own"]["spec"]["volume"].as_str().unwrap().to_owned();
    std::fs::remove_dir_all(world.repo.file(".strata/state")).unwrap();
    let plan = world.strata().run(&["plan"]).ok();
    assert!(!plan.all().contains("bytes"), "{}", plan.all());
    let change = |method: &str, path: &str, params: Value| {
        let answer = world.sim.control().change(&json!({"method": method, "path": path, "params": params}));
        assert_eq!(answer["status"], 200, "{answer}");
    };
    change("DELETE", &format!("/nodes/pve1/storage/local/content/{volume}"), json!({}));
    let name = volume.rsplit('/').next().unwrap();
    let url = "https://images.example/something-else-altogether.iso";
    let params = json!({"content": "iso", "filename": name, "url": url});
    change("POST", "/nodes/pve1/storage/local/download-url", params);
    let before = world.export();
    let refused = world.strata().run(&APPLY).code(3);
    assert!(refused.all().contains(name) && refused.all().contains("bytes"), "{}", refused.all());
    assert_eq!(world.export(), before);
}

/// Two machines that share a store and nothing else take no secret of each other for changed.
#[test]
fn c5_machines_without_recipients_share_the_key_of_the_digests() {
    let server = StateServer::start();
    let encrypted =
        |settings: String| settings.replacen('{', "{encryption: {passphrase: {env: STATE_PASSPHRASE}}, ", 1);
    for settings in [server.settings(), encrypted(server.settings())] {
        let sim = datacenter();
        let environment = if settings.contains("encryption") { "enc" } else { "bare" };
        let machine = || {
            let source = SMALL.replace(
                "started: false}",
                "started: false, cloudInit: {user: u, password: {env: APP_PASSWORD}}}",
            );
            small(
                &sim,
                &settings,
                &source.replace("environment: test", &format!("environment: {environment}")),
            )
        };
        let run = |repo: &Repo, arguments: &[&str]| {
            strata(repo).env("STATE_PASSPHRASE", "a sentence that is long enough").run(arguments)
        };
        let (first, second) = (machine(), machine());
        run(&first, &APPLY).ok();
        let plan = run(&second, &["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{settings}\n{}", plan.all());
        // A secret that did change is seen by both.
        for repo in [&first, &second] {
            let changed = strata(repo)
                .env("STATE_PASSPHRASE", "a sentence that is long enough")
                .env("APP_PASSWORD", "another-horse-battery")
                .run(&["plan", "--detailed-exitcode"]);
            assert_eq!(changed.code, 2, "{settings}\n{}", changed.all());
        }
    }
}
