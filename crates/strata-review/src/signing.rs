//! The ed25519 keys of runners: whoever plans signs, whoever applies checks.

use std::fmt;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use strata_secret::{RandomSource, SecretString};

/// Why a key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("it is no private key of a runner: 32 bytes in base64 are expected")]
    NotPrivate,
    #[error("it is no public key of a runner: 32 bytes in base64 are expected")]
    NotPublic,
}

/// The private key of a runner.
pub struct RunnerKey(Ed25519KeyPair);

impl RunnerKey {
    /// A new key, and the text that it is kept as.
    pub fn generate(random: &mut dyn RandomSource) -> Result<(Self, SecretString), KeyError> {
        let mut seed = [0; 32];
        random.fill(&mut seed);
        let text = SecretString::new(BASE64.encode(seed));
        Ok((Self::parse(&text)?, text))
    }

    pub fn parse(text: &SecretString) -> Result<Self, KeyError> {
        let seed = BASE64.decode(text.expose().trim()).map_err(|_| KeyError::NotPrivate)?;
        Ed25519KeyPair::from_seed_unchecked(&seed).map(Self).map_err(|_| KeyError::NotPrivate)
    }

    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.public_key().as_ref());
        PublicKey(bytes)
    }

    pub fn sign(&self, message: &[u8]) -> String {
        BASE64.encode(self.0.sign(message).as_ref())
    }
}

/// The public key of a runner, as strata.yaml has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let bytes = BASE64.decode(text.trim()).map_err(|_| KeyError::NotPublic)?;
        <[u8; 32]>::try_from(bytes).map(Self).map_err(|_| KeyError::NotPublic)
    }

    /// Whether this key signed the message.
    pub fn verifies(&self, message: &[u8], signature: &str) -> bool {
        let Ok(signature) = BASE64.decode(signature) else { return false };
        UnparsedPublicKey::new(&ED25519, self.0).verify(message, &signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_one_key_and_one_message() {
        let key =
            |byte: u8| RunnerKey::generate(&mut move |seed: &mut [u8]| seed.fill(byte)).expect("a seed");
        let ((own, text), (other, _)) = (key(1), key(2));
        let signature = own.sign(b"a plan");
        let again = PublicKey::parse(&own.public().to_string()).expect("its own text");
        assert!(again.verifies(b"a plan", &signature));
        assert!(!again.verifies(b"a plan.", &signature) && !other.public().verifies(b"a plan", &signature));
        assert!(!again.verifies(b"a plan", "no base64"));
        assert_eq!(RunnerKey::parse(&text).expect("its text").public(), own.public());
        for wrong in ["", "c2hvcnQ=", "not base64!"] {
            assert!(RunnerKey::parse(&SecretString::new(wrong)).is_err() && PublicKey::parse(wrong).is_err());
        }
    }
}
