//! Bringing a guest's firewall to its spec, one call at a time, each with the digest of what was read before it.

use std::collections::BTreeSet;

use http::Method;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::{FieldChange, Spec, Value};

use super::work::{Call, StepError, Work};
use crate::api::Params;
use crate::firewall::{
    KnownRules, LiveFirewall, RuleStep, canonical_rules, fields_to_drop, next_step, rule_to_wire,
};
use crate::guest::Guest;

pub(super) async fn converge(
    work: &Work<'_>,
    guest: &Guest,
    changes: &[FieldChange],
) -> Result<(), ProviderError> {
    let empty = Spec::new();
    let wanted = work.operation.spec.get("firewall").and_then(Value::as_map).unwrap_or(&empty);
    let removed: BTreeSet<String> = changes
        .iter()
        .filter(|change| change.after.is_none())
        .map(|change| change.path.to_string())
        .collect();
    let mut live = read(work, guest).await?;
    check_unchanged(work, guest, &live)?;
    let rules = match canonical_rules(wanted) {
        Some(rules) => Some(rules),
        // The rules have left the source: those that were ours go.
        None => (removed.contains("firewall.rules") || removed.contains("firewall")).then(Vec::new),
    };
    let known = KnownRules::new(&live.rules, rules.as_deref().unwrap_or_default());
    // Each call brings it closer; a bound for the case that somebody else works against us.
    let most = 8 + 4 * (live.rules.len() + rules.as_ref().map_or(0, Vec::len));
    for _ in 0..most {
        let Some(call) = next_call(work, guest, &live, wanted, rules.as_deref(), &removed) else {
            return Ok(());
        };
        match work.run(call).await {
            // Where the answer was lost, what is live says what was done.
            Ok(()) | Err(StepError::Lost { .. }) => live = read(work, guest).await?,
            Err(StepError::Refused { error, doing }) => {
                return Err(error.explain(&doing).field("firewall"));
            }
            Err(error) => return Err(error.into()),
        }
        if known.lack_one_of(&live.rules) {
            let message = format!("somebody else added a rule to the firewall of {guest} at the same time");
            return Err(ProviderError::new(ErrorClass::Conflict, message)
                .field("firewall")
                .hint("it was not touched; plan again"));
        }
    }
    Err(ProviderError::new(
        ErrorClass::Conflict,
        format!("the firewall of {guest} does not become what was sent"),
    )
    .field("firewall")
    .hint("somebody else may be changing it at the same time; plan again"))
}

async fn read(work: &Work<'_>, guest: &Guest) -> Result<LiveFirewall, ProviderError> {
    guest.firewall(work.client).await.map_err(|error| error.explain(&format!("read the firewall of {guest}")))
}

/// The firewall must still be the one that the plan saw.
fn check_unchanged(work: &Work<'_>, guest: &Guest, live: &LiveFirewall) -> Result<(), ProviderError> {
    let seen = work.operation.observed.as_ref().and_then(|observed| observed.facts.get("firewall_digest"));
    match seen.and_then(Value::as_text) {
        Some(seen) if seen != live.digest() => Err(ProviderError::new(
            ErrorClass::Conflict,
            format!("somebody else changed the firewall of {guest} since the plan was made"),
        )
        .hint("nothing of it was overwritten; plan again")),
        _ => Ok(()),
    }
}

fn next_call(
    work: &Work<'_>,
    guest: &Guest,
    live: &LiveFirewall,
    wanted: &Spec,
    rules: Option<&[Value]>,
    removed: &BTreeSet<String>,
) -> Option<Call> {
    if let Some(params) = options_write(live, wanted, removed) {
        let doing = format!("set the firewall options of {guest}");
        return Some(work.call(Method::PUT, guest.path("/firewall/options"), params, doing));
    }
    let step = next_step(&live.rules, rules?)?;
    let mut params = Params::new();
    let (method, path, doing) = match step {
        RuleStep::Insert { rule } => {
            fill(&mut params, &rule);
            (Method::POST, guest.path("/firewall/rules"), format!("add a firewall rule to {guest}"))
        }
        RuleStep::Replace { at, rule } => {
            fill(&mut params, &rule);
            let drop = fields_to_drop(&live.rules[at], &rule);
            if !drop.is_empty() {
                params.set("delete", drop.join(","));
            }
            (Method::PUT, rule_path(guest, at), format!("change firewall rule {at} of {guest}"))
        }
        RuleStep::MoveTop { before } => {
            params.set("moveto", before);
            (Method::PUT, rule_path(guest, 0), format!("put a new firewall rule of {guest} in its place"))
        }
        RuleStep::Delete { at } => {
            (Method::DELETE, rule_path(guest, at), format!("delete firewall rule {at} of {guest}"))
        }
    };
    if let Some(digest) = &live.rules_digest {
        params.set("digest", digest);
    }
    Some(work.call(method, path, params, doing))
}

fn rule_path(guest: &Guest, at: usize) -> String {
    guest.path(&format!("/firewall/rules/{at}"))
}

fn fill(params: &mut Params, rule: &Value) {
    for (key, value) in rule_to_wire(rule) {
        params.set(key, value);
    }
}

/// The options that differ and those that go; none if there are none.
fn options_write(live: &LiveFirewall, wanted: &Spec, removed: &BTreeSet<String>) -> Option<Params> {
    let mut params = Params::new();
    for (key, value) in wanted.get("options").and_then(Value::as_map).into_iter().flatten() {
        if live.options.get(key) == Some(value) {
            continue;
        }
        match value {
            Value::Bool(on) => params.set(key, u8::from(*on)),
            Value::Text(text) => params.set(key, text),
            _ => {}
        }
    }
    let gone = |key: &&String| {
        let path = format!("firewall.options.{key}");
        [path.as_str(), "firewall.options", "firewall"].iter().any(|path| removed.contains(*path))
    };
    let delete: Vec<&str> = live.options.keys().filter(gone).map(String::as_str).collect();
    if !delete.is_empty() {
        params.set("delete", delete.join(","));
    }
    if params.is_empty() {
        return None;
    }
    params.set("digest", &live.options_digest);
    Some(params)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(json: serde_json::Value) -> Spec {
        serde_json::from_value(json).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Options that nobody asked for stay; those that differ are sent, and those that left the source are deleted.
    #[test]
    fn only_options_that_differ_or_go_are_written() {
        let live = LiveFirewall {
            options: spec(json!({"enable": true, "policy_in": "ACCEPT", "dhcp": true})),
            options_digest: "d1".to_owned(),
            ..LiveFirewall::default()
        };
        let written = |wanted: serde_json::Value, removed: &[&str]| {
            let removed = removed.iter().map(|path| (*path).to_owned()).collect();
            let params = options_write(&live, &spec(json!({"options": wanted})), &removed)?;
            Some(params.pairs().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(written(json!({"enable": true, "policy_in": "ACCEPT"}), &[]), None);
        let text = written(json!({"enable": false, "policy_in": "DROP"}), &[]);
        assert_eq!(text.as_deref(), Some("enable=0 policy_in=DROP digest=d1"));
        let gone = written(json!({"enable": true}), &["firewall.options.dhcp"]);
        assert_eq!(gone.as_deref(), Some("delete=dhcp digest=d1"));
        assert_eq!(
            written(json!({}), &["firewall"]).as_deref(),
            Some("delete=dhcp,enable,policy_in digest=d1")
        );
    }
}
