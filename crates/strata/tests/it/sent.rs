//! What is sent is what the step of the plan carried: the digests in a saved plan are those of the bytes that left.

use serde_json::Value;
use strata_testkit::{Repo, Strata};

use crate::cluster::lab::{Lab, Shape};
use crate::world::World;

/// The steps of a saved plan that do something to objects of these kinds: address, action, and the digest behind `what` of what is sent.
fn carried(repo: &Repo, kinds: &[&str], what: &str) -> Vec<(String, String, Option<String>)> {
    let file: Value = serde_json::from_str(&repo.read("reviewed.plan")).unwrap();
    let steps = file["stacks"][0]["plan"]["steps"].as_array().unwrap();
    let digest = |step: &Value| {
        let (_, rest) = step["payload"].as_str()?.split_once(what)?;
        Some(rest.split([';', ',']).next()?.to_owned())
    };
    let text = |step: &Value, key: &str| step[key].as_str().unwrap().to_owned();
    let of_kind = |step: &&Value| kinds.contains(&text(step, "address").split('/').nth(1).unwrap());
    steps
        .iter()
        .filter(of_kind)
        .map(|step| (text(step, "address"), text(step, "action"), digest(step)))
        .collect()
}

fn apply_reviewed(strata: &Strata) {
    strata.run(&["plan", "-o", "reviewed.plan"]).ok();
    strata.run(&["apply", "reviewed.plan", "--yes"]).ok();
}

#[test]
fn guests_are_made_by_the_request_that_their_step_carried() {
    let world = World::new();
    world.sim.control().reset_requests();
    apply_reviewed(&world.strata());
    let requests = world.sim.control().requests();
    let written: Vec<String> = requests["written"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["sha256"].as_str().unwrap().to_owned())
        .collect();
    let guests = carried(&world.repo, &["vm", "container", "template"], "request ");
    assert_eq!(guests.len(), 6, "{guests:?}");
    for (address, action, digest) in guests {
        let digest = digest.unwrap_or_else(|| panic!("{address} carries no request"));
        let sent = written.iter().filter(|sent| **sent == digest).count();
        assert_eq!((action.as_str(), sent), ("create", 1), "{address}: {digest} is not among {requests:#}");
    }
}

/// The simulator says what each machine was given, as a digest of the bytes that arrived.
fn given(lab: &Lab) -> Vec<(String, String)> {
    let machines = lab.talos()["machines"].as_array().unwrap().clone();
    let text = |machine: &Value, key: &str| machine[key].as_str().unwrap().to_owned();
    machines.iter().map(|machine| (text(machine, "hostname"), text(machine, "config"))).collect()
}

#[test]
fn machines_are_given_the_configuration_that_their_step_carried() {
    let mut shape = Shape::new(1, 1);
    let lab = Lab::new(&shape);
    for action in ["create", "update"] {
        apply_reviewed(&lab.strata());
        let steps = carried(&lab.repo, &["machine"], "config ");
        assert_eq!(steps.len(), 2, "{steps:?}");
        for (address, done, digest) in steps {
            let name = address.rsplit('/').next().unwrap().to_owned();
            let digest = digest.unwrap_or_else(|| panic!("{address} carries no configuration"));
            assert_eq!(done, action, "{address}");
            assert!(given(&lab).contains(&(name, digest)), "{address}: {:?}", given(&lab));
        }
        shape.patches = vec!["machine: {sysctls: {net.core.somaxconn: '4096'}}".to_owned()];
        lab.source(&shape);
    }
}
