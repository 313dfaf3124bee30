//! Secrets that were printed or stored, and files that hold them.

mod commands;
mod leaks;
mod paths;
mod schema;
