//! How plans, drift, health and graphs look: text and JSON from values, without doing anything.
//!
//! The command line prints these, a review posts them, a server shows them. Nothing here writes anywhere, and nothing names a kind or a field
//! of one: what a field is called and in which order fields are read comes from the tables of kinds.
//!
//! # Main types
//!
//! - [`plan::render`]: a plan as a person reads it; [`plan::PlannedStep`]: one step of it as JSON.
//! - [`recovered::render`]: what was found of stacks whose states were lost.
//! - [`drift::render`], [`health::render`], [`driven::render`], [`graph::mermaid`], [`text::diff`].
//! - [`style`]: the colours. Texts carry them as escape sequences; whoever prints decides whether they stay.
//!
//! # Invariants
//!
//! - A secret is never more than the word `(secret)`.
//! - Lines fit the columns that were asked for.
//!
//! # Use
//!
//! ```
//! use strata_views::style::{self, paint};
//! let line = paint(style::CREATE, "created");
//! assert_eq!(anstream::adapter::strip_str(&line).to_string(), "created");
//! ```

#![warn(missing_docs)]

pub mod columns;
mod configuration;
pub mod counts;
pub mod drift;
pub mod driven;
pub mod duration;
pub mod explained;
pub mod graph;
pub mod health;
pub mod plan;
pub mod recovered;
pub mod saved;
pub mod style;
pub mod text;
pub mod value;
