//! What every store guarantees, tried on each of them.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod conformance;
mod foreign;
mod former_postgres;
mod former_s3;
mod gitlab;
mod gitlab_server;
mod local;
mod postgres;
mod postgres_tls;
mod s3;
mod s3_server;
mod serve;
mod tofu_server;
