//! The runner dies with its disk: an apply is killed, its working copy is gone, and another machine's apply finishes. On every place of
//! [`crate::places`].

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use strata_testkit::{Repo, TestSim};
use tempfile::TempDir;

use crate::kill::assert_same;
use crate::places::{Place, datacenter, machine, strata, strata_as};
use crate::world::BINARY;

const APPLY: [&str; 2] = ["apply", "--yes"];

/// What an undisturbed apply makes.
fn undisturbed(place: &Place) -> Value {
    let sim = datacenter();
    let repo = machine(&sim, &place.settings());
    strata(&repo).run(&APPLY).ok();
    let export = sim.export();
    strata(&repo).run(&["destroy", "--yes"]).ok();
    export
}

/// Kills an apply of `runner` at its k-th request. False if it ended before that.
fn kill(binary: &str, sim: &TestSim, runner: &Repo, kind: &str, k: u64) -> bool {
    let fault = json!({"kind": kind, "nth": k});
    let killed = strata_as(binary, runner).kill_at(&sim.control(), &fault, &APPLY);
    killed.struck_or_good(&format!("{kind} {k}")) && killed.ended.is_none()
}

/// Another machine finishes, and nothing is left to do.
fn finishes(sim: &TestSim, settings: &str, arguments: &[&str], expected: &Value, what: &str) -> String {
    let another = machine(sim, settings);
    let applied = strata(&another).run(arguments);
    assert_eq!(applied.code, 0, "{what}:\n{}", applied.all());
    assert_same(&sim.export(), expected, &format!("{what}\n{}", applied.all()));
    let plan = strata(&another).run(&["plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{what}:\n{}", plan.all());
    assert!(!another.file(".strata/state").exists(), "nothing of the state is kept on the runner");
    strata(&another).run(&["destroy", "--yes"]).ok();
    applied.all()
}

/// False if the apply ended before its k-th request.
fn dies_at(kind: &str, k: u64, place: &Place, expected: &Value) -> bool {
    let sim = datacenter();
    let runner = machine(&sim, &place.settings());
    let struck = kill(BINARY, &sim, &runner, kind, k);
    // Its disk goes with it: state, journal, keys and all.
    drop(runner);
    // On our own server the lease of the dead run lapses; elsewhere it is known to be dead, since it ran on this machine.
    if let Place::Serve(server) = place {
        server.outlast_leases();
    }
    finishes(&sim, &place.settings(), &APPLY, expected, &format!("{kind} {k}"));
    struck
}

fn die_every(place: &Place, step: usize) {
    let expected = undisturbed(place);
    for kind in ["hold-before", "hold-after"] {
        let died = (1..).step_by(step).take_while(|k| dies_at(kind, *k, place, &expected)).count();
        println!("{kind}: died {died} times");
        assert!(died > 0);
    }
}

#[test]
fn another_machine_finishes_what_a_dead_runner_began() {
    die_every(&Place::serve(), 41);
}

#[test]
fn on_gitlab_too() {
    die_every(&Place::gitlab(), 41);
}

#[test]
#[ignore = "needs S3: just stores minio"]
fn on_s3_too() {
    die_every(&Place::s3("dead"), 41);
}

#[test]
#[ignore = "needs PostgreSQL: just stores postgres"]
fn on_postgres_too() {
    die_every(&Place::postgres("dead"), 41);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_requests_of_a_runner() {
    die_every(&Place::serve(), 1);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_requests_of_a_runner_on_gitlab() {
    die_every(&Place::gitlab(), 1);
}

#[test]
#[ignore = "takes minutes and needs S3: just stores minio-kills"]
fn dies_at_all_requests_on_s3() {
    die_every(&Place::s3("dead"), 1);
}

#[test]
#[ignore = "takes minutes and needs PostgreSQL: just stores postgres-kills"]
fn dies_at_all_requests_on_postgres() {
    die_every(&Place::postgres("dead"), 1);
}

/// A program that runs where this machine cannot see its processes.
fn elsewhere(folder: &TempDir) -> String {
    let path = folder.path().join("strata-elsewhere");
    let script = format!("#!/bin/sh\nexec unshare --pid --fork --kill-child -- {BINARY} \"$@\"\n");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let allowed =
        std::process::Command::new("unshare").args(["--pid", "--fork", "--kill-child", "true"]).output();
    assert!(allowed.is_ok_and(|output| output.status.success()), "`unshare` is allowed");
    path.to_string_lossy().into_owned()
}

/// Nothing is known of the dead run but that it is not heard of: its lease has to lapse.
fn its_lease_lapses(place: &Place) {
    let folder = TempDir::new().unwrap();
    let elsewhere = elsewhere(&folder);
    let Place::Elsewhere(settings) = place else { panic!("a place with a clock of its own") };
    let settings = format!("{{{settings}, lease: 10}}");
    let expected = undisturbed(place);
    let sim = datacenter();
    let runner = machine(&sim, &settings);
    assert!(kill(&elsewhere, &sim, &runner, "hold-after", 60));
    drop(runner);
    let told = finishes(&sim, &settings, &["apply", "--yes", "--lock-timeout", "60s"], &expected, &settings);
    assert!(told.contains("for the lock on `test/web`"), "{told}");
}

#[test]
#[ignore = "needs S3, and the right to make a namespace of processes: just stores minio"]
fn who_cannot_know_that_a_runner_is_dead_waits_for_its_lease_on_s3() {
    its_lease_lapses(&Place::s3("lease"));
}

#[test]
#[ignore = "needs PostgreSQL, and the right to make a namespace of processes: just stores postgres"]
fn who_cannot_know_that_a_runner_is_dead_waits_for_its_lease_on_postgres() {
    its_lease_lapses(&Place::postgres("lease"));
}
