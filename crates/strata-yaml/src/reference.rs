//! Values that come from outside the file: a secret, the environment, another file.

use strata_diagnostics::{Diagnostic, Span, nearest};

use crate::{Context, Decode, Node, ScalarKind, Shape, Spanned};

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// A path into the encrypted files: `a.b`.
    Secret(String),
    /// A variable of the environment.
    Env(String),
    /// The content of a file, without the line break at its end.
    File(String),
}

/// `{secret: …}`, `{env: …}` or `{file: …}`, and where it was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    pub source: Source,
    pub span: Span,
    /// The field it stands in holds a secret.
    pub sensitive: bool,
    /// The decoder needed the value at once, and has it: an ordinary field, which plans show.
    pub fetched: bool,
}

impl Reference {
    /// By where it comes from, or by where it stands.
    pub fn is_secret(&self) -> bool {
        self.sensitive || matches!(self.source, Source::Secret(_))
    }
}

/// A value that is written down, or a reference to be resolved when it is needed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Value<T> {
    Literal(T),
    Reference(Reference),
}

/// What is written down may be a secret, wrongly: it is never printed.
impl<T> std::fmt::Debug for Value<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Literal(_) => f.write_str("Literal(…)"),
            Self::Reference(reference) => f.debug_tuple("Reference").field(reference).finish(),
        }
    }
}

impl<T> Value<T> {
    pub fn literal(&self) -> Option<&T> {
        match self {
            Self::Literal(value) => Some(value),
            Self::Reference(_) => None,
        }
    }

    pub fn reference(&self) -> Option<&Reference> {
        match self {
            Self::Literal(_) => None,
            Self::Reference(reference) => Some(reference),
        }
    }
}

impl Source {
    pub const KEYS: [&'static str; 3] = ["secret", "env", "file"];

    pub fn key(&self) -> &'static str {
        match self {
            Self::Secret(_) => "secret",
            Self::Env(_) => "env",
            Self::File(_) => "file",
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Secret(name) | Self::Env(name) | Self::File(name) => name,
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{}: {}}}", self.key(), self.name())
    }
}

impl Reference {
    /// The reference that a node spells, if it is a mapping with just that one key.
    ///
    /// `Err` is a node that was meant to be one and is not, reported.
    pub fn read(node: &Node, cx: &mut Context<'_>) -> Option<Result<Self, ()>> {
        let mapping = node.as_mapping()?;
        let [entry] = mapping.entries.as_slice() else { return None };
        let known = Source::KEYS.contains(&entry.key.value.as_str());
        if !known {
            return None;
        }
        let Some(name) = entry
            .value
            .as_scalar()
            .filter(|scalar| scalar.kind() == ScalarKind::Text && !scalar.text.is_empty())
        else {
            let message = format!("`{}` takes a name, found {}", entry.key, entry.value.describe());
            cx.push(Diagnostic::error("wrong-type", message).at(entry.value.span));
            return Some(Err(()));
        };
        let name = name.text.clone();
        let source = match entry.key.value.as_str() {
            "secret" => Source::Secret(name),
            "env" => Source::Env(name),
            _ => Source::File(name),
        };
        Some(Ok(Self { source, span: node.span, sensitive: cx.rules().secret, fetched: false }))
    }

    /// The reference that a mapping was perhaps meant to be.
    pub(crate) fn almost(node: &Node) -> Option<(Spanned<&str>, &'static str)> {
        let [entry] = node.as_mapping()?.entries.as_slice() else { return None };
        let meant = nearest(&entry.key.value, Source::KEYS)?;
        Some((Spanned::new(entry.key.value.as_str(), entry.key.span), meant))
    }
}

impl<T: Decode> Decode for Value<T> {
    fn shape() -> Shape {
        Shape::Reference(Box::new(T::shape()))
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        match Reference::read(node, cx) {
            Some(Ok(reference)) => {
                cx.refer(reference.clone());
                Some(Self::Reference(reference))
            }
            Some(Err(())) => None,
            None => {
                let value = T::decode(node, cx).map(Self::Literal);
                if value.is_some() && cx.rules().secret && !cx.is_partial() {
                    let message = format!("{} is written in the clear", cx.what());
                    let problem = Diagnostic::warning("plain-secret", message).at(node.span).without_source();
                    cx.push(problem.hint("keep it in an encrypted file and write `{secret: name}`"));
                }
                value
            }
        }
    }
}
