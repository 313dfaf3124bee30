//! The one document that a foreign server keeps for a state: with the journal and the older versions inside.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Codec, StateDocument, StoreError, Version};

/// Has no `version`, so that OpenTofu refuses it instead of taking it for an empty state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Envelope {
    /// Counts every write, those of the journal too: servers keep one document for each serial.
    pub(super) serial: u64,
    pub(super) lineage: String,
    pub(super) strata: Content,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    pub(super) key: String,
    pub(super) document: Option<Value>,
    pub(super) journal: String,
    /// Newest first; the first one is the document.
    pub(super) versions: Vec<KeptVersion>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptVersion {
    pub(super) serial: u64,
    pub(super) written: String,
    pub(super) document: Value,
}

pub(super) fn bytes_of(document: &Value) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(document).expect("a JSON value can be written");
    bytes.push(b'\n');
    bytes
}

impl Envelope {
    pub(super) fn new(key: &str) -> Self {
        let lineage = hex::encode(&Sha256::digest(format!("strata\0{key}"))[..16]);
        Self { serial: 0, lineage, strata: Content { key: key.to_owned(), ..Content::default() } }
    }

    pub(super) fn parse(key: &str, bytes: &[u8]) -> Result<Self, StoreError> {
        let damaged = |reason: String| StoreError::Damaged { key: key.to_owned(), reason, newest_good: None };
        let envelope: Self = serde_json::from_slice(bytes)
            .map_err(|error| damaged(format!("what the server has is no state of Strata: {error}")))?;
        if envelope.strata.key != key {
            return Err(damaged(format!("the server has the state `{}` there", envelope.strata.key)));
        }
        Ok(envelope)
    }

    pub(super) fn holds_anything(&self) -> bool {
        self.strata.document.is_some() || !self.strata.journal.is_empty()
    }

    pub(super) fn document(&self, codec: &Codec, key: &str) -> Result<Option<StateDocument>, StoreError> {
        self.strata.document.as_ref().map(|document| codec.decode(key, &bytes_of(document))).transpose()
    }

    pub(super) fn versions(&self) -> Vec<Version> {
        let version = |kept: &KeptVersion| Version {
            serial: kept.serial,
            written: kept.written.clone(),
            bytes: bytes_of(&kept.document).len() as u64,
        };
        self.strata.versions.iter().map(version).collect()
    }
}
