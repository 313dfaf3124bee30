//! The Kubernetes API as its clients see it.

mod apply;
pub mod client;
mod drain;
mod faults;
mod flux;
mod identity;
mod objects;
mod tables;
mod watch;
