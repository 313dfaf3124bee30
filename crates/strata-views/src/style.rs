//! Colours, in one place.

use anstyle::{AnsiColor, Style};

pub const CREATE: Style = AnsiColor::Green.on_default();
pub const CHANGE: Style = AnsiColor::Yellow.on_default();
pub const REPLACE: Style = AnsiColor::Magenta.on_default();
pub const DESTROY: Style = AnsiColor::Red.on_default();
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub const HINT: Style = AnsiColor::Cyan.on_default();
pub const STRONG: Style = Style::new().bold();
pub const FAINT: Style = Style::new().dimmed();

/// The text in a style, reset after it.
pub fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}
