//! What every store promises, tried on each of them.

mod conformance;
mod local;
