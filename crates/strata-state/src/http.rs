//! States on an HTTP server: `strata serve`, with its leases and its journal, or any other that speaks the protocol of OpenTofu's
//! backend `http`. Which of the two it is, is asked once.

mod foreign;
mod lock_info;
pub(crate) use lock_info::LockInfo;
mod addresses;
mod strata;
mod wire;

use async_trait::async_trait;
use strata_net::HttpOptions;
use strata_secret::SecretString;
use tokio::sync::OnceCell;

use crate::{
    Codec, Holder, JournalRecord, LeaseTerms, LockOwner, LockedState, StateDocument, Store, StoreError,
    Version,
};
use addresses::StateAddresses;
use foreign::ForeignServer;
use strata::StrataServer;
use wire::Wire;

/// How to talk to a server.
pub struct HttpStoreOptions {
    /// The server, or, with `{state}` in it, the address of each state on a server that is not `strata serve`.
    pub url: String,
    /// On other servers: where a state is locked and unlocked; `{state}` stands for its name.
    pub lock_url: Option<String>,
    pub unlock_url: Option<String>,
    pub lock_method: Option<String>,
    pub unlock_method: Option<String>,
    pub update_method: Option<String>,
    /// Sent with every request: `Authorization`, or what else the server wants.
    pub headers: Vec<(String, SecretString)>,
    pub codec: Codec,
    pub lease: LeaseTerms,
    /// On other servers: how many versions are kept.
    pub kept: usize,
    /// The states that there may be, since other servers do not tell.
    pub known: Vec<String>,
    /// TLS, dialling, tracing; its endpoint is taken from `url`.
    pub http: HttpOptions,
}

impl HttpStoreOptions {
    pub fn new(url: impl Into<String>) -> Self {
        let url = url.into();
        Self {
            http: HttpOptions::new(url.clone()),
            url,
            lock_url: None,
            unlock_url: None,
            lock_method: None,
            unlock_method: None,
            update_method: None,
            headers: Vec::new(),
            codec: Codec::plain(),
            lease: LeaseTerms::default(),
            kept: foreign::KEPT_VERSIONS,
            known: Vec::new(),
        }
    }

    /// Says who we are by name and password.
    #[must_use]
    pub fn basic(mut self, username: &str, password: &SecretString) -> Self {
        use base64::Engine as _;
        let pair = zeroize::Zeroizing::new(format!("{username}:{}", password.expose()));
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair.as_bytes());
        self.headers.push(("authorization".to_owned(), SecretString::new(format!("Basic {encoded}"))));
        self
    }

    /// Says who we are by a token.
    #[must_use]
    pub fn bearer(mut self, token: &SecretString) -> Self {
        let value = SecretString::new(format!("Bearer {}", token.expose()));
        self.headers.push(("authorization".to_owned(), value));
        self
    }
}

pub struct HttpStore {
    url: String,
    wire: Wire,
    place: StateAddresses,
    codec: Codec,
    lease: LeaseTerms,
    kept: usize,
    known: Vec<String>,
    server: OnceCell<Box<dyn Store>>,
}

impl HttpStore {
    /// Connects at the first question.
    pub fn new(options: HttpStoreOptions) -> Result<Self, StoreError> {
        let place = StateAddresses::of(&options)?;
        let http = HttpOptions { endpoint: place.origin.clone(), ..options.http };
        let wire = Wire::new(http, &options.headers, options.lease.request_timeout())?;
        Ok(Self {
            url: options.url,
            wire,
            place,
            codec: options.codec,
            lease: options.lease,
            kept: options.kept,
            known: options.known,
            server: OnceCell::new(),
        })
    }

    async fn server(&self) -> Result<&dyn Store, StoreError> {
        let server = self.server.get_or_try_init(|| async {
            let ours = match &self.place.strata_base {
                Some(base) => StrataServer::answers(&self.wire, base).await?,
                None => None,
            };
            Ok::<Box<dyn Store>, StoreError>(match ours {
                Some(base) => Box::new(StrataServer::new(
                    self.url.clone(),
                    self.wire.clone(),
                    base,
                    self.codec.clone(),
                    self.lease.clone(),
                )),
                None => Box::new(ForeignServer::new(
                    self.url.clone(),
                    self.wire.clone(),
                    self.place.clone(),
                    self.codec.clone(),
                    self.kept,
                    self.known.clone(),
                )),
            })
        });
        Ok(server.await?.as_ref())
    }
}

#[async_trait]
impl Store for HttpStore {
    fn describe(&self) -> String {
        format!("http, {}", self.url)
    }

    fn caveat(&self) -> Option<String> {
        self.server.get().and_then(|server| server.caveat())
    }

    fn kept(&self) -> Option<usize> {
        self.server.get().and_then(|server| server.kept())
    }

    async fn keys(&self) -> Result<Vec<String>, StoreError> {
        self.server().await?.keys().await
    }

    async fn lists(&self) -> Result<bool, StoreError> {
        self.server().await?.lists().await
    }

    async fn read(&self, key: &str) -> Result<Option<StateDocument>, StoreError> {
        self.server().await?.read(key).await
    }

    async fn read_journal(&self, key: &str) -> Result<Vec<JournalRecord>, StoreError> {
        self.server().await?.read_journal(key).await
    }

    async fn lock(&self, key: &str, owner: LockOwner) -> Result<Box<dyn LockedState>, StoreError> {
        self.server().await?.lock(key, owner).await
    }

    async fn holder(&self, key: &str) -> Result<Option<Holder>, StoreError> {
        self.server().await?.holder(key).await
    }

    async fn break_lock(&self, key: &str, id: &str) -> Result<(), StoreError> {
        self.server().await?.break_lock(key, id).await
    }

    async fn history(&self, key: &str) -> Result<Vec<Version>, StoreError> {
        self.server().await?.history(key).await
    }

    async fn read_version(&self, key: &str, serial: u64) -> Result<StateDocument, StoreError> {
        self.server().await?.read_version(key, serial).await
    }
}
