//! What can be wrong with a file, as the builder finds it and as a reader without spans reports it.

use super::{Position, Tag};

/// What the builder found.
pub enum Problem<'p, N> {
    TooLarge {
        bytes: usize,
        most: usize,
    },
    /// The parser's own words, and the innermost `{` or `[` that is open.
    Syntax {
        info: &'p str,
        bracket: Option<Position>,
    },
    TooDeep {
        most: usize,
    },
    TooManyValues {
        most: usize,
    },
    TooManyAliased {
        most: usize,
    },
    /// An alias inside the value that it repeats.
    AliasInside,
    KeyNotText(&'p N),
    /// Can be tolerated: the first stays.
    DuplicateKey {
        key: &'p str,
        first: Position,
    },
    /// Can be tolerated: a merge key of something else than a mapping; and the place of the `<<`.
    NotMergeable(&'p N, Position),
    /// Can be tolerated.
    UnknownTag(Tag<'p>),
    /// Can be tolerated: the first stays.
    SecondDocument,
}

/// Why a text could not be read as YAML. The text itself is never quoted, keys apart: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{bytes} bytes are more than the {most} that are read")]
    TooLarge { bytes: usize, most: usize },
    #[error("line {line}: {reason}")]
    Syntax { line: usize, reason: String },
    #[error("line {line}: nested more than {deepest} levels deep")]
    TooDeep { line: usize, deepest: usize },
    #[error("more than {most} values, those that aliases repeat included")]
    TooManyValues { most: usize },
    #[error("line {line}: a key must be text")]
    KeyNotText { line: usize },
    #[error("line {line}: the key `{key}` is there twice")]
    DuplicateKey { line: usize, key: String },
    #[error("line {line}: the tag `{tag}` has no meaning here")]
    UnknownTag { line: usize, tag: String },
}

impl Error {
    /// The error for a problem that the builder found at a place.
    pub fn new<N>(problem: Problem<'_, N>, at: Position) -> Self {
        let line = at.line;
        let syntax = |reason: &str| Self::Syntax { line, reason: reason.to_owned() };
        match problem {
            Problem::TooLarge { bytes, most } => Self::TooLarge { bytes, most },
            Problem::Syntax { info, .. } => syntax(info),
            Problem::TooDeep { most } => Self::TooDeep { line, deepest: most },
            Problem::TooManyValues { most } | Problem::TooManyAliased { most } => {
                Self::TooManyValues { most }
            }
            Problem::AliasInside => syntax("this alias stands inside the value that it repeats"),
            Problem::KeyNotText(_) => Self::KeyNotText { line },
            Problem::DuplicateKey { key, .. } => Self::DuplicateKey { line, key: key.to_owned() },
            Problem::NotMergeable(..) => syntax("`<<` takes a mapping or a list of mappings"),
            Problem::UnknownTag(tag) => Self::UnknownTag { line, tag: tag.to_string() },
            Problem::SecondDocument => syntax("a second document begins here"),
        }
    }
}
