//! The tree that a file becomes: every scalar, list, mapping and key knows its place.

use strata_diagnostics::Span;

use crate::Spanned;
use crate::scalar::{Scalar, ScalarKind};

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub span: Span,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Scalar(Scalar),
    List(Vec<Node>),
    Mapping(Mapping),
}

/// Entries in the order they were written; the keys are unique.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mapping {
    pub entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: Spanned<String>,
    pub value: Node,
}

impl Node {
    pub fn scalar(text: impl Into<String>, span: Span) -> Self {
        Self { span, kind: Kind::Scalar(Scalar::plain(text)) }
    }

    /// A scalar that is text whatever it looks like.
    pub fn text(text: impl Into<String>, span: Span) -> Self {
        Self { span, kind: Kind::Scalar(Scalar::quoted(text)) }
    }

    pub fn list(items: Vec<Node>, span: Span) -> Self {
        Self { span, kind: Kind::List(items) }
    }

    pub fn mapping(entries: Vec<Entry>, span: Span) -> Self {
        Self { span, kind: Kind::Mapping(Mapping { entries }) }
    }

    pub fn as_scalar(&self) -> Option<&Scalar> {
        match &self.kind {
            Kind::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_mapping(&self) -> Option<&Mapping> {
        match &self.kind {
            Kind::Mapping(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// The value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_mapping()?.get(key)
    }

    /// The value at the end of a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    pub fn is_null(&self) -> bool {
        self.as_scalar().is_some_and(|scalar| scalar.kind() == ScalarKind::Null)
    }

    /// The kind of thing that stands here, without its content.
    pub fn describe_kind(&self) -> &'static str {
        match &self.kind {
            Kind::List(_) => "a list",
            Kind::Mapping(_) => "a mapping",
            Kind::Scalar(scalar) => match scalar.kind() {
                ScalarKind::Null => "nothing",
                ScalarKind::Bool(_) => "`true` or `false`",
                ScalarKind::Integer(_) | ScalarKind::Float => "a number",
                ScalarKind::Text => "text",
            },
        }
    }

    /// What stands here, in words: the second half of `expected …, found …`.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::List(_) => "a list".to_owned(),
            Kind::Mapping(_) => "a mapping".to_owned(),
            Kind::Scalar(scalar) => scalar.describe(),
        }
    }
}

impl Mapping {
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key.value == key)
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.key.value.as_str())
    }
}
