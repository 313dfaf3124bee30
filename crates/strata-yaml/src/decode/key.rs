//! The name of a field in files, as a constant of its record.

use std::fmt;

/// How a field is called in files. [`record!`](crate::record) makes one for each field, named as the field: `Disk::size`.
///
/// Whoever writes documents takes the names from here, so that a field that is renamed or removed does not compile there, and a key
/// that is renamed is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(&'static str);

impl Key {
    #[doc(hidden)]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
