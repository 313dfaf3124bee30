//! Lists, and mappings whose keys are the user's own names.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use strata_diagnostics::Diagnostic;

use crate::shape::TextShape;
use crate::{Context, Decode, Node, Shape, Spanned};

impl<T: Decode> Decode for Vec<T> {
    fn shape() -> Shape {
        Shape::List(Box::new(T::shape()))
    }

    /// An item that cannot be read is reported and left out.
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        if node.is_null() {
            return Some(Self::new());
        }
        let Some(items) = node.as_list() else {
            let hint = node.as_scalar().map(|scalar| format!("write `[{}]`", crate::shorten(&scalar.text)));
            cx.wrong_type_hint(node, &Self::shape(), hint);
            return None;
        };
        Some(items.iter().filter_map(|item| cx.owned(None, |cx| T::decode(item, cx))).collect())
    }

    fn absent() -> Option<Self> {
        Some(Self::new())
    }
}

/// Values by name, in the order they were written.
#[derive(Debug, Clone, PartialEq)]
pub struct Map<T> {
    entries: IndexMap<Spanned<String>, T>,
    /// Names whose value could not be read: they exist, so nobody should be told that they do not.
    broken: BTreeSet<String>,
}

impl<T> Map<T> {
    pub fn get(&self, name: &str) -> Option<&T> {
        self.entries.get(name)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.entries.get_mut(name)
    }

    pub fn entry(&self, name: &str) -> Option<(&Spanned<String>, &T)> {
        self.entries.get_key_value(name)
    }

    /// Whether the name was written, readable or not.
    pub fn names(&self, name: &str) -> bool {
        self.entries.contains_key(name) || self.broken.contains(name)
    }

    pub fn iter(&self) -> indexmap::map::Iter<'_, Spanned<String>, T> {
        self.entries.iter()
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(|key| key.value.as_str())
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.values()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn insert(&mut self, name: Spanned<String>, value: T) {
        self.entries.insert(name, value);
    }
}

impl<T> Default for Map<T> {
    fn default() -> Self {
        Self { entries: IndexMap::new(), broken: BTreeSet::new() }
    }
}

impl<'a, T> IntoIterator for &'a Map<T> {
    type Item = (&'a Spanned<String>, &'a T);
    type IntoIter = indexmap::map::Iter<'a, Spanned<String>, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

impl<T: Decode> Decode for Map<T> {
    fn shape() -> Shape {
        Shape::Map(TextShape::ANY, Box::new(T::shape()))
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        if node.is_null() {
            return Some(Self::default());
        }
        let Some(mapping) = node.as_mapping() else {
            cx.wrong_type(node, &Self::shape());
            return None;
        };
        let mut map = Self::default();
        for entry in &mapping.entries {
            if let Some(rule) = cx.rules().keys
                && !(rule.accepts)(&entry.key)
            {
                let message = format!("`{}` is not {}", crate::shorten(&entry.key), rule.shape.what);
                cx.push(Diagnostic::error("invalid-name", message).at(entry.key.span));
            }
            if cx.is_partial() && entry.value.is_null() {
                continue;
            }
            match cx.named(&entry.key, |cx| T::decode(&entry.value, cx)) {
                Some(value) => map.insert(entry.key.clone(), value),
                None => {
                    map.broken.insert(entry.key.value.clone());
                }
            }
        }
        Some(map)
    }

    fn absent() -> Option<Self> {
        Some(Self::default())
    }
}
