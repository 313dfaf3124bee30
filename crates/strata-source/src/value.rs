//! Small values with a notation of their own: sizes, addresses, names, durations, checksums.

pub mod address;
pub mod checksum;
pub mod document;
pub mod duration;
pub mod name;
pub mod place;
pub mod port;
pub mod size;
pub mod slot;
pub(crate) mod text;
