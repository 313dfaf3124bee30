//! Permissions: who may do what where. An entry has nothing but its identity and whether it reaches down; making one twice changes
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use http::Method;
use strata_engine::{Operation, ProviderError, Review};
use strata_resource::{KindTable, Shown, Spec, Value, kind};
use strata_state::Action;

use super::access::{AccessKind, OwnAccess};
use super::managed::ManagedKind;
use super::role;
use super::shared::{ADOPT, DATACENTER, NO_MARK};
use crate::api::Params;
use crate::client::{CallError, Client};
use crate::datacenter::{Family, Job, LiveObject, NextCall, Row, ShownBy, digest_of, row_text, spec_text};
use crate::preflight::Needs;

kind! {
    /// Who may do what where: one role of one subject on one path.
    "acl" {
        called: "{grants} for {subject} on {path}",
        identity: &["path", "subject", "grants"],
        proof: NO_MARK,
        shares: &[ADOPT],
        at_once: true,
        shown: Shown { in_headline: &["subject_type"], removal: |_, _| "taken away", ..DATACENTER.shown },
        ..DATACENTER
    }
    /// where
    "path": Text => InPlace [remote("path")];
    /// who
    "subject": Text => InPlace [remote("ugid")];
    /// `user`, `group` or `token`
    "subject_type": Text => InPlace [remote("type")];
    /// the role
    "grants": Text => InPlace [remote("roleid")];
    /// also below the path
    "propagate": Bool => InPlace [remote("propagate"), on_by_default];
}

/// The privileges of the role that an entry gives, where the preflight found them out.
const GRANTED: &str = "granted_privileges";

pub(super) fn read_row(row: &Row) -> Option<(String, LiveObject)> {
    let mut live = LiveObject::default();
    for rule in TABLE.fields.iter().filter(|rule| rule.path != "propagate") {
        live.spec.insert(rule.path.to_owned(), Value::Text(row_text(row, rule.remote)?));
    }
    let propagate = row_text(row, "propagate").is_none_or(|propagate| propagate != "0");
    live.spec.insert("propagate".to_owned(), Value::Bool(propagate));
    live.digest = digest_of(&live.spec);
    Some((Entries.key(&live.spec)?, live))
}

/// An entry as a request.
pub(super) fn params_of(spec: &Spec) -> Params {
    let subject = match spec_text(spec, "subject_type") {
        "group" => "groups",
        "token" => "tokens",
        _ => "users",
    };
    Params::new()
        .with("path", spec_text(spec, "path"))
        .with(subject, spec_text(spec, "subject"))
        .with("roles", spec_text(spec, "grants"))
}

/// The entries of the access control.
pub(super) struct Entries;

#[async_trait]
impl Family for Entries {
    fn word(&self) -> &'static str {
        "permission"
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        let text = |field: &str| spec.get(field).and_then(Value::as_text);
        Some(format!("{} for {} on {}", text("grants")?, text("subject")?, text("path")?))
    }

    async fn list(&self, client: &Client, _: &[&Spec]) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let rows: Vec<Row> = client.get("/access/acl", Params::new()).await?;
        Ok(rows.iter().filter_map(read_row).collect())
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let (spec, work) = (job.spec(), job.work);
        let deletes = work.operation.action == Action::Delete;
        match live {
            None if deletes => return Ok(None),
            Some(_) if !deletes && job.outstanding.is_empty() => return Ok(None),
            _ => {}
        }
        let mut params = params_of(spec);
        let doing = if deletes {
            params.set("delete", 1);
            format!("take {}", self.key(spec).unwrap_or_default())
        } else {
            let propagate = spec.get("propagate").and_then(Value::as_bool).unwrap_or(true);
            params.set("propagate", u8::from(propagate));
            format!("give {}", self.key(spec).unwrap_or_default())
        };
        Ok(Some(work.call(Method::PUT, "/access/acl".to_owned(), params, doing).into()))
    }
}

/// The entries that the source or the state knows, as a look at them showed.
pub(super) fn known(review: Review<'_>) -> BTreeSet<String> {
    let entries = review.observed().filter(|(address, _)| address.kind() == KIND);
    entries.filter_map(|(_, observed)| Entries.key(&observed.spec)).collect()
}

pub(super) struct Acl;

#[async_trait]
impl ManagedKind for Acl {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&Entries)
    }

    fn shown_by(&self, spec: &Spec) -> Option<ShownBy> {
        let any_of = &["Permissions.Modify", "VM.Allocate", "Datastore.Allocate", "Pool.Allocate"];
        let path = spec_text(spec, "path").to_owned();
        Some(ShownBy { or: Some(("/access", "Sys.Audit")), ..ShownBy::any_of(any_of, path) })
    }

    /// Who may give rights away: `Permissions.Modify`; or, below a storage, guest or pool, whoever manages it and has every privilege
    /// of the role itself.
    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        let path = spec_text(&operation.spec, "path");
        let below = |start: &str| path.strip_prefix(start).is_some_and(|rest| !rest.is_empty());
        let manages = if below("/storage/") {
            Some("Datastore.Allocate")
        } else if below("/vms/") {
            Some("VM.Allocate")
        } else if below("/pool/") {
            Some("Pool.Allocate")
        } else {
            None
        };
        let role = operation.spec.get(GRANTED).and_then(Value::as_list);
        let or_all = manages.zip(role).map(|(manages, role)| {
            let own = role.iter().filter_map(Value::as_text).map(str::to_owned);
            (std::iter::once(manages.to_owned()).chain(own).collect(), path.to_owned())
        });
        let purpose = match operation.action {
            Action::Delete => "take away",
            Action::Create | Action::Update => "give",
        };
        needs.add_or(&["Permissions.Modify"], vec![path.to_owned()], or_all, purpose);
    }

    /// What each entry hands on: the privileges of its role.
    async fn complete_needs(
        &self,
        client: &Client,
        operations: &mut [Operation],
    ) -> Result<(), ProviderError> {
        let mut roles = role::roles(client).await?;
        for operation in operations.iter().filter(|operation| operation.address.kind() == role::KIND) {
            let name = spec_text(&operation.spec, "role").to_owned();
            roles.insert(name, role::privileges_of(&operation.spec));
        }
        for operation in operations.iter_mut().filter(|operation| operation.address.kind() == KIND) {
            if let Some(privileges) = roles.get(spec_text(&operation.spec, "grants")) {
                let list = privileges.iter().map(|privilege| Value::text(privilege.as_str())).collect();
                operation.spec.insert(GRANTED.to_owned(), Value::List(list));
            }
        }
        Ok(())
    }

    fn access(&self) -> Option<&'static dyn AccessKind> {
        Some(&Acl)
    }
}

impl AccessKind for Acl {
    fn harm(&self, own: &OwnAccess<'_>, operation: &Operation) -> Option<String> {
        let (spec, deletes) = (&operation.spec, operation.action == Action::Delete);
        if !own.is(spec) || !(deletes || operation.touches("propagate")) {
            return None;
        }
        let [role, subject, path] = ["grants", "subject", "path"].map(|field| spec_text(spec, field));
        let verb = if deletes { "take away" } else { "change" };
        Some(format!("{verb} what it has by `{role}` for `{subject}` on `{path}`"))
    }
}
