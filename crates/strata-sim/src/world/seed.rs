//! Values the server makes up: they derive from the seed and from what they are for, never from the order of requests.

use sha2::{Digest, Sha256};

use super::World;

impl World {
    /// 32 bytes that belong to these words in this world.
    pub fn derive(&self, words: &[&str]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.seed.to_be_bytes());
        for word in words {
            hash.update((word.len() as u64).to_be_bytes());
            hash.update(word.as_bytes());
        }
        hash.finalize().into()
    }

    /// A version 4 UUID. What a guest gets includes who made it, so that another user's guest on the same VMID differs.
    pub fn uuid(&self, words: &[&str]) -> String {
        let mut bytes = self.derive(words);
        bytes[6] = 0x40 | (bytes[6] & 0x0f);
        bytes[8] = 0x80 | (bytes[8] & 0x3f);
        let hex = hex::encode(&bytes[..16]);
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// A MAC address with the vendor prefix the cluster is set to.
    pub fn mac(&self, words: &[&str]) -> String {
        let bytes = self.derive(words);
        let prefix = self.cluster.options.get("mac_prefix").map_or("BC:24:11", String::as_str);
        let mut mac = prefix.trim_end_matches(':').to_uppercase();
        for byte in bytes.iter().take(6 - mac.split(':').count().min(6)) {
            mac.push_str(&format!(":{byte:02X}"));
        }
        mac
    }
}

/// The digest of a configuration text.
pub fn sha1_hex(text: &str) -> String {
    use sha1::Digest as _;
    hex::encode(sha1::Sha1::digest(text.as_bytes()))
}
