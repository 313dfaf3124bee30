//! Custom resources against the schema of their definition: what is unknown is pruned, what is missing gets its default, what is
//! wrong is refused. The parts of OpenAPI that definitions of controllers use; expressions (CEL) are not evaluated.

use serde_json::Value;

use super::failure::Cause;

fn keeps_unknown(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true || schema["x-kubernetes-embedded-resource"] == true
}

/// Removes members that the schema does not know and gives their paths.
pub fn prune(value: &mut Value, schema: &Value, at: &str, root: bool, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let additional = schema.get("additionalProperties").filter(|a| a.is_object());
            if properties.is_none() && (additional.is_none() || keeps_unknown(schema)) {
                if !keeps_unknown(schema)
                    && schema["type"] == "object"
                    && schema.get("additionalProperties") != Some(&Value::Bool(true))
                {
                    unknown.extend(map.keys().map(|name| join(at, name)));
                    map.clear();
                }
                return;
            }
            let names: Vec<String> = map.keys().cloned().collect();
            for name in names {
                let path = join(at, &name);
                if root && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                    continue;
                }
                match properties.and_then(|p| p.get(&name)).or(additional) {
                    Some(inner) => prune(&mut map[&name], inner, &path, false, unknown),
                    None if keeps_unknown(schema) => {}
                    None => {
                        map.shift_remove(&name);
                        unknown.push(path);
                    }
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = schema.get("items") else { return };
            for (index, item) in items.iter_mut().enumerate() {
                prune(item, inner, &format!("{at}[{index}]"), false, unknown);
            }
        }
        _ => {}
    }
}

fn join(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

/// Fills in defaults where a member is missing.
pub fn fill(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(map) => {
            for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
                if !map.contains_key(name)
                    && let Some(default) = inner.get("default")
                {
                    map.insert(name.clone(), default.clone());
                }
                if let Some(value) = map.get_mut(name) {
                    fill(value, inner);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = schema.get("items") {
                items.iter_mut().for_each(|item| fill(item, inner));
            }
        }
        _ => {}
    }
}

/// What is wrong with a value.
pub fn check(value: &Value, schema: &Value, at: &str, causes: &mut Vec<Cause>) {
    let wrong = |why: String| Cause { field: at.to_owned(), reason: "FieldValueInvalid", message: why };
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    if let Some(kind) = schema["type"].as_str() {
        let fits = match kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            _ => true,
        };
        if !fits {
            let got = match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            let message = format!("Invalid value: {got:?}: {at} in body must be of type {kind}: {got:?}");
            causes.push(Cause { field: at.to_owned(), reason: "FieldValueTypeInvalid", message });
            return;
        }
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", allowed.join(", "));
        causes.push(Cause { field: at.to_owned(), reason: "FieldValueNotSupported", message });
    }
    match value {
        Value::String(text) => {
            if let Some(pattern) = schema["pattern"].as_str()
                && let Ok(pattern) = regex_lite::Regex::new(pattern)
                && !pattern.is_match(text)
            {
                causes.push(wrong(format!(
                    "Invalid value: {text:?}: {at} in body should match '{}'",
                    pattern.as_str()
                )));
            }
            let length = text.chars().count() as u64;
            if schema["minLength"].as_u64().is_some_and(|least| length < least) {
                causes.push(wrong(format!(
                    "Invalid value: {text:?}: {at} in body should be at least {} chars long",
                    schema["minLength"]
                )));
            }
            if schema["maxLength"].as_u64().is_some_and(|most| length > most) {
                causes.push(wrong(format!("Too long: may not be more than {} bytes", schema["maxLength"])));
            }
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            if schema["minimum"].as_f64().is_some_and(|least| number < least) {
                causes.push(wrong(format!(
                    "Invalid value: {value}: {at} in body should be greater than or equal to {}",
                    schema["minimum"]
                )));
            }
            if schema["maximum"].as_f64().is_some_and(|most| number > most) {
                causes.push(wrong(format!(
                    "Invalid value: {value}: {at} in body should be less than or equal to {}",
                    schema["maximum"]
                )));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check(item, &schema["items"], &format!("{at}[{index}]"), causes);
            }
        }
        Value::Object(map) => {
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !map.contains_key(name) {
                    causes.push(Cause::required(join(at, name)));
                }
            }
            let additional = schema.get("additionalProperties").filter(|a| a.is_object());
            for (name, value) in map {
                if let Some(inner) = schema["properties"].get(name).or(additional) {
                    check(value, inner, &join(at, name), causes);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_pruned_filled_and_checked() {
        let schema = json!({ "type": "object", "required": ["spec"], "properties": { "spec": { "type": "object",
            "required": ["url"], "properties": {
                "url": { "type": "string", "pattern": "^(http|https|ssh)://.*$" },
                "provider": { "type": "string", "enum": ["generic", "azure"], "default": "generic" },
                "free": { "x-kubernetes-preserve-unknown-fields": true },
            } } } });
        let mut object = json!({ "apiVersion": "x/v1", "kind": "X", "metadata": { "name": "a" },
            "spec": { "url": "git@x", "more": 1, "free": { "any": 1 } } });
        let mut unknown = Vec::new();
        prune(&mut object, &schema, "", true, &mut unknown);
        assert_eq!(unknown, ["spec.more"]);
        fill(&mut object, &schema);
        assert_eq!(object["spec"], json!({ "url": "git@x", "free": { "any": 1 }, "provider": "generic" }));
        let mut causes = Vec::new();
        check(&object, &schema, "", &mut causes);
        assert_eq!(causes.len(), 1);
        assert!(causes[0].message.contains("should match"), "{causes:?}");
        causes.clear();
        check(&json!({ "spec": { "provider": 3 } }), &schema, "", &mut causes);
        let fields: Vec<&str> = causes.iter().map(|c| c.field.as_str()).collect();
        assert_eq!(fields, ["spec.url", "spec.provider"]);
    }
}
