//! The firewall of the whole datacenter: its options and rules.
//!
//! There is always one. It is ours only if there was nothing in it, or if the source says `adopt`.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use strata_engine::{Operation, ProviderError};
use strata_resource::{KindTable, Spec, Value, kind};
use strata_state::Action;

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER};
use crate::api::Params;
use crate::client::{CallError, Client};
use crate::datacenter::{
    Family, Job, LiveObject, NextCall, digest_of, respell_macros, rule_call, rules_of, spec_text,
};
use crate::execute::Call;
use crate::firewall::{LiveFirewall, switched_off};
use crate::preflight::Needs;

kind! {
    /// The firewall of the whole datacenter: options and rules.
    "firewall" {
        called: "firewall of the datacenter",
        identity: &["firewall"],
        proof: "the state, `adopt`, or nothing was in it",
        recovery: "managed if nothing is in it but what was begun",
        digest_on: "rules",
        shares: &[ADOPT],
        ..DATACENTER
    }
    /// `datacenter`
    "firewall": Text => InPlace;
    /// it is on
    "options.enable": Bool => InPlace [remote("enable"), off_by_default];
    /// what happens to incoming traffic that no rule speaks of
    "options.policy_in": Text => InPlace [remote("policy_in"), default_text("DROP")];
    /// what happens to outgoing traffic that no rule speaks of
    "options.policy_out": Text => InPlace [remote("policy_out"), default_text("ACCEPT")];
    /// rules in their order
    "rules": List => InPlace;
}

pub(super) struct Firewall;

#[async_trait]
impl ManagedKind for Firewall {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&Datacenter)
    }

    /// Its rules come one by one, at first switched off.
    fn is_on_the_way(&self, begun: &Spec, live: &LiveObject) -> bool {
        let rules =
            |spec: &Spec| spec.get("rules").and_then(Value::as_list).map(<[_]>::to_vec).unwrap_or_default();
        let off = |rules: Vec<Value>| -> Vec<Value> { rules.iter().map(switched_off).collect() };
        let mut live = live.clone();
        respell_macros(&mut live, Some(begun));
        let (begun_rules, there) = (off(rules(begun)), off(rules(&live.spec)));
        let options = |spec: &Spec| spec.get("options").and_then(Value::as_map).cloned().unwrap_or_default();
        let (begun_options, set) = (options(begun), options(&live.spec));
        there.iter().all(|rule| begun_rules.contains(rule))
            && set.iter().all(|(option, value)| begun_options.get(option) == Some(value))
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.datacenter(operation);
    }

    /// The firewall begins to filter what comes to the hosts, or does so in another way.
    fn remark(&self, operation: &Operation) -> Option<String> {
        let begins = operation.action != Action::Update || operation.touches("options");
        let remark = "the hosts then drop what no rule lets in, except from their own network";
        (begins && keeps_out(operation)).then(|| remark.to_owned())
    }
}

struct Datacenter;

const OPTIONS: &str = "/cluster/firewall/options";
const RULES: &str = "/cluster/firewall/rules";
/// The options that a source can speak of.
const OURS: [&str; 3] = ["enable", "policy_in", "policy_out"];

#[async_trait]
impl Family for Datacenter {
    fn word(&self) -> &'static str {
        "firewall of the"
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get("firewall").and_then(Value::as_text).map(str::to_owned)
    }

    async fn everything(&self, _: &Client) -> Result<Vec<Spec>, CallError> {
        Ok(vec![Spec::from([("firewall".to_owned(), Value::text("datacenter"))])])
    }

    async fn list(
        &self,
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let options = client.get(OPTIONS, Params::new());
        let rules = client.get(RULES, Params::new());
        let (options, rules) = futures::future::try_join(options, rules).await?;
        let mut live = LiveFirewall::new(options, rules);
        let (ours, others) = live
            .options
            .into_iter()
            .partition(|(option, _): &(String, Value)| OURS.contains(&option.as_str()));
        live.options = ours;
        let others: Spec = others;
        live.unread.extend(others.into_keys());
        // A firewall in which nothing is said is not there yet.
        if live.options.is_empty() && live.rules.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut object = LiveObject::default();
        object.spec.insert("firewall".to_owned(), Value::text("datacenter"));
        object.spec.insert("options".to_owned(), Value::Map(live.options));
        object.spec.insert("rules".to_owned(), Value::List(live.rules));
        respell_macros(&mut object, asked.first().copied());
        object.digest = digest_of(&object.spec);
        object.file_digest = live.rules_digest;
        object.unread = live.unread;
        let names = asked.iter().filter_map(|spec| self.key(spec));
        Ok(names.map(|name| (name, object.clone())).collect())
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
        let rules = rules.and_then(|rules| rule_call(job, RULES, live, &rules));
        // What no longer keeps out goes first; whoever is let in must be before the rest is kept out.
        let opening = options_write(job, live, deletes, Opens::Yes);
        let call = opening.or(rules).or_else(|| options_write(job, live, deletes, Opens::No));
        Ok(call.map(NextCall::from))
    }
}

/// Whether the value of an option lets more through than its opposite does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opens {
    Yes,
    No,
}

impl Opens {
    /// None is the value that Proxmox takes if nothing is said.
    fn of(option: &str, value: Option<&Value>) -> Self {
        let opens = match value {
            Some(Value::Bool(on)) => !on,
            Some(Value::Text(policy)) => policy == "ACCEPT",
            _ => option != "policy_in",
        };
        if opens { Self::Yes } else { Self::No }
    }
}

/// Whether the hosts drop what no rule lets in, if an operation is done: an option that it says nothing of stays as it is.
fn keeps_out(operation: &Operation) -> bool {
    let option = |spec: Option<&Spec>, name: &str| spec?.get("options")?.as_map()?.get(name).cloned();
    let after = |name: &str| {
        let wanted = option(Some(&operation.spec), name).filter(|_| operation.action != Action::Delete);
        let ours = option(operation.recorded.as_ref().map(|recorded| &recorded.spec), name).is_some();
        let live = || option(operation.observed.as_ref().map(|seen| &seen.spec), name);
        wanted.or_else(|| live().filter(|_| !ours))
    };
    let on = after("enable").as_ref().and_then(Value::as_bool) == Some(true);
    on && Opens::of("policy_in", after("policy_in").as_ref()) == Opens::No
}

/// The options that differ and those that go, of those that let more through or of the others.
fn options_write(job: &Job<'_>, live: &LiveObject, deletes: bool, opens: Opens) -> Option<Call> {
    let empty = Spec::new();
    let options = |spec: &Spec| spec.get("options").and_then(Value::as_map).cloned().unwrap_or_default();
    let (wanted, there) = (options(job.spec()), options(&live.spec));
    let mut params = Params::new();
    let mut delete: Vec<&str> = Vec::new();
    for option in OURS {
        let applied = job.work.operation.recorded.as_ref().map_or(&empty, |recorded| &recorded.spec);
        let wanted = wanted.get(option).filter(|_| !deletes);
        if Opens::of(option, wanted) != opens {
            continue;
        }
        match (wanted, there.get(option)) {
            (Some(value), there) if Some(value) != there => match value {
                Value::Bool(on) => params.set(option, u8::from(*on)),
                Value::Text(text) => params.set(option, text),
                _ => {}
            },
            (None, Some(_)) if options(applied).contains_key(option) => delete.push(option),
            _ => {}
        }
    }
    if !delete.is_empty() {
        params.set("delete", delete.join(","));
    }
    let doing = format!("set the options of the firewall of the {}", spec_text(job.spec(), "firewall"));
    (!params.is_empty()).then(|| job.work.call(Method::PUT, OPTIONS.to_owned(), params, doing))
}
