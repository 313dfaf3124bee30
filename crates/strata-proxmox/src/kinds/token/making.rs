//! API tokens. Proxmox says the value of a token once, in the answer to the request that makes it: it is kept at once, or is lost.
//!
//! A token whose value was not kept is of no use to anybody. So whatever leaves one behind, a lost answer or a dead run, is fixed by
//! recreating it; what it was allowed to do is given to the new one. Only what the source or the state knows is: a run that dies in
//! between loses it, and the next one gives it again.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures::FutureExt;
use http::Method;
use serde::Deserialize;
use strata_engine::{ErrorClass, Operation, Outcome, ProviderError};
use strata_resource::{Spec, Value};
use strata_secret::SecretString;
use strata_state::Action;

use super::super::acl;
use crate::api::{ApiErrorKind, Params, encode_path_part};
use crate::client::{CallError, Client};
use crate::datacenter::{
    Family, Job, LiveObject, NextCall, Row, comment_of, converge, digest_of, row_text, spec_text,
};
use crate::execute::{StepError, Work};

const ATTEMPTS: usize = 4;

pub(in crate::kinds) struct Tokens;

#[derive(Deserialize)]
struct Made {
    value: String,
}

fn path(spec: &Spec) -> String {
    let (user, name) = spec_text(spec, "token").split_once('!').unwrap_or_default();
    format!("/access/users/{}/token/{}", encode_path_part(user), encode_path_part(name))
}

fn params(spec: &Spec) -> Params {
    let mut params = Params::new().with("comment", comment_of(spec));
    params.set("privsep", u8::from(spec.get("privsep").and_then(Value::as_bool).unwrap_or(true)));
    params.set("expire", spec.get("expire").and_then(Value::as_int).unwrap_or(0));
    params
}

#[async_trait]
impl Family for Tokens {
    fn word(&self) -> &'static str {
        "token"
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get("token").and_then(Value::as_text).map(str::to_owned)
    }

    async fn list(&self, client: &Client, _: &[&Spec]) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let users: Vec<Row> = client.get("/access/users", Params::new().with("full", 1)).await?;
        let mut found = BTreeMap::new();
        for user in &users {
            let tokens = user.get("tokens").and_then(|tokens| tokens.as_array());
            let rows = tokens.into_iter().flatten().filter_map(|row| row.as_object());
            for row in rows {
                if let (Some(user), Some(name)) = (row_text(user, "userid"), row_text(row, "tokenid")) {
                    let id = format!("{user}!{name}");
                    found.insert(id.clone(), read_row(&id, row));
                }
            }
        }
        Ok(found)
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let (spec, work) = (job.spec(), job.work);
        let id = spec_text(spec, "token");
        Ok(match (work.operation.action, live) {
            (Action::Delete, Some(_)) => Some(delete(work).into()),
            (Action::Update, Some(_))
                if job.outstanding.iter().any(|change| change.path.first() != Some("secret")) =>
            {
                Some(
                    work.call(Method::PUT, path(spec), params(spec), format!("change the token `{id}`"))
                        .into(),
                )
            }
            _ => None,
        })
    }
}

fn read_row(id: &str, row: &Row) -> LiveObject {
    let mut live = LiveObject::default();
    live.spec.insert("token".to_owned(), Value::text(id));
    let privsep = row_text(row, "privsep").is_none_or(|privsep| privsep != "0");
    live.spec.insert("privsep".to_owned(), Value::Bool(privsep));
    let expire = row_text(row, "expire").and_then(|expire| expire.parse().ok()).unwrap_or(0);
    live.spec.insert("expire".to_owned(), Value::Int(expire));
    live.set_comment(&row_text(row, "comment").unwrap_or_default());
    live.digest = digest_of(&live.spec);
    live
}

fn delete(work: &Work<'_>) -> crate::execute::Call {
    let spec = &work.operation.spec;
    let doing = format!("delete the token `{}`", spec_text(spec, "token"));
    work.call(Method::DELETE, path(spec), Params::new(), doing)
}

/// Whether an operation gives the token another value.
pub(super) fn is_remade(operation: &Operation) -> bool {
    let secret = |change: &strata_resource::FieldChange| {
        change.path.first() == Some("secret") && change.after.is_some()
    };
    operation.action == Action::Update && operation.changes.iter().any(secret)
}

pub(super) async fn execute(work: &Work<'_>) -> Result<Outcome, ProviderError> {
    match work.operation.action {
        Action::Create => {
            let live = converge::read(work, &Tokens).await?;
            converge::check_first(work, &Tokens, live.as_ref())?;
            keep(work, make(work, live).await?)
        }
        Action::Update if is_remade(work.operation) => {
            let entries = entries_of(work).await?;
            let live = converge::read(work, &Tokens).await?;
            converge::check_first(work, &Tokens, live.as_ref())?;
            let kept = keep(work, make(work, live).await?);
            let mut granted = Ok(());
            for entry in entries {
                granted = granted.and(grant_again(work, &entry).await);
            }
            let outcome = kept?;
            granted.map(|()| outcome)
        }
        _ => converge::converge(work, &Tokens).await,
    }
}

/// Makes it; where one is there already, instead of that one. What somebody else makes under its name meanwhile is not deleted.
async fn make(work: &Work<'_>, mut there: Option<LiveObject>) -> Result<Made, ProviderError> {
    let spec = &work.operation.spec;
    let id = spec_text(spec, "token");
    let mut last = None;
    for _ in 0..ATTEMPTS {
        if let Some(live) = there.take() {
            let unchanged = || converge::still_is(work, &Tokens, Some(&live)).boxed();
            let deleted = match work.run_while(delete(work), &unchanged).await {
                Ok(()) => true,
                Err(StepError::Lost { .. }) => false,
                Err(error) if error.kind() == Some(&ApiErrorKind::Missing) => true,
                Err(error) => return Err(error.into()),
            };
            there = converge::read(work, &Tokens).await?;
            if let Some(now) = &there {
                if deleted || now.digest != live.digest {
                    return Err(somebody_made(id));
                }
                continue;
            }
        }
        let call = work.call(Method::POST, path(spec), params(spec), format!("make the token `{id}`"));
        match work.write_for::<Made>(&call).await {
            Ok(made) => return Ok(made),
            // It may be there, with a value that nobody knows.
            Err(error @ StepError::Lost { .. }) => {
                there = converge::read(work, &Tokens).await?;
                if there.as_ref().is_some_and(|live| !converge::is_marked(work, live)) {
                    return Err(somebody_made(id));
                }
                last = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(last.map_or_else(|| somebody_made(id), ProviderError::from))
}

fn somebody_made(id: &str) -> ProviderError {
    let message = format!("the token `{id}` is there after it was deleted: somebody else may have made it");
    ProviderError::new(ErrorClass::Conflict, message).hint("it was not touched; plan again")
}

fn keep(work: &Work<'_>, made: Made) -> Result<Outcome, ProviderError> {
    work.client.redactor().add_text(&made.value);
    let spec = &work.operation.spec;
    let (id, value) = (spec_text(spec, "token"), SecretString::new(made.value));
    let Some(name) = spec.get("secret").and_then(Value::as_text) else { return Ok(Outcome::default()) };
    let kept = match work.client.keeper() {
        Some(keeper) => keeper.keep(name, id, &value),
        None => Err("there is no place for it".to_owned()),
    };
    kept.map_err(|reason| {
        ProviderError::new(
            ErrorClass::Internal,
            format!("the token `{id}` was made, and its value cannot be kept as `{name}`: {reason}"),
        )
        .hint("fix that and apply again: the token is recreated")
        .field("secret")
    })?;
    Ok(Outcome::default())
}

/// What the token may do, which Proxmox drops together with it.
async fn entries_of(work: &Work<'_>) -> Result<Vec<Spec>, ProviderError> {
    let id = spec_text(&work.operation.spec, "token");
    let rows: Result<Vec<Row>, CallError> = work.client.get("/access/acl", Params::new()).await;
    let rows = rows.map_err(|error| error.explain(&format!("look what the token `{id}` may do")))?;
    let entries = rows.iter().filter_map(acl::read_row).map(|(_, live)| live.spec);
    Ok(entries.filter(|entry| spec_text(entry, "subject") == id).collect())
}

async fn grant_again(work: &Work<'_>, entry: &Spec) -> Result<(), ProviderError> {
    let propagate = entry.get("propagate").and_then(Value::as_bool).unwrap_or(true);
    let params = acl::params_of(entry).with("propagate", u8::from(propagate));
    let doing =
        format!("give the token `{}` its permissions again", spec_text(&work.operation.spec, "token"));
    let mut lost = None;
    for _ in 0..ATTEMPTS {
        // Sent twice, it changes nothing.
        match work.run(work.call(Method::PUT, "/access/acl".to_owned(), params.clone(), doing.clone())).await
        {
            Ok(()) => return Ok(()),
            Err(error @ StepError::Lost { .. }) => lost = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    Err(lost.map_or_else(|| work.internal("it was not tried"), ProviderError::from))
}
