//! Keyed digests: what state and plans hold in place of a secret, so that a change of it is still seen.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use argon2::{Algorithm, Argon2, Params, Version};
use hmac::{Hmac, Mac};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::RandomSource;

const PREFIX: &str = "hmac:";

/// The key of a state's digests. Without it a digest says nothing about the secret, not even to a guesser.
#[derive(Clone)]
pub struct DigestKey {
    key: Zeroizing<[u8; 32]>,
    /// Where whoever reads the digests may read the key too: each guess is made to cost.
    stretching: Option<Arc<Stretching>>,
}

/// Values that were stretched already, by a digest of them: a plan asks for each several times.
#[derive(Default)]
struct Stretching(Mutex<HashMap<[u8; 32], Zeroizing<[u8; 32]>>>);

impl DigestKey {
    /// Draws a new key.
    pub fn generate(random: &mut (impl RandomSource + ?Sized)) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        random.fill(key.as_mut_slice());
        Self { key, stretching: None }
    }

    /// Takes the bytes of a stored key; `None` if there are not 32 of them.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self { key: Zeroizing::new(bytes.try_into().ok()?), stretching: None })
    }

    /// The same key for digests that stand beside it: a value goes through Argon2 first, so that nobody tries millions of them in a second.
    #[must_use]
    pub fn stretched(self) -> Self {
        Self { stretching: Some(Arc::default()), ..self }
    }

    /// The bytes themselves, for wrapping them with age or writing the key file.
    pub fn expose(&self) -> &[u8; 32] {
        &self.key
    }

    /// HMAC-SHA-256 over address, field and value, each behind its length, so that no two triples run together.
    ///
    /// The address and the field are part of it, so that equal secrets in two places do not show as equal.
    pub fn digest(&self, address: &str, field: &str, value: &[u8]) -> KeyedDigest {
        match &self.stretching {
            None => self.mac(&[address.as_bytes(), field.as_bytes(), value]),
            Some(stretching) => {
                let value = stretching.stretch(self.mac(&[b"stretch", value]).0, &self.key, value);
                self.mac(&[address.as_bytes(), field.as_bytes(), value.as_slice()])
            }
        }
    }

    fn mac(&self, parts: &[&[u8]]) -> KeyedDigest {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.key.as_slice()).expect("HMAC takes a key of any length");
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        KeyedDigest(mac.finalize().into_bytes().into())
    }
}

impl Stretching {
    fn stretch(&self, known_as: [u8; 32], salt: &[u8; 32], value: &[u8]) -> Zeroizing<[u8; 32]> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .entry(known_as)
            .or_insert_with(|| {
                let mut stretched = Zeroizing::new([0; 32]);
                // 19 MiB, two passes: what OWASP asks for at least.
                let params =
                    Params::new(19 * 1024, 2, 1, None).expect("the parameters are within Argon2's bounds");
                Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
                    .hash_password_into(value, salt, stretched.as_mut_slice())
                    .expect("salt and value are within Argon2's bounds");
                stretched
            })
            .clone()
    }
}

/// Compares in constant time.
impl PartialEq for DigestKey {
    fn eq(&self, other: &Self) -> bool {
        let same: bool = self.key.as_slice().ct_eq(other.key.as_slice()).into();
        same && self.stretching.is_some() == other.stretching.is_some()
    }
}

impl Eq for DigestKey {}

/// The digest of one secret field of one resource; written as `hmac:` and 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyedDigest([u8; 32]);

impl KeyedDigest {
    /// The digest itself.
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
    fn c5_a_stretched_key_gives_other_digests_and_always_the_same_ones() {
        let (plain, stretched) = (key(1), key(1).stretched());
        let digest = |key: &DigestKey, value: &[u8]| key.digest("web/vm/a", "password", value);
        assert_ne!(digest(&plain, b"swordfish"), digest(&stretched, b"swordfish"));
        assert_eq!(digest(&stretched, b"swordfish"), digest(&stretched, b"swordfish"));
        assert_eq!(digest(&stretched, b"swordfish"), digest(&key(1).stretched(), b"swordfish"));
        assert_ne!(digest(&stretched, b"swordfish"), digest(&stretched, b"swordfisH"));
        assert_ne!(digest(&stretched, b""), digest(&stretched, b"x"));
        assert!(plain != stretched && stretched == key(1).stretched());
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
