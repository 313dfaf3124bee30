//! What moves make of a document, and what the planner makes of that.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use strata_resource::{Lineage, Resource, ResourceGraph, RestartPolicy, Spec, Stage};

use super::*;
use crate::plan::StepAction;
use crate::planner::PlanRequest;
use crate::test_kinds::address;
use crate::{Live, Observed, Sighting};

fn spec(json: Json) -> Spec {
    serde_json::from_value(json).unwrap_or_else(|error| panic!("{error}"))
}

fn record(json: Json, needs: &[&str]) -> StateResource {
    let record = json!({"target": "t", "spec": json, "stage": "compute", "depends_on": needs});
    serde_json::from_value(record).unwrap_or_else(|error| panic!("{error}"))
}

fn document(key: &str, known: &[(&str, Json, &[&str])]) -> StateDocument {
    let mut document = StateDocument::new(Lineage::derive("r", key), key);
    for (at, json, needs) in known {
        document.resources.insert(address(at), record(json.clone(), needs));
    }
    document
}

#[test]
fn a_renamed_object_keeps_where_it_was_made_and_others_follow() {
    let known: &[(&str, Json, &[&str])] =
        &[("s/vm/a", json!({"vmid": 1}), &[]), ("s/vm/web", json!({"vmid": 2}), &["s/vm/a"])];
    let mut state = document("dev/s", known);
    let rename = |from: &str, to: &str| Move::Within { from: address(from), to: address(to) };
    for _ in 0..2 {
        rename("s/vm/a", "s/vm/b").apply_to(&mut state);
    }
    rename("s/vm/b", "s/vm/c").apply_to(&mut state);
    assert!(
        !state.resources.contains_key(&address("s/vm/a"))
            && !state.resources.contains_key(&address("s/vm/b"))
    );
    let made =
        state.resources[&address("s/vm/c")].made_as.clone().unwrap_or_else(|| panic!("it is forgotten"));
    assert_eq!((made.address, made.lineage), (address("s/vm/a"), state.lineage.clone()));
    assert!(state.resources[&address("s/vm/web")].depends_on.contains(&address("s/vm/c")));
}

#[test]
fn what_leaves_one_state_is_in_the_other_and_once() {
    let mut from = document("dev/s", &[("s/vm/a", json!({"vmid": 1}), &[])]);
    let mut to = document("dev/d", &[]);
    let mut moved = from.resources[&address("s/vm/a")].clone();
    keep_origin(&mut moved, &address("s/vm/a"), &from.lineage, None);
    let (old, new) = (address("s/vm/a"), address("d/vm/a"));
    let (from_key, record) = ("dev/s".to_owned(), Box::new(moved));
    let arrival = Move::Arrival { from: old.clone(), from_key, to: new.clone(), record };
    let departure = Move::Departure { from: old, to: new.clone(), to_key: "dev/d".to_owned() };
    for _ in 0..2 {
        arrival.apply_to(&mut to);
        departure.apply_to(&mut from);
    }
    assert!(from.resources.is_empty());
    assert_eq!(to.resources.keys().collect::<Vec<_>>(), [&new]);
    assert_eq!(to.resources[&new].made_as.as_ref().map(|made| &made.lineage), Some(&from.lineage));
}

#[test]
fn names_that_hold_the_lineage_are_compared_without_it() {
    let (own, other) = (Lineage::derive("r", "dev/s"), Lineage::derive("r", "dev/d"));
    let volume = |lineage: &Lineage, what: &str| json!({"volume": format!("local:iso/strata-{}-{what}.iso", lineage.short()), "storage": "local", "node": "n", "shared": false});
    let known = record(volume(&own, "rescue"), &[]);
    let at = address("s/image/x");
    let same = |what: &str| {
        let wanted = spec(volume(&other, what));
        is_same_but_for_lineage(&at, (&known, &own), ("t", &wanted, &other))
    };
    assert!(same("rescue") && !same("debian"));
}

/// A move alone is a change; the mark that it calls for is an update in place, and nothing is made or deleted.
#[test]
fn a_moved_object_is_changed_in_place() {
    let (key, lineage) = ("dev/s", Lineage::derive("r", "dev/s"));
    let before = json!({"vmid": 1, "node": "n", "name": "a", "mark": "old"});
    let mut state = document(key, &[("s/vm/a", before.clone(), &[])]);
    let moves = [Move::Within { from: address("s/vm/a"), to: address("s/vm/b") }];
    moves.iter().for_each(|one| one.apply_to(&mut state));
    let mut graph = ResourceGraph::default();
    let wanted = Resource {
        address: address("s/vm/b"),
        target: "t".to_owned(),
        spec: spec(json!({"vmid": 1, "node": "n", "name": "b", "mark": "new"})),
        depends_on: Default::default(),
        stage: Stage::Compute,
        protect: true,
        on_change: RestartPolicy::default(),
        ignore: Vec::new(),
        limits: Vec::new(),
        origin: None,
    };
    graph.insert(wanted).unwrap_or_else(|error| panic!("{error}"));
    let observed = Observed {
        spec: spec(before),
        facts: Spec::new(),
        digest: "d".to_owned(),
        pending: Vec::new(),
        running: None,
        evidence: Default::default(),
    };
    let mut live = Live::default();
    live.current.insert(address("s/vm/b"), Sighting::Ours(observed));
    let made = state.resources[&address("s/vm/b")].made_as.as_deref().cloned();
    let origins: BTreeMap<_, _> = made.map(|made| (address("s/vm/b"), made)).into_iter().collect();
    let request =
        PlanRequest { moves: &moves, origins: &origins, ..PlanRequest::of(&graph, &state, &lineage, &live) };
    let plan = request.plan();
    assert_eq!(plan.steps.iter().map(|step| step.action).collect::<Vec<_>>(), [StepAction::Update]);
    let fields: Vec<String> = plan.steps[0].changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(fields, ["mark", "name"]);
    assert!(plan.problems.is_empty() && plan.has_changes() && plan.summary().moved == 1);
    let kept = plan.steps[0].becomes.as_ref().and_then(|becomes| becomes.made_as.as_ref());
    assert_eq!(kept.map(|made| &made.address), Some(&address("s/vm/a")));
    // A run that is about something else moves it, and leaves the rest.
    let nothing = std::collections::BTreeSet::new();
    let elsewhere = PlanRequest { selected: Some(&nothing), ..request }.plan();
    assert!(elsewhere.steps.is_empty() && elsewhere.has_changes());
}

struct Noon;

impl crate::Clock for Noon {
    fn now(&self) -> i64 {
        1_700_000_000
    }
}

fn view(key: &str) -> crate::StackView {
    crate::StackView::empty(key.to_owned(), Lineage::derive("r", key))
}

async fn locked(run: &crate::Run, key: &str) -> LockedRun {
    let owner = json!({"id": key, "who": "me@here", "operation": "apply", "since": "2026-01-01T00:00:00Z"});
    let owner = serde_json::from_value(owner).unwrap_or_else(|error| panic!("{error}"));
    run.lock(&view(key), owner).await.unwrap_or_else(|error| panic!("{error}"))
}

/// A run died after the one state had got the object and before the other had lost it. What cannot be read may have it.
#[tokio::test]
async fn an_object_that_a_state_may_have_is_not_kept_in_two() {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let run = crate::Run {
        store: std::sync::Arc::new(strata_state::LocalStore::new(folder.path())),
        providers: crate::Providers::default(),
        clock: std::sync::Arc::new(Noon),
        events: std::sync::Arc::new(|_| {}),
    };
    let (old, new) = (address("s/vm/a"), address("d/vm/a"));
    let own = record(json!({"vmid": 1}), &[]);
    let arrival = Move::Arrival {
        from: old.clone(),
        from_key: "dev/s".to_owned(),
        to: new.clone(),
        record: Box::new(own.clone()),
    };
    let arrivals = [arrival];
    let mut source = locked(&run, "dev/s").await;
    let had = source.edit(|document| drop(document.resources.insert(old.clone(), own))).await;
    assert!(had.is_ok());
    assert!(source.begin_departures("dev/d", &arrivals).await.is_ok());
    let mut target = locked(&run, "dev/d").await;
    assert!(target.edit(|document| arrivals[0].apply_to(document)).await.is_ok());
    drop((source, target));

    let file = folder.path().join("dev/d/state.json");
    let good = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(std::fs::write(&file, "torn").is_ok());
    let mut again = locked(&run, "dev/s").await;
    let error = again.recover().await.map(|_| ()).map_err(|error| error.to_string());
    assert!(
        error.as_ref().is_err_and(|text| text.contains("cannot say whether `s/vm/a` was moved")),
        "{error:?}"
    );
    assert_eq!(again.open_entries(), 1, "it stays open");
    drop(again);
    assert!(std::fs::write(&file, good).is_ok());
    let mut again = locked(&run, "dev/s").await;
    assert!(again.recover().await.is_ok());
    assert!(again.state().resources.is_empty(), "it is in the other one");
}

/// A graph with one object that nobody has made yet.
fn wanted(at: &str, json: Json) -> ResourceGraph {
    let mut graph = ResourceGraph::default();
    let inserted = graph.insert(Resource {
        address: address(at),
        target: "t".to_owned(),
        spec: spec(json),
        depends_on: Default::default(),
        stage: Stage::Compute,
        protect: false,
        on_change: RestartPolicy::default(),
        ignore: Vec::new(),
        limits: Vec::new(),
        origin: None,
    });
    assert!(inserted.is_ok());
    graph
}

fn again(document: &StateDocument, graph: &ResourceGraph) -> Option<u32> {
    made_again(document, &BTreeSet::new(), graph).values().next().map(|made| made.again)
}

#[test]
fn an_address_that_something_left_makes_something_else() {
    let mut state = document("dev/s", &[("s/vm/a", json!({"vmid": 1}), &[])]);
    let graph = wanted("s/vm/a", json!({"vmid": 2}));
    assert_eq!(again(&state, &graph), None, "it is there");
    Move::Within { from: address("s/vm/a"), to: address("s/vm/b") }.apply_to(&mut state);
    assert_eq!(again(&state, &graph), Some(1));
    assert_eq!(again(&state, &wanted("s/vm/c", json!({"vmid": 2}))), None);
    let begun = BTreeSet::from([address("s/vm/a")]);
    assert!(made_again(&state, &begun, &graph).is_empty(), "a run that was interrupted has begun it");
    // It goes to another state, and comes back.
    let record = state.resources[&address("s/vm/b")].clone();
    let leaves = Move::Departure { from: address("s/vm/b"), to: address("t/vm/b"), to_key: "dev/t".into() };
    leaves.apply_to(&mut state);
    assert_eq!((state.departed.len(), again(&state, &graph)), (1, Some(1)));
    let returns = Move::Arrival {
        from: address("t/vm/b"),
        from_key: "dev/t".into(),
        to: address("s/vm/b"),
        record: Box::new(record),
    };
    returns.apply_to(&mut state);
    assert_eq!((state.departed.len(), again(&state, &graph)), (0, Some(1)));
    // What was made elsewhere leaves nothing behind.
    let guest = state.resources.get_mut(&address("s/vm/b")).unwrap_or_else(|| panic!("it is back"));
    guest.made_as = Some(Box::new(MadeAs {
        address: address("t/vm/x"),
        lineage: Lineage::derive("r", "dev/t"),
        digest_key: None,
        again: 0,
    }));
    assert_eq!(again(&state, &graph), None);
    leaves.apply_to(&mut state);
    assert!(state.departed.is_empty());
}

/// Whatever address asks for it: an image is called by the first guest that uses it.
#[test]
fn a_volume_that_left_is_made_under_another_name() {
    let lineage = Lineage::derive("r", "dev/s");
    let volume = |again: u32| json!({"volume": format!("local:iso/strata-{}-x.iso", lineage.short_of(again)), "storage": "local", "node": "n", "shared": false});
    let mut state = document("dev/s", &[("s/image/a", volume(0), &[])]);
    Move::Departure { from: address("s/image/a"), to: address("t/image/a"), to_key: "dev/t".into() }
        .apply_to(&mut state);
    assert_eq!(again(&state, &wanted("s/image/b", volume(0))), Some(1));
    // The second one is called by another guest now: it stays the same volume.
    state.resources.insert(address("s/image/b"), record(volume(1), &[]));
    assert_eq!(again(&state, &wanted("s/image/c", volume(0))), Some(1));
    let other =
        json!({"volume": "local:iso/strata-other.iso", "storage": "local", "node": "n", "shared": false});
    assert_eq!(again(&state, &wanted("s/image/d", other)), None);
}
