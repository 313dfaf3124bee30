//! What can go wrong in a storage, by kind, with what was behind it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// What was behind an error. Shared, since one failure can be the answer to several commands.
pub type Source = Arc<dyn Error + Send + Sync>;

/// Of which kind a failure is: what to do about it depends on this, never on its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// What was set contradicts itself or cannot be read.
    Settings,
    Unreachable,
    /// No credentials were given, or they were refused.
    Unauthenticated,
    Forbidden,
    /// The server does not respect the conditions of a write.
    Conditions,
    Full,
    Other,
}

/// Something that did not work.
#[derive(Debug, Clone)]
pub struct Failure {
    pub kind: FailureKind,
    what: String,
    source: Option<Source>,
}

impl Failure {
    pub fn new(what: impl Into<String>) -> Self {
        Self { kind: FailureKind::Other, what: what.into(), source: None }
    }

    /// `what` without the words of the error, which follow it.
    pub fn of(what: impl Into<String>, source: impl Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(source)), ..Self::new(what) }
    }

    /// Nothing is to be said but what the error says.
    pub fn from_error(source: impl Error + Send + Sync + 'static) -> Self {
        Self::of("", source)
    }

    #[must_use]
    pub fn kind(self, kind: FailureKind) -> Self {
        Self { kind, ..self }
    }

    /// What failed, without the reason.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// What was behind it, in words; libraries say half of it in each of their errors.
    pub fn reason(&self) -> Option<String> {
        self.source.as_ref().map(|source| chain(source.as_ref()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            None => f.write_str(&self.what),
            Some(reason) if self.what.is_empty() => f.write_str(&reason),
            Some(reason) => write!(f, "{}: {reason}", self.what),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}

/// An error and what is behind it. Some say in their own words what their source says too.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let said = inner.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = inner.source();
    }
    text
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum StorageError {
    /// Nothing was changed.
    #[error("there is no space left for the states")]
    Full(#[source] Failure),
    /// Nothing was changed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// Whether it was changed is not known; nothing more is accepted until somebody looked.
    #[error("the storage stopped: {0}")]
    Broken(#[source] Failure),
    #[error("the storage is damaged: {0}")]
    Damaged(#[source] Failure),
    /// Nothing was changed; it may go better in a moment.
    #[error("the storage is busy")]
    Busy,
}

impl StorageError {
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(Failure::new(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_what_was_behind_it() {
        let lost = std::io::Error::new(std::io::ErrorKind::BrokenPipe, "the pipe broke");
        let error = StorageError::from(Failure::of("cannot write", lost).kind(FailureKind::Unreachable));
        assert_eq!(error.to_string(), "cannot write: the pipe broke");
        let behind = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
        assert_eq!(behind.map(std::io::Error::kind), Some(std::io::ErrorKind::BrokenPipe));
        assert!(error.clone().source().is_some());
    }
}
