//! What there is to tell a user about a file: a message, its places, a hint; for people, as JSON and as SARIF.
//!
//! A [`SourceMap`] holds the texts, a [`Span`] is a place in one of them, a [`Diagnostic`] is one message with its places, and
//! [`Diagnostics`] gathers all of them: nothing stops at the first. [`render()`], [`to_json`] and [`to_sarif`] write them out; [`nearest`] is
//! for hints that say what may have been meant.
//!
//! Nothing here prints, and nothing here panics on a text: a span that is not in its file shows nothing.
//!
//! ```
//! use strata_diagnostics::{Color, Diagnostic, SourceMap, Span, nearest, render};
//!
//! let mut sources = SourceMap::new();
//! let file = sources.add("stacks/web/stack.yaml", "memmory: 512\n");
//! let meant = nearest("memmory", ["memory", "disk"]).expect("it is one letter away");
//! let found = Diagnostic::error("unknown-key", "unknown key `memmory`")
//!     .at(Span::new(file, 0, 7))
//!     .hint(format!("did you mean `{meant}`?"));
//! let shown = render(&found, &sources, Color::Never);
//! assert!(shown.contains("stacks/web/stack.yaml:1:1") && shown.contains("did you mean `memory`?"));
//! ```

#![warn(missing_docs)]

mod codes;
mod collector;
mod diagnostic;
mod json;
mod read_file;
mod render;
mod sarif;
mod source_map;
mod span;
mod suggest;

pub use codes::CodePage;
pub use collector::Diagnostics;
pub use diagnostic::{Diagnostic, Label, Severity};
pub use json::to_json;
pub use read_file::{LARGEST_DOCUMENT, LARGEST_FILE, read_file, read_text_file};
pub use render::{Color, render};
pub use sarif::to_sarif;
pub use source_map::{Location, SourceFile, SourceMap};
pub use span::{FileId, Span};
pub use suggest::{distance, nearest};
