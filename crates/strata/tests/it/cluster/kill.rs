//! The kill test over a cold boot: SIGKILL at every request to Proxmox, Talos and Kubernetes, then `apply` again.

use serde_json::{Value, json};

use super::lab::{Lab, Shape};
use super::sweep::Sweep;
use crate::kill::assert_same;

const APPLY: [&str; 2] = ["apply", "--yes"];

/// What an undisturbed apply leads to, and how many requests it makes.
pub(crate) fn undisturbed(shape: &Shape) -> (Value, u64) {
    let lab = Lab::new(shape);
    lab.sim.control().reset_requests();
    lab.apply();
    let requests = lab.sim.requests();
    let export = lab.export();
    lab.assert_settled("undisturbed");
    (export, requests)
}

/// Kills an apply at its k-th request. False if it ended before it came that far.
pub(crate) fn kill_apply(lab: &Lab, kind: &str, k: u64) -> bool {
    kill_run(lab, &APPLY, kind, k)
}

/// The same for any command.
pub(crate) fn kill_run(lab: &Lab, arguments: &[&str], kind: &str, k: u64) -> bool {
    lab.strata().kill_at(&lab.sim.control(), &json!({"kind": kind, "nth": k}), arguments).struck
}

/// Kills one cold boot at its k-th request and lets the next apply finish it.
fn kill_at(shape: &Shape, kind: &str, k: u64, expected: &Value) -> bool {
    let lab = Lab::new(shape);
    let struck = kill_apply(&lab, kind, k);
    let what = format!("{kind} {k}");
    let again = lab.run(&APPLY);
    assert_eq!(again.code, 0, "{what}:\n{}", again.all());
    assert_same(&lab.export(), expected, &format!("{what}\n{}", again.all()));
    lab.assert_sound(&what);
    lab.assert_is(shape, &what);
    lab.assert_settled(&what);
    struck
}

fn kill_every(shape: &Shape, kinds: &[&str], first: u64, step: usize) {
    let (expected, requests) = undisturbed(shape);
    let mut sweep = Sweep::new();
    for kind in kinds {
        let mut killed = 0;
        // Waiting takes more requests on a slow machine: the last one is the one that no apply comes to any more.
        let most = requests * 4;
        for k in (first..most).step_by(step) {
            if !sweep.has(kind, k) {
                continue;
            }
            if !sweep.case(kind, k, || kill_at(shape, kind, k, &expected)) {
                break;
            }
            killed += 1;
        }
        println!("{kind}: killed {killed} times, undisturbed a cold boot makes {requests} requests");
    }
    sweep.end();
}

#[test]
fn a_kill_at_some_requests_of_a_cold_boot_loses_nothing() {
    kill_every(&Shape::new(1, 1).whole(), &["hold-before"], 12, 30);
    kill_every(&Shape::new(1, 1).whole(), &["hold-after"], 27, 30);
}

#[test]
#[ignore = "takes most of an hour: just cluster-kill-test"]
fn kill_cold_boot() {
    kill_every(&Shape::new(1, 1).whole(), &["hold-before", "hold-after"], 1, 1);
}

#[test]
#[ignore = "takes most of an hour: just cluster-kill-test"]
fn kill_cold_boot_of_three() {
    kill_every(&Shape::new(3, 1).whole(), &["hold-before", "hold-after"], 1, 3);
}
