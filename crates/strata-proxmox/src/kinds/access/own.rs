//! Operations that would take from Strata the access it works with: told in the plan, which then does not run.
//!
//! The next request after such an operation would be refused, and what is left could be neither finished nor taken back.

use std::collections::BTreeSet;

use strata_engine::{Finding, Operation};
use strata_resource::{Spec, Value};
use strata_state::Action;

use super::{StandingAccess, access_of};
use crate::datacenter::spec_text;

/// Who Strata is to the server, and by what it may do something.
pub(crate) struct OwnAccess<'a> {
    /// `user@realm!token`, or a user.
    pub(crate) identity: &'a str,
    pub(crate) user: &'a str,
    pub(crate) groups: BTreeSet<&'a str>,
    /// The roles that entries for any of these grant.
    pub(crate) roles: BTreeSet<&'a str>,
}

pub(super) fn preconditions(
    identity: &str,
    standing: &StandingAccess,
    operations: &[Operation],
) -> Vec<Finding> {
    let own = OwnAccess::new(identity, standing);
    let harmful = operations.iter().filter_map(|operation| Some((operation, harm(&own, operation)?)));
    harmful
        .map(|(operation, harm)| {
            Finding::precondition(
                operation,
                format!("this run works with `{identity}`, and the plan would {harm}"),
                "give the target another `token` for this run, or leave this out of it",
            )
        })
        .collect()
}

/// What an operation would do to us; none if it leaves us as we are.
fn harm(own: &OwnAccess<'_>, operation: &Operation) -> Option<String> {
    if operation.action == Action::Create {
        return None;
    }
    access_of(operation)?.harm(own, operation)
}

impl<'a> OwnAccess<'a> {
    fn new(identity: &'a str, standing: &'a StandingAccess) -> Self {
        let user = identity.split_once('!').map_or(identity, |(user, _)| user);
        let live = standing.users.get(user).map(|live| &live.spec);
        let groups = live.map(|spec| texts(spec, "groups")).unwrap_or_default();
        let mut own = Self { identity, user, groups, roles: BTreeSet::new() };
        let entries = standing.entries.values().map(|entry| &entry.spec);
        own.roles = entries.filter(|entry| own.is(entry)).map(|entry| spec_text(entry, "grants")).collect();
        own
    }

    /// Whether an entry is about us.
    pub(crate) fn is(&self, entry: &Spec) -> bool {
        let subject = spec_text(entry, "subject");
        match spec_text(entry, "subject_type") {
            "group" => self.groups.contains(subject),
            _ => subject == self.identity || subject == self.user,
        }
    }
}

/// Whether it gets a time to expire at, or another one.
pub(crate) fn expires(operation: &Operation) -> bool {
    operation.touches("expire") && operation.spec.get("expire").and_then(Value::as_int).unwrap_or(0) != 0
}

/// What is live in a list and not to be in it any more.
pub(crate) fn lost(operation: &Operation, field: &str) -> Option<String> {
    if !operation.touches(field) {
        return None;
    }
    let live = operation.observed.as_ref().map(|seen| texts(&seen.spec, field)).unwrap_or_default();
    let stays = texts(&operation.spec, field);
    let lost: Vec<String> = live.difference(&stays).map(|text| format!("`{text}`")).collect();
    (!lost.is_empty()).then(|| lost.join(", "))
}

pub(crate) fn texts<'s>(spec: &'s Spec, field: &str) -> BTreeSet<&'s str> {
    spec.get(field).and_then(Value::as_list).into_iter().flatten().filter_map(Value::as_text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strata_engine::Observed;
    use strata_resource::{FieldChange, FieldPath, Lineage};

    use super::*;
    use crate::datacenter::LiveObject;

    const OWN: &str = "strata@pve!main";

    fn spec(json: serde_json::Value) -> Spec {
        serde_json::from_value(json).unwrap()
    }

    fn standing() -> StandingAccess {
        let live = |json| LiveObject { spec: spec(json), ..LiveObject::default() };
        let entry = |grants: &str, subject: &str, kind: &str| {
            let entry = json!({"path": "/", "subject": subject, "subject_type": kind, "grants": grants});
            (format!("{grants} for {subject}"), live(entry))
        };
        let users = [
            ("strata@pve", json!({"user": "strata@pve", "groups": ["admins"]})),
            ("ann@pve", json!({"user": "ann@pve", "groups": ["ops"]})),
        ];
        StandingAccess {
            entries: [
                entry("ByToken", OWN, "token"),
                entry("ByUser", "strata@pve", "user"),
                entry("ByGroup", "admins", "group"),
                entry("Ops", "ops", "group"),
            ]
            .into(),
            users: users.into_iter().map(|(name, json)| (name.to_owned(), live(json))).collect(),
            tokens: Default::default(),
        }
    }

    fn operation(action: Action, address: &str, wanted: serde_json::Value, field: &str) -> Operation {
        let mut seen = spec(wanted.clone());
        for list in ["groups", "privileges"] {
            seen.insert(list.to_owned(), Value::List(vec![Value::text("a"), Value::text("b")]));
        }
        let change = FieldChange {
            path: FieldPath::root().child(field),
            before: None,
            after: Some(Value::text("new")),
            drift: false,
        };
        Operation {
            action,
            address: crate::kinds::address(address),
            target: "pve".to_owned(),
            lineage: Lineage::derive("r", "dev/dc"),
            spec: spec(wanted),
            recorded: None,
            observed: Some(Observed {
                spec: seen,
                facts: Spec::new(),
                digest: String::new(),
                pending: Vec::new(),
                running: None,
                evidence: Default::default(),
            }),
            changes: if action == Action::Update { vec![change] } else { Vec::new() },
            restart: false,
            replacement: false,
            awaited: false,
            payload: None,
        }
    }

    fn told(action: Action, address: &str, wanted: serde_json::Value, field: &str) -> Option<String> {
        let found = preconditions(OWN, &standing(), &[operation(action, address, wanted, field)]);
        found.first().and_then(Finding::refusal).map(str::to_owned)
    }

    #[test]
    fn what_this_run_works_with_stays() {
        let (delete, update) = (Action::Delete, Action::Update);
        let token = json!({"token": OWN, "expire": 5});
        for (action, field, says) in [
            (delete, "", "delete it"),
            (update, "secret", "recreate it"),
            (update, "expire", "expires"),
            (update, "privsep", "what its user may"),
        ] {
            let message = told(action, "dc/token/own", token.clone(), field);
            assert!(message.is_some_and(|text| text.contains(OWN) && text.contains(says)), "{field}");
        }
        let user = json!({"user": "strata@pve", "enabled": false, "expire": 5, "groups": ["a"]});
        for (action, field) in [(delete, ""), (update, "enabled"), (update, "expire"), (update, "groups")] {
            assert!(told(action, "dc/user/own", user.clone(), field).is_some(), "{field}");
        }
        for (subject, kind) in [(OWN, "token"), ("strata@pve", "user"), ("admins", "group")] {
            let entry = json!({"path": "/", "subject": subject, "subject_type": kind, "grants": "X"});
            assert!(told(delete, "dc/acl/x", entry.clone(), "").is_some(), "{subject}");
            assert!(told(update, "dc/acl/x", entry, "propagate").is_some(), "{subject}");
        }
        for role in ["ByToken", "ByUser", "ByGroup"] {
            let wanted = json!({"role": role, "privileges": ["a"]});
            assert!(told(delete, "dc/role/x", wanted.clone(), "").is_some(), "{role}");
            let message = told(update, "dc/role/x", wanted, "privileges");
            assert!(message.is_some_and(|text| text.contains("remove `b` from")), "{role}");
        }
        assert!(told(delete, "dc/group/x", json!({"group": "admins"}), "").is_some());
    }

    #[test]
    fn what_others_have_and_harmless_changes_pass() {
        let (create, delete, update) = (Action::Create, Action::Delete, Action::Update);
        for (action, address, wanted, field) in [
            (update, "dc/token/own", json!({"token": OWN}), "comment"),
            (update, "dc/token/own", json!({"token": OWN, "expire": 0}), "expire"),
            (create, "dc/token/own", json!({"token": OWN}), ""),
            (delete, "dc/token/x", json!({"token": "strata@pve!other"}), ""),
            (update, "dc/user/own", json!({"user": "strata@pve", "groups": ["a", "b", "c"]}), "groups"),
            (update, "dc/user/own", json!({"user": "strata@pve", "enabled": true}), "enabled"),
            (delete, "dc/user/x", json!({"user": "ann@pve"}), ""),
            (delete, "dc/group/x", json!({"group": "ops"}), ""),
            (delete, "dc/role/x", json!({"role": "Ops"}), ""),
            (update, "dc/role/x", json!({"role": "ByUser", "privileges": ["a", "b", "c"]}), "privileges"),
            (delete, "dc/acl/x", json!({"subject": "ops", "subject_type": "group", "grants": "ByUser"}), ""),
        ] {
            assert_eq!(told(action, address, wanted, field), None, "{address} {field}");
        }
    }
}
