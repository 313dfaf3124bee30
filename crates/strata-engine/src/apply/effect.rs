//! What a step that ended means for the state. Pure: nothing is looked at.

use std::collections::BTreeSet;

use strata_resource::{FieldChange, FieldPath, Spec, stored_spec};
use strata_state::{Effect, OpenEntry, StateDocument, StateResource};

use crate::Outcome;
use crate::plan::{Step, StepAction};
use crate::planner::keep_sources;
use crate::recovery::{begun_update, removed};
use crate::reporting::keep_reported;

/// It was done. `sent` is the spec that its provider was given.
pub(super) fn done(
    step: &Step,
    entry: &OpenEntry,
    sent: &Spec,
    outcome: Outcome,
    document: &StateDocument,
) -> Effect {
    match (step.action, &step.becomes) {
        (StepAction::Delete | StepAction::DeleteFormer, _) => removed(entry, document),
        (_, Some(becomes)) => {
            let mut spec = stored_spec(sent);
            if step.action != StepAction::Create {
                keep_sources(&step.address, &mut spec, Some(&becomes.spec));
            }
            let mut facts = outcome.facts;
            let through = step.address.kind().table().reported_through;
            let is_untrue =
                |change: &FieldChange| change.path.first().is_some_and(|field| through.contains(&field));
            if step.action != StepAction::Create && !step.changes.iter().any(is_untrue) {
                keep_reported(step.address.kind(), &mut facts, &becomes.facts);
            }
            Effect::Put(Box::new(StateResource { facts, spec, ..becomes.clone() }))
        }
        (_, None) => Effect::Unchanged,
    }
}

/// It writes nothing remote: only the record changes.
pub(super) fn recorded(step: &Step, entry: &OpenEntry, document: &StateDocument) -> Effect {
    match (step.action, &step.becomes) {
        (StepAction::Forget, _) => removed(entry, document),
        (_, Some(becomes)) => Effect::Put(Box::new(becomes.clone())),
        (_, None) => Effect::Unchanged,
    }
}

/// An update failed, with something done or, for certain, with nothing. `added` are the slots that it made.
pub(super) fn failed_update(
    step: &Step,
    entry: &OpenEntry,
    nothing_done: bool,
    added: &BTreeSet<FieldPath>,
    document: &StateDocument,
) -> Effect {
    let seen = step.observed.as_ref().map(|seen| &seen.facts);
    // What is ours by its ownership mark alone must not leave the source without anybody knowing of it.
    let first =
        seen.is_some() && step.recorded.is_none() && entry.address.kind().table().is_proven_by_facts();
    if nothing_done && !first {
        return Effect::Unchanged;
    }
    begun_update(entry, seen, &|slot| added.contains(slot), document)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};
    use strata_resource::Lineage;
    use strata_state::Action;

    use super::*;
    use crate::Observed;

    const AT: &str = "s/vm/web";

    fn spec(json: Json) -> Spec {
        serde_json::from_value(json).unwrap_or_else(|error| panic!("{error}"))
    }

    fn record(json: Json) -> StateResource {
        let record = json!({"target": "t", "spec": json, "facts": {"uuid": "old"}, "stage": "compute"});
        serde_json::from_value(record).unwrap_or_else(|error| panic!("{error}"))
    }

    fn step(action: &str, becomes: Option<Json>) -> Step {
        crate::test_kinds::address(AT);
        let step =
            json!({"address": AT, "action": action, "target": "t", "stage": "compute", "spec": {"vmid": 1}});
        let step: Step = serde_json::from_value(step).unwrap_or_else(|error| panic!("{error}"));
        Step { becomes: becomes.map(record), ..step }
    }

    fn entry(action: Action, becomes: Option<Json>) -> OpenEntry {
        OpenEntry {
            id: 1,
            action,
            address: crate::test_kinds::address(AT),
            target: "t".to_owned(),
            identity: spec(json!({"vmid": 1})),
            spec_digest: String::new(),
            becomes: becomes.map(|becomes| Box::new(record(becomes))),
            begun: 0,
            tasks: Vec::new(),
            to: None,
        }
    }

    fn state(known: Option<StateResource>) -> StateDocument {
        let mut document = StateDocument::new(Lineage::derive("r", "dev/s"), "dev/s");
        document.resources.extend(known.map(|known| (crate::test_kinds::address(AT), known)));
        document
    }

    fn put(effect: Effect) -> StateResource {
        match effect {
            Effect::Put(record) => *record,
            other => panic!("nothing is put: {other:?}"),
        }
    }

    fn disk(import: &str) -> Json {
        json!({"vmid": 1, "disks": {"scsi0": {"storage": "a", "size": 1, "import": import}}})
    }

    #[test]
    fn what_was_made_is_recorded_as_it_was_sent_with_what_the_remote_made_up() {
        let (made, changed) = (disk("local:import/new.qcow2"), disk("local:import/old.qcow2"));
        let outcome = || Outcome { facts: spec(json!({"uuid": "new"})) };
        let create = step("create", Some(changed.clone()));
        let entry = entry(Action::Create, None);
        let created = put(done(&create, &entry, &spec(made.clone()), outcome(), &state(None)));
        assert_eq!((created.spec, created.facts), (spec(made.clone()), spec(json!({"uuid": "new"}))));
        // An update does not make it from another image: the record keeps what it was made from.
        let update = step("update", Some(changed.clone()));
        let updated = put(done(&update, &entry, &spec(made), outcome(), &state(None)));
        assert_eq!(updated.spec, spec(changed));
        let nothing = done(&step("update", None), &entry, &spec(json!({})), outcome(), &state(None));
        assert!(matches!(nothing, Effect::Unchanged));
    }

    #[test]
    fn what_was_removed_or_forgotten_leaves_the_state_and_what_is_recorded_is_put() {
        let known = state(Some(record(json!({"vmid": 1}))));
        let gone = entry(Action::Delete, None);
        for action in ["delete", "delete-former"] {
            let effect = done(&step(action, None), &gone, &Spec::new(), Outcome::default(), &known);
            assert!(matches!(effect, Effect::Remove), "{action}: {effect:?}");
        }
        assert!(matches!(recorded(&step("forget", None), &gone, &known), Effect::Remove));
        let noted = put(recorded(&step("record", Some(json!({"vmid": 1, "name": "n"}))), &gone, &known));
        assert_eq!(noted.spec, spec(json!({"vmid": 1, "name": "n"})));
        assert!(matches!(recorded(&step("record", None), &gone, &known), Effect::Unchanged));
    }

    /// A refused update of what the state knows changes nothing; of what only its ownership mark proves, it is known from now on.
    #[test]
    fn a_failed_update_is_claimed_if_anything_was_done_or_nobody_knew_the_guest() {
        let none = BTreeSet::new();
        let becomes = json!({"vmid": 1, "networks": {"net0": {"bridge": "vmbr0"}}});
        let entry = entry(Action::Update, Some(becomes.clone()));
        let known = record(json!({"vmid": 1}));
        let observed = Observed {
            spec: Spec::new(),
            facts: spec(json!({"uuid": "live"})),
            digest: String::new(),
            pending: Vec::new(),
            running: None,
            evidence: Default::default(),
        };
        let seen = Step { observed: Some(observed), ..step("update", Some(becomes.clone())) };
        let of_known = Step { recorded: Some(known.clone()), ..seen.clone() };
        let document = state(Some(known));
        assert!(matches!(failed_update(&of_known, &entry, true, &none, &document), Effect::Unchanged));
        let claimed = put(failed_update(&of_known, &entry, false, &none, &document));
        assert!(claimed.spec.contains_key("networks"), "{claimed:?}");
        // Ours by its ownership mark alone.
        for nothing_done in [true, false] {
            let first = put(failed_update(&seen, &entry, nothing_done, &none, &state(None)));
            assert!(first.partial);
            assert_eq!(first.facts, spec(json!({"uuid": "live"})));
        }
        let unseen = Step { observed: None, ..seen };
        assert!(matches!(failed_update(&unseen, &entry, true, &none, &state(None)), Effect::Unchanged));
    }
}
