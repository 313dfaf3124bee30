use serde_json::{Value as Json, json};
use strata_resource::{Lineage, ResourceGraph, RestartPolicy, Stage};

use super::*;
use crate::planner::PlanRequest;
use crate::{Live, Observed, Sighting, Unseen};

fn spec(json: Json) -> Spec {
    serde_json::from_value(json).unwrap_or_else(|error| panic!("{error}"))
}

fn address(name: &str) -> Address {
    crate::test_kinds::address(&format!("s/vm/{name}"))
}

fn resource(name: &str, json: Json) -> Resource {
    Resource {
        address: address(name),
        target: "t".to_owned(),
        spec: spec(json),
        depends_on: Default::default(),
        stage: Stage::Compute,
        protect: false,
        on_change: RestartPolicy::default(),
        ignore: Vec::new(),
        limits: Vec::new(),
        origin: None,
    }
}

fn seen(json: Json, facts: Json) -> Sighting {
    let (digest, pending) = ("d".to_owned(), Vec::new());
    Sighting::Ours(Observed {
        spec: spec(json),
        facts: spec(facts),
        digest,
        pending,
        running: None,
        evidence: Default::default(),
    })
}

/// A repository of VMs `vmid` 1 to 9 with `notes: wanted`, all of them named by whoever built them, at what is live.
fn surveyed() -> Adoption {
    let lineage = Lineage::derive("r", "dev/s");
    let (mut graph, mut live) = (ResourceGraph::default(), Live::default());
    let mut state = StateDocument::new(lineage.clone(), "dev/s");
    let mut proofs = Proofs::new();
    let uuid = json!({"uuid": "u"});
    for (vmid, name, sighting) in [
        (1, "alike", seen(json!({"vmid": 1, "notes": "wanted"}), uuid.clone())),
        (2, "differs", seen(json!({"vmid": 2, "notes": "live"}), uuid.clone())),
        (3, "gone", Sighting::Absent),
        (4, "theirs", Sighting::Unmanaged("somebody else's".to_owned().into())),
        (5, "known", seen(json!({"vmid": 5, "notes": "wanted"}), uuid.clone())),
        (6, "other", seen(json!({"vmid": 6, "notes": "wanted", "arch": "aarch64"}), uuid.clone())),
        (7, "bare", seen(json!({"vmid": 7, "notes": "live"}), json!({}))),
        (8, "hidden", Sighting::Unknown(Unseen::new("it cannot be seen", "look"))),
        (9, "locked", Sighting::Busy("it is locked (clone)".to_owned())),
    ] {
        let arch = if name == "other" { json!({"arch": "x86_64"}) } else { json!({}) };
        let mut wanted = json!({"vmid": vmid, "notes": "wanted", "mark": "m"});
        wanted
            .as_object_mut()
            .into_iter()
            .for_each(|own| own.extend(arch.as_object().cloned().unwrap_or_default()));
        graph.insert(resource(name, wanted)).unwrap_or_else(|error| panic!("{error}"));
        live.current.insert(address(name), sighting);
        proofs.insert(address(name), spec(if name == "bare" { json!({}) } else { uuid.clone() }));
    }
    let known = resource("known", json!({"vmid": 5, "notes": "wanted"}));
    state.resources.insert(address("known"), on_trial(&known, &spec(uuid)));
    let mut trial = state.clone();
    for resource in graph.iter().filter(|resource| !state.resources.contains_key(&resource.address)) {
        trial.resources.insert(resource.address.clone(), on_trial(resource, &proofs[&resource.address]));
    }
    let plan = PlanRequest::of(&graph, &trial, &lineage, &live).plan();
    let mut adoption = Adoption::default();
    adoption.judge(&plan, &trial, &state, &proofs);
    adoption
}

fn names<'a>(addresses: impl Iterator<Item = &'a Address>) -> Vec<&'a str> {
    addresses.map(Address::name).collect()
}

/// Only what is there and proven is taken over; everything else is refused with its reason, and what the state knows stays as it is.
#[test]
fn what_is_there_and_proven_is_taken_over_as_it_is() {
    let adoption = surveyed();
    assert_eq!(names(adoption.records.keys()), ["alike", "differs"]);
    assert_eq!(names(adoption.refused.keys()), ["bare", "gone", "hidden", "locked", "other", "theirs"]);
    let why = |name: &str| adoption.refused.get(&address(name)).map(String::as_str).unwrap_or_default();
    assert_eq!((why("hidden"), why("locked")), ("it cannot be seen", "it is locked (clone)"));
    assert_eq!((why("gone"), why("theirs")), ("it is not there", "somebody else's"));
    assert_eq!(why("other"), "the source asks for something that only a new object could be");
    assert!(why("bare").contains("neither an id nor a network device"), "{}", why("bare"));
    // The record says what is live, so that the next plan shows a change of the source; the mark comes with it.
    assert_eq!(names(adoption.differences.keys()), ["differs"]);
    let changes = adoption.differences[&address("differs")].iter().map(|change| change.path.to_string());
    assert_eq!(changes.collect::<Vec<_>>(), ["notes"]);
    let record = &adoption.records[&address("differs")];
    assert_eq!(record.spec.get("notes"), Some(&Value::text("live")));
    assert!(!record.spec.contains_key("mark") && record.facts == spec(json!({"uuid": "u"})));
}

/// What nobody named is not taken over, although the plan would record it; what was named and left the source is not missed.
#[test]
fn what_nobody_promised_is_not_recorded() {
    let lineage = Lineage::derive("r", "dev/s");
    let (mut graph, mut live) = (ResourceGraph::default(), Live::default());
    let state = StateDocument::new(lineage.clone(), "dev/s");
    graph.insert(resource("marked", json!({"vmid": 1}))).unwrap_or_else(|error| panic!("{error}"));
    live.current.insert(address("marked"), seen(json!({"vmid": 1, "notes": "live"}), json!({})));
    let plan = PlanRequest::of(&graph, &state, &lineage, &live).plan();
    let proofs = Proofs::from([(address("left"), spec(json!({"uuid": "u"})))]);
    let mut adoption = Adoption::default();
    adoption.judge(&plan, &state, &state, &proofs);
    assert!(adoption.records.is_empty() && adoption.differences.is_empty(), "{adoption:?}");
    assert!(adoption.refused.is_empty(), "{adoption:?}");
}

#[test]
fn a_value_is_put_where_it_was_and_one_that_nobody_could_read_is_left_out() {
    let mut record = spec(json!({"cpu": {"cores": 4, "type": "host"}, "notes": "n"}));
    let path = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    put(&mut record, &path(&["cpu", "cores"]), Some(&Value::from(2)));
    put(&mut record, &path(&["cpu", "type"]), None);
    put(&mut record, &path(&["notes"]), Some(&Value::Unknown));
    put(&mut record, &path(&["memory", "size"]), Some(&Value::from(1)));
    assert_eq!(record, spec(json!({"cpu": {"cores": 2}})));
}

#[test]
fn an_id_or_a_network_device_proves_later_that_it_is_the_same_one() {
    let with = |facts: Json| {
        has_proof(&address("web"), &on_trial(&resource("web", json!({"vmid": 1})), &spec(facts)))
    };
    assert!(with(json!({"uuid": "u"})) && with(json!({"hwaddr": "BC:24:11:00:00:01"})));
    assert!(!with(json!({})) && !with(json!({"size": 4})));
}
