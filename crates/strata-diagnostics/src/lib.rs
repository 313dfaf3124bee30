//! Diagnostic, span, source map, hint; rendered for people, as JSON and as SARIF.

mod collector;
mod diagnostic;
mod json;
mod read_file;
mod render;
mod sarif;
mod source_map;
mod span;
mod suggest;

pub use collector::Diagnostics;
pub use diagnostic::{Diagnostic, Label, Severity};
pub use json::to_json;
pub use read_file::{LARGEST_FILE, read_file, read_text_file};
pub use render::{Color, render};
pub use sarif::to_sarif;
pub use source_map::{Location, SourceFile, SourceMap};
pub use span::{FileId, Span};
pub use suggest::{distance, nearest};
