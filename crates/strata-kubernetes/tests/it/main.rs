//! The client against a small API server on loopback, with TLS on both sides.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod api;
mod apply;
mod calls;
mod drain;
mod files;
mod flux;
mod interop;
mod permits;
mod server;
mod sim;
mod wait;
