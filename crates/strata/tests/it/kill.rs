//! The kill test: SIGKILL at every single request of an apply, then `apply` again.
//!
//! In the first pass the process dies when its k-th request has reached the server, in the second when that request has been
//! carried out and its answer is on the way. Whatever k is, the run after it ends as an undisturbed one does.

use serde_json::{Value, json};

use crate::world::World;

struct Baseline {
    export: Value,
    after_destroy: Value,
    requests: u64,
}

fn baseline(arguments: &[&str]) -> Baseline {
    let world = World::new();
    let before = world.export();
    world.sim.control().reset_requests();
    world.strata().run(arguments).ok();
    let requests = world.sim.requests();
    let export = world.export();
    world.assert_settled();
    world.strata().run(&["destroy", "--yes"]).ok();
    assert_same(&world.export(), &before, "destroy leaves the datacenter as it was");
    Baseline { export, after_destroy: before, requests }
}

/// Kills one apply at its k-th request and lets the next one finish. False if the apply ended before it came that far.
fn kill_at(kind: &str, k: u64, arguments: &[&str], baseline: &Baseline) -> bool {
    let world = World::new();
    let fault = json!({"kind": kind, "nth": k});
    let killed = world.strata().kill_at(&world.sim.control(), &fault, arguments);
    let struck = killed.struck_or_good(&format!("{kind} {k}"));
    let again = world.strata().run(arguments);
    assert_eq!(again.code, 0, "{kind} {k}:\n{}", again.all());
    assert_same(&world.export(), &baseline.export, &format!("{kind} {k}\n{}", again.all()));
    world.assert_settled();
    struck
}

/// A readable difference: the objects that are not the same.
pub(crate) fn assert_same(found: &Value, expected: &Value, what: &str) {
    if found == expected {
        return;
    }
    let lines = |value: &Value| -> Vec<String> {
        serde_json::to_string_pretty(value).unwrap().lines().map(str::to_owned).collect()
    };
    let (found, expected) = (lines(found), lines(expected));
    let extra: Vec<_> = found.iter().filter(|line| !expected.contains(line)).collect();
    let missing: Vec<_> = expected.iter().filter(|line| !found.contains(line)).collect();
    panic!("{what}\nonly here: {extra:#?}\nmissing: {missing:#?}");
}

fn kill_every(arguments: &[&str], step: usize) {
    let baseline = baseline(arguments);
    assert_ne!(baseline.export, baseline.after_destroy);
    for kind in ["hold-before", "hold-after"] {
        let mut ks = (1..).step_by(step);
        let killed = ks.by_ref().take_while(|k| kill_at(kind, *k, arguments, &baseline)).count();
        println!(
            "{kind}: killed {killed} times, undisturbed it makes {} requests, {arguments:?}",
            baseline.requests
        );
        assert!(killed > 0);
    }
}

const SERIAL: [&str; 4] = ["apply", "--yes", "--parallelism", "1"];
const DEFAULT: [&str; 2] = ["apply", "--yes"];

#[test]
fn a_kill_at_some_requests_loses_nothing() {
    kill_every(&SERIAL, 17);
    kill_every(&DEFAULT, 23);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_requests() {
    kill_every(&SERIAL, 1);
    kill_every(&DEFAULT, 1);
}
