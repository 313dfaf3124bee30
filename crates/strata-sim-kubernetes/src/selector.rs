//! Label and field selectors, in queries and in objects.

use serde_json::Value;

use super::failure::{Outcome, bad_request};
use super::object::{labels, text};

#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Equals(String, String),
    Differs(String, String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Has(String),
    HasNot(String),
}

/// What an object must be to be listed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selector {
    labels: Vec<Rule>,
    /// Path, value, whether it must be equal.
    fields: Vec<(String, String, bool)>,
}

impl Selector {
    pub fn parse(labels: Option<&str>, fields: Option<&str>) -> Outcome<Self> {
        let mut selector = Self::default();
        for part in split_outside_parentheses(labels.unwrap_or_default()) {
            selector.labels.push(rule(part.trim())?);
        }
        for part in fields.unwrap_or_default().split(',').filter(|p| !p.is_empty()) {
            let (path, value, equal) = if let Some((path, value)) = part.split_once("!=") {
                (path, value, false)
            } else if let Some((path, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (path, value, true)
            } else {
                return Err(bad_request(format!(
                    "unable to parse requirement: invalid selector: {part:?}; can't understand it"
                )));
            };
            selector.fields.push((path.to_owned(), value.to_owned(), equal));
        }
        Ok(selector)
    }

    /// Both must match.
    pub fn also(&mut self, other: Self) {
        self.labels.extend(other.labels);
        self.fields.extend(other.fields);
    }

    /// A selector of an object: `matchLabels` and `matchExpressions`. An empty one matches everything.
    pub fn from_object(selector: &Value) -> Self {
        let mut rules: Vec<Rule> = super::object::pairs(selector.get("matchLabels"))
            .map(|(k, v)| Rule::Equals(k.to_owned(), v.to_owned()))
            .collect();
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let key = text(expression, "/key").to_owned();
            let values = || {
                let values = expression["values"].as_array().into_iter().flatten();
                values.filter_map(Value::as_str).map(str::to_owned).collect()
            };
            rules.push(match text(expression, "/operator") {
                "In" => Rule::In(key, values()),
                "NotIn" => Rule::NotIn(key, values()),
                "Exists" => Rule::Has(key),
                _ => Rule::HasNot(key),
            });
        }
        Self { labels: rules, fields: Vec::new() }
    }

    pub fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| labels(object).find(|(k, _)| *k == key).map(|(_, v)| v);
        self.labels.iter().all(|rule| match rule {
            Rule::Equals(key, value) => label(key) == Some(value),
            Rule::Differs(key, value) => label(key) != Some(value),
            Rule::In(key, values) => label(key).is_some_and(|v| values.iter().any(|w| w == v)),
            Rule::NotIn(key, values) => label(key).is_none_or(|v| values.iter().all(|w| w != v)),
            Rule::Has(key) => label(key).is_some(),
            Rule::HasNot(key) => label(key).is_none(),
        }) && self.fields.iter().all(|(path, value, equal)| (field(object, path) == *value) == *equal)
    }
}

/// The text of a field such as `spec.nodeName` or `metadata.name`.
fn field(object: &Value, path: &str) -> String {
    match object.pointer(&format!("/{}", path.replace('.', "/"))) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().filter(|p| !p.trim().is_empty()).collect()
}

fn rule(part: &str) -> Outcome<Rule> {
    let owned = |text: &str| text.trim().to_owned();
    if let Some((key, value)) = part.split_once("!=") {
        return Ok(Rule::Differs(owned(key), owned(value)));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(Rule::Equals(owned(key), owned(value)));
    }
    if let Some(key) = part.strip_prefix('!') {
        return Ok(Rule::HasNot(owned(key)));
    }
    let mut words = part.splitn(2, char::is_whitespace);
    let key = words.next().unwrap_or_default();
    let Some(rest) = words.next().map(str::trim) else { return Ok(Rule::Has(owned(key))) };
    let values = |list: &str| {
        let list = list.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(list.split(',').map(owned).collect())
    };
    let (negated, list) = match (rest.strip_prefix("notin"), rest.strip_prefix("in")) {
        (Some(list), _) => (true, values(list)),
        (_, Some(list)) => (false, values(list)),
        _ => (false, None),
    };
    match list {
        Some(values) if negated => Ok(Rule::NotIn(owned(key), values)),
        Some(values) => Ok(Rule::In(owned(key), values)),
        None => Err(bad_request(format!("unable to parse requirement: found '{rest}', expected: in, notin"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn label_selectors_are_understood() {
        let object = json!({ "metadata": { "name": "a", "labels": { "app": "web", "tier": "front" } } });
        let matches = |labels: &str| Selector::parse(Some(labels), None).unwrap().matches(&object);
        for yes in ["app=web", "app==web,tier", "app in (api, web)", "!gone", "tier notin (back)", "x!=y", ""]
        {
            assert!(matches(yes), "{yes}");
        }
        for no in ["app=api", "gone", "!app", "app notin (web)", "app!=web", "app=web,tier=back"] {
            assert!(!matches(no), "{no}");
        }
        assert!(Selector::parse(Some("app foo"), None).is_err());
    }

    #[test]
    fn fields_are_selected_by_path() {
        let pod = json!({ "metadata": { "name": "a" }, "spec": { "nodeName": "cp-1" } });
        let matches = |fields: &str| Selector::parse(None, Some(fields)).unwrap().matches(&pod);
        assert!(matches("spec.nodeName=cp-1") && matches("metadata.name!=b") && matches("status.phase="));
        assert!(!matches("spec.nodeName=cp-2"));
    }
}
