//! The crate as its users see it: what others wrote goes in, a repository comes out.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod import;
mod keys;
mod tofu_state;
mod world;
