use serde_json::{Value as Json, json};
use strata_resource::{Resource, RestartPolicy, Stage};
use strata_state::Action;

use super::*;

fn address(at: &str) -> Address {
    crate::test_kinds::address(at)
}

fn spec(json: Json) -> Spec {
    serde_json::from_value(json).unwrap_or_else(|error| panic!("{error}"))
}

fn open(action: Action, at: &str, identity: Json, becomes: Option<Json>) -> OpenEntry {
    let becomes = becomes.map(|becomes| {
        let record = json!({"target": "t", "spec": becomes, "stage": "compute"});
        Box::new(serde_json::from_value(record).unwrap_or_else(|error| panic!("{error}")))
    });
    OpenEntry {
        id: 1,
        action,
        address: address(at),
        target: "t".to_owned(),
        identity: spec(identity),
        spec_digest: String::new(),
        becomes,
        begun: 0,
        tasks: Vec::new(),
        to: None,
    }
}

/// What an interrupted run began proves only its own object ours.
#[test]
fn what_was_begun_is_asked_about_at_its_own_address_only() {
    let mut graph = ResourceGraph::default();
    for (at, vmid) in [("s/vm/db", 1), ("s/vm/web", 2)] {
        let resource = Resource {
            address: address(at),
            target: "t".to_owned(),
            spec: spec(json!({"vmid": vmid})),
            depends_on: Default::default(),
            stage: Stage::Compute,
            protect: false,
            on_change: RestartPolicy::default(),
            ignore: Vec::new(),
            limits: Vec::new(),
            origin: None,
        };
        graph.insert(resource).unwrap_or_else(|error| panic!("{error}"));
    }
    let mut state = StateDocument::new(Lineage::derive("r", "dev/s"), "dev/s");
    for (at, identity) in [
        ("s/network/pve1", json!({"network": "pve1"})),
        ("s/network/pve2", json!({"network": "pve2"})),
        ("s/vm/gone", json!({"vmid": 3})),
    ] {
        let record = json!({"target": "t", "spec": identity, "stage": "compute"});
        let record = serde_json::from_value(record).unwrap_or_else(|error| panic!("{error}"));
        state.resources.insert(address(at), record);
    }
    let web = json!({"vmid": 2, "name": "web"});
    let entries = [
        open(Action::Create, "s/vm/web", json!({"vmid": 2}), Some(web.clone())),
        open(Action::Delete, "s/network/pve1", json!({"network": "pve1"}), None),
        open(Action::Create, "s/vm/gone", json!({"vmid": 3}), Some(json!({"vmid": 3}))),
    ];
    let asked = questions(&graph, &state, &entries);
    let begun: Vec<(String, Option<Spec>)> =
        asked.iter().map(|question| (question.address.to_string(), question.begun.cloned())).collect();
    assert_eq!(
        begun,
        [
            ("s/vm/db".to_owned(), None),
            ("s/vm/web".to_owned(), Some(spec(web))),
            ("s/network/pve1".to_owned(), Some(spec(json!({"network": "pve1"})))),
            ("s/network/pve2".to_owned(), None),
            // What left the source is ours by its record, or not at all.
            ("s/vm/gone".to_owned(), None),
        ]
    );
}
