use serde_json::json;
use strata_resource::Lineage;
use strata_state::{Action, OpenEntry, StateDocument};

use super::*;

#[test]
fn an_apply_brings_back_only_what_is_ours_and_can_be_seen() {
    let what = || "what".to_owned();
    for corrected in [DriftKind::Changed { changes: Vec::new() }, DriftKind::Gone, DriftKind::Unfinished] {
        assert!(corrected.is_corrected(), "{corrected:?}");
    }
    for left in [
        DriftKind::Taken { by: what() },
        DriftKind::Busy { what: what() },
        DriftKind::Unreachable { what: what() },
        DriftKind::Unknown { what: what(), hint: what() },
    ] {
        assert!(!left.is_corrected(), "{left:?}");
    }
}

/// Work that is open is told once: also where the state knows nothing of it yet, and not beside what is told of its object.
#[test]
fn open_work_is_drift_where_nothing_else_is_told() {
    let address = |at: &str| -> Address { crate::test_kinds::address(at) };
    let open = |at: &str| OpenEntry {
        id: 1,
        action: Action::Create,
        address: address(at),
        target: "t".to_owned(),
        identity: Default::default(),
        spec_digest: String::new(),
        becomes: None,
        begun: 0,
        tasks: Vec::new(),
        to: None,
    };
    let mut document = StateDocument::new(Lineage::derive("r", "dev/s"), "dev/s");
    let record = json!({"target": "t", "spec": {"vmid": 1}, "stage": "compute"});
    let record = serde_json::from_value(record).unwrap_or_else(|error| panic!("{error}"));
    document.resources.insert(address("s/vm/gone"), record);
    let open = vec![open("s/vm/gone"), open("s/vm/new")];
    let state = ReplayedState { document, open, last_id: 1, unfolded: false, uncleared: false };
    let found = compare(&state, &Live::default());
    let told: Vec<(&str, bool)> = found
        .iter()
        .map(|drift| (drift.address.name(), matches!(drift.kind, DriftKind::Unfinished)))
        .collect();
    assert_eq!(told, [("gone", false), ("new", true)]);
}

#[test]
fn what_a_run_left_unfinished_is_told_as_that() {
    let address = crate::test_kinds::address("s/vm/web");
    let found = |partial: bool| {
        let mut document = StateDocument::new(Lineage::derive("r", "dev/s"), "dev/s");
        let record =
            json!({"target": "t", "spec": {"vmid": 1, "notes": "a"}, "stage": "compute", "partial": partial});
        let record = serde_json::from_value(record).unwrap_or_else(|error| panic!("{error}"));
        document.resources.insert(address.clone(), record);
        let seen = json!({"spec": {"vmid": 1, "notes": "b"}, "facts": {}, "digest": "d"});
        let seen = serde_json::from_value(seen).unwrap_or_else(|error| panic!("{error}"));
        let mut live = Live::default();
        live.current.insert(address.clone(), Sighting::Ours(seen));
        let state =
            ReplayedState { document, open: Vec::new(), last_id: 0, unfolded: false, uncleared: false };
        compare(&state, &live).into_iter().map(|drift| drift.kind).collect::<Vec<_>>()
    };
    assert!(matches!(found(true)[..], [DriftKind::Unfinished]));
    assert!(matches!(&found(false)[..], [DriftKind::Changed { changes }] if changes.len() == 1));
}
