//! Layouts: what they look like, and that nothing is lost.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod corpus;
mod shapes;
mod verb;
