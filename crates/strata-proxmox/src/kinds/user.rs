//! Users.

use async_trait::async_trait;
use http::Method;
use strata_engine::{ErrorClass, Operation, ProviderError};
use strata_resource::{KindTable, Spec, Value, kind};
use strata_state::Action;

use super::access::{AccessKind, Going, OwnAccess, StandingAccess, expires, is_for, lost, texts};
use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};
use super::token;
use crate::api::Params;
use crate::client::{Client, Rights};
use crate::datacenter::{Family, NextCall, SeparateField, ShownBy, Simple, row_text, spec_text};
use crate::execute::{Call, Work};
use crate::preflight::{Needs, verb};

kind! {
    /// A user.
    "user" {
        called: "user {user}",
        identity: &["user"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        at_once: true,
        ..DATACENTER
    }
    /// name and realm: `ops@pve`
    "user": Text => InPlace [remote("userid")];
    /// groups that it is in
    "groups": List => InPlace [remote("groups"), set];
    /// it can log in
    "enabled": Bool => InPlace [remote("enable"), on_by_default];
    /// when it ends, in seconds since 1970; 0 is never
    "expire": Int => InPlace [remote("expire"), default_int(0)];
    /// its address for mail
    "email": Text => InPlace [remote("email")];
    /// first name
    "first_name": Text => InPlace [remote("firstname")];
    /// last name
    "last_name": Text => InPlace [remote("lastname")];
    /// its password, in Proxmox' own realm
    "password": Text => InPlace [remote("password"), write_only];
}

pub(super) static ROWS: Simple = Simple {
    // With the groups that they are in.
    list_query: &[("full", "1")],
    comment: Some("comment"),
    derived: &["tokens", "realm-type", "tfa-locked-until", "totp-locked"],
    reserved: |row| {
        (row_text(row, "userid").as_deref() == Some("root@pam")).then_some("root@pam is nobody's to manage")
    },
    separate: Some(SeparateField { field: "password", call: change_password }),
    ..Simple::new("user", "/access/users", &TABLE)
};

/// Taken only with a ticket: API tokens are refused, whatever they may do otherwise.
fn change_password(work: &Work<'_>) -> Result<NextCall, ProviderError> {
    let user = spec_text(&work.operation.spec, "user");
    let Some(Value::Secret(secret)) = work.operation.spec.get("password") else {
        return Err(work.internal("there is no password to set"));
    };
    let Some(plain) = secret.plain() else {
        return Err(work.internal("the password itself is not at hand, only its digest"));
    };
    let mut params = Params::new().with("userid", user);
    params.set_secret("password", plain.expose());
    if let Some(own) = work.client.confirmation() {
        params.set_secret("confirmation-password", own.expose());
    }
    let doing = format!("set the password of `{user}`");
    let call = work.call(Method::PUT, "/access/password".to_owned(), params, doing);
    Ok(NextCall { call: Call { rights: Rights::Root, ..call }, sends: vec!["password"] })
}

/// What decides whether users, and their tokens, are listed.
pub(super) fn shown_by() -> ShownBy {
    ShownBy::any_of(&["User.Modify", "Sys.Audit"], "/access/groups".to_owned())
}

/// Whether a plan takes a user out of a group.
pub(super) fn leaves(operations: &[Operation], user: &str, group: &str) -> bool {
    operations.iter().any(|operation| {
        operation.action == Action::Update
            && operation.address.kind() == KIND
            && spec_text(&operation.spec, "user") == user
            && operation.touches("groups")
            && !texts(&operation.spec, "groups").contains(group)
    })
}

pub(super) struct User;

#[async_trait]
impl ManagedKind for User {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn shown_by(&self, _: &Spec) -> Option<ShownBy> {
        Some(shown_by())
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        let spec = &operation.spec;
        // Rights on the groups of a user are rights on the user; on all groups, on every user.
        let groups =
            spec.get("groups").and_then(Value::as_list).into_iter().flatten().filter_map(Value::as_text);
        let mut paths = vec!["/access/groups".to_owned()];
        paths.extend(groups.map(|group| format!("/access/groups/{group}")));
        needs.add(&["Sys.Audit", "User.Modify"], paths.clone(), "look at");
        needs.add(&["User.Modify"], paths, verb(operation));
        if operation.action != Action::Update || operation.touches("password") {
            let realm = spec_text(spec, "user").rsplit('@').next().unwrap_or_default();
            needs.add(&["Realm.AllocateUser"], vec![format!("/access/realm/{realm}")], verb(operation));
        }
    }

    /// A password that would have to be changed, where nothing but an API token is at hand.
    fn refusals(&self, client: &Client, operation: &Operation, _: &[Operation]) -> Vec<ProviderError> {
        let sets = operation.spec.contains_key("password") && operation.touches("password");
        if client.has_login() || operation.action != Action::Update || !sets {
            return Vec::new();
        }
        let message = format!(
            "`{}`: an API token cannot change a password; it can only give one to a user that it makes",
            operation.address
        );
        let mut error = ProviderError::new(ErrorClass::Refused, message).field("password").hint(
            "give the target `login: {user: root@pam, password: …}`, or change it in Proxmox and take `password` out here",
        );
        error.nothing_done = true;
        vec![error]
    }

    fn access(&self) -> Option<&'static dyn AccessKind> {
        Some(&User)
    }
}

impl AccessKind for User {
    fn harm(&self, own: &OwnAccess<'_>, operation: &Operation) -> Option<String> {
        if spec_text(&operation.spec, "user") != own.user {
            return None;
        }
        let disables = operation.touches("enabled")
            && operation.spec.get("enabled").and_then(Value::as_bool) == Some(false);
        let harm = match operation.action {
            Action::Delete => "delete".to_owned(),
            _ if disables => "disable".to_owned(),
            _ if expires(operation) => "set when it expires for".to_owned(),
            _ => format!("remove from {}", lost(operation, "groups")?),
        };
        Some(format!("{harm} the user `{}`", own.user))
    }

    fn falls(&self, standing: &StandingAccess, going: &Going<'_>, spec: &Spec) -> Vec<String> {
        let user = spec_text(spec, "user");
        let mut falls: Vec<String> = standing.entries_of(going, is_for("user", user)).collect();
        let own = |token: &str| token.split_once('!').is_some_and(|(owner, _)| owner == user);
        let tokens = standing.tokens.keys().filter(|token| own(token));
        let tokens = tokens.filter(|token| !going.has(token::KIND, token));
        falls.extend(tokens.map(|token| format!("the token `{token}`")));
        falls
    }
}
