//! Tokens: 256 random bits, known here only by their digest.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Scanners for leaked secrets find it by this.
const PREFIX: &str = "strata_";

/// A new token, to be shown once.
pub fn new_token() -> Result<String, getrandom::Error> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits)?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bits)))
}

/// What is stored in place of a token. It has too many bits to be guessed, so a fast digest is enough.
pub fn token_digest(token: &str) -> String {
    hex::encode(Sha256::digest(token.as_bytes()))
}

/// Whether a text has the form of a token. Nothing else has it: no password may.
pub(super) fn is_token(text: &str) -> bool {
    let bits = text.strip_prefix(PREFIX).and_then(|rest| URL_SAFE_NO_PAD.decode(rest).ok());
    bits.is_some_and(|bits| bits.len() == 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_form() {
        assert!(is_token(&new_token().unwrap()));
        for text in ["", "strata_", "strata_pass", "swordfish"] {
            assert!(!is_token(text), "{text}");
        }
    }
}
