//! The pin of a node in maintenance mode: which key its self-signed certificate must have.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The SHA-256 of a certificate's public key, in base64: what the console of a node in maintenance mode shows, and what
/// `talosctl --cert-fingerprint` takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpkiPin([u8; 32]);

/// Not a pin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the SHA-256 of a public key in base64, as the console of a Talos node shows it")]
pub struct SpkiPinError(String);

impl SpkiPin {
    /// The pin of a certificate in DER; `None` if it is none.
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        Some(Self(Sha256::digest(certificate.public_key().raw).into()))
    }
}

impl FromStr for SpkiPin {
    type Err = SpkiPinError;

    fn from_str(text: &str) -> Result<Self, SpkiPinError> {
        let refuse = || SpkiPinError(text.to_owned());
        let bytes = STANDARD.decode(text.trim()).map_err(|_| refuse())?;
        bytes.try_into().map(Self).map_err(|_| refuse())
    }
}

impl fmt::Display for SpkiPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for SpkiPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_in_base64() {
        let pin = SpkiPin([7; 32]);
        assert_eq!(pin.to_string(), "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=");
        assert_eq!(format!("{pin}\n").parse(), Ok(pin));
        for bad in ["", "BwcH", "AB:CD", "not base64 at all!"] {
            assert_eq!(bad.parse::<SpkiPin>(), Err(SpkiPinError(bad.to_owned())), "{bad}");
        }
        assert_eq!(SpkiPin::of(b"no certificate"), None);
    }
}
