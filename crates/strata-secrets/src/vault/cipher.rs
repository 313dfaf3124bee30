//! The cipher of a vault: AES-256 in counter mode, then HMAC-SHA-256, with keys from PBKDF2.

use aes::Aes256;
use aes::cipher::{KeyIvInit, StreamCipher};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use strata_secret::{RandomSource, SecretBytes};
use zeroize::Zeroizing;

use super::VaultError;

const ITERATIONS: u32 = 10_000;
const SALT: usize = 32;
const BLOCK: usize = 16;

/// The parts of a vault.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sealed {
    pub(super) salt: Vec<u8>,
    pub(super) hmac: Vec<u8>,
    pub(super) ciphertext: Vec<u8>,
}

/// Keys for the cipher and for the HMAC, and the first counter.
struct Keys(Zeroizing<[u8; 80]>);

impl Keys {
    fn derive(password: &[u8], salt: &[u8]) -> Self {
        let mut keys = Zeroizing::new([0; 80]);
        pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, ITERATIONS, keys.as_mut_slice());
        Self(keys)
    }

    fn apply(&self, text: &mut [u8]) {
        let (key, counter) = (&self.0[..32], &self.0[64..]);
        ctr::Ctr128BE::<Aes256>::new(key.into(), counter.into()).apply_keystream(text);
    }

    fn hmac(&self, ciphertext: &[u8]) -> Hmac<Sha256> {
        let mut hmac =
            Hmac::<Sha256>::new_from_slice(&self.0[32..64]).expect("HMAC takes a key of any length");
        hmac.update(ciphertext);
        hmac
    }
}

impl Sealed {
    pub(super) fn seal(plain: &[u8], password: &[u8], random: &mut dyn RandomSource) -> Self {
        let mut salt = vec![0; SALT];
        random.fill(&mut salt);
        let keys = Keys::derive(password, &salt);
        let padding = BLOCK - plain.len() % BLOCK;
        let mut ciphertext = Vec::with_capacity(plain.len() + padding);
        ciphertext.extend_from_slice(plain);
        ciphertext.resize(plain.len() + padding, padding as u8);
        keys.apply(&mut ciphertext);
        let hmac = keys.hmac(&ciphertext).finalize().into_bytes().to_vec();
        Self { salt, hmac, ciphertext }
    }

    /// The content; `None` if the password is another one or anything was changed.
    pub(super) fn open(&self, password: &[u8]) -> Result<Option<SecretBytes>, VaultError> {
        let keys = Keys::derive(password, &self.salt);
        if keys.hmac(&self.ciphertext).verify_slice(&self.hmac).is_err() {
            return Ok(None);
        }
        let mut plain = Zeroizing::new(self.ciphertext.clone());
        keys.apply(&mut plain);
        let padding = usize::from(*plain.last().ok_or(VaultError::Damaged("it has no content"))?);
        let length = plain.len().checked_sub(padding);
        match length {
            Some(length)
                if (1..=BLOCK).contains(&padding)
                    && plain[length..].iter().all(|b| usize::from(*b) == padding) =>
            {
                Ok(Some(SecretBytes::from(&plain[..length])))
            }
            _ => Err(VaultError::Damaged("its padding is wrong")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_of_any_length_comes_back_and_changes_do_not() {
        let mut random = |buffer: &mut [u8]| buffer.fill(5);
        for length in [0, 15, 16] {
            let plain = vec![b'x'; length];
            let sealed = Sealed::seal(&plain, b"password", &mut random);
            assert_eq!(sealed.open(b"password").expect("whole").expect("the password").expose(), plain);
            assert!(sealed.open(b"Password").expect("whole").is_none());
            let mut changed = sealed.clone();
            changed.ciphertext[0] ^= 1;
            assert!(changed.open(b"password").expect("whole").is_none());
            let mut changed = sealed;
            changed.salt[31] ^= 1;
            assert!(changed.open(b"password").expect("whole").is_none());
        }
    }
}
