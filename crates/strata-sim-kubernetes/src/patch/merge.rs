//! JSON merge patch, and strategic merge patch for the built-in types.

use serde_json::{Map, Value};

use crate::fields::step_to;
use crate::shape::{Items, Shape};

/// RFC 7386.
pub fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(map) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            map.shift_remove(name);
        } else {
            merge_patch(map.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Lists with keys are merged by them; `$patch` replaces or deletes. Orders (`$setElementOrder`) are not looked at.
pub fn strategic_merge(target: &mut Value, patch: &Value, shape: Shape<'_>) {
    match (target, patch) {
        (target @ Value::Object(_), Value::Object(patch)) => {
            if patch.get("$patch").is_some_and(|directive| directive == "replace") {
                let mut whole = patch.clone();
                whole.shift_remove("$patch");
                *target = Value::Object(whole);
                return;
            }
            let Value::Object(map) = target else { return };
            for (name, value) in patch {
                if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
                    if let Some(Value::Array(items)) = map.get_mut(list) {
                        items.retain(|item| !value.as_array().is_some_and(|gone| gone.contains(item)));
                    }
                } else if name.starts_with('$') {
                    continue;
                } else if value.is_null() {
                    map.shift_remove(name);
                } else {
                    let inner = shape.member(name);
                    match map.get_mut(name) {
                        Some(there) if there.is_object() || there.is_array() => {
                            strategic_merge(there, value, inner);
                        }
                        _ => {
                            map.insert(name.clone(), clean(value));
                        }
                    }
                }
            }
        }
        (Value::Array(list), Value::Array(patch)) if shape.items() != Items::Atomic => {
            let items = shape.items();
            if patch
                .iter()
                .any(|item| item["$patch"] == "replace" && item.as_object().is_some_and(|o| o.len() == 1))
            {
                *list = patch.iter().filter(|item| item.get("$patch").is_none()).cloned().collect();
                return;
            }
            for item in patch {
                let step = step_to(item, items);
                let found = list.iter().position(|there| step.is_some() && step_to(there, items) == step);
                match (found, item["$patch"] == "delete") {
                    (Some(at), true) => {
                        list.remove(at);
                    }
                    (Some(at), false) if list[at].is_object() => {
                        strategic_merge(&mut list[at], item, shape.item());
                    }
                    (None, false) => list.push(clean(item)),
                    _ => {}
                }
            }
        }
        (target, patch) => *target = clean(patch),
    }
}

/// A new value, without directives and nulls.
fn clean(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(name, value)| !name.starts_with('$') && !value.is_null())
                .map(|(name, value)| (name.clone(), clean(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_removes_in_a_merge_patch() {
        let mut object = json!({ "a": { "b": 1, "c": 2 }, "l": [1, 2] });
        merge_patch(&mut object, &json!({ "a": { "b": null, "d": 3 }, "l": [3] }));
        assert_eq!(object, json!({ "a": { "c": 2, "d": 3 }, "l": [3] }));
    }

    #[test]
    fn containers_are_merged_by_name() {
        let mut object = json!({ "spec": { "containers": [{ "name": "a", "image": "1", "tty": true }, { "name": "b" }] } });
        let patch = json!({ "spec": { "containers": [
            { "name": "a", "image": "2", "tty": null }, { "name": "b", "$patch": "delete" }, { "name": "c" } ] } });
        strategic_merge(&mut object, &patch, Shape::builtin());
        assert_eq!(
            object,
            json!({ "spec": { "containers": [{ "name": "a", "image": "2" }, { "name": "c" }] } })
        );
    }
}
