//! A new key of age.

use age::secrecy::ExposeSecret;
use strata_secret::SecretString;

/// A new age key: the text of its file, and the recipient to encrypt for.
pub fn generate_identity() -> (SecretString, String) {
    let identity = age::x25519::Identity::generate();
    let recipient = identity.to_public().to_string();
    let key = identity.to_string();
    (SecretString::new(format!("# public key: {recipient}\n{}\n", key.expose_secret())), recipient)
}
