//! What befalls a team: two runs at once, a state server that restarts, a token that is taken away, a network that cuts connections.

mod proxy;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::json;
use strata_testkit::{Output, Repo};

use crate::kill::assert_same;
use crate::places::{Place, datacenter, machine, strata};
use crate::state_server::{StateServer, TOKEN, settings_at};
use proxy::CuttingProxy;

const APPLY: [&str; 2] = ["apply", "--yes"];

fn start(repo: &Repo, arguments: &[&str]) -> Child {
    let mut command = strata(repo).command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn end(child: Child) -> Output {
    let output = child.wait_with_output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn versions(repo: &Repo) -> usize {
    strata(repo).run(&["state", "history", "web"]).ok().stdout.lines().count()
}

#[test]
fn two_machines_apply_at_once() {
    race(&Place::serve());
}

#[test]
#[ignore = "needs S3: just stores minio"]
fn two_machines_apply_at_once_on_s3() {
    race(&Place::s3("race"));
}

#[test]
#[ignore = "needs PostgreSQL: just stores postgres"]
fn two_machines_apply_at_once_on_postgres() {
    race(&Place::postgres("race"));
}

fn race(place: &Place) {
    let settings = place.settings();
    let sim = datacenter();
    let alone = machine(&sim, &settings);
    strata(&alone).run(&APPLY).ok();
    let (expected, written) = (sim.export(), versions(&alone));
    strata(&alone).run(&["destroy", "--yes"]).ok();
    let destroyed = versions(&alone);

    // Who does not want to wait is told who is at work.
    let sim = datacenter();
    let machines = [machine(&sim, &settings), machine(&sim, &settings)];
    for repo in &machines {
        // A team shares it, here by hand.
        std::fs::create_dir_all(repo.file(".strata")).unwrap();
        std::fs::copy(alone.file(".strata/digest.key"), repo.file(".strata/digest.key")).unwrap();
    }
    let runs = machines.each_ref().map(|repo| start(repo, &APPLY)).map(end);
    let mut codes = runs.each_ref().map(|run| run.code);
    codes.sort_unstable();
    assert_eq!(codes, [0, 4], "{settings}\n{}\n{}", runs[0].all(), runs[1].all());
    let refused = runs.iter().find(|run| run.code == 4).unwrap();
    assert!(refused.stderr.contains("is locked by tester@"), "{}", refused.all());
    assert_same(&sim.export(), &expected, &settings);
    assert_eq!(versions(&machines[0]) - destroyed, written, "{settings}");
    strata(&machines[0]).run(&["destroy", "--yes"]).ok();

    // Who waits finds everything done.
    let before = versions(&machines[0]);
    let patient = ["apply", "--yes", "--lock-timeout", "5m"];
    let runs = machines.each_ref().map(|repo| start(repo, &patient)).map(end);
    for run in &runs {
        assert_eq!(run.code, 0, "{settings}\n{}", run.all());
    }
    let waited: Vec<&Output> = runs.iter().filter(|run| run.stderr.contains("waiting up to")).collect();
    assert_eq!(waited.len(), 1, "{}\n{}", runs[0].all(), runs[1].all());
    assert!(!waited[0].stdout.contains("applied:"), "{}", waited[0].all());
    assert_same(&sim.export(), &expected, &settings);
    assert_eq!(versions(&machines[1]) - before, written, "{settings}");
    strata(&machines[0]).run(&["destroy", "--yes"]).ok();
}

/// Waits at a request to Proxmox, in the middle of the work.
fn held(sim: &strata_testkit::TestSim, repo: &Repo) -> (Child, u64) {
    let control = sim.control();
    let fault = control.fault(&json!({"kind": "hold-before", "nth": 2, "method": "POST"}));
    let child = start(repo, &APPLY);
    assert!(control.wait_fault(fault, 60.0));
    (child, fault)
}

#[test]
fn who_waits_says_for_whom_and_for_how_long() {
    let server = StateServer::start();
    for settings in ["{backend: local}".to_owned(), server.settings()] {
        let sim = datacenter();
        let repo = machine(&sim, &settings);
        let (first, fault) = held(&sim, &repo);
        let late = strata(&repo).run(&["apply", "--yes", "--lock-timeout", "1s"]).code(4);
        assert!(
            late.stderr.contains("waiting up to 1 s for the lock on `test/web`, held by tester@"),
            "{}",
            late.all()
        );
        assert!(late.stderr.contains("is locked by tester@"), "{}", late.all());
        for wrong in ["soon", "-1s", "3w"] {
            strata(&repo).run(&["apply", "--yes", "--lock-timeout", wrong]).code(64);
        }
        let mut patient = start(&repo, &["state", "rm", "web/vm/rescue", "--lock-timeout", "2m", "--json"]);
        let mut lines = BufReader::new(patient.stdout.take().unwrap()).lines();
        let waiting: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!((&waiting["event"], &waiting["key"]), (&json!("waiting"), &json!("test/web")));
        sim.control().release(fault);
        sim.control().clear_faults();
        assert_eq!(end(first).code, 0);
        assert!(patient.wait().unwrap().success());
        assert!(!strata(&repo).run(&["state", "list"]).ok().stdout.contains("web/vm/rescue"));
    }
}

#[test]
fn the_state_server_restarts_in_the_middle_of_an_apply() {
    let mut server = StateServer::start();
    let sim = datacenter();
    let repo = machine(&sim, &server.settings());
    strata(&repo).run(&APPLY).ok();
    let expected = sim.export();
    strata(&repo).run(&["destroy", "--yes"]).ok();

    let sim = datacenter();
    let repo = machine(&sim, &server.settings());
    let (run, fault) = held(&sim, &repo);
    server.stop();
    server.start_again();
    sim.control().release(fault);
    sim.control().clear_faults();
    let run = end(run);
    assert_eq!(run.code, 0, "{}", run.all());
    assert_same(&sim.export(), &expected, &run.all());
    strata(&repo).run(&["destroy", "--yes"]).ok();

    // One that does not come back stops the run: what cannot be written down is not begun.
    let (run, fault) = held(&sim, &repo);
    server.stop();
    sim.control().reset_requests();
    sim.control().release(fault);
    let run = end(run);
    assert_eq!(run.code, 1, "{}", run.all());
    assert!(run.stderr.contains("the state's server does not answer"), "{}", run.all());
    sim.control().clear_faults();
    server.start_again();
    server.outlast_leases();
    let another = machine(&sim, &server.settings());
    let finished = strata(&another).run(&APPLY).ok();
    assert_same(&sim.export(), &expected, &finished.all());
    strata(&another).run(&["plan", "--detailed-exitcode"]).ok();
}

#[test]
fn a_token_is_taken_away_in_the_middle_of_an_apply() {
    let server = StateServer::start();
    let sim = datacenter();
    let repo = machine(&sim, &server.settings());
    strata(&repo).run(&APPLY).ok();
    let expected = sim.export();
    strata(&repo).run(&["destroy", "--yes"]).ok();

    let (run, fault) = held(&sim, &repo);
    server.let_in("another-token");
    // Users are read again every other second.
    let refused = || {
        let told = strata(&repo).run(&["state", "list"]);
        told.code != 0 && told.stderr.contains("401")
    };
    while !refused() {
        std::thread::sleep(Duration::from_millis(100));
    }
    sim.control().release(fault);
    sim.control().clear_faults();
    let run = end(run);
    assert_eq!(run.code, 1, "{}", run.all());
    assert!(run.stderr.contains("401"), "{}", run.all());
    assert!(!run.all().contains(TOKEN), "{}", run.all());

    // Somebody with the new token finishes; the lock of the other is known to be of the dead.
    let another = machine(&sim, &server.settings());
    another.write("state-token", "another-token");
    let finished = strata(&another).run(&APPLY).ok();
    assert_same(&sim.export(), &expected, &finished.all());
    strata(&another).run(&["plan", "--detailed-exitcode"]).ok();
}

#[test]
fn a_proxy_that_cuts_connections_costs_time_and_nothing_else() {
    let server = StateServer::start();
    let sim = datacenter();
    let repo = machine(&sim, &server.settings());
    strata(&repo).run(&APPLY).ok();
    let (expected, written) = (sim.export(), versions(&repo));
    strata(&repo).run(&["destroy", "--yes"]).ok();
    let before = versions(&repo);

    // Every third answer is lost: the server has done what it was asked, and nobody knows.
    let proxy = CuttingProxy::start(server.address(), 3);
    let sim = datacenter();
    let behind = machine(&sim, &settings_at(proxy.address()));
    let applied = strata(&behind).run(&APPLY).ok();
    assert!(proxy.cuts() >= 10, "{} cuts prove nothing", proxy.cuts());
    assert_same(&sim.export(), &expected, &applied.all());
    assert_eq!(versions(&repo) - before, written);
    let plan = strata(&behind).run(&["plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{}", plan.all());
}
