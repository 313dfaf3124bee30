//! One request of a user that is known.

use std::collections::HashMap;
use std::sync::Arc;

use http::StatusCode;
use http::header::HeaderMap;
use http::request::Parts;
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;

use super::Shared;
use super::answer::{Answer, Problem};
use super::route::{Target, Verb};
use crate::access::{Action, User};
use crate::audit::AuditDetails;
use strata_storage::StateName;

pub(super) struct Call<'s> {
    pub(super) shared: &'s Shared,
    pub(super) user: Arc<User>,
    pub(super) headers: HeaderMap,
    query: HashMap<String, String>,
    pub(super) body: &'s mut Incoming,
    pub(super) audit: AuditDetails,
}

impl<'s> Call<'s> {
    pub(super) fn new(
        shared: &'s Shared,
        user: Arc<User>,
        head: Parts,
        body: &'s mut Incoming,
    ) -> Result<Self, Problem> {
        let query = read_query(head.uri.query().unwrap_or_default())?;
        Ok(Self { shared, user, headers: head.headers, query, body, audit: AuditDetails::default() })
    }

    pub(super) async fn perform(&mut self, target: &Target, verb: Verb) -> Result<Answer, Problem> {
        match (target, verb) {
            (Target::State(name), Verb::Write) => self.write_tofu(name).await,
            (Target::Document(name), Verb::Write) => self.write_native(name).await,
            (Target::State(name) | Target::Document(name), Verb::Read) => self.read(name).await,
            (Target::State(name) | Target::Document(name), Verb::Delete) => self.delete(name).await,
            (Target::State(name) | Target::Lock(name), Verb::Lock) => self.lock_tofu(name).await,
            (Target::State(name) | Target::Lock(name), Verb::Unlock) => self.unlock_tofu(name).await,
            (Target::Lock(name), Verb::Holder) => self.holder_tofu(name).await,
            (Target::Lease(name), Verb::Lock) => self.take_lease(name).await,
            (Target::Lease(name), Verb::Heartbeat) => self.heartbeat(name).await,
            (Target::Lease(name), Verb::Unlock) => self.release_lease(name).await,
            (Target::Lease(name), Verb::Holder) => self.holder_native(name).await,
            (Target::Journal(name), Verb::ReadJournal) => self.read_journal(name).await,
            (Target::Journal(name), Verb::AppendJournal) => self.append_journal(name).await,
            (Target::Journal(name), Verb::ClearJournal) => self.clear_journal(name).await,
            (Target::List, Verb::List) => self.list().await,
            (Target::Versions(name), Verb::Versions) => self.versions(name).await,
            (Target::Diff(name), Verb::Diff) => self.diff(name).await,
            (Target::Versions(name), Verb::AddVersion) => self.add_version(name).await,
            (Target::Restore(name), Verb::Restore) => self.restore(name).await,
            _ => Err(Problem::unknown_method()),
        }
    }

    pub(super) fn require(&self, action: Action, name: &StateName) -> Result<(), Problem> {
        if self.user.may(action, name) {
            return Ok(());
        }
        let error = format!("`{}` may not {} `{name}`", self.user.name, action.as_str());
        Err(Problem::new(StatusCode::FORBIDDEN, error))
    }

    /// Whether the rules are to be bypassed; who may not is refused.
    pub(super) fn force(&self, name: &StateName) -> Result<bool, Problem> {
        let said = self.query("force").or_else(|| self.header("strata-force"));
        let force = match said {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(Problem::bad("`force` is `true` or `false`")),
        };
        if force {
            self.require(Action::Admin, name)?;
        }
        Ok(force)
    }

    pub(super) fn query(&self, key: &str) -> Option<&str> {
        self.query.get(key).map(String::as_str)
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, Problem> {
        let read = |text: &str| text.parse().map_err(|_| Problem::bad(format!("`{key}` is a number")));
        self.query(key).map(read).transpose()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The lock that the request names.
    pub(super) fn lock_header(&self) -> Option<String> {
        self.header("strata-lock").map(str::to_owned)
    }
}

fn read_query(query: &str) -> Result<HashMap<String, String>, Problem> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        match percent_decode_str(&text).decode_utf8() {
            Ok(text) => Ok(text.into_owned()),
            Err(_) => Err(Problem::bad("the query is not percent-encoded UTF-8")),
        }
    };
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(key)?, decode(value)?))
        })
        .collect()
}
