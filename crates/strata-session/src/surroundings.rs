//! What a session is given from outside: variables, time, randomness, somebody who listens, and whoever reaches the remotes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use strata_engine::Clock;
use strata_net::TraceSink;
use strata_secret::RandomSource;
use strata_secrets::vault::PasswordSource;
use strata_secrets::{Access, Prompt};
use strata_state::{LockOwner, ProcessMark};

use crate::observer::Observer;
use crate::providers::ProviderSet;
use crate::secrets;

/// Randomness, passed in.
pub type Random = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// Everything that a session does not look up by itself.
#[derive(Clone)]
pub struct Surroundings {
    /// The repository is this folder or one above it.
    pub start: PathBuf,
    /// The variables of the process.
    pub variables: BTreeMap<String, String>,
    /// The environment whose overlay is used; none for each stack's own.
    pub environment: Option<String>,
    /// How long a lock is waited for that somebody else holds.
    pub lock_timeout: Duration,
    /// A JSON file that maps `host:port` of the model to `host:port` to dial.
    pub dial: Option<PathBuf>,
    pub vault_passwords: Vec<(Option<String>, PasswordSource)>,
    /// Who is asked for passphrases.
    pub prompt: Arc<dyn Prompt>,
    pub process: Process,
    pub clock: Arc<dyn Clock>,
    pub random: Random,
    pub observer: Arc<dyn Observer>,
    /// Hears of every request.
    pub trace: Option<Arc<dyn TraceSink>>,
    pub providers: Arc<dyn ProviderSet>,
}

/// Who works, for the locks.
#[derive(Clone)]
pub struct Process {
    /// `user@host`.
    pub who: String,
    pub pid: u32,
    pub mark: Option<ProcessMark>,
}

impl Surroundings {
    pub fn variable(&self, name: &str) -> Option<&String> {
        self.variables.get(name)
    }

    /// Now.
    pub fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_second(self.clock.now()).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }

    /// Now, in RFC 3339.
    pub fn timestamp(&self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Randomness as those take it who make keys.
    pub fn random(&self) -> impl RandomSource + use<> {
        let random = Arc::clone(&self.random);
        move |buffer: &mut [u8]| random(buffer)
    }

    /// For jitter between attempts.
    pub fn jitter(&self) -> strata_net::Random {
        let random = Arc::clone(&self.random);
        Arc::new(move || {
            let mut bytes = [0; 8];
            random(&mut bytes);
            u64::from_le_bytes(bytes)
        })
    }

    pub fn random_hex(&self, bytes: usize) -> String {
        let mut random = vec![0; bytes];
        (self.random)(&mut random);
        hex::encode(random)
    }

    pub fn lock_owner(&self, operation: &str) -> LockOwner {
        LockOwner {
            id: self.random_hex(8),
            who: self.process.who.clone(),
            pid: self.process.pid,
            operation: operation.to_owned(),
            since: self.timestamp(),
            process: self.process.mark.clone(),
        }
    }

    /// The keys of the user, for the files of a repository.
    pub fn access(&self, root: &Path) -> Arc<Access> {
        let environment = secrets::environment(&self.variables, root);
        Arc::new(Access::new(environment, Arc::clone(&self.prompt), self.vault_passwords.clone()))
    }
}
