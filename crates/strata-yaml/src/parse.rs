//! Parser events become a spanned tree; what a hostile or careless file can do here is bounded.

mod builder;
mod syntax;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use strata_diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};

use crate::Node;
use crate::parse::builder::Builder;
use crate::scalar::{Scalar, Style};

/// Deeper nesting than any file of ours needs. Everything after the parser may recurse because of this limit.
pub const MAX_DEPTH: usize = 64;
/// Values in one file, those that aliases repeat included.
pub const MAX_NODES: usize = 1_000_000;
/// Values that aliases may repeat: a few lines of aliases of aliases could otherwise fill the memory.
pub const MAX_ALIASED: usize = 100_000;
/// Bytes in one file.
pub const MAX_BYTES: usize = 32 << 20;

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
    if let Some(problem) = unreadable(&text, file) {
        diagnostics.push(problem);
        return Parsed::Broken;
    }
    let offsets = Offsets::new(&text);
    let mut builder = Builder::new(diagnostics);
    for event in Parser::new_from_str(&text) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                let at = offsets.byte(error.marker().index());
                let problem =
                    syntax::explain(&text, Span::new(file, at, at), error.info(), builder.bracket());
                diagnostics.push(problem);
                return Parsed::Broken;
            }
        };
        let start = offsets.byte(span.start.index());
        let span = Span::new(file, start, offsets.byte(span.end.index()));
        if !take(&mut builder, event, span) {
            return Parsed::Broken;
        }
        if builder.ended() {
            break;
        }
    }
    builder.finish().map_or(Parsed::Empty, Parsed::Document)
}

/// Hands one event on; false stops the parse, which the builder has then reported.
fn take(builder: &mut Builder<'_>, event: Event<'_>, span: Span) -> bool {
    match event {
        Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => true,
        Event::DocumentStart(_) => builder.document(span),
        Event::Alias(anchor) => builder.alias(anchor, span),
        Event::Scalar(text, style, anchor, tag) => {
            let style = match style {
                ScalarStyle::Plain => Style::Plain,
                _ => Style::Quoted,
            };
            let tag = tag.as_deref();
            let scalar = Scalar { text: text.into_owned(), style: tagged(style, tag) };
            builder.tag(tag.map(Tag::to_string), known_tag(tag), span);
            builder.scalar(scalar, anchor, span)
        }
        Event::SequenceStart(anchor, tag) => {
            builder.tag(tag.as_ref().map(|tag| tag.to_string()), tag.is_none(), span);
            builder.open(false, anchor, span)
        }
        Event::MappingStart(anchor, tag) => {
            builder.tag(tag.as_ref().map(|tag| tag.to_string()), tag.is_none(), span);
            builder.open(true, anchor, span)
        }
        Event::SequenceEnd | Event::MappingEnd => builder.close(span),
    }
}

/// `!!str 5` is text; the other core tags say what the text says by itself.
fn tagged(style: Style, tag: Option<&Tag>) -> Style {
    match tag {
        Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => Style::Quoted,
        _ => style,
    }
}

fn known_tag(tag: Option<&Tag>) -> bool {
    tag.is_none_or(|tag| {
        tag.is_yaml_core_schema() && matches!(tag.suffix.as_str(), "str" | "int" | "bool" | "float" | "null")
    })
}

/// What no YAML reader should be given.
fn unreadable(text: &str, file: FileId) -> Option<Diagnostic> {
    if text.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; the limit is {MAX_BYTES}", text.len());
        return Some(Diagnostic::error("too-large", message));
    }
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

/// From the parser's character numbers to bytes.
struct Offsets(Option<Vec<u32>>, usize);

impl Offsets {
    fn new(text: &str) -> Self {
        let table = (!text.is_ascii()).then(|| text.char_indices().map(|(byte, _)| byte as u32).collect());
        Self(table, text.len())
    }

    fn byte(&self, index: usize) -> usize {
        match &self.0 {
            None => index.min(self.1),
            Some(table) => table.get(index).map_or(self.1, |byte| *byte as usize),
        }
    }
}
