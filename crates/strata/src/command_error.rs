//! How an error is shown to people, and the exit code that says it to scripts.

use std::fmt::Write as _;

pub(crate) use strata_session::{ErrorKind, SessionError as CommandError};

use crate::style::{self, paint};

/// Exit codes: see `strata help`.
pub(crate) fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Failed => 1,
        ErrorKind::Refused => 3,
        ErrorKind::Locked => 4,
        ErrorKind::Interrupted => 130,
        // EX_USAGE of sysexits.h: not mistaken for changes or drift, as 2 would be.
        ErrorKind::Usage => 64,
    }
}

/// For people.
pub(crate) fn render(error: &CommandError) -> String {
    let mut text = format!("{} {}", paint(style::ERROR, "error:"), error.message);
    if let Some(origin) = &error.origin {
        let _ = write!(text, "\n  {} {origin}", paint(style::FAINT, "-->"));
    }
    for detail in &error.details {
        let _ = write!(text, "\n  {}", paint(style::FAINT, detail));
    }
    for hint in &error.hints {
        let _ = write!(text, "\n  {} {hint}", paint(style::HINT, "hint:"));
    }
    text
}
