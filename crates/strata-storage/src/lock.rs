//! The lock of a state. OpenTofu's and the leases of Strata's runs are one lock of two kinds.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

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

    /// As somebody sees it who could not take it away: who holds it, and a name for it that is not its id. Two locks have two such names.
    #[must_use]
    pub fn without_id(&self) -> Self {
        let hidden = format!("hidden:{}", hex::encode(&Sha256::digest(self.id.as_bytes())[..4]));
        let mut lock = Self { id: hidden.clone(), ..self.clone() };
        for told in [&mut lock.owner, &mut lock.info].into_iter().flatten() {
            hide(told, &self.id, &hidden);
        }
        lock
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

/// Wherever the client wrote its id in what it said of itself, a field within a field or part of a longer text.
fn hide(told: &mut Value, id: &str, hidden: &str) {
    match told {
        Value::String(text) if text == id => *text = hidden.to_owned(),
        // One that is a letter or two would be found in every word.
        Value::String(text) if id.len() >= 5 && text.contains(id) => *text = text.replace(id, hidden),
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, id, hidden)),
        Value::Object(fields) => fields.values_mut().for_each(|field| hide(field, id, hidden)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c3_an_id_is_hidden_wherever_the_holder_wrote_it() {
        let owner = json!({"id": "run-1", "who": "me@here", "more": [{"lock": "id run-1"}], "pid": 7});
        let lock = Lock {
            id: "run-1".into(),
            kind: LockKind::Lease,
            user: "ci".into(),
            owner: Some(owner),
            info: Some(json!({"ID": "run-1", "Info": "strata run-1"})),
            ttl: Some(60),
            beat: 3,
        };
        let seen = lock.without_id();
        let told = format!("{} {}", seen.describe(false), seen.lock_info());
        assert!(!told.contains("run-1"), "{told}");
        assert!(told.contains("me@here") && told.contains("hidden:"), "{told}");
        assert_ne!(seen.id, Lock { id: "run-2".into(), ..lock.clone() }.without_id().id);
        assert_eq!(Lock { owner: None, info: None, ..lock }.without_id().lock_info()["ID"], json!(seen.id));
    }
}
