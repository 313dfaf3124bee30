//! Nodes with spans, and problems as diagnostics: what can be ignored is, so that one look finds them all.

use strata_diagnostics::{Diagnostic, Diagnostics, FileId, Span};

use super::syntax;
use crate::build::{Key, Parts, Position, Problem, Tag, Tree, Written};
use crate::scalar::{Scalar, Style, shorten};
use crate::{Entry, Kind, Mapping, Node, Spanned};

pub(super) struct SourceTree<'t, 'd> {
    pub(super) text: &'t str,
    pub(super) file: FileId,
    pub(super) diagnostics: &'d mut Diagnostics,
}

impl SourceTree<'_, '_> {
    fn span(&self, at: Position) -> Span {
        Span::new(self.file, at.start, at.end)
    }
}

impl Tree for SourceTree<'_, '_> {
    type Node = Node;
    type Error = Diagnostic;

    const ONE_DOCUMENT: bool = true;

    fn scalar(&mut self, scalar: Written<'_>, at: Position) -> Node {
        let style = if scalar.plain { Style::Plain } else { Style::Quoted };
        let kind = Kind::Scalar(Scalar { text: scalar.text.into_owned(), style });
        Node { span: self.span(at), kind }
    }

    fn list(&mut self, items: Vec<Node>, at: Position) -> Node {
        Node { span: self.span(at), kind: Kind::List(items) }
    }

    fn mapping(&mut self, entries: Vec<(Key, Node)>, at: Position) -> Node {
        let entry = |(key, value): (Key, Node)| {
            let span = self.span(key.at);
            Entry { key: Spanned::new(key.text, span), value }
        };
        let entries = entries.into_iter().map(entry).collect();
        Node { span: self.span(at), kind: Kind::Mapping(Mapping { entries }) }
    }

    fn key(&self, node: &Node) -> Option<String> {
        node.as_scalar().map(|scalar| scalar.text.clone())
    }

    fn parts(&self, node: Node, at: Position) -> Parts<Node> {
        match node.kind {
            Kind::Scalar(_) => Parts::Scalar(node),
            Kind::List(items) => Parts::List(items),
            Kind::Mapping(mapping) => {
                let entry = |entry: Entry| {
                    let (start, end) = (entry.key.span.start as usize, entry.key.span.end as usize);
                    (Key { text: entry.key.value, at: Position { start, end, ..at } }, entry.value)
                };
                Parts::Mapping(mapping.entries.into_iter().map(entry).collect())
            }
        }
    }

    /// `!!str 5` is text; the other core tags say what the text says by itself.
    fn takes_tag(&self, tag: Tag<'_>, scalar: bool) -> bool {
        scalar && matches!(tag, Tag::Core("str" | "int" | "bool" | "float" | "null"))
    }

    fn error(&self, problem: Problem<'_, Node>, at: Position) -> Diagnostic {
        let span = self.span(at);
        match problem {
            Problem::TooLarge { bytes, most } => {
                let message = format!("the file has {bytes} bytes; the limit is {most}");
                Diagnostic::error("too-large", message)
            }
            Problem::Syntax { info, bracket } => {
                syntax::explain(self.text, span, info, bracket.map(|at| self.span(at)))
            }
            Problem::TooDeep { most } => too_deep(most).at(span),
            Problem::TooManyValues { most } => {
                Diagnostic::error("too-large", format!("the file holds more than {most} values")).at(span)
            }
            Problem::TooManyAliased { most } => {
                let message = format!("the aliases of this file repeat more than {most} values");
                Diagnostic::error("too-large", message).at(span)
            }
            Problem::AliasInside => {
                Diagnostic::error("syntax", "this alias stands inside the value that it repeats").at(span)
            }
            Problem::KeyNotText(node) => {
                let message = format!("a key must be text, found {}", node.describe());
                Diagnostic::error("syntax", message).at(node.span)
            }
            Problem::DuplicateKey { key, first } => duplicate_key(key, span, self.span(first)),
            Problem::NotMergeable(node, key) => {
                let message =
                    format!("`<<` takes a mapping or a list of mappings, found {}", node.describe());
                let problem = Diagnostic::error("wrong-type", message).at(node.span);
                problem.also(self.span(key), "merged here")
            }
            Problem::UnknownTag(tag) => unknown_tag(tag).at(span),
            Problem::SecondDocument => {
                Diagnostic::error("second-document", "a second document begins here; this file takes one")
                    .at(span)
                    .hint("move it to a file of its own, or remove the `---`")
            }
        }
    }

    fn tolerate(&mut self, problem: Diagnostic) -> Result<(), Diagnostic> {
        self.diagnostics.push(problem);
        Ok(())
    }
}

pub(super) fn too_deep(most: usize) -> Diagnostic {
    Diagnostic::error("too-deep", format!("lists and mappings are nested more than {most} deep"))
}

fn duplicate_key(key: &str, again: Span, first: Span) -> Diagnostic {
    let key = shorten(key);
    let hint = match key.as_str() {
        "<<" => "write one `<<` with a list: `<<: [*a, *b]`",
        _ => "keep one of them",
    };
    Diagnostic::error("duplicate-key", format!("the key `{key}` is here twice"))
        .at_with(again, "again here")
        .also(first, "first here")
        .hint(hint)
}

fn unknown_tag(tag: Tag<'_>) -> Diagnostic {
    let hint = match tag {
        Tag::Other("!", "vault") => {
            "keep encrypted values in a `*.vault.yaml` file and refer to them with `{secret: name}`"
        }
        _ => "remove the tag",
    };
    Diagnostic::error("unknown-tag", format!("the tag `{tag}` means nothing here")).hint(hint)
}
