//! Files of other programs, and round trips with them.

mod edit;
mod fixtures;
mod generate;
mod interop;
mod keys;
mod never_panics;
mod shared_fixtures;
mod store;
mod tamper;
