//! Keyed digests: what state and plans hold in place of a secret, so that a change of it is still seen.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, Mac};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::RandomSource;

const PREFIX: &str = "hmac:";

/// The key of a state's digests. Without it a digest says nothing about the secret, not even to a guesser.
#[derive(Clone)]
pub struct DigestKey(Zeroizing<[u8; 32]>);

impl DigestKey {
    /// Draws a new key.
    pub fn generate(random: &mut (impl RandomSource + ?Sized)) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        random.fill(key.as_mut_slice());
        Self(key)
    }

    /// Takes the bytes of a stored key; `None` if there are not 32 of them.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self(Zeroizing::new(bytes.try_into().ok()?)))
    }

    /// The bytes themselves, for wrapping them with age or writing the key file.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// HMAC-SHA-256 over address, field and value, each behind its length, so that no two triples run together.
    ///
    /// The address and the field are part of it, so that equal secrets in two places do not show as equal.
    pub fn digest(&self, address: &str, field: &str, value: &[u8]) -> KeyedDigest {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.0.as_slice()).expect("HMAC takes a key of any length");
        for part in [address.as_bytes(), field.as_bytes(), value] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        KeyedDigest(mac.finalize().into_bytes().into())
    }
}

/// Compares in constant time.
impl PartialEq for DigestKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_slice().ct_eq(other.0.as_slice()).into()
    }
}

impl Eq for DigestKey {}

/// The digest of one secret field of one resource; written as `hmac:` and 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyedDigest([u8; 32]);

impl KeyedDigest {
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for KeyedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", hex::encode(self.0))
    }
}

impl fmt::Debug for KeyedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a keyed digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a keyed digest: expected `hmac:` and 64 hex digits")]
pub struct InvalidDigest;

impl FromStr for KeyedDigest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let mut digest = [0; 32];
        let digits = text.strip_prefix(PREFIX).ok_or(InvalidDigest)?;
        hex::decode_to_slice(digits, &mut digest).map_err(|_| InvalidDigest)?;
        Ok(Self(digest))
    }
}

impl Serialize for KeyedDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KeyedDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> DigestKey {
        DigestKey::generate(&mut |buffer: &mut [u8]| buffer.fill(byte))
    }

    #[test]
    fn is_the_hmac_of_the_length_prefixed_parts() {
        // Made with Python: hmac.new(b"\x07"*32, b"".join(len(p).to_bytes(8,"big")+p for p in
        // (b"homelab/vm/cp-1", b"password", b"hunter2")), "sha256").hexdigest()
        assert_eq!(
            key(7).digest("homelab/vm/cp-1", "password", b"hunter2").to_string(),
            "hmac:cae9bc6665aaf9d29b453ce9d0d5115cd57dcdbf094327b06da4f901cb49c2c3"
        );
    }

    #[test]
    fn parts_do_not_run_together() {
        let key = key(1);
        assert_ne!(key.digest("a", "bc", b"d"), key.digest("ab", "c", b"d"));
        assert_ne!(key.digest("a", "b", b"cd"), key.digest("a", "bc", b"d"));
    }

    #[test]
    fn another_key_gives_another_digest() {
        assert_ne!(key(1).digest("a", "b", b"c"), key(2).digest("a", "b", b"c"));
        assert!(key(1) != key(2));
        assert!(DigestKey::from_bytes(key(1).expose()) == Some(key(1)));
        assert!(DigestKey::from_bytes(&[0; 31]).is_none());
    }

    #[test]
    fn survives_serde_and_refuses_anything_else() {
        let digest = key(3).digest("a", "b", b"c");
        let json = serde_json::to_string(&digest).unwrap();
        assert!(json.starts_with("\"hmac:"));
        assert_eq!(serde_json::from_str::<KeyedDigest>(&json).unwrap(), digest);
        for bad in ["", "hmac:", "hmac:00", "sha256:00", &digest.to_string()[..68], &format!("{digest}0")] {
            assert_eq!(bad.parse::<KeyedDigest>(), Err(InvalidDigest), "{bad}");
        }
    }
}
