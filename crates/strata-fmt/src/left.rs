//! Why a text was left as it is.

/// Why a text was left as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Left {
    #[error("line {line}: {message}")]
    Syntax { line: usize, message: String },
    #[error("it is encrypted")]
    Encrypted,
    #[error("it is a template")]
    Template,
    #[error("line {line}: {what}")]
    Unusual { line: usize, what: &'static str },
    /// A fault of the formatter, found before anything was written.
    #[error("the layout would change what it means")]
    Meaning,
}

impl Left {
    /// Whether this is as it should be: what is encrypted, or made by a template, has no layout.
    pub fn is_expected(&self) -> bool {
        matches!(self, Self::Encrypted | Self::Template)
    }
}
