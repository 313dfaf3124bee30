//! Overlays: a tree that may say any part of what a type takes.

use std::marker::PhantomData;

use crate::{Context, Decode, Node, Shape};

/// Some of the keys of a `T`, kept as a tree to be laid over another.
///
/// What it says is checked as it is read; what it lacks is not missed.
#[derive(Debug, Clone)]
pub struct Partial<T> {
    pub node: Node,
    whole: PhantomData<fn() -> T>,
}

impl<T> PartialEq for Partial<T> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<T: Decode> Decode for Partial<T> {
    fn shape() -> Shape {
        Shape::Partial(Box::new(T::shape()))
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        if !node.is_null() {
            cx.partially(|cx| T::decode(node, cx));
        }
        Some(Self { node: node.clone(), whole: PhantomData })
    }
}
