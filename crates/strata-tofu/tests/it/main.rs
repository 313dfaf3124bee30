//! The crate as its users see it: files in, files out.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod fields;
mod findings;
mod golden;
mod policy;
mod speed;
mod world;
