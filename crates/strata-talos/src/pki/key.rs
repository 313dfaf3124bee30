//! Private keys: made, read, and written under the labels that Talos uses.

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use strata_secret::{RandomSource, SecretBytes};
use zeroize::Zeroizing;

use super::{PkiError, der, pem};

/// What a key is for decides what kind it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// The Talos API.
    Ed25519,
    /// Kubernetes and etcd.
    EcdsaP256,
    /// Service accounts.
    Rsa4096,
}

/// A key in DER, and how its PEM is labelled.
pub(crate) struct PrivateKey {
    label: Label,
    der: Zeroizing<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Ed25519,
    Ec,
    Rsa,
    Pkcs8,
}

impl Label {
    const ALL: [Self; 4] = [Self::Ed25519, Self::Ec, Self::Rsa, Self::Pkcs8];

    fn text(self) -> &'static str {
        match self {
            Self::Ed25519 => "ED25519 PRIVATE KEY",
            Self::Ec => "EC PRIVATE KEY",
            Self::Rsa => "RSA PRIVATE KEY",
            Self::Pkcs8 => "PRIVATE KEY",
        }
    }
}

impl PrivateKey {
    /// Makes a key. RSA keys come from the cryptographic library's own generator: it takes no other.
    pub(crate) fn generate(kind: KeyKind, random: &mut dyn RandomSource) -> Result<Self, PkiError> {
        let (label, der) = match kind {
            KeyKind::Ed25519 => {
                let mut seed = Zeroizing::new([0; 32]);
                random.fill(seed.as_mut_slice());
                (Label::Ed25519, der::ed25519_key(&seed))
            }
            KeyKind::EcdsaP256 => (Label::Ec, p256(random)?),
            KeyKind::Rsa4096 => {
                let key = rsa::KeyPair::generate(rsa::KeySize::Rsa4096).map_err(|_| PkiError::Generate)?;
                let pkcs8: Pkcs8V1Der<'_> = key.as_der().map_err(|_| PkiError::Generate)?;
                let inside = der::inside_pkcs8(pkcs8.as_ref()).ok_or(PkiError::Generate)?;
                (Label::Rsa, Zeroizing::new(inside.to_vec()))
            }
        };
        Ok(Self { label, der })
    }

    pub(crate) fn from_pem(text: &[u8]) -> Result<Self, PkiError> {
        let (label, der) = pem::decode(text).ok_or(PkiError::NotPem)?;
        let label = Label::ALL
            .into_iter()
            .find(|known| known.text() == label)
            .ok_or_else(|| PkiError::UnknownKey(label.to_owned()))?;
        Ok(Self { label, der })
    }

    pub(crate) fn to_pem(&self) -> SecretBytes {
        SecretBytes::new(pem::encode(self.label.text(), &self.der).as_bytes())
    }

    /// The key as something that signs.
    pub(crate) fn signer(&self) -> Result<rcgen::KeyPair, PkiError> {
        let der = self.der.as_slice();
        let key = match self.label {
            Label::Ed25519 | Label::Pkcs8 => PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(der)),
            Label::Ec => PrivateKeyDer::Sec1(PrivateSec1KeyDer::from(der)),
            Label::Rsa => PrivateKeyDer::Pkcs1(PrivatePkcs1KeyDer::from(der)),
        };
        rcgen::KeyPair::try_from(&key).map_err(|_| PkiError::BadKey)
    }
}

/// A scalar drawn from our own source; the library only works out the public key.
fn p256(random: &mut dyn RandomSource) -> Result<Zeroizing<Vec<u8>>, PkiError> {
    // A number that is no scalar of the curve turns up once in 2^32 draws.
    for _ in 0..16 {
        let mut scalar = Zeroizing::new([0; 32]);
        random.fill(scalar.as_mut_slice());
        let bare = der::ec_key(&scalar, None);
        if let Ok(key) = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, &bare) {
            return Ok(der::ec_key(&scalar, Some(key.public_key().as_ref())));
        }
    }
    Err(PkiError::Generate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter() -> impl FnMut(&mut [u8]) {
        let mut next = 0u8;
        move |buffer: &mut [u8]| {
            for byte in buffer {
                next = next.wrapping_mul(5).wrapping_add(17);
                *byte = next;
            }
        }
    }

    #[test]
    fn keys_carry_the_labels_of_talos_and_sign() {
        for (kind, label) in [
            (KeyKind::Ed25519, "ED25519 PRIVATE KEY"),
            (KeyKind::EcdsaP256, "EC PRIVATE KEY"),
            (KeyKind::Rsa4096, "RSA PRIVATE KEY"),
        ] {
            let key = PrivateKey::generate(kind, &mut counter()).unwrap_or_else(|error| panic!("{error}"));
            let text = key.to_pem();
            assert!(text.expose().starts_with(format!("-----BEGIN {label}-----\n").as_bytes()));
            let read = PrivateKey::from_pem(text.expose()).unwrap_or_else(|error| panic!("{error}"));
            read.signer().unwrap_or_else(|error| panic!("{kind:?}: {error}"));
            assert!(read.to_pem() == text);
        }
    }

    #[test]
    fn the_same_randomness_makes_the_same_key() {
        for kind in [KeyKind::Ed25519, KeyKind::EcdsaP256] {
            let make = || {
                PrivateKey::generate(kind, &mut counter()).unwrap_or_else(|error| panic!("{error}")).to_pem()
            };
            assert!(make() == make(), "{kind:?}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        assert!(matches!(PrivateKey::from_pem(b"x"), Err(PkiError::NotPem)));
        let certificate = b"-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n";
        assert!(
            matches!(PrivateKey::from_pem(certificate), Err(PkiError::UnknownKey(label)) if label == "CERTIFICATE")
        );
        let broken = b"-----BEGIN EC PRIVATE KEY-----\nYQ==\n-----END EC PRIVATE KEY-----\n";
        assert!(PrivateKey::from_pem(broken).is_ok_and(|key| matches!(key.signer(), Err(PkiError::BadKey))));
    }
}
