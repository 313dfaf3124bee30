//! RFC 6902.

use serde_json::Value;

use crate::failure::{Failure, Outcome, bad_request};

fn refused(text: impl Into<String>) -> Failure {
    Failure::new(
        422,
        "Invalid",
        format!("the server rejected our request due to an error in our request: {}", text.into()),
    )
}

pub fn json_patch(target: &mut Value, patch: &Value) -> Outcome<()> {
    let operations = patch.as_array().ok_or_else(|| bad_request("error decoding patch: not an array"))?;
    for operation in operations {
        one(target, operation)?;
    }
    Ok(())
}

fn one(target: &mut Value, operation: &Value) -> Outcome<()> {
    let text = |key: &str| operation[key].as_str().unwrap_or_default();
    let value = || operation.get("value").cloned().ok_or_else(|| refused("a patch operation needs a value"));
    let path = text("path");
    let missing = |path: &str| refused(format!("the path {path:?} does not exist"));
    match text("op") {
        "add" => add(target, path, value()?),
        "remove" => take(target, path).map(|_| ()).ok_or_else(|| missing(path)),
        "replace" => {
            *target.pointer_mut(path).ok_or_else(|| missing(path))? = value()?;
            Ok(())
        }
        "test" if target.pointer(path) == Some(&value()?) => Ok(()),
        "test" => Err(refused(format!("testing value {path} failed: test failed"))),
        "move" => {
            let from = text("from");
            let moved = take(target, from).ok_or_else(|| missing(from))?;
            add(target, path, moved)
        }
        "copy" => {
            let from = text("from");
            let copy = target.pointer(from).cloned().ok_or_else(|| missing(from))?;
            add(target, path, copy)
        }
        other => Err(refused(format!("unknown operation {other:?}"))),
    }
}

/// The pointer of what is around, and the last step of the path, as it is named.
fn split(path: &str) -> Option<(&str, String)> {
    let (around, last) = path.rsplit_once('/')?;
    Some((around, last.replace("~1", "/").replace("~0", "~")))
}

fn add(target: &mut Value, path: &str, value: Value) -> Outcome<()> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    let missing = || refused(format!("the path {path:?} does not exist"));
    let (around, last) = split(path).ok_or_else(missing)?;
    match target.pointer_mut(around).ok_or_else(missing)? {
        Value::Object(map) => {
            map.insert(last, value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let at = last.parse::<usize>().ok().filter(|at| *at <= items.len()).ok_or_else(missing)?;
            items.insert(at, value);
        }
        _ => return Err(missing()),
    }
    Ok(())
}

fn take(target: &mut Value, path: &str) -> Option<Value> {
    let (around, last) = split(path)?;
    match target.pointer_mut(around)? {
        Value::Object(map) => map.shift_remove(&last),
        Value::Array(items) => {
            let at = last.parse::<usize>().ok().filter(|at| *at < items.len())?;
            Some(items.remove(at))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_are_carried_out_in_order() {
        let mut object = json!({ "metadata": { "labels": { "a/b": "1" } }, "list": [1, 3] });
        let patch = json!([
            { "op": "test", "path": "/metadata/labels/a~1b", "value": "1" },
            { "op": "add", "path": "/list/1", "value": 2 },
            { "op": "add", "path": "/list/-", "value": 4 },
            { "op": "remove", "path": "/metadata/labels/a~1b" },
            { "op": "copy", "from": "/list", "path": "/copy" },
            { "op": "replace", "path": "/list/0", "value": 0 },
        ]);
        json_patch(&mut object, &patch).unwrap();
        assert_eq!(
            object,
            json!({ "metadata": { "labels": {} }, "list": [0, 2, 3, 4], "copy": [1, 2, 3, 4] })
        );
        assert_eq!(
            json_patch(&mut object, &json!([{ "op": "remove", "path": "/no" }])).unwrap_err().code,
            422
        );
    }
}
