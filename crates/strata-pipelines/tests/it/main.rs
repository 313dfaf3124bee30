//! The pipelines of every forge, and what becomes of files that are there.

#![allow(clippy::unwrap_used)]

mod made;
mod written;
