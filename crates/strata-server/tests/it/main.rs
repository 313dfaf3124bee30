//! The server as its clients see it.

#![allow(clippy::unwrap_used)]

mod access;
mod client;
mod faults;
mod fuzz;
mod protocol;
mod runs;
mod versions;
mod world;
