//! What every store promises, tried on each of them.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod conformance;
mod foreign;
mod local;
mod postgres;
mod s3;
mod s3_server;
mod serve;
mod tofu_server;
