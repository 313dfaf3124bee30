//! Colours, in one place.

use anstyle::{AnsiColor, Style};

/// What is made.
pub const CREATE: Style = AnsiColor::Green.on_default();
/// What is changed in place.
pub const CHANGE: Style = AnsiColor::Yellow.on_default();
/// What is deleted and made again.
pub const REPLACE: Style = AnsiColor::Magenta.on_default();
/// What is deleted.
pub const DESTROY: Style = AnsiColor::Red.on_default();
/// What went wrong.
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
/// What a reader should look at.
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// The word `hint:`.
pub const HINT: Style = AnsiColor::Cyan.on_default();
/// Names and headings.
pub const STRONG: Style = Style::new().bold();
/// What is of little interest.
pub const FAINT: Style = Style::new().dimmed();

/// The text in a style, reset after it.
pub fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}
