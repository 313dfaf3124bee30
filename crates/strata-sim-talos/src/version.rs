//! Versions of Talos, as far as behaviour depends on them.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    /// `v1.13.2` or `1.14.0-rc.1`; what follows a dash does not count.
    pub fn parse(text: &str) -> Option<Self> {
        let core = text.strip_prefix('v').unwrap_or(text).split(['-', '+']).next()?;
        let mut parts = core.split('.').map(|part| part.parse().ok());
        Some(Self { major: parts.next()??, minor: parts.next()??, patch: parts.next()?? })
    }

    /// Maintenance mode is served by the same server as everything else.
    pub fn has_one_server(self) -> bool {
        self.minor >= 13
    }

    /// No change of the configuration reboots a machine by itself.
    pub fn never_reboots(self) -> bool {
        self.minor >= 14
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}
