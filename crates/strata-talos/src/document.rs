//! Documents: read by their shapes, merged by their shapes, written by their shapes.
//!
//! A document's body holds a key only if the field is set: where a type does not tell zero from absent, a zero is left
//! out. Merging and comparing are then the same for everything that means the same.

mod decode;
mod encode;
mod merge;

use std::fmt;

use strata_secret::SecretString;
use zeroize::Zeroizing;

use crate::contract::Contract;
use crate::shape::{self, DocumentShape, V1ALPHA1};
use crate::tree::{Map, Value};

pub(crate) use decode::{decode, kind_of, plain_tree};
pub(crate) use merge::merge_into;

/// One document of a machine configuration.
#[derive(Clone, PartialEq)]
pub struct Document {
    kind: &'static str,
    body: Map,
}

/// Which document of a configuration: its kind, and its name where there may be several.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DocumentId {
    pub kind: &'static str,
    pub name: Option<String>,
}

impl fmt::Display for DocumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{} {name}", self.kind),
            None => f.write_str(self.kind),
        }
    }
}

/// A document is not what its shape says. The offending value is never quoted: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    #[error("line {line}: a document must be a mapping")]
    NotMapping { line: usize },
    #[error("line {line}: the document has no `kind`; without one it must have `machine` or `cluster`")]
    NoKind { line: usize },
    #[error("line {line}: the document `{kind}` has no `apiVersion: v1alpha1`")]
    NoApiVersion { line: usize, kind: String },
    #[error("line {line}: Talos knows no document `{kind}`{hint}")]
    UnknownKind { line: usize, kind: String, hint: String },
    #[error("line {line}: the document `{kind}` needs a `name`")]
    NoName { line: usize, kind: &'static str },
    #[error("line {line}: `{kind}` has no field `{path}`{hint}")]
    UnknownField { line: usize, kind: &'static str, path: String, hint: String },
    #[error("line {line}: `{path}` of `{kind}` must be {expected}")]
    WrongType { line: usize, kind: &'static str, path: String, expected: String },
    #[error("`{path}` of `{kind}` is of another type in the patch than in the configuration")]
    TypesDiffer { kind: &'static str, path: String },
}

impl Document {
    /// A document from fields that are known to fit its shape.
    pub(crate) fn new(kind: &'static str, body: Value) -> Self {
        debug_assert!(shape::document(kind).is_some(), "a kind that is in the tables");
        let Value::Map(body) = body else { unreachable!("a document is a mapping") };
        Self { kind, body }
    }

    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The name, where there may be several documents of this kind.
    pub fn name(&self) -> Option<&str> {
        self.shape().named.then(|| self.body.get("name").and_then(Value::as_text).unwrap_or_default())
    }

    pub fn id(&self) -> DocumentId {
        DocumentId { kind: self.kind, name: self.name().map(str::to_owned) }
    }

    /// The first version of Talos that knows this kind.
    pub fn since(&self) -> Contract {
        self.shape().since
    }

    /// Whether only control planes may have it.
    pub(crate) fn is_for_control_planes(&self) -> bool {
        self.shape().controlplane
    }

    /// Whether this is the document without a kind, with `machine` and `cluster`.
    pub(crate) fn is_v1alpha1(&self) -> bool {
        self.kind == V1ALPHA1
    }

    /// The fields that are set.
    pub fn fields(&self) -> &Map {
        &self.body
    }

    /// The value at the end of a path of field names.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        self.body.get(*first)?.at(rest)
    }

    pub(crate) fn body_mut(&mut self) -> &mut Map {
        &mut self.body
    }

    pub(crate) fn shape(&self) -> &'static DocumentShape {
        shape::document(self.kind).expect("a kind that is in the tables")
    }

    /// The document with all fields that Talos writes, in the order of the shape.
    pub fn to_value(&self) -> Value {
        encode::encode(self, false)
    }

    /// As [`Document::to_value`], with every secret replaced: for people and diffs.
    pub(crate) fn to_redacted_value(&self) -> Value {
        encode::encode(self, true)
    }

    /// Only what is set, in the form of a patch: a list that is always written would replace one that is there.
    pub(crate) fn to_bare_yaml(&self) -> Zeroizing<String> {
        let mut map = Map::new();
        if !self.is_v1alpha1() {
            map.insert("apiVersion".to_owned(), Value::text("v1alpha1"));
            map.insert("kind".to_owned(), Value::text(self.kind));
        }
        map.extend(self.body.clone());
        crate::yaml::write(&Value::Map(map))
    }

    /// The document as text.
    pub fn to_yaml(&self) -> SecretString {
        SecretString::from(crate::yaml::write(&self.to_value()))
    }
}
