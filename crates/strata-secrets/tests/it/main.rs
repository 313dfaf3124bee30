//! Files of other programs, and round trips with them.

mod keys;
mod shared_fixtures;
mod store;
