use serde_json::{Value as Json, json};
use strata_resource::Lineage;

use super::*;
use crate::Unseen;

fn spec(json: Json) -> Spec {
    serde_json::from_value(json).unwrap_or_else(|error| panic!("{error}"))
}

fn record(json: Json) -> StateResource {
    let record = json!({"target": "t", "spec": json, "facts": {"old": true}, "stage": "compute"});
    serde_json::from_value(record).unwrap_or_else(|error| panic!("{error}"))
}

fn entry(action: Action, at: &str, identity: Json, becomes: Option<Json>) -> OpenEntry {
    OpenEntry {
        id: 1,
        action,
        address: crate::test_kinds::address(at),
        target: "t".to_owned(),
        identity: spec(identity),
        spec_digest: String::new(),
        becomes: becomes.map(|becomes| Box::new(record(becomes))),
        begun: 0,
        tasks: Vec::new(),
        to: None,
    }
}

fn state(known: &[(&str, StateResource)]) -> StateDocument {
    let mut document = StateDocument::new(Lineage::derive("r", "dev/s"), "dev/s");
    for (at, record) in known {
        let address = crate::test_kinds::address(at);
        document.resources.insert(address, record.clone());
    }
    document
}

fn ours(facts: Json) -> Sighting {
    let (digest, pending) = (String::new(), Vec::new());
    Sighting::Ours(Observed {
        spec: Spec::new(),
        facts: spec(facts),
        digest,
        pending,
        running: None,
        evidence: Default::default(),
    })
}

fn decided(entry: &OpenEntry, sighting: Sighting, document: &StateDocument) -> (Effect, Resolution) {
    decide(entry, sighting, document).unwrap_or_else(|error| panic!("{error}"))
}

fn put(effect: Effect) -> StateResource {
    match effect {
        Effect::Put(record) => *record,
        other => panic!("nothing is put: {other:?}"),
    }
}

/// What an update began and the state did not know: kept as unfinished, where its next plan can finish it.
#[test]
fn an_update_of_what_the_state_does_not_know_is_kept_where_a_plan_completes_it() {
    for (at, identity, kept) in [
        ("s/vm/web", json!({"vmid": 1}), true),
        ("s/container/dns", json!({"vmid": 2}), true),
        ("s/pool/lab", json!({"pool": "lab"}), true),
        ("s/network/pve1", json!({"network": "pve1"}), true),
        ("s/token/ci", json!({"token": "ci"}), false),
        ("s/machine/cp-1", json!({"machine": "cp-1"}), false),
    ] {
        let begun = entry(Action::Update, at, identity.clone(), Some(identity.clone()));
        let (effect, resolution) = decided(&begun, ours(json!({"uuid": "u"})), &state(&[]));
        assert_eq!(resolution, Resolution::Adopted);
        if kept {
            let record = put(effect);
            assert!(record.partial, "{at}");
            assert_eq!(record.facts, spec(json!({"uuid": "u"})), "{at}: as it was seen");
        } else {
            assert!(matches!(effect, Effect::Unchanged), "{at}");
        }
    }
}

/// What an update was to add is ours from now on; what is not about this very object, or adds nothing, changes nothing.
#[test]
fn an_update_claims_what_it_was_to_add() {
    let known = record(json!({"vmid": 1, "notes": "a"}));
    let document = state(&[("s/vm/web", known.clone())]);
    let becomes = json!({"vmid": 1, "notes": "a", "networks": {"net1": {"bridge": "vmbr1"}}});
    let begun = entry(Action::Update, "s/vm/web", json!({"vmid": 1}), Some(becomes.clone()));
    let claimed = put(decided(&begun, ours(json!({})), &document).0);
    assert!(claimed.spec.contains_key("networks") && !claimed.partial && claimed.facts == known.facts);
    let same = entry(Action::Update, "s/vm/web", json!({"vmid": 1}), Some(json!({"vmid": 1, "notes": "a"})));
    assert!(matches!(decided(&same, ours(json!({})), &document).0, Effect::Unchanged));
    let other = entry(Action::Update, "s/vm/web", json!({"vmid": 2}), Some(becomes));
    assert!(matches!(decided(&other, ours(json!({})), &document).0, Effect::Unchanged));
}

/// On a host what is staged cannot be read from its fields: a change and a removal that were begun leave it unfinished.
#[test]
fn what_was_begun_on_a_network_leaves_it_unfinished() {
    let network = json!({"network": "pve1"});
    let document = state(&[("s/network/pve1", record(network.clone()))]);
    let update = entry(Action::Update, "s/network/pve1", network.clone(), Some(network.clone()));
    assert!(put(decided(&update, ours(json!({})), &document).0).partial);
    let delete = entry(Action::Delete, "s/network/pve1", network.clone(), None);
    let (effect, resolution) = decided(&delete, ours(json!({})), &document);
    assert!(put(effect).partial && resolution == Resolution::NotDone);
    let vm = entry(Action::Delete, "s/vm/web", json!({"vmid": 1}), None);
    let known = state(&[("s/vm/web", record(json!({"vmid": 1})))]);
    assert!(matches!(decided(&vm, ours(json!({})), &known).0, Effect::Unchanged));
}

/// Others stage interfaces of the same host: what is not there was not added by us, and is not claimed.
#[test]
fn an_update_of_a_network_claims_only_interfaces_that_are_there() {
    let network = |names: &[&str]| {
        let interfaces: serde_json::Map<String, Json> =
            names.iter().map(|name| ((*name).to_owned(), json!({"type": "bridge"}))).collect();
        json!({"network": "pve1", "interfaces": interfaces})
    };
    let begun = entry(
        Action::Update,
        "s/network/pve1",
        json!({"network": "pve1"}),
        Some(network(&["bond0", "vmbr5", "vmbr1"])),
    );
    let seen = |names: &[&str]| match ours(json!({})) {
        Sighting::Ours(observed) => Sighting::Ours(Observed { spec: spec(network(names)), ..observed }),
        other => other,
    };
    let claimed = |known: &[(&str, StateResource)]| {
        let record = put(decided(&begun, seen(&["bond0"]), &state(known)).0);
        assert!(record.partial);
        record.spec["interfaces"].as_map().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(claimed(&[]), ["bond0"]);
    assert_eq!(claimed(&[("s/network/pve1", record(network(&["vmbr1"])))]), ["bond0", "vmbr1"]);
}

#[test]
fn what_was_begun_says_whose_staged_changes_are() {
    let network = json!({"network": "pve1"});
    let update =
        entry(Action::Update, "s/network/pve1", network.clone(), Some(json!({"network": "pve1", "x": 1})));
    assert_eq!(begun_spec(&update), Some(&spec(json!({"network": "pve1", "x": 1}))));
    let delete = entry(Action::Delete, "s/network/pve1", network.clone(), None);
    assert_eq!(begun_spec(&delete), Some(&spec(network)));
    let create =
        entry(Action::Create, "s/vm/web", json!({"vmid": 1}), Some(json!({"vmid": 1, "name": "web"})));
    assert_eq!(begun_spec(&create), Some(&spec(json!({"vmid": 1, "name": "web"}))));
    for action in [Action::Update, Action::Delete] {
        let becomes = (action == Action::Update).then(|| json!({"vmid": 1}));
        assert_eq!(begun_spec(&entry(action, "s/vm/web", json!({"vmid": 1}), becomes)), None);
    }
}

/// What one request makes is whole; everything else that was begun may lack something.
#[test]
fn a_create_that_was_begun_is_unfinished_unless_one_request_makes_it() {
    let create = |at: &str, identity: Json| {
        let begun = entry(Action::Create, at, identity.clone(), Some(identity));
        put(decided(&begun, ours(json!({"uuid": "u"})), &state(&[])).0)
    };
    assert!(create("s/vm/web", json!({"vmid": 1})).partial);
    assert!(!create("s/pool/lab", json!({"pool": "lab"})).partial);
    assert_eq!(create("s/vm/web", json!({"vmid": 1})).facts, spec(json!({"uuid": "u"})));
}

/// The object that it replaces stays known until it is deleted, and is not known twice.
#[test]
fn a_create_that_was_begun_keeps_what_it_replaces() {
    let begun = entry(Action::Create, "s/vm/web", json!({"vmid": 2}), Some(json!({"vmid": 2})));
    let former = state(&[("s/vm/web", record(json!({"vmid": 1})))]);
    let deposed = put(decided(&begun, ours(json!({})), &former).0).deposed;
    assert_eq!(deposed.iter().map(|one| one.spec.clone()).collect::<Vec<_>>(), [spec(json!({"vmid": 1}))]);
    let itself = state(&[("s/vm/web", record(json!({"vmid": 2})))]);
    assert!(put(decided(&begun, ours(json!({})), &itself).0).deposed.is_empty());
}

#[test]
fn a_delete_that_was_done_forgets_that_very_object() {
    let former = |vmid: u32| DeposedObject {
        target: "t".into(),
        spec: spec(json!({"vmid": vmid})),
        facts: Spec::new(),
    };
    let known = StateResource { deposed: vec![former(1), former(2)], ..record(json!({"vmid": 3})) };
    let document = state(&[("s/vm/web", known)]);
    let gone = |vmid: u32, document: &StateDocument| {
        let entry = entry(Action::Delete, "s/vm/web", json!({"vmid": vmid}), None);
        let (effect, resolution) = decided(&entry, Sighting::Absent, document);
        assert_eq!(resolution, Resolution::Finished);
        effect
    };
    let ids =
        |record: &StateResource| -> Vec<Spec> { record.deposed.iter().map(|one| one.spec.clone()).collect() };
    let without_former = put(gone(1, &document));
    assert_eq!(ids(&without_former), [spec(json!({"vmid": 2}))]);
    assert_eq!(without_former.spec, spec(json!({"vmid": 3})));
    // Former ones outlive the object that took their place.
    let without_current = put(gone(3, &document));
    assert_eq!(
        (without_current.spec.clone(), ids(&without_current)),
        (spec(json!({"vmid": 2})), vec![spec(json!({"vmid": 1}))])
    );
    assert!(matches!(gone(3, &state(&[("s/vm/web", record(json!({"vmid": 3})))])), Effect::Remove));
    assert!(matches!(gone(3, &state(&[])), Effect::Unchanged));
}

#[test]
fn what_cannot_be_seen_or_is_at_work_is_not_decided() {
    let begun = entry(Action::Create, "s/vm/web", json!({"vmid": 1}), Some(json!({"vmid": 1})));
    for sighting in [Sighting::Unknown(Unseen::new("hidden", "look")), Sighting::Busy("locked".to_owned())] {
        assert!(decide(&begun, sighting, &state(&[])).is_err());
    }
    let (effect, resolution) = decided(&begun, Sighting::Unmanaged("theirs".to_owned().into()), &state(&[]));
    assert!(matches!(effect, Effect::Unchanged) && resolution == Resolution::LeftUnmanaged);
    let (effect, resolution) = decided(&begun, Sighting::Unreachable("away".to_owned()), &state(&[]));
    assert!(matches!(effect, Effect::Unchanged) && resolution == Resolution::NotDone);
}

/// An entry is about the current object of its address or about a former one, and what is known of the other says nothing about it.
#[test]
fn an_entry_is_judged_by_the_record_of_its_very_object() {
    let former = DeposedObject { target: "t".into(), spec: spec(json!({"vmid": 1})), facts: Spec::new() };
    let known = StateResource { deposed: vec![former], ..record(json!({"vmid": 3})) };
    let of = |vmid: u32| {
        let entry = entry(Action::Delete, "s/vm/web", json!({"vmid": vmid}), None);
        record_at(&known, &entry).map(|record| record.spec)
    };
    assert_eq!(of(3), Some(spec(json!({"vmid": 3}))));
    assert_eq!(of(1), Some(spec(json!({"vmid": 1}))));
    assert_eq!(of(9), None);
}
