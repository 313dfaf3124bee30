//! The lock of a state. OpenTofu's and the leases of Strata's runs are one lock of two kinds.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LockKind {
    /// Never lapses.
    Tofu,
    /// Lapses without a heartbeat.
    Lease,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    pub id: String,
    pub kind: LockKind,
    /// Whom the server knew it from.
    pub user: String,
    /// What the holder of a lease said of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Value>,
    /// OpenTofu's LockInfo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<Value>,
    /// Seconds that a lease lasts without a heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
    /// How many heartbeats came. Who sees the same number for the whole of `ttl` knows that it lapsed.
    #[serde(default)]
    pub beat: u64,
}

/// A lock as it was seen at some heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    pub id: String,
    pub beat: u64,
}

impl Lock {
    pub fn is_at(&self, beat: &Beat) -> bool {
        self.id == beat.id && self.beat == beat.beat
    }

    /// The holder as OpenTofu wants to read it.
    pub fn lock_info(&self) -> Value {
        if let Some(info) = &self.info {
            return info.clone();
        }
        let said = |key: &str| self.owner.as_ref().and_then(|owner| owner.get(key)).and_then(Value::as_str);
        json!({
            "ID": self.id,
            "Operation": said("operation").unwrap_or("strata"),
            "Info": "a run of strata",
            "Who": said("who").unwrap_or(&self.user),
            "Version": "",
            "Created": said("since").unwrap_or("0001-01-01T00:00:00Z"),
            "Path": "",
        })
    }

    /// The holder as Strata wants to read it.
    pub fn describe(&self, lapsed: bool) -> Value {
        json!({
            "id": self.id,
            "kind": self.kind,
            "user": self.user,
            "owner": self.owner,
            "info": self.info,
            "ttl": self.ttl,
            "lapsed": lapsed,
        })
    }
}
