//! What every forge guarantees, tried on each of them: on servers of our own, written from the forges' API documentation.

#![allow(clippy::unwrap_used)]

mod conformance;
mod patience;
