//! The parameters of one request, from wherever they came: path, query, form or JSON.

use indexmap::IndexMap;
use serde_json::Value;

/// One value. Forms and queries know only text and repeated keys; the rest needs JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    Text(String),
    Bool(bool),
    List(Vec<Arg>),
    Map,
    Null,
}

impl Arg {
    /// As text, if it is a scalar; a JSON boolean counts as 1 or 0.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bool(true) => Some("1"),
            Self::Bool(false) => Some("0"),
            Self::List(_) | Self::Map | Self::Null => None,
        }
    }

    pub fn from_json(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(*b),
            Value::Number(n) => Self::Text(n.to_string()),
            Value::String(s) => Self::Text(s.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            Value::Object(_) => Self::Map,
        }
    }
}

/// All parameters by name, in the order they came.
#[derive(Debug, Clone, Default)]
pub struct Args(pub IndexMap<String, Arg>);

impl Args {
    pub fn get(&self, name: &str) -> Option<&Arg> {
        self.0.get(name).filter(|arg| **arg != Arg::Null)
    }

    /// Whether the key was sent at all; JSON's null is sent and yet not there.
    pub fn sent(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Arg::as_text)
    }

    /// A text that is not empty.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.text(name).filter(|text| !text.is_empty())
    }

    pub fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    /// A required text; validation has seen to it that it is there.
    pub fn must(&self, name: &str) -> &str {
        self.text(name).unwrap_or_default()
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(|t| t.trim_start_matches('+').parse().ok())
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        self.text(name).and_then(|t| t.parse().ok())
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).map(|t| t == "1")
    }

    pub fn is_set(&self, name: &str) -> bool {
        self.flag(name) == Some(true)
    }

    /// A list parameter: separated by commas, semicolons, NUL or white space, empty parts left out.
    pub fn list(&self, name: &str) -> Vec<String> {
        match self.get(name) {
            Some(Arg::List(items)) => items.iter().filter_map(Arg::as_text).map(str::to_owned).collect(),
            Some(arg) => split_list(arg.as_text().unwrap_or_default()).map(str::to_owned).collect(),
            None => Vec::new(),
        }
    }

    /// The values of an array parameter; a single value is an array of one.
    pub fn values(&self, name: &str) -> Vec<String> {
        match self.get(name) {
            Some(Arg::List(items)) => items.iter().filter_map(Arg::as_text).map(str::to_owned).collect(),
            Some(arg) => arg.as_text().map(str::to_owned).into_iter().collect(),
            None => Vec::new(),
        }
    }

    pub fn take(&mut self, name: &str) -> Option<String> {
        self.0.shift_remove(name).and_then(|arg| arg.as_text().map(str::to_owned))
    }

    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), Arg::Text(value.into()));
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, v)| **v != Arg::Null).map(|(k, _)| k.as_str())
    }

    /// Every scalar parameter as text.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|(k, v)| v.as_text().map(|t| (k.as_str(), t)))
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Args {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(iter: T) -> Self {
        Self(iter.into_iter().map(|(k, v)| (k.into(), Arg::Text(v.into()))).collect())
    }
}

/// The API's idea of a list in a string.
pub fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| matches!(c, ',' | ';' | '\0') || c.is_whitespace()).filter(|part| !part.is_empty())
}
