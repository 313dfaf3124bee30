//! A file of the repository as a spanned tree, by the YAML 1.2 core schema.

mod syntax;
mod tree;

use strata_diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};

use crate::Node;
use crate::build::{Limits, build};

/// Deeper nesting than any file of ours needs. Everything after the parser may recurse because of this limit.
pub const MAX_DEPTH: usize = 64;
/// Values in one file, those that aliases repeat included.
pub const MAX_NODES: usize = 1_000_000;
/// Values that aliases may repeat: a few lines of aliases of aliases could otherwise fill the memory.
pub const MAX_ALIASED: usize = 100_000;
/// Bytes in one file.
pub const MAX_BYTES: usize = 32 << 20;

const LIMITS: Limits = Limits { bytes: MAX_BYTES, depth: MAX_DEPTH, values: MAX_NODES, aliased: MAX_ALIASED };

/// What a file turned out to hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Parsed {
    Document(Node),
    /// Nothing but white space and comments.
    Empty,
    /// Reported; there is nothing to go on with.
    Broken,
}

impl Parsed {
    /// The document, with an error for a file that has none.
    pub fn required(self, file: FileId, what: &str, diagnostics: &mut Diagnostics) -> Option<Node> {
        match self {
            Self::Document(node) => Some(node),
            Self::Broken => None,
            Self::Empty => {
                let message = format!("the file is empty; it should hold {what}");
                diagnostics.push(Diagnostic::error("empty-file", message).at(Span::start_of(file)));
                None
            }
        }
    }
}

/// Reads the one document of a file.
pub fn parse(sources: &SourceMap, file: FileId, diagnostics: &mut Diagnostics) -> Parsed {
    let text = sources.text_of(file);
    if let Some(problem) = unprintable(&text, file) {
        diagnostics.push(problem);
        return Parsed::Broken;
    }
    let mut tree = tree::SourceTree { text: &text, file, diagnostics };
    match build(&text, &LIMITS, &mut tree) {
        Ok(documents) => {
            documents.into_iter().next().map_or(Parsed::Empty, |(_, node)| Parsed::Document(node))
        }
        Err(problem) => {
            diagnostics.push(problem);
            Parsed::Broken
        }
    }
}

/// A character that no YAML reader should be given.
fn unprintable(text: &str, file: FileId) -> Option<Diagnostic> {
    // What is too large is refused without a look at it.
    let text = text.get(..MAX_BYTES).unwrap_or(text);
    let printable = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    let (at, found) = text.char_indices().find(|(_, c)| !printable(*c))?;
    let code = found as u32;
    let message = format!("the control character U+{code:04X} cannot stand in YAML");
    let span = Span::new(file, at, at + found.len_utf8());
    Some(
        Diagnostic::error("syntax", message)
            .at(span)
            .hint(format!("write it as \"\\u{code:04x}\" in quotes")),
    )
}
