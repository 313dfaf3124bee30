//! What pins become, with servers of our own behind the mirrors: honest ones, and others.

#![allow(clippy::unwrap_used)]

mod branches;
mod hostile;
mod server;
mod written;
