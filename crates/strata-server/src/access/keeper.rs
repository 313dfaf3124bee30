//! The users of a running server: finds out who asks, and reads the file again when it changed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use strata_net::Clock;
use strata_storage::Failure;
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;

use super::password::{Hasher, Remembered};
use super::throttle::{Admission, Throttle};
use super::token::is_token;
use super::{AccessError, AccessFile, User, token_digest};
use crate::proxies::Proxies;

/// Passwords that wait to be hashed, and those that wait for others of the same sender, from all addresses together.
const MAX_WAITING: usize = 256;
const MAX_BEHIND_OTHERS: usize = 256;

/// Why nobody was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    Nobody,
    Wrong,
    /// Wait this long.
    TooMany(Duration),
    /// More passwords wait to be looked at than the server takes on.
    Busy,
}

pub struct AccessKeeper {
    /// None: everybody may do everything.
    path: Option<PathBuf>,
    /// Those of the configuration, beside those of the file.
    configured: Vec<User>,
    known: RwLock<Known>,
    remembered: Remembered,
    throttle: Throttle,
    hasher: Hasher,
    waiting: Semaphore,
    behind_others: Semaphore,
    proxies: Proxies,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct Known {
    users: HashMap<String, Arc<User>>,
    /// By the digest of the token.
    tokens: HashMap<String, (Arc<User>, Option<i64>)>,
    changed: Option<Stamp>,
}

/// By what a file is known to be another one than before. It is always replaced, so two changes within one tick of the clock are two.
type Stamp = (SystemTime, u64, u64);

impl AccessKeeper {
    /// Everybody may do everything; for a server that only the machine itself can reach.
    pub fn open(clock: Arc<dyn Clock>) -> Result<Self, AccessError> {
        Self::new(None, Vec::new(), clock)
    }

    pub fn load(path: PathBuf, configured: Vec<User>, clock: Arc<dyn Clock>) -> Result<Self, AccessError> {
        let keeper = Self::new(Some(path), configured, clock)?;
        keeper.reload()?;
        Ok(keeper)
    }

    fn new(path: Option<PathBuf>, configured: Vec<User>, clock: Arc<dyn Clock>) -> Result<Self, AccessError> {
        let remembered = Remembered::new().map_err(|error| AccessError::Read {
            path: "the random device".into(),
            source: Failure::new(error.to_string()),
        })?;
        Ok(Self {
            path,
            configured,
            known: RwLock::default(),
            remembered,
            throttle: Throttle::default(),
            hasher: Hasher::default(),
            waiting: Semaphore::new(MAX_WAITING),
            behind_others: Semaphore::new(MAX_BEHIND_OTHERS),
            proxies: Proxies::default(),
            clock,
        })
    }

    /// Takes the word of these proxies about the sender of a request.
    #[must_use]
    pub fn behind(self, proxies: Proxies) -> Self {
        Self { proxies, ..self }
    }

    /// Whom a request is from that came from this address.
    pub(crate) fn sender(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        self.proxies.sender(headers, peer)
    }

    pub fn is_empty(&self) -> bool {
        self.path.is_some() && self.known.read().unwrap_or_else(PoisonError::into_inner).users.is_empty()
    }

    /// Reads the file again if it changed. One that cannot be read changes nothing.
    pub fn reload(&self) -> Result<bool, AccessError> {
        let Some(path) = &self.path else { return Ok(false) };
        let found = std::fs::metadata(path).ok();
        let changed = found.and_then(|found| Some((found.modified().ok()?, found.ino(), found.len())));
        let is_first = self.is_empty();
        if !is_first && self.known.read().unwrap_or_else(PoisonError::into_inner).changed == changed {
            return Ok(false);
        }
        let file = AccessFile::load(path)?;
        let mut known = Known { changed, ..Known::default() };
        for user in self.configured.iter().chain(&file.users) {
            let user = Arc::new(user.clone());
            for token in &user.tokens {
                known.tokens.insert(token.sha256.to_ascii_lowercase(), (Arc::clone(&user), token.expires));
            }
            known.users.insert(user.name.clone(), user);
        }
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(true)
    }

    /// Who asks.
    pub async fn identify(&self, headers: &HeaderMap, from: IpAddr) -> Result<Arc<User>, Denied> {
        if self.path.is_none() {
            return Ok(Arc::new(User::anybody()));
        }
        // Of two names a proxy may have looked at the other one.
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (Some(header), None) = (given.next(), given.next()) else { return Err(Denied::Nobody) };
        let Some(claim) = header.to_str().ok().and_then(Claim::read) else { return Err(Denied::Wrong) };
        if let Some(user) = self.by_token(&claim) {
            return Ok(user);
        }
        // A wrong token is no guess at a password: it costs nothing and shuts nobody out.
        let Claim::Basic { name, secret } = claim else { return Err(Denied::Wrong) };
        if is_token(&secret) {
            return Err(Denied::Wrong);
        }
        let user = self.known.read().unwrap_or_else(PoisonError::into_inner).users.get(&name).cloned();
        let mut behind = None;
        let attempt = loop {
            if let Some(user) = &user
                && let Some(phc) = &user.password
                && self.remembered.knows(phc, &secret, self.clock.monotonic())
            {
                return Ok(Arc::clone(user));
            }
            match self.throttle.admit(from, &name, self.clock.monotonic()) {
                Admission::Try(attempt) => break attempt,
                Admission::Wait(wait) => return Err(Denied::TooMany(wait)),
                Admission::Full(ended) => {
                    if behind.is_none() {
                        behind = Some(self.behind_others.try_acquire().map_err(|_| Denied::Busy)?);
                    }
                    ended.await;
                }
            }
        };
        drop(behind);
        let Ok(waiting) = self.waiting.try_acquire() else {
            attempt.was_not_looked_at();
            return Err(Denied::Busy);
        };
        let right = self.is_password(user.as_deref(), secret).await;
        drop(waiting);
        match user.filter(|_| right) {
            Some(user) => {
                attempt.was_right();
                Ok(user)
            }
            None => Err(Denied::Wrong),
        }
    }

    /// A token as such, or as the password of its user. It cannot be guessed, so it is never throttled.
    fn by_token(&self, claim: &Claim) -> Option<Arc<User>> {
        let (Claim::Bearer(secret) | Claim::Basic { secret, .. }) = claim;
        let digest = token_digest(secret);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let (stored, (user, expires)) = known.tokens.get_key_value(&digest)?;
        let equal = bool::from(stored.as_bytes().ct_eq(digest.as_bytes()));
        let fresh = expires.is_none_or(|expires| self.clock.unix() < expires);
        let meant = match claim {
            Claim::Bearer(_) => true,
            Claim::Basic { name, .. } => *name == user.name,
        };
        (equal && fresh && meant).then(|| Arc::clone(user))
    }

    /// A name that does not exist takes as long as one that does.
    async fn is_password(&self, user: Option<&User>, secret: String) -> bool {
        static NOBODY: OnceLock<String> = OnceLock::new();
        let phc = user.and_then(|user| user.password.clone());
        let known = phc.is_some();
        let nobody = || super::hash_password("nobody").unwrap_or_default();
        let phc = phc.unwrap_or_else(|| NOBODY.get_or_init(nobody).clone());
        let right = self.hasher.is_right(secret.clone(), phc.clone()).await;
        if right && known {
            self.remembered.remember(&phc, &secret, self.clock.monotonic());
        }
        right && known
    }
}

/// What a request says of who sends it.
enum Claim {
    Basic { name: String, secret: String },
    Bearer(String),
}

impl Claim {
    fn read(header: &str) -> Option<Self> {
        let (scheme, rest) = header.split_once(' ')?;
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Some(Self::Bearer(rest.to_owned()));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
        let (name, secret) = decoded.split_once(':')?;
        Some(Self::Basic { name: name.to_owned(), secret: secret.to_owned() })
    }
}
