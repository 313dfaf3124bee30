//! A certificate that somebody brings along, and whether a key is the one that it was made for.

use rcgen::PublicKeyData as _;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// Why a certificate and a key do not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// Nothing in it can be read as a certificate.
    #[error("it holds no certificate in PEM")]
    NoCertificate,
    /// Nothing in it can be read as a private key.
    #[error("it holds no private key in PEM of a kind that is known here")]
    NoKey,
    /// The certificate has another public key.
    #[error("the certificate was made for another key")]
    OtherKey,
}

/// The fingerprint of the first certificate of a chain: SHA-256, as `AA:BB:…`.
pub fn certificate_fingerprint(chain: &str) -> Result<String, PairError> {
    let der = first(chain)?;
    let bytes: Vec<String> = Sha256::digest(&der).iter().map(|byte| format!("{byte:02X}")).collect();
    Ok(bytes.join(":"))
}

/// Whether a private key is that of the first certificate of a chain.
pub fn check_certificate_key(chain: &str, key: &str) -> Result<(), PairError> {
    let der = first(chain)?;
    let (_, certificate) = X509Certificate::from_der(&der).map_err(|_| PairError::NoCertificate)?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| PairError::NoKey)?;
    let pair = rcgen::KeyPair::try_from(&key).map_err(|_| PairError::NoKey)?;
    let is_own = pair.subject_public_key_info() == certificate.public_key().raw;
    if is_own { Ok(()) } else { Err(PairError::OtherKey) }
}

fn first(chain: &str) -> Result<CertificateDer<'static>, PairError> {
    let der = CertificateDer::from_pem_slice(chain.as_bytes()).map_err(|_| PairError::NoCertificate)?;
    match X509Certificate::from_der(&der) {
        Ok(_) => Ok(der),
        Err(_) => Err(PairError::NoCertificate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each with its key: elliptic, Ed25519, RSA in the older form.
    const PAIRS: [(&str, &str); 3] = [
        (include_str!("pair/p256.crt"), include_str!("pair/p256.key")),
        (include_str!("pair/ed25519.crt"), include_str!("pair/ed25519.key")),
        (include_str!("pair/rsa.crt"), include_str!("pair/rsa.key")),
    ];

    #[test]
    fn a_key_belongs_to_one_certificate() {
        for (of_chain, (chain, _)) in PAIRS.iter().enumerate() {
            for (of_key, (_, key)) in PAIRS.iter().enumerate() {
                let wanted = if of_chain == of_key { Ok(()) } else { Err(PairError::OtherKey) };
                assert_eq!(check_certificate_key(chain, key), wanted, "{of_chain} {of_key}");
            }
        }
        let (chain, key) = PAIRS[0];
        assert_eq!(
            check_certificate_key(&format!("{chain}{}", PAIRS[1].0), key),
            Ok(()),
            "the first of the chain decides"
        );
        assert_eq!(check_certificate_key(chain, chain), Err(PairError::NoKey));
        assert_eq!(check_certificate_key(key, key), Err(PairError::NoCertificate));
    }

    #[test]
    fn a_fingerprint_is_that_of_the_first_certificate() {
        let (chain, _) = PAIRS[0];
        let own = certificate_fingerprint(chain);
        assert_eq!(own, Ok("1F:F8:2E:D1:A2:F8:EA:9B:89:D3:CC:7C:54:75:B4:76:DF:2E:C7:0C:4A:28:2B:09:92:76:05:C3:B8:D0:5C:13".to_owned()));
        assert_eq!(certificate_fingerprint(&format!("{chain}{}", PAIRS[1].0)), own);
        assert_eq!(certificate_fingerprint("nothing"), Err(PairError::NoCertificate));
    }
}
