//! The fields of one change: what they were, what they become, and nothing of what is secret.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

/// A field that becomes another.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// From the resource down: `disk[0].size`.
    pub path: String,
    #[schemars(with = "Json")]
    pub before: Side,
    #[schemars(with = "Json")]
    pub after: Side,
    /// It cannot be changed in place.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replaces: bool,
}

/// One side of a difference.
#[derive(Debug, Clone, PartialEq)]
pub enum Side {
    /// There is none.
    Absent,
    Value(Json),
    Sensitive,
    /// Known after the apply.
    Unknown,
}

impl Serialize for Side {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent => serializer.serialize_none(),
            Self::Value(value) => value.serialize(serializer),
            Self::Sensitive => json!({"sensitive": true}).serialize(serializer),
            Self::Unknown => json!({"unknown": true}).serialize(serializer),
        }
    }
}

type Scrub<'s> = &'s dyn Fn(&str) -> String;

/// Every field that differs.
pub(super) fn between(change: &Json, scrub: Scrub<'_>) -> Vec<Difference> {
    let mut walk = Walk { scrub, replaces: replace_paths(change), found: Vec::new() };
    let place = ChangeNode {
        before: &change["before"],
        after: &change["after"],
        unknown: &change["after_unknown"],
        was_sensitive: &change["before_sensitive"],
        is_sensitive: &change["after_sensitive"],
    };
    walk.enter(&mut Vec::new(), &place);
    walk.found
}

/// The fields of a new resource that are known.
pub(super) fn of_new(change: &Json, scrub: Scrub<'_>) -> Vec<Difference> {
    let mut found = Vec::new();
    for (name, value) in change["after"].as_object().into_iter().flatten() {
        if empty(value) {
            continue;
        }
        let after = shown(value, &change["after_sensitive"][name], &change["after_unknown"][name], scrub);
        found.push(Difference { path: name.clone(), before: Side::Absent, after, replaces: false });
    }
    found
}

/// A value that has no fields: an output.
pub(super) fn whole(change: &Json, scrub: Scrub<'_>) -> Difference {
    let nothing = &Json::Null;
    Difference {
        path: String::new(),
        before: shown(&change["before"], &change["before_sensitive"], nothing, scrub),
        after: shown(&change["after"], &change["after_sensitive"], &change["after_unknown"], scrub),
        replaces: false,
    }
}

fn empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Array(list) => list.is_empty(),
        Json::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn replace_paths(change: &Json) -> Vec<String> {
    let paths = change["replace_paths"].as_array().into_iter().flatten();
    paths
        .map(|steps| {
            let steps: Vec<Json> = steps.as_array().cloned().unwrap_or_default();
            written(&steps)
        })
        .collect()
}

/// `disk[0].tags["a b"]`.
fn written(steps: &[Json]) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            Json::String(name) if is_word(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            other => text.push_str(&format!("[{other}]")),
        }
    }
    text
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The same place in all five trees of a change.
struct ChangeNode<'j> {
    before: &'j Json,
    after: &'j Json,
    unknown: &'j Json,
    was_sensitive: &'j Json,
    is_sensitive: &'j Json,
}

struct Walk<'s> {
    scrub: Scrub<'s>,
    replaces: Vec<String>,
    found: Vec<Difference>,
}

impl Walk<'_> {
    fn enter(&mut self, steps: &mut Vec<Json>, at: &ChangeNode<'_>) {
        let marked = is_true(at.was_sensitive) || is_true(at.is_sensitive);
        if marked || is_true(at.unknown) {
            if is_true(at.unknown) || at.before != at.after {
                self.push(steps, at);
            }
            return;
        }
        match (at.before, at.after) {
            (Json::Object(before), Json::Object(after)) => {
                let unknown = at.unknown.as_object();
                let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
                names.extend(unknown.into_iter().flat_map(Map::keys));
                names.sort_unstable();
                names.dedup();
                for name in names {
                    steps.push(Json::String(name.clone()));
                    self.enter(steps, &at.below(|json| &json[name.as_str()]));
                    steps.pop();
                }
            }
            (Json::Array(before), Json::Array(after)) => {
                let unknown = at.unknown.as_array().map_or(0, Vec::len);
                for index in 0..before.len().max(after.len()).max(unknown) {
                    steps.push(json!(index));
                    self.enter(steps, &at.below(|json| &json[index]));
                    steps.pop();
                }
            }
            (before, after) if before == after || (empty(before) && empty(after)) => {}
            _ => self.push(steps, at),
        }
    }

    fn push(&mut self, steps: &[Json], at: &ChangeNode<'_>) {
        let path = written(steps);
        let replaces = self.replaces.iter().any(|replaced| {
            let rest = path.strip_prefix(replaced.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        });
        // What was sensitive once is shown neither before nor after.
        let (was, is) = if is_true(at.was_sensitive) || is_true(at.is_sensitive) {
            (&Json::Bool(true), &Json::Bool(true))
        } else {
            (at.was_sensitive, at.is_sensitive)
        };
        let before = shown(at.before, was, &Json::Null, self.scrub);
        let after = shown(at.after, is, at.unknown, self.scrub);
        self.found.push(Difference { path, before, after, replaces });
    }
}

impl<'j> ChangeNode<'j> {
    fn below(&self, step: impl Fn(&'j Json) -> &'j Json) -> ChangeNode<'j> {
        ChangeNode {
            before: step(self.before),
            after: step(self.after),
            unknown: step(self.unknown),
            was_sensitive: step(self.was_sensitive),
            is_sensitive: step(self.is_sensitive),
        }
    }
}

fn is_true(json: &Json) -> bool {
    json.as_bool() == Some(true)
}

fn shown(value: &Json, sensitive: &Json, unknown: &Json, scrub: Scrub<'_>) -> Side {
    if is_true(unknown) {
        return Side::Unknown;
    }
    match (value, is_true(sensitive)) {
        (Json::Null, _) => Side::Absent,
        (_, true) => Side::Sensitive,
        (value, false) => Side::Value(masked(value, sensitive, unknown, scrub)),
    }
}

/// The value with words in the place of what is sensitive or unknown within it.
pub(crate) fn masked(value: &Json, sensitive: &Json, unknown: &Json, scrub: Scrub<'_>) -> Json {
    if is_true(sensitive) {
        return json!("(sensitive)");
    }
    if is_true(unknown) {
        return json!("(known after the apply)");
    }
    match value {
        Json::Object(map) => {
            let mut names: Vec<&String> = map.keys().collect();
            names.extend(unknown.as_object().into_iter().flat_map(Map::keys));
            names.sort_unstable();
            names.dedup();
            let fields = names.into_iter().map(|name| {
                let inner =
                    masked(&value[name.as_str()], &sensitive[name.as_str()], &unknown[name.as_str()], scrub);
                (scrub(name), inner)
            });
            Json::Object(fields.collect())
        }
        Json::Array(list) => {
            let items = list.iter().enumerate();
            Json::Array(items.map(|(at, item)| masked(item, &sensitive[at], &unknown[at], scrub)).collect())
        }
        Json::String(text) => Json::String(scrub(text)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(change: &Json) -> Vec<(String, Side, Side)> {
        let found = between(change, &str::to_owned);
        found.into_iter().map(|one| (one.path, one.before, one.after)).collect()
    }

    #[test]
    fn only_what_differs_is_told() {
        let change = json!({
            "before": {"a": 1, "b": {"c d": [1, 2]}, "same": "x", "gone": true, "nothing": []},
            "after": {"a": 2, "b": {"c d": [1, 2, 3]}, "same": "x", "nothing": null},
            "after_unknown": {"id": true, "b": {"c d": [false, false]}},
            "before_sensitive": {}, "after_sensitive": {},
        });
        let value = |json: Json| Side::Value(json);
        assert_eq!(
            paths(&change),
            [
                ("a".to_owned(), value(json!(1)), value(json!(2))),
                ("b[\"c d\"][2]".to_owned(), Side::Absent, value(json!(3))),
                ("gone".to_owned(), value(json!(true)), Side::Absent),
                ("id".to_owned(), Side::Absent, Side::Unknown),
            ]
        );
    }

    #[test]
    fn secrets_are_masked_wherever_they_are() {
        let change = json!({
            "before": {"whole": "MARKER", "deep": [{"key": "MARKER", "n": 1}], "was": "MARKER", "same": "MARKER"},
            "after": {"whole": "MARKER2", "deep": "MARKER", "was": "open", "same": "MARKER"},
            "after_unknown": {},
            "before_sensitive": {"whole": true, "deep": [{"key": true}], "was": true, "same": true},
            "after_sensitive": {"whole": true, "deep": true, "same": true},
        });
        let found = paths(&change);
        assert!(
            !format!("{found:?}").contains("MARKER") && !format!("{found:?}").contains("open"),
            "{found:?}"
        );
        let names: Vec<&str> = found.iter().map(|(path, ..)| path.as_str()).collect();
        assert_eq!(names, ["deep", "was", "whole"]);
        let new = json!({
            "after": {"list": [{"password": "MARKER", "name": "a"}], "empty": {}, "none": null},
            "after_sensitive": {"list": [{"password": true}]}, "after_unknown": {"list": [{"id": true}]},
        });
        let found = of_new(&new, &str::to_owned);
        assert_eq!(found.len(), 1);
        let shown = json!([{"password": "(sensitive)", "name": "a", "id": "(known after the apply)"}]);
        assert_eq!(found[0].after, Side::Value(shown));
    }

    #[test]
    fn what_forces_a_replacement_is_marked() {
        let change = json!({
            "before": {"disk": [{"size": 1, "ssd": true}]}, "after": {"disk": [{"size": 2, "ssd": false}]},
            "replace_paths": [["disk", 0, "size"]],
        });
        let found = between(&change, &str::to_owned);
        let marked: Vec<(&str, bool)> = found.iter().map(|one| (one.path.as_str(), one.replaces)).collect();
        assert_eq!(marked, [("disk[0].size", true), ("disk[0].ssd", false)]);
    }
}
