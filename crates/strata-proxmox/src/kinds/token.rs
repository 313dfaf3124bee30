//! API tokens. Proxmox gives the value once, when the token is made: another place for it is another value.

mod making;

use std::collections::BTreeSet;

use async_trait::async_trait;
use strata_engine::{ErrorClass, Finding, Operation, Outcome, ProviderError};
use strata_resource::{KindTable, Spec, Value, kind};
use strata_secret::SecretString;
use strata_state::Action;

use self::making::is_remade;
use super::access::{AccessKind, Going, OwnAccess, StandingAccess, expires, is_for};
use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};
use super::user;
use crate::client::Client;
use crate::datacenter::{Family, LiveObject, ShownBy, spec_text};
use crate::execute::Work;
use crate::preflight::{Needs, verb};

/// Where values of tokens go: a file of the repository that only its readers can open.
pub trait TokenKeeper: Send + Sync {
    /// Why the value of the token `user@realm!name` could not be kept under this name: another secret has it, or nothing can be
    /// written.
    fn check(&self, name: &str, token: &str) -> Result<(), String>;

    /// Keeps `user@realm!name=value`, encrypted and durable when this returns.
    fn keep(&self, name: &str, token: &str, value: &SecretString) -> Result<(), String>;
}

kind! {
    /// An API token of a user.
    "token" {
        called: "API token {token}",
        identity: &["token"],
        proof: MARK_IN_COMMENT,
        recovery: "recreated: nobody may know the value",
        shares: &[MARKED],
        // Nobody may know its value: it stays unknown, and the next plan makes it again.
        recorded_when_begun: false,
        ..DATACENTER
    }
    /// user and name: `ops@pve!ci`
    "token": Text => InPlace;
    /// it has privileges of its own
    "privsep": Bool => InPlace [remote("privsep"), on_by_default];
    /// when it ends, in seconds since 1970; 0 is never
    "expire": Int => InPlace [remote("expire"), default_int(0)];
    /// where its value is kept
    "secret": Text => InPlace [write_only];
}

pub(super) use self::making::Tokens;

pub(super) struct Token;

#[async_trait]
impl ManagedKind for Token {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&Tokens)
    }

    fn shown_by(&self, _: &Spec) -> Option<ShownBy> {
        Some(user::shown_by())
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.add(&["User.Modify"], vec!["/access/groups".to_owned()], verb(operation));
    }

    /// A token whose value could not be kept: told before any is made.
    fn refusals(&self, client: &Client, operation: &Operation, _: &[Operation]) -> Vec<ProviderError> {
        let makes = operation.action == Action::Create || is_remade(operation);
        let Some(name) = operation.spec.get("secret").and_then(Value::as_text).filter(|_| makes) else {
            return Vec::new();
        };
        let checked = match client.keeper() {
            Some(keeper) => keeper.check(name, spec_text(&operation.spec, "token")),
            None => Err("there is no place for it".to_owned()),
        };
        let Err(reason) = checked else { return Vec::new() };
        let message = format!("`{}`: its value cannot be kept as `{name}`: {reason}", operation.address);
        let mut error = ProviderError::new(ErrorClass::Missing, message).field("secret");
        error.nothing_done = true;
        vec![error.hint("list a SOPS file in YAML under `secrets` of strata.yaml that you can open; `strata init` makes one")]
    }

    fn remark(&self, operation: &Operation) -> Option<String> {
        let remark = if operation.action == Action::Create && !operation.spec.contains_key("secret") {
            "nobody gets to know its value: `secret: NAME` keeps it, encrypted"
        } else if is_remade(operation) {
            "it is recreated: whoever uses its old value is locked out"
        } else {
            return None;
        };
        Some(remark.to_owned())
    }

    fn access(&self) -> Option<&'static dyn AccessKind> {
        Some(&Token)
    }

    async fn execute(&self, work: &Work<'_>) -> Result<Outcome, ProviderError> {
        making::execute(work).await
    }
}

impl AccessKind for Token {
    fn harm(&self, own: &OwnAccess<'_>, operation: &Operation) -> Option<String> {
        if spec_text(&operation.spec, "token") != own.identity {
            return None;
        }
        let harm = match operation.action {
            Action::Delete => "delete it",
            _ if is_remade(operation) => "recreate it, with another value",
            _ if expires(operation) => "set when it expires",
            _ if operation.touches("privsep") => "change whether it may do what its user may",
            _ => return None,
        };
        Some(harm.to_owned())
    }

    fn falls(&self, standing: &StandingAccess, going: &Going<'_>, spec: &Spec) -> Vec<String> {
        standing.entries_of(going, is_for("token", spec_text(spec, "token"))).collect()
    }

    /// A token that is not recreated: somebody else's, or one with permissions that nobody could give again after a dead run.
    fn precondition(
        &self,
        standing: &StandingAccess,
        operation: &Operation,
        known: &BTreeSet<String>,
    ) -> Option<Finding> {
        if !is_remade(operation) {
            return None;
        }
        let id = spec_text(&operation.spec, "token");
        let (message, hint) = if is_strange(operation) {
            let message = format!(
                "`secret` would recreate the token `{id}`, which exists and is not managed by this repository: whoever uses it is locked out"
            );
            (message, "take `secret` out and adopt it with the value that it has, or make another token")
        } else {
            let is_own = is_for("token", id);
            let own = |entry: &LiveObject| is_own(&entry.spec);
            let strange = standing.entries.iter().filter(|(key, entry)| own(entry) && !known.contains(*key));
            let strange: Vec<String> = strange.map(|(key, _)| format!("`{key}`")).collect();
            if strange.is_empty() {
                return None;
            }
            let message = format!(
                "the token `{id}` cannot be recreated: it has what is not in the source: {}",
                strange.join(", ")
            );
            (message, "put that into `acl` with `adopt: true`, or take it away in Proxmox")
        };
        Some(Finding::precondition(operation, message, hint))
    }
}

/// Whether neither the state knows the token nor our mark is on it.
fn is_strange(operation: &Operation) -> bool {
    let marked = |seen: &strata_engine::Observed| {
        seen.spec.contains_key("mark") && seen.spec.get("mark") == operation.spec.get("mark")
    };
    operation.recorded.is_none() && !operation.observed.as_ref().is_some_and(marked)
}
