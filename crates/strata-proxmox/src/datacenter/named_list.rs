//! Named lists of rules or of addresses, which are edited one item at a time.

mod steps;

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use strata_engine::ProviderError;
use strata_resource::{Spec, Value};
use strata_state::Action;

use super::family::{Family, Job, LiveObject, NextCall, Row, digest_of, row_text, spec_text};
use super::simple::comment_of;
use crate::api::{ApiErrorKind, Params, encode_path_part};
use crate::client::{CallError, Client};
use crate::execute::Call;
use crate::firewall::{RuleStep, canonical_rules, fields_to_drop, rule_to_wire};

/// A spec's rules in the form that live ones have.
pub(crate) fn rules_of(spec: &Spec) -> Option<Vec<Value>> {
    canonical_rules(spec)
}

/// Proxmox takes the names of macros in any case, and gives its own spelling: that of the source is as good.
pub(crate) fn respell_macros(live: &mut LiveObject, source: Option<&Spec>) {
    let spelled = source.and_then(rules_of).unwrap_or_default();
    let Some(Value::List(rules)) = live.spec.get_mut("rules") else { return };
    for rule in rules {
        let Value::Map(rule) = rule else { continue };
        let Some(Value::Text(name)) = rule.get_mut("macro") else { continue };
        let same = |other: &&str| other.eq_ignore_ascii_case(name);
        let mut names = spelled.iter().filter_map(|rule| rule.as_map()?.get("macro")?.as_text());
        if let Some(other) = names.find(same) {
            *name = other.to_owned();
        }
    }
}

/// The call that brings a list of rules closer to the wanted one.
pub(crate) fn rule_call(job: &Job<'_>, path: &str, live: &LiveObject, wanted: &[Value]) -> Option<Call> {
    let rules = live.spec.get("rules").and_then(Value::as_list).unwrap_or_default();
    let mut params = Params::new();
    let fill = |params: &mut Params, rule: &Value| {
        for (key, value) in rule_to_wire(rule) {
            params.set(key, value);
        }
    };
    let (method, path, doing) = match steps::next_step(rules, wanted)? {
        RuleStep::Insert { rule } => {
            fill(&mut params, &rule);
            (Method::POST, path.to_owned(), "add a firewall rule".to_owned())
        }
        RuleStep::Replace { at, rule } => {
            fill(&mut params, &rule);
            let drop = fields_to_drop(&rules[at], &rule);
            if !drop.is_empty() {
                params.set("delete", drop.join(","));
            }
            (Method::PUT, format!("{path}/{at}"), format!("change firewall rule {at}"))
        }
        RuleStep::MoveTop { before } => {
            params.set("moveto", before);
            (Method::PUT, format!("{path}/0"), "put a new firewall rule in its place".to_owned())
        }
        RuleStep::Delete { at } => {
            (Method::DELETE, format!("{path}/{at}"), format!("delete firewall rule {at}"))
        }
    };
    if let Some(digest) = &live.file_digest {
        params.set("digest", digest);
    }
    Some(job.work.call(method, path, params, format!("{doing} of `{}`", job.work.operation.address)))
}

/// A named list with a comment: of rules, or of addresses.
pub(crate) struct NamedList {
    pub(crate) word: &'static str,
    /// The field with its name, and the key of it.
    pub(crate) id: (&'static str, &'static str),
    pub(crate) path: &'static str,
    pub(crate) read: fn(&mut LiveObject, Vec<Row>),
    pub(crate) edit: fn(&NamedList, &Job<'_>, &LiveObject) -> Option<Call>,
    /// What is in it goes with it.
    pub(crate) forced: bool,
}

impl NamedList {
    pub(crate) fn one(&self, spec: &Spec) -> String {
        format!("{}/{}", self.path, encode_path_part(spec_text(spec, self.id.0)))
    }
}

#[async_trait]
impl Family for NamedList {
    fn word(&self) -> &'static str {
        self.word
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get(self.id.0).and_then(Value::as_text).map(str::to_owned)
    }

    async fn everything(&self, client: &Client) -> Result<Vec<Spec>, CallError> {
        let rows: Vec<Row> = client.get(self.path, Params::new()).await?;
        let names = rows.iter().filter_map(|row| row_text(row, self.id.1));
        Ok(names.map(|name| Spec::from([(self.id.0.to_owned(), Value::Text(name))])).collect())
    }

    async fn list_all(&self, client: &Client) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let rows: Vec<Row> = client.get(self.path, Params::new()).await?;
        let named = rows.iter().filter_map(|row| {
            let mut live = LiveObject::default();
            live.set_comment(&row_text(row, "comment").unwrap_or_default());
            Some((row_text(row, self.id.1)?, live))
        });
        Ok(named.collect())
    }

    async fn list(
        &self,
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let rows: Vec<Row> = client.get(self.path, Params::new()).await?;
        let mut found = BTreeMap::new();
        for row in &rows {
            let Some(name) = row_text(row, self.id.1) else { continue };
            let mut own = asked.iter().filter(|spec| self.key(spec).as_deref() == Some(name.as_str()));
            let Some(own) = own.next() else { continue };
            let mut live = LiveObject::default();
            live.spec.insert(self.id.0.to_owned(), Value::text(name.as_str()));
            live.set_comment(&row_text(row, "comment").unwrap_or_default());
            let path = format!("{}/{}", self.path, encode_path_part(&name));
            let items: Vec<Row> = match client.get(&path, Params::new()).await {
                // It was listed a moment ago, and is gone by now.
                Err(error) if error.kind() == Some(&ApiErrorKind::Missing) => continue,
                other => other?,
            };
            (self.read)(&mut live, items);
            respell_macros(&mut live, Some(own));
            live.digest = digest_of(&live.spec);
            found.insert(name, live);
        }
        Ok(found)
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let (spec, work) = (job.spec(), job.work);
        let deletes = work.operation.action == Action::Delete;
        let name = spec_text(spec, self.id.0);
        let Some(live) = live else {
            let params = Params::new().with(self.id.1, name).with("comment", comment_of(spec));
            let doing = format!("make the {} `{name}`", self.word);
            let call = work.call(Method::POST, self.path.to_owned(), params, doing);
            return Ok((!deletes).then(|| call.into()));
        };
        if let Some(call) = (self.edit)(self, job, live) {
            return Ok(Some(call.into()));
        }
        if deletes {
            let params = if self.forced { Params::new().with("force", 1) } else { Params::new() };
            let doing = format!("delete the {} `{name}`", self.word);
            return Ok(Some(work.call(Method::DELETE, self.one(spec), params, doing).into()));
        }
        let comments = job.lacks("comment") || job.lacks("mark");
        Ok(comments.then(|| {
            // A comment changes by renaming it to what it is called already.
            let params =
                Params::new().with(self.id.1, name).with("rename", name).with("comment", comment_of(spec));
            let doing = format!("change the comment of the {} `{name}`", self.word);
            work.call(Method::POST, self.path.to_owned(), params, doing).into()
        }))
    }
}
