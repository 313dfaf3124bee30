//! One thing to tell the user: what is wrong, where, and what to do next.

use crate::Span;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing can be done with the file as it is.
    Error,
    /// It works, and is probably not meant.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// As messages, JSON and SARIF call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A place that a diagnostic speaks of, and what it says about it (may be empty).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label {
    /// The text that is underlined.
    pub span: Span,
    /// What stands under it.
    pub text: String,
}

/// A message with its places.
///
/// The text is lower case, has no full stop, and names things in backticks; what to do about it goes into the hint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A stable name, such as `unknown-key`, that scripts and documentation can rely on.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where it is; absent only for what has no place in any file.
    pub primary: Option<Label>,
    /// Other places that explain it, such as the first of two duplicates.
    pub secondary: Vec<Label>,
    /// What explains it further.
    pub notes: Vec<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The line holds something that must not be shown: it is named only.
    pub private: bool,
}

impl Diagnostic {
    /// A message without a place.
    pub fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity,
            code,
            message: message.into(),
            primary: None,
            secondary: Vec::new(),
            notes: Vec::new(),
            hint: None,
            private: false,
        }
    }

    /// An error without a place.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// A warning without a place.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// Underlines the offending text.
    #[must_use]
    pub fn at(self, span: Span) -> Self {
        self.at_with(span, "")
    }

    /// Underlines the offending text and says something under it.
    #[must_use]
    pub fn at_with(mut self, span: Span, text: impl Into<String>) -> Self {
        self.primary = Some(Label { span, text: text.into() });
        self
    }

    /// Shows another place, in this file or in another.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// Adds an explanation.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Says what to do about it.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        self.hint = Some(text.into());
        self
    }

    /// Adds a hint if there is one to give.
    #[must_use]
    pub fn maybe_hint(mut self, text: Option<impl Into<String>>) -> Self {
        if let Some(text) = text {
            self.hint = Some(text.into());
        }
        self
    }

    /// Names the place without showing the line.
    #[must_use]
    pub fn without_source(mut self) -> Self {
        self.private = true;
        self
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
