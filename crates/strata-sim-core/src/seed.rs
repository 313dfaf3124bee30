//! Values the server makes up: they derive from the seed and from what they are for, never from the order of requests.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What everything that is made up derives from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// 32 bytes that belong to these words under this seed.
    pub fn derive(self, words: &[&str]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.0.to_be_bytes());
        for word in words {
            hash.update((word.len() as u64).to_be_bytes());
            hash.update(word.as_bytes());
        }
        hash.finalize().into()
    }

    /// A version 4 UUID. What a guest gets includes who made it, so that another user's guest on the same VMID differs.
    pub fn uuid(self, words: &[&str]) -> String {
        let mut bytes = self.derive(words);
        bytes[6] = 0x40 | (bytes[6] & 0x0f);
        bytes[8] = 0x80 | (bytes[8] & 0x3f);
        let hex = hex::encode(&bytes[..16]);
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}
