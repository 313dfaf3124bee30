//! What pins become, with servers of our own behind the mirrors: honest ones, and others.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod branches;
mod hostile;
mod server;
mod written;
