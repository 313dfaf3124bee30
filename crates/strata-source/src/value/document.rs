//! Whole documents for a guest: a file of the repository, text in place, or a reference.

use strata_diagnostics::Diagnostic;
use strata_yaml::{Context, Decode, Node, Reference, Shape, Source, Spanned, TextShape};

/// A document such as cloud-init user-data.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// A path, from the folder of the stack or the root of the repository.
    File(Spanned<String>),
    /// The text itself.
    Inline(Spanned<String>),
    /// A whole document that is a secret, or in the environment.
    Reference(Reference),
    /// YAML in place: it may hold references, and is written out when they are resolved.
    Mapping(Node),
}

impl Decode for Document {
    fn shape() -> Shape {
        let text = TextShape { what: "a path, or the text itself over several lines", pattern: None };
        Shape::AnyOf(vec![Shape::Reference(Box::new(Shape::Text(text))), Shape::AnyMapping])
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        if node.as_mapping().is_some() {
            return match Reference::read(node, cx) {
                Some(Ok(reference)) => {
                    cx.refer(reference.clone());
                    Some(match reference.source {
                        Source::File(path) => Self::File(Spanned::new(path, reference.span)),
                        _ => Self::Reference(reference),
                    })
                }
                Some(Err(())) => None,
                None => {
                    nested(node, cx);
                    Some(Self::Mapping(node.clone()))
                }
            };
        }
        let text = Spanned::<String>::decode(node, cx)?;
        if text.contains('\n') {
            return Some(Self::Inline(text));
        }
        if text.is_empty() {
            cx.push(Diagnostic::error("invalid-value", format!("{} is empty", cx.what())).at(node.span));
            return None;
        }
        let source = Source::File(text.value.clone());
        cx.refer(Reference { source, span: node.span, sensitive: false, fetched: false });
        Some(Self::File(text))
    }
}

/// Remembers the references inside a document.
fn nested(node: &Node, cx: &mut Context<'_>) {
    if let Some(Ok(reference)) = Reference::read(node, cx) {
        cx.refer(reference);
        return;
    }
    for item in node.as_list().unwrap_or_default() {
        nested(item, cx);
    }
    for entry in node.as_mapping().map(|mapping| mapping.entries.as_slice()).unwrap_or_default() {
        nested(&entry.value, cx);
    }
}
