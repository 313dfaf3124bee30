//! The shapes of all documents that Talos knows: fields, their types, and how each is merged and written.
//!
//! A patch is merged by these rules and not by guessing from its values: whether a list is appended or replaced, and
//! whether a `false` or an empty text counts, is a property of the field.

mod leaf;
mod table;

use std::sync::Arc;

pub(crate) use leaf::Leaf;
pub(crate) use table::tables;

use crate::contract::Contract;

/// The kind that stands for the document without a kind, with `machine` and `cluster`.
pub(crate) const V1ALPHA1: &str = "v1alpha1";

pub(crate) struct DocumentShape {
    pub(crate) kind: &'static str,
    /// The first version that knows it.
    pub(crate) since: Contract,
    /// For control planes alone.
    pub(crate) controlplane: bool,
    /// It configures the link that it is named after, so no other document may.
    pub(crate) link: bool,
    /// There may be several, told apart by `name`.
    pub(crate) named: bool,
    pub(crate) record: Arc<Record>,
}

pub(crate) struct Record {
    pub(crate) fields: Vec<Field>,
    /// If there are any here, the others count for nothing without one of them.
    pub(crate) essential: Vec<&'static str>,
}

impl Record {
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// Absent and zero are different things: `false` and `0` are kept.
    pub(crate) optional: bool,
    /// Written even when it is absent.
    pub(crate) always: bool,
    /// A patch replaces the whole list or mapping.
    pub(crate) replace: bool,
    /// An empty list is different from none, and written.
    pub(crate) keep_empty: bool,
}

pub(crate) enum Shape {
    Leaf(Leaf),
    /// A tree that Talos hands on to somebody else.
    Any {
        secret: bool,
    },
    /// Command-line arguments: a text or a list of texts each.
    Args,
    List {
        item: Box<Shape>,
        /// A patch's item is merged into the one with the same value here.
        by: Option<&'static str>,
    },
    Map(Box<Shape>),
    Record(Arc<Record>),
}

/// The shape of a kind of document.
pub(crate) fn document(kind: &str) -> Option<&'static DocumentShape> {
    tables().iter().find(|document| document.kind == kind)
}
