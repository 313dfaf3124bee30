//! Names of values: `a.b.0.c`, from the root on, with numbers for the items of lists.

use super::cipher::Token;
use super::format::{Replacement, Replacements};
use super::tree::{Document, Item, Node};
use crate::value::{Kind, Value};

/// A value and the names that lead to it.
pub(crate) struct Named {
    pub(crate) path: Vec<String>,
    pub(crate) value: Value,
}

/// Every value, with changes applied. Comments are left out, also those that SOPS writes as items of a list.
pub(crate) fn values(documents: &[Document], replacements: &Replacements) -> Vec<Named> {
    let mut found = Vec::new();
    for document in documents {
        collect(&document.items, false, replacements, &mut Vec::new(), &mut found);
    }
    found
}

fn collect(
    items: &[Item],
    in_list: bool,
    replacements: &Replacements,
    path: &mut Vec<String>,
    found: &mut Vec<Named>,
) {
    let mut index = 0;
    for item in items {
        let Item::Entry { key, node } = item else { continue };
        path.push(if in_list { index.to_string() } else { key.clone() });
        index += 1;
        match node {
            Node::Mapping(items) => collect(items, false, replacements, path, found),
            Node::List(items) => collect(items, true, replacements, path, found),
            Node::Leaf(leaf) => match replacements.get(&leaf.slot) {
                Some(Replacement::Comment(_)) => index -= 1,
                Some(Replacement::Value(value)) => {
                    found.push(Named { path: path.clone(), value: value.clone() })
                }
                // A comment in a list looks like a value until it is decrypted, but says what it is.
                None if is_sealed_comment(&leaf.value) => index -= 1,
                Some(Replacement::Token(_)) | None => {
                    found.push(Named { path: path.clone(), value: leaf.value.clone() });
                }
            },
        }
        path.pop();
    }
}

fn is_sealed_comment(value: &Value) -> bool {
    value.as_str().and_then(Token::parse).is_some_and(|token| token.kind == Kind::Comment)
}

/// Whether two trees hold the same values under the same names in the same order.
pub(crate) fn same(left: &[Named], right: &[Named]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| {
            // Compared by their bytes, so that a number that is not a number equals itself.
            left.path == right.path
                && left.value.kind() == right.value.kind()
                && left.value.to_bytes() == right.value.to_bytes()
        })
}
