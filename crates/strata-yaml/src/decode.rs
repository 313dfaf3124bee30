//! From nodes to typed values, gathering every mistake on the way.

pub(crate) mod choice;
pub(crate) mod collection;
pub(crate) mod context;
mod declare;
pub(crate) mod field_spans;
pub(crate) mod key;
pub(crate) mod partial;
pub(crate) mod primitive;
pub(crate) mod record;

use crate::{Context, Node, Shape};

/// A type that can be read from a node.
///
/// `None` means that the mistake has been reported; the caller goes on with the rest.
pub trait Decode: Sized {
    /// What is accepted, for messages, the schema and the reference.
    fn shape() -> Shape;

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self>;

    /// The value of a key that is not there; `None` makes the key required.
    fn absent() -> Option<Self> {
        None
    }
}
