//! A test's world: a repository, a simulator, a binary, snapshot filters.
//!
//! For tests only, so it panics where a test should fail.
#![allow(clippy::unwrap_used)]

mod binary;
mod control;
mod repo;
mod sim;

pub use binary::{Output, Strata};
pub use control::Control;
pub use repo::Repo;
pub use sim::TestSim;
