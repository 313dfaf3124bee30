//! Files of other programs, and round trips with them.

mod shared_fixtures;
