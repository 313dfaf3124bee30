//! Sets of fields: what a manager owns of an object, how that is written in `managedFields`, and values found by it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::shape::{Items, Shape};

/// One step from a value into it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Member(String),
    /// An item of a list by its keys, as a JSON object.
    Item(String),
    /// An item of a set, as JSON.
    Value(String),
}

pub type Path = Vec<Step>;
pub type Fields = BTreeSet<Path>;

/// What belongs to no manager.
fn is_untracked(path: &[Step]) -> bool {
    let names: Vec<&str> = path
        .iter()
        .map(|step| match step {
            Step::Member(name) => name.as_str(),
            _ => "",
        })
        .collect();
    match names.as_slice() {
        ["apiVersion" | "kind"] => true,
        ["metadata", name] | ["metadata", name, ..] => matches!(
            *name,
            "name"
                | "namespace"
                | "uid"
                | "resourceVersion"
                | "generation"
                | "creationTimestamp"
                | "managedFields"
                | "selfLink"
                | "deletionTimestamp"
                | "deletionGracePeriodSeconds"
                | "generateName"
        ),
        ["metadata"] => true,
        _ => false,
    }
}

/// The fields that an object sets.
pub fn of(object: &Value, shape: Shape<'_>) -> Fields {
    let mut fields = Fields::new();
    collect(object, shape, &mut Vec::new(), &mut fields);
    fields.retain(|path| !is_untracked(path));
    fields
}

fn collect(value: &Value, shape: Shape<'_>, path: &mut Path, fields: &mut Fields) {
    match value {
        Value::Object(map) if !shape.is_whole() && (!map.is_empty() || path.is_empty()) => {
            for (name, value) in map {
                path.push(Step::Member(name.clone()));
                collect(value, shape.member(name), path, fields);
                path.pop();
            }
        }
        Value::Array(items) if shape.items() != Items::Atomic && !items.is_empty() => {
            for item in items {
                let Some(step) = step_to(item, shape.items()) else { continue };
                path.push(step);
                fields.insert(path.clone());
                if item.is_object() {
                    collect(item, shape.item(), path, fields);
                }
                path.pop();
            }
        }
        _ => {
            fields.insert(path.clone());
        }
    }
}

/// The step to an item of a list.
pub fn step_to(item: &Value, items: Items<'_>) -> Option<Step> {
    match items {
        Items::Atomic => None,
        Items::Set => Some(Step::Value(item.to_string())),
        Items::Keyed(keys) => keys.step(item),
    }
}

/// The value at a path.
pub fn at<'v>(value: &'v Value, shape: Shape<'_>, path: &[Step]) -> Option<&'v Value> {
    let Some((first, rest)) = path.split_first() else { return Some(value) };
    match first {
        Step::Member(name) => at(value.get(name)?, shape.member(name), rest),
        step => {
            let items = shape.items();
            let item = value.as_array()?.iter().find(|item| step_to(item, items).as_ref() == Some(step))?;
            at(item, shape.item(), rest)
        }
    }
}

/// Removes what is at a path, and the objects and lists that become empty by it.
pub fn remove(value: &mut Value, shape: Shape<'_>, path: &[Step]) {
    let Some((first, rest)) = path.split_first() else { return };
    match (first, value) {
        (Step::Member(name), Value::Object(map)) => {
            let Some(inner) = map.get_mut(name) else { return };
            if !rest.is_empty() {
                remove(inner, shape.member(name), rest);
                let empty = match inner {
                    Value::Object(map) => map.is_empty(),
                    Value::Array(items) => items.is_empty(),
                    _ => false,
                };
                if !empty {
                    return;
                }
            }
            map.shift_remove(name);
        }
        (step, Value::Array(list)) => {
            let items = shape.items();
            let found = list.iter().position(|item| step_to(item, items).as_ref() == Some(step));
            let Some(at) = found else { return };
            if rest.is_empty() {
                list.remove(at);
            } else {
                remove(&mut list[at], shape.item(), rest);
            }
        }
        _ => {}
    }
}

/// As `fieldsV1` has it.
pub fn to_json(fields: &Fields) -> Value {
    let mut root = json!({});
    for path in fields {
        let mut here = &mut root;
        for step in path {
            let name = match step {
                Step::Member(name) => format!("f:{name}"),
                Step::Item(keys) => format!("k:{keys}"),
                Step::Value(value) => format!("v:{value}"),
            };
            let Value::Object(map) = here else { return root };
            here = map.entry(name).or_insert(json!({}));
        }
    }
    mark(&mut root, &mut Vec::new(), fields);
    root
}

/// A field that is owned itself besides what is in it says so with a dot.
fn mark(node: &mut Value, path: &mut Path, fields: &Fields) {
    let Value::Object(map) = node else { return };
    if !map.is_empty() && fields.contains(path) {
        let inner = std::mem::take(map);
        map.insert(".".to_owned(), json!({}));
        map.extend(inner);
    }
    for (name, child) in map.iter_mut() {
        if let Some(step) = step_of(name) {
            path.push(step);
            mark(child, path, fields);
            path.pop();
        }
    }
}

fn step_of(name: &str) -> Option<Step> {
    let (kind, rest) = name.split_once(':')?;
    match kind {
        "f" => Some(Step::Member(rest.to_owned())),
        "k" => Some(Step::Item(rest.to_owned())),
        "v" => Some(Step::Value(rest.to_owned())),
        _ => None,
    }
}

pub fn from_json(json: &Value) -> Fields {
    fn read(node: &Map<String, Value>, path: &mut Path, fields: &mut Fields) {
        if (node.is_empty() || node.contains_key(".")) && !path.is_empty() {
            fields.insert(path.clone());
        }
        for (name, child) in node {
            if let (Some(step), Value::Object(child)) = (step_of(name), child) {
                path.push(step);
                read(child, path, fields);
                path.pop();
            }
        }
    }
    let mut fields = Fields::new();
    if let Value::Object(map) = json {
        read(map, &mut Vec::new(), &mut fields);
    }
    fields
}

/// `.spec.template.spec.containers[name="app"].image`.
pub fn display(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Member(name) => {
                text.push('.');
                text.push_str(name);
            }
            Step::Item(keys) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let keys: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
                text.push_str(&format!("[{}]", keys.join(",")));
            }
            Step::Value(value) => text.push_str(&format!("[={value}]")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Value {
        json!({ "kind": "Deployment", "metadata": { "name": "a", "labels": { "x": "y" }, "finalizers": ["f"] },
            "spec": { "selector": { "matchLabels": { "app": "a" } }, "template": { "spec": { "containers": [
                { "name": "one", "args": ["-v"], "ports": [{ "containerPort": 80 }] } ] } } } })
    }

    #[test]
    fn fields_are_written_and_read_back() {
        let fields = of(&deployment(), Shape::builtin());
        let json = to_json(&fields);
        assert_eq!(
            json,
            json!({
                "f:metadata": { "f:labels": { "f:x": {} }, "f:finalizers": { "v:\"f\"": {} } },
                "f:spec": { "f:selector": {}, "f:template": { "f:spec": { "f:containers": { "k:{\"name\":\"one\"}": {
                    ".": {}, "f:name": {}, "f:args": {},
                    "f:ports": { "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {} } },
                } } } } }
            })
        );
        assert_eq!(from_json(&json), fields);
    }

    #[test]
    fn values_are_found_and_removed_by_path() {
        let mut object = deployment();
        let fields = of(&object, Shape::builtin());
        let port = fields.iter().find(|p| display(p).ends_with(".containerPort")).unwrap();
        let shown = ".spec.template.spec.containers[name=\"one\"].ports[containerPort=80,protocol=\"TCP\"].containerPort";
        assert_eq!(display(port), shown);
        assert_eq!(at(&object, Shape::builtin(), port), Some(&json!(80)));
        remove(&mut object, Shape::builtin(), &port[..port.len() - 1]);
        assert_eq!(
            object.pointer("/spec/template/spec/containers/0").unwrap(),
            &json!({ "name": "one", "args": ["-v"] })
        );
        remove(
            &mut object,
            Shape::builtin(),
            &[Step::Member("metadata".into()), Step::Member("labels".into()), Step::Member("x".into())],
        );
        assert!(object["metadata"].get("labels").is_none(), "an empty object goes with its last member");
    }
}
