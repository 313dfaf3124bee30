//! Whether an object is ours (docs/ownership.md, "The datacenter").
//!
//! A mark in its comment decides where there is one. Otherwise the state does, the source where it says `adopt`, and after an
//! interrupted create the fact that the object is exactly what was begun.

use strata_engine::{Dispute, Observed, Sighting, Unmanaged, Wanted};
use strata_resource::{CommentMark, Kind, Spec, Value, diff_specs};
use strata_state::StateResource;

use super::family::{Family, LiveObject};
use crate::kinds;

pub(crate) fn judge(family: &dyn Family, wanted: &Wanted<'_>, live: Option<&LiveObject>) -> Sighting {
    let Some(live) = live else { return Sighting::Absent };
    if let Some(why) = dispute(wanted, live) {
        let key = family.key(wanted.spec).unwrap_or_default();
        let what = format!("{} `{key}`", family.word());
        let mark = live.mark.clone().map(|mark| (mark.lineage, mark.address));
        return Sighting::Unmanaged(Unmanaged { what, why, mark });
    }
    Sighting::Ours(Observed {
        spec: live.spec.clone(),
        facts: Spec::new(),
        digest: live.digest.clone(),
        pending: Vec::new(),
        running: None,
        evidence: Default::default(),
    })
}

/// Why it is not ours; none if it is.
fn dispute(wanted: &Wanted<'_>, live: &LiveObject) -> Option<Dispute> {
    if let Some(why) = live.reserved {
        return Some(Dispute::Because(why.to_owned()));
    }
    let ours = CommentMark::new(wanted.lineage, wanted.address);
    if let Some(mark) = &live.mark {
        // What the state knows may have been made under another address, and in another state.
        let applied = |recorded: &StateResource| {
            recorded.spec.get("mark").and_then(Value::as_text) == Some(mark.to_string().as_str())
        };
        let known = *mark == ours
            || wanted.recorded.is_some_and(|known| mark.lineage == ours.lineage || applied(known));
        let why = || format!("it belongs to another state: its ownership mark names `{}`", mark.address);
        return (!known).then(|| Dispute::Because(why()));
    }
    let adopt = wanted.spec.get("adopt").and_then(Value::as_bool) == Some(true);
    let kind = wanted.address.kind();
    if wanted.recorded.is_some() || adopt || kind.table().always_there {
        return None;
    }
    match wanted.begun {
        Some(begun) if is_just_that(kind, begun, live) => None,
        Some(begun) if kinds::of(kind).is_some_and(|managed| managed.is_on_the_way(begun, live)) => None,
        Some(_) => {
            Some(Dispute::Because("it exists and is not what an interrupted run was to make".to_owned()))
        }
        None => Some(Dispute::Unclaimed),
    }
}

/// Whether an object is what a spec says, as far as that can be read.
pub(super) fn is_just_that(kind: Kind, spec: &Spec, live: &LiveObject) -> bool {
    let rules = kind.rules();
    let mut readable = spec.clone();
    readable.retain(|field, _| !rules.rule(&strata_resource::FieldPath::root().child(field)).write_only);
    diff_specs(rules, &readable, None, &live.spec).is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strata_resource::Lineage;

    use super::*;

    fn live(json: serde_json::Value, comment: &str) -> LiveObject {
        let mut live = LiveObject { spec: serde_json::from_value(json).unwrap(), ..LiveObject::default() };
        live.set_comment(comment);
        live
    }

    fn disputed(
        address: &str,
        spec: serde_json::Value,
        recorded: bool,
        begun: Option<serde_json::Value>,
        live: &LiveObject,
    ) -> Option<Dispute> {
        let (lineage, address) = (Lineage::derive("r", "dev/dc"), crate::kinds::address(address));
        let spec: Spec = serde_json::from_value(spec).unwrap();
        let begun: Option<Spec> = begun.map(|begun| serde_json::from_value(begun).unwrap());
        let record: StateResource =
            serde_json::from_value(json!({"target": "pve", "spec": spec, "stage": "prereqs"})).unwrap();
        let recorded = recorded.then_some(&record);
        dispute(
            &Wanted { address: &address, spec: &spec, recorded, begun: begun.as_ref(), lineage: &lineage },
            live,
        )
    }

    fn mark(repository: &str, address: &str) -> String {
        CommentMark::new(&Lineage::derive(repository, "dev/dc"), &crate::kinds::address(address)).to_string()
    }

    #[test]
    fn a_mark_decides() {
        let spec = || json!({"pool": "web"});
        let with = |comment: String| live(spec(), &comment);
        let ours = with(format!("for us {}", mark("r", "dc/pool/web")));
        assert_eq!(disputed("dc/pool/web", spec(), false, None, &ours), None);
        let foreign = with(mark("other", "dc/pool/web"));
        for recorded in [false, true] {
            let adopt = json!({"pool": "web", "adopt": true});
            assert!(disputed("dc/pool/web", adopt, recorded, None, &foreign).is_some());
        }
        let moved = with(mark("r", "dc/pool/old"));
        assert!(disputed("dc/pool/web", spec(), false, None, &moved).is_some());
        assert_eq!(disputed("dc/pool/web", spec(), true, None, &moved), None);
    }

    #[test]
    fn without_a_mark_only_a_reason_makes_it_ours() {
        let role = || json!({"role": "Ops", "privileges": ["VM.Audit", "VM.Console"]});
        let there = live(role(), "");
        assert!(disputed("dc/role/Ops", role(), false, None, &there).is_some());
        assert_eq!(disputed("dc/role/Ops", role(), true, None, &there), None);
        let mut adopt = role();
        adopt["adopt"] = json!(true);
        assert_eq!(disputed("dc/role/Ops", adopt, false, None, &there), None);
        // An interrupted run made it if it is exactly what was begun.
        assert_eq!(disputed("dc/role/Ops", role(), false, Some(role()), &there), None);
        let other = json!({"role": "Ops", "privileges": ["VM.Audit"]});
        assert!(disputed("dc/role/Ops", role(), false, Some(other), &there).is_some());
    }
}
