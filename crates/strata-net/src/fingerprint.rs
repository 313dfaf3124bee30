//! SHA-256 fingerprints of certificates, as Proxmox and browsers show them.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The SHA-256 of a certificate's DER form; written as `AA:BB:…`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

/// Why a text is not a fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a SHA-256 fingerprint: it has 32 pairs of hex digits, such as `AB:CD:…`")]
pub struct FingerprintError(String);

impl Fingerprint {
    /// The fingerprint of a certificate (DER).
    pub fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    /// Takes upper and lower case, with colons or without.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || FingerprintError(text.to_owned());
        let digits: Vec<u8> = text.trim().bytes().filter(|byte| *byte != b':').collect();
        if digits.len() != 64 {
            return Err(refuse());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
            let value = high.zip(low).map(|(high, low)| high << 4 | low).ok_or_else(refuse)?;
            *byte = u8::try_from(value).map_err(|_| refuse())?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let colon = if index == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_usual_way_of_writing_one() {
        let shown = Fingerprint::of(b"x").to_string();
        assert_eq!(shown.len(), 95);
        for text in [shown.clone(), shown.to_lowercase(), shown.replace(':', ""), format!(" {shown}\n")] {
            assert_eq!(text.parse(), Ok(Fingerprint::of(b"x")));
        }
    }

    #[test]
    fn refuses_anything_else() {
        for text in ["", "AB:CD", &"G".repeat(64), &"A".repeat(63), &"é".repeat(32)] {
            assert!(text.parse::<Fingerprint>().is_err(), "{text}");
        }
    }
}
