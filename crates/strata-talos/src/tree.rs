//! The value tree of a configuration document, without its layout.
//!
//! Any text in a machine configuration may be a secret (a token, a key, what a patch brought along), so the tree has no
//! `Debug` and no `Serialize`, and its texts are wiped when they are dropped.

use indexmap::IndexMap;
use zeroize::Zeroizing;

use crate::document::plain_tree;
use crate::yaml::{YamlError, read};

/// Keys in the order they were added.
pub type Map = IndexMap<String, Value>;

#[derive(Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i128),
    /// A number that is written in octal: file permissions.
    Octal(u64),
    Float(f64),
    Text(Zeroizing<String>),
    List(Vec<Value>),
    Map(Map),
}

impl Value {
    /// The first document of a text in YAML, its scalars as YAML means them; null where there is none.
    pub fn from_yaml(text: &str) -> Result<Self, YamlError> {
        Ok(read(text)?.first().map_or(Self::Null, plain_tree))
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Zeroizing::new(text.into()))
    }

    /// A list of texts.
    pub fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::List(texts.into_iter().map(Self::text).collect())
    }

    /// A mapping from its entries, in this order.
    pub fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub fn as_int(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Octal(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    pub(crate) fn as_map_mut(&mut self) -> Option<&mut Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map()?.get(key)
    }

    /// The value at the end of a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(i128::from(value))
    }
}

impl From<u16> for Value {
    fn from(value: u16) -> Self {
        Self::Int(i128::from(value))
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(i128::from(value))
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::List(items)
    }
}

/// `tree! { "a" => 1, "b" => "text" }`: a mapping.
macro_rules! tree {
    ($($key:expr => $value:expr),* $(,)?) => {
        $crate::tree::Value::map::<&str>([$(($key, $crate::tree::Value::from($value))),*])
    };
}

pub(crate) use tree;
