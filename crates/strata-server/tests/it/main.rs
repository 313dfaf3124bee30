//! The server as its clients see it.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod access;
mod backups;
mod bench;
mod client;
mod encrypted;
mod faults;
mod fuzz;
mod guessing;
mod half_written;
mod holders;
mod linear;
mod process;
mod protocol;
mod runs;
mod storages;
mod versions;
mod world;
