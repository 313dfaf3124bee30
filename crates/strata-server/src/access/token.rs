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
