//! The key of the keyed digests, wrapped with age so that the state can hold it.

use strata_secret::{DigestKey, SecretBytes};

use crate::age_keys::{AgeError, Identities, Recipient, wrap};

/// Encrypts the key for all recipients at once; the result is an armored age file.
pub fn wrap_digest_key(key: &DigestKey, recipients: &[Recipient]) -> Result<String, AgeError> {
    wrap(key.expose(), &recipients.iter().collect::<Vec<_>>())
}

/// Encrypts something for everyone who is to read it; the result is an armored age file.
pub fn encrypt_for(secret: &SecretBytes, recipients: &[Recipient]) -> Result<String, AgeError> {
    wrap(secret.expose(), &recipients.iter().collect::<Vec<_>>())
}

/// Gets the key back with any of the identities.
pub fn unwrap_digest_key(wrapped: &str, identities: &Identities) -> Result<DigestKey, AgeError> {
    let bytes = identities.unwrap(wrapped, None)?;
    DigestKey::from_bytes(&bytes).ok_or_else(|| AgeError::Damaged("the key has a wrong length".to_owned()))
}

#[cfg(test)]
mod tests {
    use age::secrecy::ExposeSecret as _;
    use strata_secret::SecretString;

    use super::*;

    #[test]
    fn the_key_comes_back_for_its_recipients_only() {
        let (mine, other) = (age::x25519::Identity::generate(), age::x25519::Identity::generate());
        let recipient = Recipient::parse(&mine.to_public().to_string()).expect("own key");
        let key = DigestKey::generate(&mut |buffer: &mut [u8]| buffer.fill(3));
        let wrapped = wrap_digest_key(&key, &[recipient]).expect("one recipient");
        let identities = |key: &age::x25519::Identity| {
            Identities::parse(&SecretString::from(key.to_string().expose_secret())).expect("an identity")
        };
        assert!(unwrap_digest_key(&wrapped, &identities(&mine)).expect("mine") == key);
        assert!(unwrap_digest_key(&wrapped, &identities(&other)).is_err());
    }
}
