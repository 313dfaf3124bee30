//! Images of the web: which numbers of an address say the release, what an index page lists, what a file of checksums says.

pub(crate) mod address;
pub(crate) mod checksums;
pub(crate) mod index;
