//! From a document's body to the tree that is written.

use strata_secret::REDACTED;

use crate::document::Document;
use crate::shape::{Field, Leaf, Record, Shape};
use crate::tree::{Map, Value, tree};

pub(super) fn encode(document: &Document, redact: bool) -> Value {
    let encoder = Encoder { redact };
    let mut map = Map::new();
    if !document.is_v1alpha1() {
        map.insert("apiVersion".to_owned(), Value::text("v1alpha1"));
        map.insert("kind".to_owned(), Value::text(document.kind()));
    }
    map.extend(encoder.record(&document.shape().record, document.fields()));
    Value::Map(map)
}

struct Encoder {
    redact: bool,
}

impl Encoder {
    fn record(&self, record: &Record, body: &Map) -> Map {
        let mut map = Map::new();
        for field in &record.fields {
            let value = body.get(field.name);
            if field.always || !value.is_none_or(|value| is_empty(field, value)) {
                map.insert(field.name.to_owned(), self.field(field, value));
            }
        }
        map
    }

    fn field(&self, field: &Field, value: Option<&Value>) -> Value {
        match (value, &field.shape) {
            (Some(value), shape) => self.value(shape, value),
            (None, _) if field.optional => Value::Null,
            (None, Shape::Leaf(leaf)) => leaf.zero(),
            (None, Shape::List { .. }) => Value::List(Vec::new()),
            (None, Shape::Any { .. } | Shape::Args | Shape::Map(_)) => Value::Map(Map::new()),
            (None, Shape::Record(record)) => Value::Map(self.record(record, &Map::new())),
        }
    }

    fn value(&self, shape: &Shape, value: &Value) -> Value {
        match (shape, value) {
            (Shape::Leaf(leaf), value) if self.redact => redacted(leaf, value),
            (Shape::Any { secret: true }, value) if self.redact => all_redacted(value),
            // An argument without a value is written as nothing, and read as an empty text again.
            (Shape::Args, Value::Map(args)) => sorted(args.iter().map(|(name, value)| {
                let empty = value.as_text().is_some_and(str::is_empty);
                (name.clone(), if empty { Value::Null } else { value.clone() })
            })),
            (Shape::Any { .. }, value) => sorted_tree(value),
            (Shape::List { item, .. }, Value::List(items)) => {
                Value::List(items.iter().map(|value| self.value(item, value)).collect())
            }
            (Shape::Map(item), Value::Map(map)) => {
                sorted(map.iter().map(|(key, value)| (key.clone(), self.value(item, value))))
            }
            (Shape::Record(record), Value::Map(body)) => Value::Map(self.record(record, body)),
            (_, value) => value.clone(),
        }
    }
}

/// Keys that are not fields of a shape are written in the order of the alphabet.
fn sorted(entries: impl Iterator<Item = (String, Value)>) -> Value {
    let mut map: Map = entries.collect();
    map.sort_unstable_keys();
    Value::Map(map)
}

fn sorted_tree(value: &Value) -> Value {
    match value {
        Value::Map(map) => sorted(map.iter().map(|(key, value)| (key.clone(), sorted_tree(value)))),
        Value::List(items) => Value::List(items.iter().map(sorted_tree).collect()),
        value => value.clone(),
    }
}

/// Whether a field that is set is left out all the same.
fn is_empty(field: &Field, value: &Value) -> bool {
    if field.optional || field.keep_empty {
        return false;
    }
    match (&field.shape, value) {
        (Shape::Leaf(leaf), value) => leaf.is_zero(value),
        (Shape::Record(record), Value::Map(body)) => {
            let counts =
                |field: &&Field| record.essential.is_empty() || record.essential.contains(&field.name);
            let absent = |field: &Field| body.get(field.name).is_none_or(|value| is_empty(field, value));
            record.fields.iter().filter(counts).all(absent)
        }
        (_, Value::List(items)) => items.is_empty(),
        (_, Value::Map(map)) => map.is_empty(),
        _ => false,
    }
}

fn redacted(leaf: &Leaf, value: &Value) -> Value {
    match (leaf, value) {
        (Leaf::Secret, Value::Text(text)) if !text.is_empty() => Value::text(REDACTED),
        (Leaf::Key, _) => tree! { "key" => REDACTED },
        (Leaf::CertKey, Value::Map(map)) => {
            let secret = |key: &str| map.get(key).is_some_and(|value| value.as_text() != Some(""));
            let crt = map.get("crt").cloned().unwrap_or(Value::Null);
            tree! { "crt" => crt, "key" => if secret("key") { REDACTED } else { "" } }
        }
        _ => value.clone(),
    }
}

fn all_redacted(value: &Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.iter().map(all_redacted).collect()),
        Value::Map(map) => {
            Value::Map(map.iter().map(|(key, value)| (key.clone(), all_redacted(value))).collect())
        }
        _ => Value::text(REDACTED),
    }
}

#[cfg(test)]
mod tests {
    use crate::document::decode;
    use crate::yaml::{read, write};

    fn through(text: &str) -> String {
        decode(&read(text).unwrap()[0]).unwrap().to_yaml().expose().to_owned()
    }

    #[test]
    fn writes_what_talos_writes() {
        let text = "machine:\n  network: {}\n  install: {}\n  kubelet: {extraArgs: {v: 2, a: [x], b: ''}}\ncluster:\n  discovery: {}\n";
        let expected = "version: \"\"\nmachine:\n    type: \"\"\n    token: \"\"\n    certSANs: []\n    kubelet:\n        \
                        extraArgs:\n            a:\n                - x\n            b: null\n            v: \"2\"\n    \
                        network: {}\n    install:\n        wipe: null\ncluster:\n    discovery:\n        registries:\n            \
                        kubernetes: {}\n            service: {}\n";
        assert_eq!(through(text), expected);
        let text =
            "apiVersion: v1alpha1\nkind: ResolverConfig\nsearchDomains: {domains: []}\nnameservers: []\n";
        assert_eq!(
            through(text),
            "apiVersion: v1alpha1\nkind: ResolverConfig\nsearchDomains:\n    domains: []\n"
        );
    }

    #[test]
    fn a_redacted_document_has_no_secrets() {
        let text = "machine:\n  token: s3cret\n  ca: {crt: YQ==, key: c2VjcmV0}\ncluster:\n  serviceAccount: {key: c2VjcmV0}\n";
        let document = decode(&read(text).unwrap()[0]).unwrap();
        let shown = write(&document.to_redacted_value());
        assert!(!shown.contains("s3cret") && !shown.contains("c2VjcmV0"), "{}", *shown);
        assert!(shown.contains("crt: YQ==") && shown.contains("key: <secret>"), "{}", *shown);
    }
}
