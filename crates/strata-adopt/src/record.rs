//! From a spec to the record of the source that is drawn to it, by what the record itself says: its keys, their other spellings, the
//! values that they take and what applies without them.

use serde_json::Value as Json;
use strata_resource::{Spec, Value};
use strata_source::hypervisor::access::{Realm, Token};
use strata_source::hypervisor::host::HostFirewall;
use strata_source::hypervisor::network::{DnsSettings, HostInterface};
use strata_source::hypervisor::services::{NotificationEndpoint, NotificationMatcher};
use strata_source::hypervisor::{Alias, DatacenterFirewall};
use strata_source::machine::firewall::FirewallRule;
use strata_source::machine::guest::{HighAvailability, Replication};
use strata_yaml::{FieldSpec, Key, RecordSpec, Shape};

use crate::fields::{Fields, Object, number, raw};

/// Fields of a spec that are called otherwise in the source than their names suggest, by record.
fn renamed(record: &RecordSpec) -> &'static [(&'static str, Key)] {
    match record.name {
        "Token" => &[("privsep", Token::privilege_separation)],
        "Alias" => &[("cidr", Alias::address)],
        "DnsSettings" => &[("search", DnsSettings::search_domain)],
        "DatacenterFirewall" => &[("enable", DatacenterFirewall::enabled)],
        "HostFirewall" => &[("enable", HostFirewall::enabled)],
        "HostInterface" => &[("cidr", HostInterface::address), ("cidr6", HostInterface::address6)],
        "Realm" => &[("preselected", Realm::default)],
        "HighAvailability" => &[("kept", HighAvailability::state)],
        "Replication" => &[("copy_node", Replication::target)],
        "NotificationEndpoint" => &[("http_method", NotificationEndpoint::method)],
        "NotificationMatcher" => &[("match_fields", NotificationMatcher::fields)],
        "FirewallRule" => &[("enable", FirewallRule::enabled)],
        _ => &[],
    }
}

/// The keys of a record, in its order, with the values of a spec. What was taken is gone from the spec; what is left has no key, or a
/// value that the key does not take.
pub(crate) fn record(spec: &RecordSpec, left: &mut Fields) -> Object {
    let mut yaml = Object::new();
    for key in &spec.fields {
        let Some(field) = field_of(spec, key, left) else { continue };
        let Some(value) = left.get(&field).cloned() else { continue };
        let json = match (&key.shape, &value) {
            // What stands beside an entry that no key takes is written all the same.
            (Shape::Map(_, inner), Value::Map(map)) => Some(entries(inner, map, &field, left)),
            (shape, value) => json(shape, value).filter(|json| accepts(key, json)),
        };
        let Some(json) = json else { continue };
        left.forget(&[&field]);
        if !is_usual(key, &json) {
            yaml.insert(key.key.to_owned(), json);
        }
    }
    yaml
}

/// The entries of a mapping that can be written; the others are left over, each by its name.
fn entries(inner: &Shape, map: &Spec, field: &str, left: &mut Fields) -> Json {
    let mut yaml = Object::new();
    for (name, value) in map {
        match json(inner, value) {
            Some(json) => drop(yaml.insert(name.clone(), json)),
            None => left.leave(format!("{field}.{name}"), value.clone()),
        }
    }
    Json::Object(yaml)
}

/// The field that a key stands for: by its name, another spelling of it, or as [`renamed`] says.
fn field_of(spec: &RecordSpec, key: &FieldSpec, left: &Fields) -> Option<String> {
    let renames = renamed(spec);
    let by_name = |field: &&String| {
        let spelled = |key: &&str| plain(key) == plain(field);
        let renamed = renames.iter().any(|(from, _)| from == field);
        !renamed && std::iter::once(&key.key).chain(key.rules.aliases).any(spelled)
    };
    let other = renames.iter().find(|(_, to)| to.name() == key.key).map(|(from, _)| (*from).to_owned());
    other.or_else(|| left.names().find(by_name).cloned())
}

/// `first_name`, `firstName` and `first-name` are one name.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// Whether the rules of a key allow its text; what must be there is left to whoever reads the file.
fn accepts(key: &FieldSpec, json: &Json) -> bool {
    let allowed = |json: &Json| match (key.rules.text, json.as_str()) {
        (Some(rule), Some(text)) => (rule.accepts)(text),
        _ => true,
    };
    key.required || json.as_array().map_or_else(|| allowed(json), |items| items.iter().all(allowed))
}

/// Nothing is said by an empty list or mapping, or by what applies without the key.
fn is_usual(key: &FieldSpec, json: &Json) -> bool {
    match json {
        Json::Array(items) => items.is_empty() && !key.required,
        Json::Object(map) => map.is_empty() && !key.required,
        json => key.rules.default == Some(json.to_string().as_str()),
    }
}

/// A value in the form that a shape takes; none if it takes no such value.
pub(crate) fn json(shape: &Shape, value: &Value) -> Option<Json> {
    match (shape, value) {
        (Shape::Bool, Value::Bool(value)) => Some((*value).into()),
        (Shape::Integer(..) | Shape::Number, Value::Int(value)) => Some((*value).into()),
        (Shape::Integer(..) | Shape::Number, Value::Text(text)) => number(text),
        (Shape::Text(_), Value::Text(text)) => Some(text.as_str().into()),
        (Shape::Choice(words), Value::Text(text)) => {
            words.contains(&text.as_str()).then(|| text.as_str().into())
        }
        (Shape::List(inner), Value::List(items)) => {
            items.iter().map(|item| json(inner, item)).collect::<Option<Vec<Json>>>().map(Json::Array)
        }
        (Shape::Map(_, inner), Value::Map(map)) => map
            .iter()
            .map(|(key, value)| Some((key.clone(), json(inner, value)?)))
            .collect::<Option<Object>>()
            .map(Json::Object),
        // Entries whose order means something.
        (Shape::Map(_, inner), Value::List(items)) => {
            let entry = |item: &Value| {
                let (key, value) = item.as_text()?.split_once(':')?;
                Some((key.to_owned(), json(inner, &Value::text(value))?))
            };
            items.iter().map(entry).collect::<Option<Object>>().map(Json::Object)
        }
        (Shape::Record(spec), Value::Map(map)) => nested(spec(), map),
        (Shape::Reference(inner), value) => json(inner, value),
        (Shape::AnyOf(shapes), value) => shapes.iter().find_map(|shape| json(shape, value)),
        (Shape::Scalar | Shape::Any, value) => raw(value),
        _ => None,
    }
}

/// A record within another one says all that is there, or is not written.
fn nested(spec: &RecordSpec, map: &Spec) -> Option<Json> {
    let mut left = Fields::of(map);
    let yaml = record(spec, &mut left);
    left.is_empty().then_some(Json::Object(yaml))
}
