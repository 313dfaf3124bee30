//! Manifests as JSON values.

use serde_json::Value;
use strata_yaml::build::{Error, Key, Limits, Parts, Position, Problem, Tag, Tree, Written, build};

use super::scalar::resolve;

/// Schemas of custom resources are the deepest things in manifests, and stay far below.
const LIMITS: Limits = Limits { bytes: 64 << 20, depth: 100, values: 2_000_000, aliased: 2_000_000 };

/// The documents that hold something, each with its first line.
pub(super) fn read(text: &str) -> Result<Vec<(usize, Value)>, Error> {
    let documents = build(text, &LIMITS, &mut JsonTree)?.into_iter();
    Ok(documents.filter(|(_, value)| !value.is_null()).map(|(at, value)| (at.line, value)).collect())
}

struct JsonTree;

impl Tree for JsonTree {
    type Node = Value;
    type Error = Error;

    fn scalar(&mut self, scalar: Written<'_>, _: Position) -> Value {
        if scalar.plain { resolve(&scalar.text) } else { Value::String(scalar.text.into_owned()) }
    }

    fn list(&mut self, items: Vec<Value>, _: Position) -> Value {
        Value::Array(items)
    }

    fn mapping(&mut self, entries: Vec<(Key, Value)>, _: Position) -> Value {
        Value::Object(entries.into_iter().map(|(key, value)| (key.text, value)).collect())
    }

    /// A key is what it means: `0644` is the key `420`.
    fn key(&self, node: &Value) -> Option<String> {
        match node {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(truth) => Some(truth.to_string()),
            _ => None,
        }
    }

    fn parts(&self, node: Value, at: Position) -> Parts<Value> {
        match node {
            Value::Array(items) => Parts::List(items),
            Value::Object(map) => {
                Parts::Mapping(map.into_iter().map(|(text, value)| (Key { text, at }, value)).collect())
            }
            scalar => Parts::Scalar(scalar),
        }
    }

    /// Those that say what is there anyway.
    fn takes_tag(&self, tag: Tag<'_>, _: bool) -> bool {
        matches!(tag, Tag::Core("str" | "int" | "bool" | "float" | "null" | "map" | "seq"))
    }

    fn error(&self, problem: Problem<'_, Value>, at: Position) -> Error {
        Error::new(problem, at)
    }
}
