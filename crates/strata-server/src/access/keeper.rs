//! The users of a running server: finds out who asks, and reads the file again when it changed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use strata_net::Clock;
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;

use super::password::{self, Remembered};
use super::throttle::Throttle;
use super::{AccessError, AccessFile, User, token_digest};

/// Passwords that are hashed at the same time; each takes 19 MiB and a core.
const HASHING: usize = 2;

/// Why nobody was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    Nobody,
    Wrong,
    /// Wait this long.
    TooMany(Duration),
}

pub struct AccessKeeper {
    /// None: everybody may do everything.
    path: Option<PathBuf>,
    /// Those of the configuration, beside those of the file.
    configured: Vec<User>,
    known: RwLock<Known>,
    remembered: Remembered,
    throttle: Throttle,
    hashing: Semaphore,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct Known {
    users: HashMap<String, Arc<User>>,
    /// By the digest of the token.
    tokens: HashMap<String, (Arc<User>, Option<i64>)>,
    changed: Option<SystemTime>,
}

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
            reason: error.to_string(),
        })?;
        Ok(Self {
            path,
            configured,
            known: RwLock::default(),
            remembered,
            throttle: Throttle::default(),
            hashing: Semaphore::new(HASHING),
            clock,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.path.is_some() && self.known.read().unwrap_or_else(PoisonError::into_inner).users.is_empty()
    }

    /// Reads the file again if it changed. One that cannot be read changes nothing.
    pub fn reload(&self) -> Result<bool, AccessError> {
        let Some(path) = &self.path else { return Ok(false) };
        let changed = std::fs::metadata(path).and_then(|found| found.modified()).ok();
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
        let claim = header.to_str().ok().and_then(Claim::read);
        let name = claim.as_ref().map_or("", Claim::name).to_owned();
        if let Some(claim) = &claim
            && let Some(user) = self.by_token(claim)
        {
            return Ok(user);
        }
        let user = match &claim {
            Some(Claim::Basic { name, .. }) => {
                self.known.read().unwrap_or_else(PoisonError::into_inner).users.get(name).cloned()
            }
            _ => None,
        };
        if let Some(Claim::Basic { secret, .. }) = &claim
            && let Some(user) = &user
            && let Some(phc) = &user.password
            && self.remembered.knows(phc, secret, self.clock.monotonic())
        {
            return Ok(Arc::clone(user));
        }
        if let Some(wait) = self.throttle.wait(from, &name, self.clock.monotonic()) {
            return Err(Denied::TooMany(wait));
        }
        if let Some(Claim::Basic { secret, .. }) = claim
            && self.is_password(user.as_deref(), secret).await
            && let Some(user) = user
        {
            return Ok(user);
        }
        self.throttle.failed(from, &name, self.clock.monotonic());
        Err(Denied::Wrong)
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
        let Ok(_permit) = self.hashing.acquire().await else { return false };
        let (known, checked) = (phc.is_some(), secret.clone());
        let right = tokio::task::spawn_blocking(move || {
            let nobody = || super::hash_password("nobody").unwrap_or_default();
            let phc = phc.unwrap_or_else(|| NOBODY.get_or_init(nobody).clone());
            (password::is_right(&checked, &phc), phc)
        });
        match right.await {
            Ok((true, phc)) if known => {
                self.remembered.remember(&phc, &secret, self.clock.monotonic());
                true
            }
            _ => false,
        }
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

    fn name(&self) -> &str {
        match self {
            Self::Basic { name, .. } => name,
            Self::Bearer(_) => "",
        }
    }
}
