//! The list that every parser and check adds to, so that all mistakes are reported and not only the first.

use std::collections::HashSet;

use crate::Diagnostic;

/// Everything that was found, in one list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Whether any of them is an error.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(Diagnostic::is_error)
    }

    /// How many are errors.
    pub fn error_count(&self) -> usize {
        self.list.iter().filter(|diagnostic| diagnostic.is_error()).count()
    }

    /// How many are warnings.
    pub fn warning_count(&self) -> usize {
        self.list.len() - self.error_count()
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// All of them, in the order in which they were found until they are tidied.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Puts them in reading order and drops repetitions.
    ///
    /// A mistake in a file that several environments share is found once for each of them, and is still one mistake.
    pub fn tidy(&mut self) {
        let mut seen = HashSet::new();
        let mut unknown = HashSet::new();
        self.list.retain(|diagnostic| {
            // A key that several records take from one place is one mistake, whoever is said not to have it.
            let place = diagnostic.primary.as_ref().map(|label| label.span);
            let again = diagnostic.code == "unknown-key" && place.is_some_and(|span| !unknown.insert(span));
            !again && seen.insert(diagnostic.clone())
        });
        self.list.sort_by_key(|diagnostic| {
            let place = diagnostic.primary.as_ref().map(|label| label.span);
            (place.is_none(), place.map(|span| (span.file, span.start)))
        });
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, iter: I) {
        self.list.extend(iter);
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(iter: I) -> Self {
        Self { list: iter.into_iter().collect() }
    }
}
