//! Makes a new bundle.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use strata_secret::{RandomSource, SecretString};
use zeroize::Zeroizing;

use crate::pki::{KeyKind, PkiError, PrivateKey, self_signed};
use crate::secrets::SecretsBundle;

const TOKEN_LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// The kind of the key that service account tokens are signed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceAccountKey {
    /// What Talos makes from 1.7 on: some who check tokens from outside know nothing else.
    #[default]
    Rsa,
    /// What it made before; a thousand times quicker to make.
    Ecdsa,
}

impl SecretsBundle {
    /// Secrets that open nothing and are the same for everybody: they show whether configurations can be made, before a cluster has its own. What is
    /// made with them is thrown away.
    pub fn stand_in() -> Result<Self, PkiError> {
        Self::generate(Timestamp::UNIX_EPOCH, ServiceAccountKey::Ecdsa, &mut |buffer: &mut [u8]| {
            buffer.fill(7)
        })
    }

    /// Makes all secrets of a new cluster. `random` must be the operating system's generator outside of tests.
    ///
    /// The same randomness makes the same tokens and the same keys, but for RSA; signatures differ each time, because the
    /// cryptographic library draws their nonces itself.
    pub fn generate(
        now: Timestamp,
        service_account: ServiceAccountKey,
        random: &mut dyn RandomSource,
    ) -> Result<Self, PkiError> {
        let service_account = match service_account {
            ServiceAccountKey::Rsa => KeyKind::Rsa4096,
            ServiceAccountKey::Ecdsa => KeyKind::EcdsaP256,
        };
        Ok(Self {
            etcd: self_signed(Some("etcd"), KeyKind::EcdsaP256, now, random)?,
            kubernetes: self_signed(Some("kubernetes"), KeyKind::EcdsaP256, now, random)?,
            aggregator: self_signed(None, KeyKind::EcdsaP256, now, random)?,
            service_account_key: PrivateKey::generate(service_account, random)?.to_pem(),
            os: self_signed(Some("talos"), KeyKind::Ed25519, now, random)?,
            bootstrap_token: token(random),
            secretbox_secret: Some(encoded(random)),
            aescbc_secret: None,
            trustd_token: token(random),
            cluster_id: encoded(random).expose().to_owned(),
            cluster_secret: encoded(random),
        })
    }
}

/// 32 random bytes.
fn encoded(random: &mut dyn RandomSource) -> SecretString {
    let mut bytes = Zeroizing::new([0; 32]);
    random.fill(bytes.as_mut_slice());
    SecretString::new(STANDARD.encode(bytes.as_slice()))
}

/// Six letters, a dot, sixteen letters.
fn token(random: &mut dyn RandomSource) -> SecretString {
    let mut token = Zeroizing::new(String::with_capacity(23));
    while token.len() < 23 {
        if token.len() == 6 {
            token.push('.');
            continue;
        }
        let mut byte = [0];
        random.fill(&mut byte);
        // 252 is a multiple of 36: beyond it some letters would be more frequent than others.
        if byte[0] < 252 {
            token.push(char::from(TOKEN_LETTERS[usize::from(byte[0]) % TOKEN_LETTERS.len()]));
        }
    }
    SecretString::from(token)
}
