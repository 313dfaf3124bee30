//! Passwords: Argon2, which is slow by intent, and a short memory of those that were right, so that a client of many requests is not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use argon2::password_hash::{PasswordHash, PasswordHasher, SaltString};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;

use super::token::is_token;

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
    if is_token(password) {
        return Err(BadPassword("it has the form of a token".to_owned()));
    }
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|error| BadPassword(error.to_string()))?;
    let salt = SaltString::encode_b64(&salt).map_err(|error| BadPassword(error.to_string()))?;
    let hash =
        argon2().hash_password(password.as_bytes(), &salt).map_err(|error| BadPassword(error.to_string()))?;
    Ok(hash.to_string())
}

/// Passwords that are hashed at the same time; each takes 19 MiB and a core.
const HASHING: usize = 2;
/// A hash that wants more memory than this, in KiB, is none of ours.
const MOST_MEMORY: u32 = 256 * 1024;

/// Looks at passwords, a few at a time, in memory that is kept for it: what an allocator gives to hundreds of threads stays with them.
pub(super) struct Hasher {
    turns: Arc<Semaphore>,
    memory: Arc<Mutex<Vec<Vec<Block>>>>,
}

impl Default for Hasher {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(HASHING)), memory: Arc::default() }
    }
}

impl Hasher {
    pub(super) async fn is_right(&self, password: String, phc: String) -> bool {
        // The work goes on if the client goes away, so its place is taken until it ends.
        let Ok(place) = Arc::clone(&self.turns).acquire_owned().await else { return false };
        let kept = Arc::clone(&self.memory);
        let work = tokio::task::spawn_blocking(move || {
            let mut memory = kept.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
            let right = is_right(&password, &phc, &mut memory);
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
            drop(place);
            right
        });
        work.await.unwrap_or(false)
    }
}

fn is_right(password: &str, phc: &str, memory: &mut Vec<Block>) -> bool {
    let mut check = || -> Option<bool> {
        let hash = PasswordHash::new(phc).ok()?;
        let algorithm = Algorithm::try_from(hash.algorithm).ok()?;
        let version = hash.version.map_or(Some(Version::default()), |version| version.try_into().ok())?;
        let params = Params::try_from(&hash).ok().filter(|params| params.m_cost() <= MOST_MEMORY)?;
        let expected = hash.hash?;
        let mut salt = [0; 64];
        let salt = hash.salt?.decode_b64(&mut salt).ok()?;
        memory.resize(params.block_count(), Block::default());
        let mut found = vec![0; expected.len()];
        Argon2::new(algorithm, version, params)
            .hash_password_into_with_memory(password.as_bytes(), salt, &mut found, memory.as_mut_slice())
            .ok()?;
        Some(found.ct_eq(expected.as_bytes()).into())
    };
    check().unwrap_or(false)
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
        let mut memory = Vec::new();
        assert!(is_right("correct horse", &phc, &mut memory));
        assert!(!is_right("wrong horse", &phc, &mut memory));
        assert!(!is_right("x", "no hash", &mut memory));
        // As `argon2` itself wrote it, with other parameters.
        let other = Argon2::new(Algorithm::Argon2i, Version::V0x13, Params::new(64, 3, 2, None).unwrap());
        let salt = SaltString::encode_b64(b"0123456789").unwrap();
        let other = other.hash_password(b"swordfish", &salt).unwrap();
        assert!(is_right("swordfish", &other.to_string(), &mut memory));
        assert!(!is_right("swordfisH", &other.to_string(), &mut memory));
        let huge = phc.replace("m=19456", "m=4000000");
        assert!(!is_right("correct horse", &huge, &mut memory));
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
