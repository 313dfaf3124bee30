//! What stands between a spec and a live object, field by field, generic over the rules of a kind.
//!
//! Three values meet at each field: what is desired, what was last applied, and what is live. Fields that are neither desired nor
//! were ever applied are not ours: whatever is live there stays.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules::{ChangeEffect, FieldRule};
use crate::{FieldPath, KindRules, Spec, Value};

/// One field that will change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldChange {
    /// Which field.
    pub path: FieldPath,
    /// The live value; none if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The desired value; none if it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Somebody else changed the live value since we applied it.
    #[serde(default)]
    pub drift: bool,
}

/// A change that is not done, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Which field.
    pub path: FieldPath,
    /// Why it cannot be.
    pub reason: String,
    /// What a person can do instead.
    pub hint: &'static str,
}

/// All that stands between a spec and a live object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecDiff {
    /// What an update sends, in the order of the fields.
    pub changes: Vec<FieldChange>,
    /// Changes that no update can make: with any of them there is no plan.
    pub refusals: Vec<Refusal>,
}

impl SpecDiff {
    /// Neither a change nor a refusal.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.refusals.is_empty()
    }
}

/// What must change in `live` to become `desired`, knowing what was `applied` last.
pub fn diff_specs(rules: &KindRules, desired: &Spec, applied: Option<&Spec>, live: &Spec) -> SpecDiff {
    let mut walk = Walk { rules, diff: SpecDiff::default(), known: applied.is_some(), may_shrink: false };
    walk.fields(&FieldPath::root(), Some(desired), applied, Some(live));
    walk.diff
}

/// The same for an object whose making was cut off: the fields that were `begun` are ours, but what they hold is not known.
pub fn diff_unfinished(rules: &KindRules, desired: &Spec, begun: &Spec, live: &Spec) -> SpecDiff {
    let mut walk = Walk { rules, diff: SpecDiff::default(), known: false, may_shrink: false };
    walk.fields(&FieldPath::root(), Some(desired), Some(begun), Some(live));
    walk.diff
}

/// What somebody else changed: the differences between what we applied and what is live.
pub fn drift_between(rules: &KindRules, applied: &Spec, live: &Spec) -> Vec<FieldChange> {
    // A disk that somebody else grew is drift, although the way back is refused.
    let mut walk = Walk { rules, diff: SpecDiff::default(), known: true, may_shrink: true };
    walk.fields(&FieldPath::root(), Some(applied), Some(applied), Some(live));
    let mut changes = walk.diff.changes;
    for change in &mut changes {
        // Told from the other side: from what we applied to what is there now.
        std::mem::swap(&mut change.before, &mut change.after);
        change.drift = true;
    }
    changes
}

struct Walk<'a> {
    rules: &'a KindRules,
    diff: SpecDiff,
    /// The state knows what was sent to this object; otherwise what cannot be read back counts as different.
    known: bool,
    /// The differences are only told, not carried out.
    may_shrink: bool,
}

impl Walk<'_> {
    fn fields(
        &mut self,
        path: &FieldPath,
        desired: Option<&Spec>,
        applied: Option<&Spec>,
        live: Option<&Spec>,
    ) {
        let mut keys: BTreeSet<&String> = BTreeSet::new();
        keys.extend(desired.into_iter().flat_map(|map| map.keys()));
        keys.extend(applied.into_iter().flat_map(|map| map.keys()));
        for key in keys {
            self.field(&path.child(key), get(desired, key), get(applied, key), get(live, key));
        }
    }

    fn field(
        &mut self,
        path: &FieldPath,
        desired: Option<&Value>,
        applied: Option<&Value>,
        live: Option<&Value>,
    ) {
        let rule = self.rules.rule(path);
        if matches!(rule.effect, ChangeEffect::CreateOnly | ChangeEffect::Computed) {
            return;
        }
        let whole_slot = rule.slot && (desired.is_none() || live.is_none());
        let is_map = |value: Option<&Value>| value.is_none_or(|value| value.as_map().is_some());
        if !whole_slot && is_map(desired) && is_map(applied) && is_map(live) {
            return self.fields(path, map(desired), map(applied), map(live));
        }
        let live = if rule.write_only { self.last_sent(applied) } else { live.cloned() };
        if same(rule, desired, live.as_ref()) {
            return;
        }
        if desired.is_none() && (applied.is_none() || live.is_none()) {
            return;
        }
        if let Some(reason) = shrinks(rule, desired, live.as_ref()).filter(|_| !self.may_shrink) {
            let hint = "set it back in the source, or make a new disk and move the data";
            self.diff.refusals.push(Refusal { path: path.clone(), reason, hint });
            return;
        }
        // In place would be a guess. What is only removed may be of a former version.
        if desired.is_some() && !self.may_shrink && !self.rules.knows(path) {
            let reason = "no rule says what a change of it does to what is there".to_owned();
            let hint = "set it back in the source; this is a defect of Strata, please report it";
            self.diff.refusals.push(Refusal { path: path.clone(), reason, hint });
            return;
        }
        let drift = self.known && applied.is_some() && same(rule, desired, applied);
        // A change is told: what is there instead of a secret is one, too.
        let peers: Vec<&Value> = desired.into_iter().chain(applied).collect();
        let live = live.map(|live| live.secret_like(&peers));
        self.diff.changes.push(FieldChange {
            path: path.clone(),
            before: live,
            after: desired.cloned(),
            drift,
        });
    }

    /// Stands in for a live value that the remote does not give back.
    fn last_sent(&self, applied: Option<&Value>) -> Option<Value> {
        if self.known { applied.cloned() } else { Some(Value::Unknown) }
    }
}

fn get<'v>(map: Option<&'v Spec>, key: &str) -> Option<&'v Value> {
    map.and_then(|map| map.get(key))
}

fn map(value: Option<&Value>) -> Option<&Spec> {
    value.and_then(Value::as_map)
}

/// Whether two values mean the same: equal, or one absent and the other the default.
fn same(rule: &FieldRule, one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(Value::Unknown), _) | (_, Some(Value::Unknown)) => false,
        (Some(Value::List(one)), Some(Value::List(other))) if rule.set => {
            let has = |list: &[Value], value: &Value| list.iter().any(|known| known.says(value));
            one.iter().all(|value| has(other, value)) && other.iter().all(|value| has(one, value))
        }
        // A secret that the remote does give back is compared as what it is.
        (Some(one), Some(other)) => one.says(other),
        (Some(value), None) | (None, Some(value)) => {
            rule.default.is_some_and(|default| default.equals(value))
                || value.as_list().is_some_and(<[Value]>::is_empty)
                || value.as_map().is_some_and(|map| map.is_empty() && !rule.slot)
        }
    }
}

fn shrinks(rule: &FieldRule, desired: Option<&Value>, live: Option<&Value>) -> Option<String> {
    if rule.effect != ChangeEffect::Grow {
        return None;
    }
    let (desired, live) = (desired?.as_int()?, live?.as_int()?);
    (desired < live).then(|| {
        format!(
            "it would shrink from {} to {}: a disk can only grow",
            rule.unit.show(live),
            rule.unit.show(desired)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, KindTable, fields, register_kinds};

    /// A kind with each sort of rule.
    static GUEST: KindTable = KindTable::new(
        "diff-guest",
        "",
        fields! {
            /// .
            "name": Text => InPlace;
            /// .
            "tags": List => InPlace [set];
            /// .
            "onboot": Bool => InPlace [off_by_default];
            /// .
            "pool": Text => InPlace;
            /// .
            "startup.*": Int => InPlace;
            /// .
            "options.*": Text => Restart;
            /// .
            "cpu.type": Text => Restart;
            /// .
            "cpu.cores": Int => Restart [default_int(1)];
            /// .
            "disks.*": Map => InPlace [slot];
            /// .
            "disks.*.size": Int => Grow [bytes];
            /// .
            "disks.*.ssd": Bool => Restart [off_by_default];
            /// .
            "networks.*": Map => InPlace [slot];
            /// .
            "networks.*.*": Any => InPlace;
            /// .
            "cloudinit.password": Text => Restart [write_only];
            /// .
            "cloudinit.*": Any => Restart;
            /// .
            "config.*": Any => InPlace [slot];
        },
    );

    fn guest() -> &'static KindRules {
        register_kinds(&[&GUEST]);
        Kind::named("diff-guest").rules()
    }

    fn spec(json: serde_json::Value) -> Spec {
        serde_json::from_value(json).unwrap()
    }

    /// In place would be a guess; what a former version wrote and nobody asks for any more can go.
    #[test]
    fn a15_a_change_without_a_rule_is_refused() {
        use serde_json::json;
        let (new, old) = (spec(json!({"strange": "new"})), spec(json!({"strange": "old"})));
        let diff = diff_specs(guest(), &new, Some(&old), &old);
        assert!(diff.changes.is_empty(), "{diff:?}");
        assert_eq!(diff.refusals[0].path.to_string(), "strange");
        assert!(diff.refusals[0].reason.contains("no rule says"), "{diff:?}");
        let gone = diff_specs(guest(), &Spec::new(), Some(&old), &old);
        assert_eq!((gone.changes.len(), gone.refusals.len()), (1, 0));
        // What is in a document is that of its document.
        let machine = |text: &str| spec(json!({"config": {"v1alpha1": {"machine": {"any": text}}}}));
        let diff = diff_specs(guest(), &machine("new"), Some(&machine("old")), &machine("old"));
        assert_eq!((diff.changes.len(), diff.refusals.len()), (1, 0));
    }

    fn changes(
        desired: serde_json::Value,
        applied: Option<serde_json::Value>,
        live: serde_json::Value,
    ) -> Vec<String> {
        let applied = applied.map(spec);
        let diff = diff_specs(guest(), &spec(desired), applied.as_ref(), &spec(live));
        diff.changes
            .iter()
            .map(|change| {
                format!(
                    "{} {:?} -> {:?}{}",
                    change.path,
                    change.before,
                    change.after,
                    if change.drift { " drift" } else { "" }
                )
            })
            .chain(
                diff.refusals.iter().map(|refusal| format!("refused {}: {}", refusal.path, refusal.reason)),
            )
            .collect()
    }

    use serde_json::json;

    #[test]
    fn only_what_differs_and_is_ours_changes() {
        let live = json!({"cpu": {"cores": 2, "type": "host"}, "options": {"args": "-foo"}, "name": "a"});
        assert_eq!(
            changes(json!({"cpu": {"cores": 4}, "name": "a"}), None, live),
            ["cpu.cores Some(2) -> Some(4)"]
        );
    }

    #[test]
    fn c1_what_is_there_instead_of_a_secret_is_not_told() {
        let secret = |text: &str| Value::Secret(crate::Secret::new(text.to_owned().into()));
        let wanted = |key: &str| -> Spec {
            let cloudinit = [
                ("user".to_owned(), secret("root")),
                ("ssh_keys".to_owned(), Value::List(vec!["public".into(), secret(key)])),
            ];
            [("cloudinit".to_owned(), Value::Map(cloudinit.into()))].into()
        };
        let live = spec(json!({"cloudinit": {"user": "root", "ssh_keys": ["public", "private"]}}));
        let rules = guest();
        assert!(diff_specs(rules, &wanted("private"), None, &live).is_empty());
        let diff = diff_specs(rules, &wanted("another"), None, &live);
        let shown = format!("{:?}", diff.changes);
        assert!(shown.contains("ssh_keys") && shown.contains("public"), "{shown}");
        assert!(!shown.contains("private") && !shown.contains("another"), "{shown}");
    }

    #[test]
    fn a_field_that_left_the_source_goes_and_a_foreign_one_stays() {
        let live = json!({"cpu": {"cores": 2}, "pool": "prod", "startup": {"order": 1}});
        assert_eq!(
            changes(json!({"cpu": {"cores": 2}}), Some(json!({"cpu": {"cores": 2}, "pool": "prod"})), live),
            ["pool Some(\"prod\") -> None"]
        );
    }

    #[test]
    fn a_default_equals_an_absent_field() {
        assert!(
            changes(
                json!({"onboot": false, "tags": [], "disks": {"scsi0": {"ssd": false}}}),
                None,
                json!({"disks": {"scsi0": {}}})
            )
            .is_empty()
        );
    }

    #[test]
    fn slots_come_and_go_as_a_whole() {
        let with = json!({"networks": {"net0": {"bridge": "vmbr0"}, "net1": {"bridge": "vmbr1", "vlan": 4}}});
        let without = json!({"networks": {"net0": {"bridge": "vmbr0"}}});
        assert_eq!(
            changes(with.clone(), None, without.clone()),
            ["networks.net1 None -> Some({\"bridge\":\"vmbr1\",\"vlan\":4})"]
        );
        assert_eq!(
            changes(without.clone(), Some(with.clone()), with.clone()),
            ["networks.net1 Some({\"bridge\":\"vmbr1\",\"vlan\":4}) -> None"]
        );
        // Somebody else's slot is not ours to remove.
        assert!(changes(without.clone(), Some(without), with).is_empty());
    }

    #[test]
    fn disks_grow_and_never_shrink() {
        let size = |gib: i64| json!({"disks": {"scsi0": {"size": gib << 30}}});
        assert_eq!(changes(size(40), None, size(20)).len(), 1);
        assert_eq!(
            changes(size(20), None, size(40)),
            ["refused disks.scsi0.size: it would shrink from 40 GiB to 20 GiB: a disk can only grow"]
        );
    }

    #[test]
    fn drift_is_told_from_a_change_of_the_source() {
        let cores = |n: i64| json!({"cpu": {"cores": n}});
        assert_eq!(changes(cores(2), Some(cores(2)), cores(8)), ["cpu.cores Some(8) -> Some(2) drift"]);
        assert_eq!(changes(cores(4), Some(cores(2)), cores(2)), ["cpu.cores Some(2) -> Some(4)"]);
        let drift = drift_between(guest(), &spec(cores(2)), &spec(cores(8)));
        assert_eq!(drift[0].before, Some(Value::Int(2)));
        assert_eq!(drift[0].after, Some(Value::Int(8)));
        let size = |gib: i64| spec(json!({"disks": {"scsi0": {"size": gib << 30}}}));
        assert_eq!(drift_between(guest(), &size(20), &size(40)).len(), 1, "a disk that was grown");
    }

    #[test]
    fn what_was_begun_is_ours_to_remove() {
        let nets = |json| spec(json!({"networks": json}));
        let (one, two) =
            (json!({"net0": {"bridge": "a"}}), json!({"net0": {"bridge": "a"}, "net1": {"bridge": "b"}}));
        let diff = diff_unfinished(guest(), &nets(one.clone()), &nets(two.clone()), &nets(two.clone()));
        assert_eq!(diff.changes.len(), 1);
        assert!(!diff.changes[0].drift);
        // The same where an update was cut off: the state claims what the update was to add.
        let claimed = crate::claimed_spec(guest(), &nets(one.clone()), &nets(two.clone()));
        let diff = diff_specs(guest(), &nets(one), Some(&claimed), &nets(two.clone()));
        assert_eq!(diff.changes.len(), 1);
        let diff = diff_specs(guest(), &nets(two.clone()), Some(&claimed), &nets(two));
        assert!(diff.is_empty(), "{diff:?}");
    }

    #[test]
    fn what_cannot_be_read_back_is_compared_with_what_was_sent() {
        use strata_secret::{DigestKey, SecretString};
        let key = DigestKey::from_bytes(&[1; 32]).unwrap();
        let address = crate::Address::new(None, "a", GUEST.kind(), "b");
        let password = |text: &str| {
            let secret = Value::Secret(crate::Secret::new(SecretString::from(text.to_owned())));
            let spec =
                Value::Map([("cloudinit".into(), Value::Map([("password".into(), secret)].into()))].into());
            let Value::Map(spec) = spec.sealed(&key, &address) else { unreachable!() };
            spec
        };
        let (rules, live) = (guest(), Spec::new());
        assert!(diff_specs(rules, &password("x"), Some(&password("x")), &live).is_empty());
        assert_eq!(diff_specs(rules, &password("y"), Some(&password("x")), &live).changes.len(), 1);
        // A guest that the state does not know gets it again, and so does one whose making was cut off.
        assert_eq!(diff_specs(rules, &password("x"), None, &live).changes.len(), 1);
        assert_eq!(diff_unfinished(rules, &password("x"), &password("x"), &live).changes.len(), 1);
        // An update that was cut off may have sent the new one, or taken it away: put back in the source, it is sent.
        let nothing = Spec::new();
        for begun in [password("y"), nothing.clone()] {
            let claimed = crate::claimed_spec(rules, &password("x"), &begun);
            assert_eq!(diff_specs(rules, &password("x"), Some(&claimed), &live).changes.len(), 1);
        }
        let claimed = crate::claimed_spec(rules, &password("x"), &password("x"));
        assert!(diff_specs(rules, &password("x"), Some(&claimed), &live).is_empty());
    }
}
