//! What of the source reaches the resources.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::unnecessary_fold, reason = "the walk goes on where `any` would stop")]

mod readers;
