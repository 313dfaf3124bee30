//! Reading and writing the parts that every Kubernetes object has.

use serde_json::{Map, Value, json};

/// The text at a JSON pointer, or nothing.
pub fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub fn int(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

pub fn list<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

pub fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub fn is_terminating(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

pub fn finalizers(object: &Value) -> &[Value] {
    list(object, "/metadata/finalizers")
}

/// The metadata, made if it is missing.
pub fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    member(object, "metadata")
}

/// A member that is an object, made if it is missing or is none.
pub fn member<'v>(object: &'v mut Value, key: &str) -> &'v mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let inner = object.as_object_mut().expect("it was just made an object").entry(key).or_insert(json!({}));
    if !inner.is_object() {
        *inner = json!({});
    }
    inner.as_object_mut().expect("it was just made an object")
}

/// Sets a member unless it is there.
pub fn default(object: &mut Map<String, Value>, key: &str, value: Value) {
    if object.get(key).is_none_or(Value::is_null) {
        object.insert(key.to_owned(), value);
    }
}

/// Whether a condition has that status.
pub fn has_condition(object: &Value, kind: &str, status: &str) -> bool {
    list(object, "/status/conditions").iter().any(|c| c["type"] == kind && c["status"] == status)
}

/// Sets a condition; its transition time moves only with its status.
pub fn set_condition(object: &mut Value, kind: &str, status: &str, reason: &str, message: &str, now: &str) {
    let generation = object.pointer("/metadata/generation").cloned();
    let conditions = member(object, "status").entry("conditions").or_insert(json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let conditions = conditions.as_array_mut().expect("it was just made an array");
    let since = conditions.iter().find(|c| c["type"] == kind && c["status"] == status);
    let since = since.map_or(json!(now), |c| c["lastTransitionTime"].clone());
    let mut condition = json!({
        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
    });
    if let Some(generation) = generation {
        condition["observedGeneration"] = generation;
    }
    match conditions.iter_mut().find(|c| c["type"] == kind) {
        Some(there) => *there = condition,
        None => conditions.push(condition),
    }
}

/// The labels as pairs.
pub fn labels(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    pairs(object.pointer("/metadata/labels"))
}

pub fn pairs(map: Option<&Value>) -> impl Iterator<Item = (&str, &str)> {
    map.and_then(Value::as_object).into_iter().flatten().filter_map(|(k, v)| Some((k.as_str(), v.as_str()?)))
}

/// A time as the API writes it.
pub fn timestamp(unix_ms: i64) -> String {
    jiff::Timestamp::from_second(unix_ms / 1000).map(|t| t.to_string()).unwrap_or_default()
}

/// Drops a member that is an empty object or array.
pub fn drop_empty(object: &mut Map<String, Value>, key: &str) {
    let empty = match object.get(key) {
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Null) => true,
        _ => false,
    };
    if empty {
        object.remove(key);
    }
}
