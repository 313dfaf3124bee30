//! The simulator seen from outside: what a client of the API and a test with the control port observe.

#![allow(clippy::unwrap_used, unreachable_pub)]

mod client;
mod clone;
mod config;
mod control;
mod faults;
mod guests;
mod migrate;
mod persistence;
mod power;
mod replay;
mod tasks;
mod wire;
