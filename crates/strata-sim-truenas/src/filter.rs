//! `query-filters` and `query-options`: what a query gives back of what is there.

use serde_json::{Value, json};

use super::error::{EINVAL, Error, Outcome, invalid};

/// Selects, orders and shapes entries as the options say.
pub fn query(entries: Vec<Value>, filters: &Value, options: &Value) -> Outcome<Value> {
    let filters = filters.as_array().map_or(&[][..], Vec::as_slice);
    let mut found = Vec::new();
    for entry in entries {
        if all(filters, &entry)? {
            found.push(entry);
        }
    }
    for order in options["order_by"].as_array().into_iter().flatten().filter_map(Value::as_str).rev() {
        let (key, reverse) = order.strip_prefix('-').map_or((order, false), |key| (key, true));
        found.sort_by_key(|entry| text(&member(entry, key)));
        if reverse {
            found.reverse();
        }
    }
    if options["count"] == true {
        return Ok(json!(found.len()));
    }
    if let Some(keys) = options["select"].as_array().filter(|keys| !keys.is_empty()) {
        for entry in &mut found {
            let picked =
                keys.iter().filter_map(Value::as_str).map(|key| (key.to_owned(), member(entry, key)));
            *entry = Value::Object(picked.collect());
        }
    }
    if options["get"] == true {
        // The original's exception has no text of its own.
        return found.into_iter().next().ok_or_else(|| Error::Failed(EINVAL, "MatchNotFound()".to_owned()));
    }
    let number = |key: &str| options[key].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or_default();
    let (offset, limit) = (number("offset"), number("limit"));
    let rest = found.into_iter().skip(offset);
    Ok(if limit > 0 { rest.take(limit).collect() } else { rest.collect() })
}

fn all(filters: &[Value], entry: &Value) -> Outcome<bool> {
    for filter in filters {
        if !one(filter, entry)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn one(filter: &Value, entry: &Value) -> Outcome<bool> {
    let parts = filter.as_array().map_or(&[][..], Vec::as_slice);
    match parts {
        [Value::String(or), Value::Array(list)] if or == "OR" => {
            for filter in list {
                let nested = filter.as_array().and_then(|f| f.first()).is_some_and(Value::is_array);
                let fits = if nested {
                    all(filter.as_array().map_or(&[][..], Vec::as_slice), entry)?
                } else {
                    one(filter, entry)?
                };
                if fits {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        [Value::String(key), Value::String(operator), value] => compare(&member(entry, key), operator, value),
        _ => Err(invalid("filters", format!("Invalid filter {filter}"))),
    }
}

/// A member by its path, such as `compression.value`.
fn member(entry: &Value, path: &str) -> Value {
    let mut here = entry;
    for key in path.split('.') {
        match here.get(key) {
            Some(inner) => here = inner,
            None => return Value::Null,
        }
    }
    here.clone()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn compare(left: &Value, operator: &str, right: &Value) -> Outcome<bool> {
    let contains = |list: &Value, item: &Value| match list {
        Value::Array(items) => items.contains(item),
        Value::String(text) => item.as_str().is_some_and(|part| text.contains(part)),
        _ => false,
    };
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    Ok(match operator {
        "=" => left == right,
        "!=" => left != right,
        "in" => contains(right, left),
        "nin" => !contains(right, left),
        "rin" => contains(left, right),
        "rnin" => !contains(left, right),
        "^" => text(left).starts_with(&text(right)),
        "!^" => !text(left).starts_with(&text(right)),
        "$" => text(left).ends_with(&text(right)),
        "!$" => !text(left).ends_with(&text(right)),
        "~" => {
            regex_lite::Regex::new(&format!("^(?:{})", text(right))).is_ok_and(|r| r.is_match(&text(left)))
        }
        ">" => number(left) > number(right),
        ">=" => number(left) >= number(right),
        "<" => number(left) < number(right),
        "<=" => number(left) <= number(right),
        other => return Err(invalid("filters", format!("Invalid operation: {other}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_and_options_shape_the_answer() {
        let entries = || vec![json!({ "id": "b", "n": { "v": 2 } }), json!({ "id": "a", "n": { "v": 1 } })];
        let ask = |filters: Value, options: Value| query(entries(), &filters, &options).unwrap();
        assert_eq!(ask(json!([["id", "=", "a"]]), json!({ "count": true })), 1);
        assert_eq!(ask(json!([["n.v", ">", 1]]), json!({ "get": true }))["id"], "b");
        assert_eq!(
            ask(json!([]), json!({ "order_by": ["id"], "select": ["id"], "limit": 1 })),
            json!([{ "id": "a" }])
        );
        let either = json!([["OR", [["id", "^", "a"], ["id", "in", ["b"]]]]]);
        assert_eq!(ask(either, json!({ "count": true })), 2);
        assert!(query(entries(), &json!([["id", "=", "c"]]), &json!({ "get": true })).is_err());
        assert!(query(entries(), &json!([["id", "~~", "c"]]), &json!({})).is_err());
    }
}
