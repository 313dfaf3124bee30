//! The firewall of a guest in canonical form, and the smallest edit from one list of rules to another. No IO.

mod edit;
mod reach;

use strata_resource::{Spec, Value};

pub(crate) use self::edit::{Differing, RuleStep, differing, next_step};
pub(crate) use self::reach::{Block, Filter, Names, kept_out};
use crate::guest::Row;

const FLAGS: [&str; 6] = ["enable", "dhcp", "macfilter", "ipfilter", "ndp", "radv"];
const TEXTS: [&str; 4] = ["policy_in", "policy_out", "log_level_in", "log_level_out"];
/// The fields of a rule, other than whether it is on.
const RULE_TEXTS: [&str; 12] = [
    "type",
    "action",
    "comment",
    "source",
    "dest",
    "proto",
    "dport",
    "sport",
    "iface",
    "log",
    "macro",
    "icmp-type",
];

/// What the server says about a guest's firewall.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LiveFirewall {
    pub(crate) options: Spec,
    pub(crate) options_digest: String,
    pub(crate) rules: Vec<Value>,
    /// None for an empty list: the server gives one with each rule.
    pub(crate) rules_digest: Option<String>,
    /// Options that no field is about.
    pub(crate) unread: Vec<String>,
}

impl LiveFirewall {
    pub(crate) fn new(options: Row, rules: Vec<Row>) -> Self {
        let mut live = Self::default();
        for (key, value) in options {
            let value = value.as_str();
            if key == "digest" {
                live.options_digest = value.to_owned();
            } else if FLAGS.contains(&key.as_str()) {
                live.options.insert(key, Value::Bool(value == "1"));
            } else if TEXTS.contains(&key.as_str()) {
                live.options.insert(key, Value::text(value));
            } else {
                live.unread.push(key);
            }
        }
        live.rules_digest = rules.first().and_then(|rule| rule.get("digest")).map(|digest| digest.0.clone());
        live.rules = rules.iter().map(rule_from_wire).collect();
        live
    }

    /// Changes with the options and with the rules.
    pub(crate) fn digest(&self) -> String {
        format!("{}:{}", self.options_digest, self.rules_digest.as_deref().unwrap_or_default())
    }

    pub(crate) fn into_spec(self) -> Value {
        Value::Map(
            [("options".to_owned(), Value::Map(self.options)), ("rules".to_owned(), Value::List(self.rules))]
                .into(),
        )
    }
}

fn rule_from_wire(row: &Row) -> Value {
    let mut rule = Spec::new();
    for field in RULE_TEXTS {
        if let Some(text) =
            row.get(field).map(|value| value.as_str().trim_end()).filter(|text| !text.is_empty())
        {
            rule.insert(field.to_owned(), Value::text(text));
        }
    }
    let on = row.get("enable").is_some_and(|enable| enable.as_str() != "0");
    rule.insert("enable".to_owned(), Value::Bool(on));
    Value::Map(rule)
}

/// The fields of a rule as parameters; whether it is on comes with it.
pub(crate) fn rule_to_wire(rule: &Value) -> Vec<(&'static str, String)> {
    let Some(rule) = rule.as_map() else { return Vec::new() };
    let texts =
        RULE_TEXTS.into_iter().filter_map(|field| Some((field, rule.get(field)?.as_text()?.to_owned())));
    texts.chain([("enable", if is_on(rule) { "1" } else { "0" }.to_owned())]).collect()
}

/// The fields that a rule must lose to become another.
pub(crate) fn fields_to_drop(from: &Value, to: &Value) -> Vec<&'static str> {
    let has = |rule: &Value, field: &str| rule.as_map().is_some_and(|rule| rule.contains_key(field));
    RULE_TEXTS.into_iter().filter(|field| has(from, field) && !has(to, field)).collect()
}

fn is_on(rule: &Spec) -> bool {
    rule.get("enable").and_then(Value::as_bool).unwrap_or(true)
}

/// The same rule, off: how it is put in before it stands in its place.
pub(crate) fn switched_off(rule: &Value) -> Value {
    let mut rule = rule.as_map().cloned().unwrap_or_default();
    rule.insert("enable".to_owned(), Value::Bool(false));
    Value::Map(rule)
}

/// The rules that may be in a list while it is edited: those that were there, and those that it is to have, on or off.
#[derive(Debug)]
pub(crate) struct KnownRules(Vec<Value>);

impl KnownRules {
    pub(crate) fn new(before: &[Value], wanted: &[Value]) -> Self {
        Self(before.iter().chain(wanted).map(switched_off).collect())
    }

    /// Whether somebody else put a rule in meanwhile: the plan did not show it, so it is not ours to remove.
    pub(crate) fn lack_one_of(&self, live: &[Value]) -> bool {
        live.iter().any(|rule| !self.0.contains(&switched_off(rule)))
    }
}

/// A spec's rules in the form that live ones have.
pub(crate) fn canonical_rules(firewall: &Spec) -> Option<Vec<Value>> {
    let rules = firewall.get("rules")?.as_list()?;
    let canonical = rules.iter().map(|rule| {
        let mut rule = rule.as_map().cloned().unwrap_or_default();
        let on = is_on(&rule);
        rule.insert("enable".to_owned(), Value::Bool(on));
        Value::Map(rule)
    });
    Some(canonical.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_options_and_rules_of_the_real_server() {
        let options = json!({"policy_in": "DROP", "ipfilter": 1, "enable": 1, "digest": "d1", "dhcp": 0});
        let rules = json!([{"digest": "d2", "iface": "net0", "icmp-type": "echo-request", "enable": 0, "proto": "icmp",
            "type": "in", "pos": 0, "action": "ACCEPT", "ipversion": 4, "comment": "x\n"}]);
        let live = LiveFirewall::new(
            serde_json::from_value(options).unwrap(),
            serde_json::from_value(rules).unwrap(),
        );
        assert_eq!((live.options_digest.as_str(), live.rules_digest.as_deref()), ("d1", Some("d2")));
        let rule = live.rules[0].clone();
        assert_eq!(
            serde_json::to_value(live.into_spec()).unwrap(),
            json!({
                "options": {"policy_in": "DROP", "ipfilter": true, "enable": true, "dhcp": false},
                "rules": [{"iface": "net0", "icmp-type": "echo-request", "enable": false, "proto": "icmp", "type": "in",
                    "action": "ACCEPT", "comment": "x"}]
            })
        );
        let sent = rule_to_wire(&rule);
        assert!(
            sent.contains(&("icmp-type", "echo-request".to_owned()))
                && sent.contains(&("enable", "0".to_owned()))
        );
    }
}
