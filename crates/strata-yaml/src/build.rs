//! The YAML core: parser events become a tree of any kind, within limits.
//!
//! There is one builder for every file that Strata reads as YAML. It expands aliases and merge keys, finds keys that are there
//! twice, and refuses what would fill the memory or the stack. What differs is a [`Tree`]: what an unquoted scalar means, which tags
//! are known, what a node keeps of its place, and how an error is reported.

mod builder;
mod error;

use std::borrow::Cow;
use std::fmt;

use saphyr_parser::{Event, Parser, ScalarStyle};

use builder::Builder;
pub use error::{Error, Problem};

/// How much a file may hold.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub bytes: usize,
    /// Lists and mappings in each other, those that aliases bring included. Everything after the builder may recurse because of it.
    pub depth: usize,
    /// Values, those that aliases repeat included.
    pub values: usize,
    /// Values that aliases may repeat: a few lines of aliases of aliases would otherwise fill the memory.
    pub aliased: usize,
}

/// Where something stands: bytes of the text, and the line where it begins, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub start: usize,
    pub end: usize,
    pub line: usize,
}

impl Position {
    fn is_empty(self) -> bool {
        self.start == self.end
    }

    fn to(self, other: Self) -> Self {
        Self { end: self.end.max(other.end), ..self }
    }
}

/// A scalar as it is written.
pub struct Written<'t> {
    pub text: Cow<'t, str>,
    /// Without quotes: the text decides what it is. `!!str` counts as quotes.
    pub plain: bool,
}

/// The name of a value in its mapping.
#[derive(Debug, Clone)]
pub struct Key {
    pub text: String,
    pub at: Position,
}

/// A tag before a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag<'t> {
    /// One of YAML's own, such as `!!str`: its name.
    Core(&'t str),
    /// Handle and name of another.
    Other(&'t str, &'t str),
}

impl fmt::Display for Tag<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(name) => write!(f, "!!{name}"),
            Self::Other("!", name) => write!(f, "!{name}"),
            Self::Other(handle, name) => write!(f, "{handle}!{name}"),
        }
    }
}

/// A finished value, taken apart.
pub enum Parts<N> {
    Scalar(N),
    List(Vec<N>),
    Mapping(Vec<(Key, N)>),
}

/// What the events of a file become.
pub trait Tree {
    type Node: Clone;
    type Error;

    /// A file takes one document; what follows is not looked at.
    const ONE_DOCUMENT: bool = false;

    /// What a scalar means.
    fn scalar(&mut self, scalar: Written<'_>, at: Position) -> Self::Node;

    fn list(&mut self, items: Vec<Self::Node>, at: Position) -> Self::Node;

    /// The keys are unique and in their order; what merge keys brought comes last.
    fn mapping(&mut self, entries: Vec<(Key, Self::Node)>, at: Position) -> Self::Node;

    /// The text of a value that stands as a key; `None` refuses it.
    fn key(&self, node: &Self::Node) -> Option<String>;

    /// Takes a value apart, for merge keys. `at` is the place of the `<<`.
    fn parts(&self, node: Self::Node, at: Position) -> Parts<Self::Node>;

    /// Whether a tag may stand before a scalar, or before a list or mapping.
    fn takes_tag(&self, _tag: Tag<'_>, _scalar: bool) -> bool {
        true
    }

    /// The error for a problem at a place.
    fn error(&self, problem: Problem<'_, Self::Node>, at: Position) -> Self::Error;

    /// An error after which the rest can be read: an `Ok` goes on.
    fn tolerate(&mut self, error: Self::Error) -> Result<(), Self::Error> {
        Err(error)
    }
}

/// The documents of a text, each with its place.
pub fn build<T: Tree>(
    text: &str,
    limits: &Limits,
    tree: &mut T,
) -> Result<Vec<(Position, T::Node)>, T::Error> {
    let offsets = Offsets::new(text);
    let whole = Position { start: 0, end: 0, line: 1 };
    if text.len() > limits.bytes {
        return Err(tree.error(Problem::TooLarge { bytes: text.len(), most: limits.bytes }, whole));
    }
    let mut builder = Builder::new(tree, limits);
    for event in Parser::new_from_str(text) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                let start = offsets.byte(error.marker().index());
                let at = Position { start, end: start, line: error.marker().line().max(1) };
                return Err(builder.syntax(error.info(), at));
            }
        };
        let at = Position {
            start: offsets.byte(span.start.index()),
            end: offsets.byte(span.end.index()),
            line: span.start.line().max(1),
        };
        take(&mut builder, event, at)?;
        if builder.ended() {
            break;
        }
    }
    Ok(builder.documents())
}

/// Hands one event on.
fn take<T: Tree>(builder: &mut Builder<'_, T>, event: Event<'_>, at: Position) -> Result<(), T::Error> {
    match event {
        Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        Event::DocumentStart(_) => builder.document(at),
        Event::Alias(anchor) => builder.alias(anchor, at),
        Event::Scalar(text, style, anchor, tag) => {
            let tag = tag.as_deref().map(tag_of);
            let plain = style == ScalarStyle::Plain && tag != Some(Tag::Core("str"));
            builder.tag(tag, true, at)?;
            builder.scalar(Written { text, plain }, anchor, at)
        }
        Event::SequenceStart(anchor, tag) => {
            builder.tag(tag.as_deref().map(tag_of), false, at)?;
            builder.open(false, anchor, at)
        }
        Event::MappingStart(anchor, tag) => {
            builder.tag(tag.as_deref().map(tag_of), false, at)?;
            builder.open(true, anchor, at)
        }
        Event::SequenceEnd | Event::MappingEnd => builder.close(at),
    }
}

fn tag_of(tag: &saphyr_parser::Tag) -> Tag<'_> {
    if tag.is_yaml_core_schema() { Tag::Core(&tag.suffix) } else { Tag::Other(&tag.handle, &tag.suffix) }
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
