//! Where the texts of a verb go.

use strata_session::SessionError;

use crate::Event;

/// Who reads what a verb says, and is asked: a person, with programs beside them.
pub trait Terminal: Send + Sync {
    /// A line of the result.
    fn line(&self, text: &str);

    /// Beside the result.
    fn note(&self, text: &str);

    /// To programs, with the key of the state that it is about.
    fn event(&self, key: Option<&str>, event: &Event<'_>);

    /// Fails unless the person agrees.
    fn ask(&self, question: &str) -> Result<(), SessionError>;
}
