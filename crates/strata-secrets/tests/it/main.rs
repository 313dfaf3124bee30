//! Files of other programs, and round trips with them.

mod generate;
mod interop;
mod keys;
mod shared_fixtures;
mod store;
