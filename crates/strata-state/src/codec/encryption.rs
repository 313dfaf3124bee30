//! AES-256-GCM with a key from a passphrase (PBKDF2) or one that age recipients can open.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use strata_secret::SecretString;
use zeroize::Zeroizing;

type Key = Zeroizing<[u8; 32]>;

/// What a new key is derived with; what is read says its own.
const ITERATIONS: u32 = 600_000;
/// A file must not keep a reader busy for hours.
const MOST_ITERATIONS: u32 = 10_000_000;

/// Where keys come from.
#[derive(Clone)]
pub enum KeySource {
    Passphrase {
        passphrase: SecretString,
        iterations: u32,
    },
    /// A key drawn at random, wrapped for its readers.
    Wrapped(Arc<dyn KeyWrap>),
}

impl KeySource {
    /// `iterations` less than the usual number are for tests.
    pub fn passphrase(passphrase: SecretString, iterations: u32) -> Self {
        Self::Passphrase { passphrase, iterations }
    }
}

impl From<SecretString> for KeySource {
    fn from(passphrase: SecretString) -> Self {
        Self::Passphrase { passphrase, iterations: ITERATIONS }
    }
}

/// Gives keys to those who may read, and gets them back with one of their identities.
pub trait KeyWrap: Send + Sync {
    fn wrap(&self, key: &[u8; 32]) -> Result<String, String>;
    fn unwrap(&self, wrapped: &str) -> Result<Zeroizing<[u8; 32]>, String>;
}

/// Where the key of something encrypted comes from; it goes with it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum KeyOrigin {
    #[serde(rename = "pbkdf2-sha256")]
    Pbkdf2 { iterations: u32, salt: String },
    #[serde(rename = "age")]
    Age(String),
}

/// Something encrypted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sealed {
    cipher: String,
    key: KeyOrigin,
    nonce: String,
    data: String,
}

const CIPHER: &str = "aes-256-gcm";

/// Why something encrypted cannot be read.
pub(super) struct Unreadable(pub(super) String);

/// Encrypts with one key and reads with several.
pub struct Encryption {
    current: Option<KeySource>,
    previous: Vec<KeySource>,
    takes_plain: bool,
    keys: Mutex<Keys>,
}

/// Deriving a key takes most of a second, unwrapping one may ask for a passphrase: each is done once.
#[derive(Default)]
struct Keys {
    writing: Option<(KeyOrigin, Key)>,
    /// By origin, and by which source it was opened.
    known: BTreeMap<KeyOrigin, Vec<(usize, Key)>>,
}

impl Encryption {
    /// Without a current key everything is written as it is, and encrypted states can still be read.
    pub fn new(current: Option<KeySource>, previous: Vec<KeySource>, takes_plain: bool) -> Self {
        Self { takes_plain: takes_plain || current.is_none(), current, previous, keys: Mutex::default() }
    }

    pub(super) fn encrypts(&self) -> bool {
        self.current.is_some()
    }

    pub(super) fn takes_plain(&self) -> bool {
        self.takes_plain
    }

    pub(super) fn seal(&self, plain: &[u8], place: &[u8]) -> Result<Sealed, String> {
        let (origin, key) = self.writing_key()?;
        let nonce: [u8; 12] = random()?;
        let data = Aes256Gcm::new(key.as_slice().into())
            .encrypt(Nonce::from_slice(&nonce), Payload { msg: plain, aad: place })
            .map_err(|_| "it is too large to be encrypted".to_owned())?;
        Ok(Sealed {
            cipher: CIPHER.to_owned(),
            key: origin,
            nonce: STANDARD.encode(nonce),
            data: STANDARD.encode(data),
        })
    }

    pub(super) fn open(&self, sealed: &Sealed, place: &[u8]) -> Result<Zeroizing<Vec<u8>>, Unreadable> {
        if sealed.cipher != CIPHER {
            return Err(Unreadable(format!("its cipher `{}` is not known", sealed.cipher)));
        }
        let decode = |text: &str| STANDARD.decode(text).map_err(|_| Unreadable("it is damaged".to_owned()));
        let (nonce, data) = (decode(&sealed.nonce)?, decode(&sealed.data)?);
        if nonce.len() != 12 {
            return Err(Unreadable("it is damaged".to_owned()));
        }
        let mut reason = "no key of `state.encryption` opens it".to_owned();
        for index in 0..=self.previous.len() {
            let key = match self.reading_key(index, &sealed.key) {
                Ok(Some(key)) => key,
                Ok(None) => continue,
                Err(why) => {
                    reason = why;
                    continue;
                }
            };
            let opened = Aes256Gcm::new(key.as_slice().into())
                .decrypt(Nonce::from_slice(&nonce), Payload { msg: &data, aad: place });
            if let Ok(plain) = opened {
                return Ok(Zeroizing::new(plain));
            }
        }
        Err(Unreadable(reason))
    }

    fn source(&self, index: usize) -> Option<&KeySource> {
        match index {
            0 => self.current.as_ref(),
            _ => self.previous.get(index - 1),
        }
    }

    fn keys(&self) -> std::sync::MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key that this run writes with: one that it has read something with, or a new one.
    fn writing_key(&self) -> Result<(KeyOrigin, Key), String> {
        if let Some(writing) = &self.keys().writing {
            return Ok(writing.clone());
        }
        let (origin, key) = match &self.current {
            Some(KeySource::Passphrase { passphrase, iterations }) => {
                let salt = STANDARD.encode(random::<16>()?);
                let origin = KeyOrigin::Pbkdf2 { iterations: *iterations, salt };
                let key = derive(passphrase, &origin)?.ok_or("no key can be derived")?;
                (origin, key)
            }
            Some(KeySource::Wrapped(wrap)) => {
                let key = Zeroizing::new(random()?);
                (KeyOrigin::Age(wrap.wrap(&key)?), key)
            }
            None => return Err("there is no key to encrypt with".to_owned()),
        };
        self.keys().writing = Some((origin.clone(), key.clone()));
        Ok((origin, key))
    }

    /// The key of an origin by one of the sources; none if it cannot have it.
    fn reading_key(&self, index: usize, origin: &KeyOrigin) -> Result<Option<Key>, String> {
        if let Some((written, key)) = self.keys().writing.as_ref().filter(|_| index == 0)
            && written == origin
        {
            return Ok(Some(key.clone()));
        }
        let known =
            self.keys().known.get(origin).and_then(|keys| keys.iter().find(|(by, _)| *by == index).cloned());
        if let Some((_, key)) = known {
            return Ok(Some(key));
        }
        let key = match (self.source(index), origin) {
            (Some(KeySource::Passphrase { passphrase, .. }), KeyOrigin::Pbkdf2 { .. }) => {
                derive(passphrase, origin)?
            }
            (Some(KeySource::Wrapped(wrap)), KeyOrigin::Age(wrapped)) => Some(wrap.unwrap(wrapped)?),
            _ => None,
        };
        let Some(key) = key else { return Ok(None) };
        let mut keys = self.keys();
        keys.known.entry(origin.clone()).or_default().push((index, key.clone()));
        // What was derived for reading serves for writing as well, if it is not weaker than what would be made now.
        if index == 0 && keys.writing.is_none() && self.is_current(origin) {
            keys.writing = Some((origin.clone(), key.clone()));
        }
        Ok(Some(key))
    }

    fn is_current(&self, origin: &KeyOrigin) -> bool {
        match (&self.current, origin) {
            (Some(KeySource::Passphrase { iterations, .. }), KeyOrigin::Pbkdf2 { iterations: read, .. }) => {
                read >= iterations
            }
            // Its readers may be others than those of today.
            _ => false,
        }
    }
}

fn derive(passphrase: &SecretString, origin: &KeyOrigin) -> Result<Option<Key>, String> {
    let KeyOrigin::Pbkdf2 { iterations, salt } = origin else { return Ok(None) };
    if *iterations == 0 || *iterations > MOST_ITERATIONS {
        return Err(format!("{iterations} iterations of PBKDF2 are out of bounds"));
    }
    let salt = STANDARD.decode(salt).map_err(|_| "its salt is damaged".to_owned())?;
    let mut key = Zeroizing::new([0; 32]);
    pbkdf2::pbkdf2_hmac::<sha2::Sha256>(passphrase.expose().as_bytes(), &salt, *iterations, &mut *key);
    Ok(Some(key))
}

fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers: {error}"))?;
    Ok(bytes)
}
