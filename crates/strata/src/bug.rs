//! What is said when the program itself is wrong: where, and never a secret.

use std::panic::PanicHookInfo;
use std::sync::{Mutex, PoisonError};

use strata_secret::Redactor;

/// Every set of secrets that this process has opened.
static KNOWN: Mutex<Vec<Redactor>> = Mutex::new(Vec::new());

/// Lets nothing that these know be said of a bug.
pub(crate) fn keep_secret(redactor: &Redactor) {
    // What is poisoned here is at worst one entry short; nobody is helped by a second panic.
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).push(redactor.clone());
}

/// Tells of a panic in the words of every other error.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|info| {
        let printer = crate::printer::Printer::new(false, false, false, &crate::context::SystemClock);
        printer.note(describe(message(info), &place(info)));
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
            printer.note(std::backtrace::Backtrace::force_capture().to_string());
        }
    }));
}

fn message<'i>(info: &'i PanicHookInfo<'_>) -> &'i str {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}

fn place(info: &PanicHookInfo<'_>) -> String {
    info.location().map_or_else(|| "an unknown place".to_owned(), |at| format!("{}:{}", at.file(), at.line()))
}

fn describe(message: &str, place: &str) -> String {
    // Whoever panicked may hold the lock; then nothing is known to be harmless.
    let known = match KNOWN.try_lock() {
        Ok(known) => known,
        Err(std::sync::TryLockError::Poisoned(known)) => known.into_inner(),
        Err(std::sync::TryLockError::WouldBlock) => return text("(not shown)", place),
    };
    let shown = known.iter().fold(message.to_owned(), |text, known| known.redact(&text).into_owned());
    text(&shown, place)
}

fn text(message: &str, place: &str) -> String {
    format!(
        "error: this is a bug in Strata, at {place}: {message}\n  hint: what was begun is in the journal: `strata apply` goes on from there; please report the bug"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_tells_no_secret() {
        let known = Redactor::new();
        known.add_text("correct-horse");
        keep_secret(&known);
        // Also one that is learned later.
        known.add_text("battery-staple");
        let text = describe("cannot set correct-horse to battery-staple", "a.rs:7");
        assert!(
            text.starts_with("error: this is a bug in Strata, at a.rs:7: cannot set <secret> to <secret>"),
            "{text}"
        );
    }
}
