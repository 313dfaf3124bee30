//! Options and rules of a firewall that is always there: that of the datacenter, that of a host. One in which nothing is said is not
//! there yet; with the first word in it it is somebody's.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use strata_engine::{Operation, ProviderError};
use strata_resource::{FieldRule, FieldType, KindTable, Spec, Value};
use strata_state::Action;

use super::family::{Family, Job, LiveObject, NextCall, Row, digest_of, spec_text, text_of};
use super::named_list::{respell_macros, rule_call, rules_of};
use crate::absence;
use crate::api::Params;
use crate::client::{CallError, Client};
use crate::execute::Call;
use crate::firewall::{LiveFirewall, switched_off};

/// Its options are the fields of the kind's table below `options`.
pub(crate) struct RuleSet {
    pub(crate) word: &'static str,
    pub(crate) table: &'static KindTable,
    /// Each host has one, called like the host; otherwise there is one, with this name.
    pub(crate) single: Option<&'static str>,
    /// Whether an option lets more through than it does otherwise; none is the value that applies if nothing is said.
    pub(crate) opens: fn(&str, Option<&Value>) -> bool,
}

impl RuleSet {
    fn id(&self) -> &'static str {
        self.table.identity[0]
    }

    fn name<'s>(&self, spec: &'s Spec) -> &'s str {
        spec_text(spec, self.id())
    }

    fn path(&self, spec: &Spec) -> String {
        match self.single {
            Some(_) => "/cluster/firewall".to_owned(),
            None => format!("/nodes/{}/firewall", self.name(spec)),
        }
    }

    /// The names of its options here, and their rules.
    fn options(&self) -> impl Iterator<Item = (&'static str, &'static FieldRule)> {
        self.table.fields.iter().filter_map(|field| Some((field.path.strip_prefix("options.")?, field)))
    }

    async fn read(&self, client: &Client, spec: &Spec) -> Result<Option<LiveObject>, CallError> {
        let path = self.path(spec);
        let (options, rules) = (format!("{path}/options"), format!("{path}/rules"));
        let options = client.get::<Row>(&options, Params::new());
        let rules = client.get(&rules, Params::new());
        let (options, rules) = futures::future::try_join(options, rules).await?;
        let live = LiveFirewall::new(BTreeMap::new(), rules);
        let mut ours = Spec::new();
        for (name, field) in self.options() {
            let value = options.get(field.remote).and_then(|value| read(field, &text_of(value)?));
            ours.extend(value.map(|value| (name.to_owned(), value)));
        }
        if ours.is_empty() && live.rules.is_empty() {
            return Ok(None);
        }
        let mut object = LiveObject::default();
        object.spec.insert(self.id().to_owned(), Value::text(self.name(spec)));
        object.spec.insert("options".to_owned(), Value::Map(ours));
        object.spec.insert("rules".to_owned(), Value::List(live.rules));
        respell_macros(&mut object, Some(spec));
        object.digest = digest_of(&object.spec);
        object.file_digest = live.rules_digest;
        let is_ours = |key: &str| key == "digest" || self.options().any(|(_, field)| field.remote == key);
        object.unread = options.keys().filter(|key| !is_ours(key)).cloned().collect();
        Ok(Some(object))
    }

    /// The options that differ and those that go, of those that let more through or of the others.
    fn options_write(&self, job: &Job<'_>, live: &LiveObject, opens: bool) -> Option<Call> {
        let deletes = job.work.operation.action == Action::Delete;
        let applied = job.work.operation.recorded.as_ref().map(|recorded| options_of(&recorded.spec));
        let (applied, wanted, there) =
            (applied.unwrap_or_default(), options_of(job.spec()), options_of(&live.spec));
        let mut params = Params::new();
        let mut delete: Vec<&str> = Vec::new();
        for (name, field) in self.options() {
            let wanted = wanted.get(name).filter(|_| !deletes);
            if (self.opens)(name, wanted) != opens {
                continue;
            }
            match (wanted, there.get(name)) {
                (Some(value), there) if Some(value) != there => match value {
                    Value::Bool(on) => params.set(field.remote, u8::from(*on)),
                    Value::Int(number) => params.set(field.remote, number),
                    Value::Text(text) => params.set(field.remote, text),
                    _ => {}
                },
                (None, Some(_)) if applied.contains_key(name) => delete.push(field.remote),
                _ => {}
            }
        }
        if !delete.is_empty() {
            params.set("delete", delete.join(","));
        }
        let doing = format!("set the options of the {} {}", self.word, self.name(job.spec()));
        let path = format!("{}/options", self.path(job.spec()));
        (!params.is_empty()).then(|| job.work.call(Method::PUT, path, params, doing))
    }
}

fn read(field: &FieldRule, text: &str) -> Option<Value> {
    Some(match field.kind {
        FieldType::Bool => Value::Bool(text == "1"),
        FieldType::Int => Value::Int(text.parse().ok()?),
        _ => Value::Text(Some(text).filter(|text| !text.is_empty())?.to_owned()),
    })
}

pub(crate) fn options_of(spec: &Spec) -> Spec {
    spec.get("options").and_then(Value::as_map).cloned().unwrap_or_default()
}

/// An option as it will be: one that an operation says nothing of stays as it is.
pub(crate) fn option_after(operation: &Operation, name: &str) -> Option<Value> {
    let option = |spec: &Spec| options_of(spec).remove(name);
    let wanted = option(&operation.spec).filter(|_| operation.action != Action::Delete);
    let ours = operation.recorded.as_ref().and_then(|recorded| option(&recorded.spec)).is_some();
    let live = || operation.observed.as_ref().and_then(|seen| option(&seen.spec));
    wanted.or_else(|| live().filter(|_| !ours))
}

/// Whether nothing is in a firewall but what was begun: its rules come one by one, at first switched off.
pub(crate) fn is_begun(begun: &Spec, live: &LiveObject) -> bool {
    let rules =
        |spec: &Spec| spec.get("rules").and_then(Value::as_list).map(<[_]>::to_vec).unwrap_or_default();
    let off = |rules: Vec<Value>| -> Vec<Value> { rules.iter().map(switched_off).collect() };
    let mut live = live.clone();
    respell_macros(&mut live, Some(begun));
    let (begun_rules, there) = (off(rules(begun)), off(rules(&live.spec)));
    let (begun_options, set) = (options_of(begun), options_of(&live.spec));
    there.iter().all(|rule| begun_rules.contains(rule))
        && set.iter().all(|(option, value)| begun_options.get(option) == Some(value))
}

#[async_trait]
impl Family for RuleSet {
    fn word(&self) -> &'static str {
        self.word
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get(self.id()).and_then(Value::as_text).map(str::to_owned)
    }

    async fn everything(&self, client: &Client) -> Result<Vec<Spec>, CallError> {
        match self.single {
            Some(name) => Ok(vec![Spec::from([(self.id().to_owned(), Value::text(name))])]),
            None => absence::each_host(client, self.id()).await,
        }
    }

    async fn list(
        &self,
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let mut found = BTreeMap::new();
        for spec in asked {
            let live = match self.read(client, spec).await {
                // The name does not resolve, and the cluster has no such member.
                Err(error)
                    if self.single.is_none()
                        && absence::is_no_member(client, &error, self.name(spec)).await? =>
                {
                    continue;
                }
                other => other?,
            };
            found.extend(live.map(|live| (self.name(spec).to_owned(), live)));
        }
        Ok(found)
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let nothing = LiveObject::default();
        let live = live.unwrap_or(&nothing);
        let deletes = job.work.operation.action == Action::Delete;
        let rules = match job.spec().get("rules") {
            Some(_) if deletes => Some(Vec::new()),
            Some(_) => rules_of(job.spec()),
            // The rules have left the source: those that were ours go.
            None => job.lacks("rules").then(Vec::new),
        };
        let path = format!("{}/rules", self.path(job.spec()));
        let rules = rules.and_then(|rules| rule_call(job, &path, live, &rules));
        // What no longer keeps out goes first; whoever is let in must be before the rest is kept out.
        let opening = self.options_write(job, live, true);
        let call = opening.or(rules).or_else(|| self.options_write(job, live, false));
        Ok(call.map(NextCall::from))
    }
}
