//! What is known of a state without its content: lock, current version, history.

use serde::{Deserialize, Serialize};

use crate::lock::Lock;

/// One kept version of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Counts the writes of this state; unlike the serial it never repeats.
    pub version: u64,
    pub serial: Option<u64>,
    pub lineage: Option<String>,
    pub size: u64,
    /// Of the content, as hex.
    pub md5: String,
    /// Seconds since 1970.
    pub written: i64,
    pub by: String,
    /// Written although a rule spoke against it.
    #[serde(default)]
    pub forced: bool,
}

/// Everything that a decision about a state looks at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Head {
    #[serde(default)]
    pub lock: Option<Lock>,
    /// None if there never was one, or it was deleted.
    #[serde(default)]
    pub current: Option<Version>,
    /// The newest version that ever was.
    #[serde(default)]
    pub last_version: u64,
}
