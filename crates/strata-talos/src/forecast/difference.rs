//! Where two documents of one kind differ, told without secrets.

use strata_secret::REDACTED;

use crate::document::Document;
use crate::tree::Value;

/// A longer value is cut: it is for people to read.
const LONGEST: usize = 100;

/// Texts that somebody else wrote, and that may hold anything: files, manifests, environments.
const FREE: [&str; 7] = ["content", "contents", "manifest", "env", "variables", "environment", "configFiles"];

/// One place where they differ.
pub(super) struct Difference {
    /// With the places in lists, such as `machine.files[0].path`.
    pub(super) path: String,
    /// The names on the way, without the places in lists.
    pub(super) keys: Vec<String>,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl Difference {
    /// A document that comes or goes.
    pub(super) fn whole(before: Option<String>, after: Option<String>) -> Self {
        Self { path: String::new(), keys: Vec::new(), before, after }
    }
}

/// A value, and the same without secrets.
#[derive(Clone, Copy)]
struct Side<'v> {
    real: Option<&'v Value>,
    shown: Option<&'v Value>,
}

impl<'v> Side<'v> {
    fn key(self, key: &str) -> Self {
        let get = |value: Option<&'v Value>| value.and_then(|value| value.get(key));
        Self { real: get(self.real), shown: get(self.shown) }.present()
    }

    fn item(self, index: usize) -> Self {
        let get = |value: Option<&'v Value>| value.and_then(Value::as_list).and_then(|list| list.get(index));
        Self { real: get(self.real), shown: get(self.shown) }.present()
    }

    /// Talos writes what is absent as null where a field has to be written.
    fn present(self) -> Self {
        match self.real {
            Some(Value::Null) => Self { real: None, shown: None },
            _ => self,
        }
    }

    fn text(self, free: bool) -> Option<String> {
        self.real?;
        // Whatever has no counterpart without secrets is one.
        Some(match self.shown {
            Some(value) if !free => shown(value),
            _ => REDACTED.to_owned(),
        })
    }
}

/// All places where two documents differ.
pub(super) fn differences(before: &Document, after: &Document) -> Vec<Difference> {
    let [old, old_shown, new, new_shown] =
        [before.to_value(), before.to_redacted_value(), after.to_value(), after.to_redacted_value()];
    let mut walk = Walk { path: Vec::new(), found: Vec::new() };
    let side = |real, shown| Side { real: Some(real), shown: Some(shown) };
    walk.compare(side(&old, &old_shown), side(&new, &new_shown));
    walk.found
}

enum Step {
    Key(String),
    Item(usize),
}

struct Walk {
    path: Vec<Step>,
    found: Vec<Difference>,
}

impl Walk {
    fn compare(&mut self, old: Side<'_>, new: Side<'_>) {
        if old.real == new.real {
            return;
        }
        match (old.real, new.real) {
            (Some(Value::Map(left)), Some(Value::Map(right))) => {
                let more = right.keys().filter(|key| !left.contains_key(*key));
                for key in left.keys().chain(more) {
                    self.path.push(Step::Key(key.clone()));
                    self.compare(old.key(key), new.key(key));
                    self.path.pop();
                }
            }
            (Some(Value::List(left)), Some(Value::List(right))) if left.len() == right.len() => {
                for index in 0..left.len() {
                    self.path.push(Step::Item(index));
                    self.compare(old.item(index), new.item(index));
                    self.path.pop();
                }
            }
            _ => self.report(old, new),
        }
    }

    fn report(&mut self, old: Side<'_>, new: Side<'_>) {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) if path.is_empty() => path.push_str(key),
                Step::Key(key) => path.extend([".", key]),
                Step::Item(index) => path.push_str(&format!("[{index}]")),
            }
        }
        let keys: Vec<String> = self
            .path
            .iter()
            .filter_map(|step| match step {
                Step::Key(key) => Some(key.clone()),
                Step::Item(_) => None,
            })
            .collect();
        let free = keys.iter().any(|key| FREE.contains(&key.as_str()));
        self.found.push(Difference { path, keys, before: old.text(free), after: new.text(free) });
    }
}

/// A value in one line.
pub(super) fn shown(value: &Value) -> String {
    let mut text = String::new();
    inline(value, &mut text);
    if text.chars().count() > LONGEST {
        text = text.chars().take(LONGEST - 1).chain(['…']).collect();
    }
    text
}

fn inline(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(&value.to_string()),
        Value::Int(value) => text.push_str(&value.to_string()),
        Value::Octal(value) => text.push_str(&format!("0o{value:o}")),
        Value::Float(value) => text.push_str(&value.to_string()),
        Value::Text(value) if value.is_empty() => text.push_str("\"\""),
        // The rest of a text of several lines is hardly ever what somebody looks for.
        Value::Text(value) => {
            let mut lines = value.lines();
            text.push_str(lines.next().unwrap_or_default());
            if lines.next().is_some() {
                text.push('…');
            }
        }
        Value::List(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                inline(item, text);
            }
            text.push(']');
        }
        Value::Map(map) => {
            text.push('{');
            let set = map.iter().filter(|(key, value)| {
                !matches!(value, Value::Null) && !matches!(key.as_str(), "apiVersion" | "kind")
            });
            for (index, (key, value)) in set.enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                text.push_str(key);
                text.push_str(": ");
                match FREE.contains(&key.as_str()) {
                    true => text.push_str(REDACTED),
                    false => inline(value, text),
                }
            }
            text.push('}');
        }
    }
}
