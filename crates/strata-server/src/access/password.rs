//! Passwords: Argon2, which is slow by intent, and a short memory of those that were right, so that a client of many requests is not.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use sha2::{Digest, Sha256};

/// How long a right password is remembered.
const REMEMBERED: Duration = Duration::from_secs(60);
const MAX_REMEMBERED: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the password cannot be hashed: {0}")]
pub struct BadPassword(String);

fn argon2() -> Argon2<'static> {
    // 19 MiB, two passes: what OWASP asks for at least.
    let params = Params::new(19 * 1024, 2, 1, None).expect("the parameters are within Argon2's bounds");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// The PHC string to keep in place of a password.
pub fn hash_password(password: &str) -> Result<String, BadPassword> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|error| BadPassword(error.to_string()))?;
    let salt = SaltString::encode_b64(&salt).map_err(|error| BadPassword(error.to_string()))?;
    let hash =
        argon2().hash_password(password.as_bytes(), &salt).map_err(|error| BadPassword(error.to_string()))?;
    Ok(hash.to_string())
}

pub(super) fn is_right(password: &str, phc: &str) -> bool {
    PasswordHash::new(phc).is_ok_and(|hash| argon2().verify_password(password.as_bytes(), &hash).is_ok())
}

/// Passwords that were right a moment ago, as digests that are worth nothing outside of this process.
pub(super) struct Remembered {
    key: [u8; 32],
    until: Mutex<HashMap<[u8; 32], Duration>>,
}

impl Remembered {
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self { key, until: Mutex::default() })
    }

    /// The hash is part of it: a changed password is forgotten by that alone.
    fn digest(&self, phc: &str, password: &str) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update(self.key);
        digest.update((phc.len() as u64).to_le_bytes());
        digest.update(phc.as_bytes());
        digest.update(password.as_bytes());
        digest.finalize().into()
    }

    pub(super) fn knows(&self, phc: &str, password: &str, now: Duration) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.get(&self.digest(phc, password)).is_some_and(|until| now < *until)
    }

    pub(super) fn remember(&self, phc: &str, password: &str, now: Duration) {
        let digest = self.digest(phc, password);
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.len() >= MAX_REMEMBERED {
            until.retain(|_, until| now < *until);
        }
        if until.len() < MAX_REMEMBERED {
            until.insert(digest, now + REMEMBERED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_right_or_not_and_remembered_for_a_while() {
        let phc = hash_password("correct horse").unwrap();
        assert!(phc.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{phc}");
        assert!(is_right("correct horse", &phc));
        assert!(!is_right("wrong horse", &phc));
        assert!(!is_right("x", "no hash"));
        let remembered = Remembered::new().unwrap();
        let at = Duration::from_secs;
        assert!(!remembered.knows(&phc, "correct horse", at(0)));
        remembered.remember(&phc, "correct horse", at(0));
        assert!(remembered.knows(&phc, "correct horse", at(59)));
        assert!(!remembered.knows(&phc, "wrong horse", at(59)));
        assert!(!remembered.knows("another hash", "correct horse", at(59)));
        assert!(!remembered.knows(&phc, "correct horse", at(60)));
    }
}
