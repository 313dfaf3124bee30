//! Values the server makes up: they derive from the seed and from what they are for, never from the order of requests.

use super::World;

impl World {
    /// 32 bytes that belong to these words in this world.
    pub fn derive(&self, words: &[&str]) -> [u8; 32] {
        self.seed.derive(words)
    }

    /// A version 4 UUID. What a guest gets includes who made it, so that another user's guest on the same VMID differs.
    pub fn uuid(&self, words: &[&str]) -> String {
        self.seed.uuid(words)
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
