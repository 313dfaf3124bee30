//! What every store promises, tried on each of them.

#![allow(clippy::unwrap_used)]

mod conformance;
mod local;
