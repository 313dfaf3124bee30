//! The runner dies with its disk: an apply is killed, its working copy is gone, and another machine's apply finishes.
//!
//! On `strata serve` here. On a real S3 server and a real PostgreSQL where STRATA_TEST_S3_ENDPOINT (with STRATA_TEST_S3_BUCKET and the
//! usual AWS_… variables) and STRATA_TEST_POSTGRES name them.

use serde_json::{Value, json};
use strata_sim::{Pace, SimOptions};
use strata_testkit::{Repo, Strata, TestSim};

use crate::kill::assert_same;
use crate::state_server::{StateServer, TOKEN};
use crate::world::{BINARY, STACK};

const APPLY: [&str; 2] = ["apply", "--yes"];

/// Where the state outlives the runner.
enum Place {
    Serve(StateServer),
    /// A server that is there already, as settings of strata.yaml.
    Elsewhere(String),
}

impl Place {
    fn settings(&self) -> String {
        match self {
            Self::Serve(server) => server.settings(),
            Self::Elsewhere(settings) => settings.clone(),
        }
    }

    /// On our own server the lease of the dead run lapses; elsewhere it is known to be dead, since it ran on this machine.
    fn time_passes(&self) {
        if let Self::Serve(server) = self {
            server.outlast_leases();
        }
    }
}

/// A fresh checkout of the repository, on a machine that has never seen it.
fn machine(sim: &TestSim, place: &Place) -> Repo {
    let repo = Repo::on(sim);
    let settings = repo.read("strata.yaml");
    repo.write("strata.yaml", &format!("{settings}state: {}\n", place.settings()));
    repo.write("state-token", TOKEN);
    repo.write("stacks/web/stack.yaml", STACK);
    repo.write("stacks/web/own.yaml", "#cloud-config\npackages: [postgresql]\n");
    repo
}

fn strata(repo: &Repo) -> Strata {
    let mut strata = Strata::new(BINARY, repo).env("APP_PASSWORD", "correct-horse-battery");
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"] {
        if let Ok(value) = std::env::var(name) {
            strata = strata.env(name, &value);
        }
    }
    strata
}

fn datacenter() -> TestSim {
    TestSim::with(SimOptions { pace: Pace::FAST, ..SimOptions::default() })
}

/// What an undisturbed apply makes.
fn undisturbed(place: &Place) -> Value {
    let sim = datacenter();
    let repo = machine(&sim, place);
    strata(&repo).run(&APPLY).ok();
    let export = sim.export();
    strata(&repo).run(&["destroy", "--yes"]).ok();
    export
}

/// False if the apply ended before its k-th request.
fn dies_at(kind: &str, k: u64, place: &Place, expected: &Value) -> bool {
    let sim = datacenter();
    let control = sim.control();
    let runner = machine(&sim, place);
    let fault = control.fault(&json!({"kind": kind, "nth": k}));
    let mut child = strata(&runner).spawn(&APPLY);
    let struck = loop {
        if control.wait_fault(fault, 0.5) {
            break true;
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{kind} {k}: {status}");
            break false;
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    control.release(fault);
    control.clear_faults();
    // Its disk goes with it: state, journal, keys and all.
    drop(runner);
    place.time_passes();
    let another = machine(&sim, place);
    let applied = strata(&another).run(&APPLY);
    assert_eq!(applied.code, 0, "{kind} {k}:\n{}", applied.all());
    assert_same(&sim.export(), expected, &format!("{kind} {k}\n{}", applied.all()));
    let plan = strata(&another).run(&["plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{kind} {k}:\n{}", plan.all());
    assert!(!another.file(".strata/state").exists(), "nothing of the state is kept on the runner");
    strata(&another).run(&["destroy", "--yes"]).ok();
    struck
}

fn die_every(place: &dyn Fn() -> Place, step: usize) {
    let expected = undisturbed(&place());
    for kind in ["hold-before", "hold-after"] {
        let place = place();
        let died = (1..).step_by(step).take_while(|k| dies_at(kind, *k, &place, &expected)).count();
        println!("{kind}: died {died} times");
        assert!(died > 0);
    }
}

fn serve() -> Place {
    Place::Serve(StateServer::start())
}

/// Names that no other run has.
fn unique(name: &str) -> String {
    format!("{name}_{}", std::process::id())
}

fn s3() -> Option<Place> {
    let endpoint = std::env::var("STRATA_TEST_S3_ENDPOINT").ok()?;
    let bucket = std::env::var("STRATA_TEST_S3_BUCKET").unwrap_or_else(|_| "strata".into());
    let prefix = unique("dead");
    Some(Place::Elsewhere(format!(
        "{{backend: s3, endpoint: \"{endpoint}\", bucket: {bucket}, prefix: {prefix}}}"
    )))
}

fn postgres() -> Option<Place> {
    let connection = std::env::var("STRATA_TEST_POSTGRES").ok()?;
    let schema = unique("dead");
    Some(Place::Elsewhere(format!("{{backend: postgres, connection: \"{connection}\", schema: {schema}}}")))
}

#[test]
fn another_machine_finishes_what_a_dead_runner_began() {
    die_every(&serve, 41);
}

#[test]
fn on_s3_too() {
    if s3().is_some() {
        die_every(&|| s3().unwrap(), 41);
    }
}

#[test]
fn on_postgres_too() {
    if postgres().is_some() {
        die_every(&|| postgres().unwrap(), 41);
    }
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_requests_of_a_runner() {
    die_every(&serve, 1);
}
