//! `strata serve`: leases, journal and history are endpoints of their own (docs/state-server.md).

mod locked;

use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use serde::Deserialize;
use strata_net::Response;

use super::addresses::segments;
use super::lock_info::LockInfo;
use super::wire::{Call, Wire};
use crate::{
    Codec, Holder, JournalRecord, Lease, LeaseTerms, LockOwner, LockedState, StateDocument, Store,
    StoreError, Version,
};
use locked::StrataLock;

#[derive(Clone)]
pub(super) struct StrataServer {
    url: String,
    wire: Wire,
    base: String,
    codec: Codec,
    lease: LeaseTerms,
}

/// A lock as the server tells it.
#[derive(Deserialize)]
struct Lock {
    id: String,
    owner: Option<serde_json::Value>,
    info: Option<LockInfo>,
    ttl: Option<f64>,
    #[serde(default)]
    lapsed: bool,
    /// Seconds since then.
    #[serde(default, rename = "lapsedFor")]
    lapsed_for: f64,
}

impl Lock {
    /// How long requests of its holder may still arrive once somebody else has the lock. One that was not said to have lapsed when it was
    /// looked at has lapsed just now, or was given back.
    fn late_request_window(&self) -> Duration {
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.ttl.map_or(Duration::ZERO, |ttl| {
            LeaseTerms::late_request_window(seconds(ttl), seconds(self.lapsed_for))
        })
    }

    fn holder(self) -> Holder {
        let lease = match self.ttl {
            _ if self.lapsed => Lease::Lapsed,
            Some(ttl) => Lease::Running(Duration::try_from_secs_f64(ttl).unwrap_or_default()),
            None => Lease::Endless,
        };
        let told = self.owner.and_then(|owner| serde_json::from_value(owner).ok());
        let mut owner: LockOwner =
            told.or_else(|| self.info.map(LockInfo::owner)).unwrap_or_else(LockOwner::unknown);
        owner.id = self.id;
        Holder { owner, lease }
    }
}

/// What comes with an answer that says no.
#[derive(Deserialize, Default)]
struct Refusal {
    holder: Option<Lock>,
    serial: Option<u64>,
}

impl Refusal {
    fn of(answer: &Response) -> Self {
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }
}

impl StrataServer {
    pub(super) fn new(url: String, wire: Wire, base: String, codec: Codec, lease: LeaseTerms) -> Self {
        Self { url, wire, base, codec, lease }
    }

    /// The base of the server if it is one of ours. One that wants to know first who we are is taken for what its answer shows.
    pub(super) async fn answers(wire: &Wire, base: &str) -> Result<Option<String>, StoreError> {
        let call = Call::new(Method::GET, format!("{base}/v1/states")).query("prefix=strata-probe%2F");
        let answer = wire.send(&call).await?;
        let ours = match answer.status {
            200 => serde_json::from_slice::<Vec<serde_json::Value>>(&answer.body).is_ok(),
            401 | 403 => return Err(wire.unexpected(&call, &answer)),
            _ => false,
        };
        Ok(ours.then(|| base.to_owned()))
    }

    fn at(&self, what: &str, key: &str) -> String {
        format!("{}/v1/{what}/{}", self.base, segments(key))
    }

    async fn get(&self, call: Call) -> Result<Option<Response>, StoreError> {
        let answer = self.wire.send(&call).await?;
        match answer.status {
            200 => Ok(Some(answer)),
            404 => Ok(None),
            _ => Err(self.wire.unexpected(&call, &answer)),
        }
    }

    fn parse<T: serde::de::DeserializeOwned>(&self, answer: &Response) -> Result<T, StoreError> {
        serde_json::from_slice(&answer.body).map_err(|error| {
            StoreError::remote_error(format!("`{}` gave an answer that cannot be read", self.url), error)
        })
    }

    async fn ask_for_lease(&self, key: &str, owner: &LockOwner) -> Result<Result<(), Holder>, StoreError> {
        let body = serde_json::json!({"owner": owner, "ttl": self.lease.length.as_secs()}).to_string();
        let call = Call::new(Method::POST, self.at("leases", key)).json(body);
        let answer = self.wire.send(&call).await?;
        match answer.status {
            200 => Ok(Ok(())),
            423 => {
                let holder = Refusal::of(&answer).holder.map(Lock::holder);
                Ok(Err(holder.unwrap_or_else(|| Holder::endless(LockOwner::unknown()))))
            }
            _ => Err(self.wire.unexpected(&call, &answer)),
        }
    }

    /// The versions that the server keeps. It may keep several with one serial, if a write was forced: the newest counts.
    async fn bytes_of(&self, key: &str, serial: u64) -> Result<Option<Response>, StoreError> {
        self.get(Call::new(Method::GET, self.at("versions", key)).query(format!("serial={serial}"))).await
    }
}

#[async_trait]
impl Store for StrataServer {
    fn describe(&self) -> String {
        format!("http, {}", self.url)
    }

    async fn keys(&self) -> Result<Vec<String>, StoreError> {
        #[derive(Deserialize)]
        struct State {
            name: String,
        }
        let call = Call::new(Method::GET, format!("{}/v1/states", self.base));
        let Some(answer) = self.get(call).await? else { return Ok(Vec::new()) };
        let states: Vec<State> = self.parse(&answer)?;
        let mut keys: Vec<String> = states.into_iter().map(|state| state.name).collect();
        keys.sort();
        Ok(keys)
    }

    async fn read(&self, key: &str) -> Result<Option<StateDocument>, StoreError> {
        let Some(answer) = self.get(Call::new(Method::GET, self.at("states", key))).await? else {
            return Ok(None);
        };
        self.codec.decode(key, &answer.body).map(Some)
    }

    async fn read_journal(&self, key: &str) -> Result<Vec<JournalRecord>, StoreError> {
        match self.get(Call::new(Method::GET, self.at("journal", key))).await? {
            Some(answer) => self.codec.decode_journal(key, &answer.body),
            None => Ok(Vec::new()),
        }
    }

    async fn lock(&self, key: &str, owner: LockOwner) -> Result<Box<dyn LockedState>, StoreError> {
        // Asked before, since the answer to a request that takes the lock can be lost, and says nothing when it is sent again.
        let before = match self.get(Call::new(Method::GET, self.at("leases", key))).await? {
            Some(answer) => Some(self.parse::<Lock>(&answer)?),
            None => None,
        };
        let mut late_request_window = before.as_ref().map_or(Duration::ZERO, Lock::late_request_window);
        if before.is_some_and(|lock| lock.holder().owner.is_dead_here()) {
            late_request_window = Duration::ZERO;
        }
        let mut sent = (self.lease.clock)();
        let mut asked = self.ask_for_lease(key, &owner).await?;
        if let Err(holder) = &asked
            && holder.is_gone()
        {
            // Somebody else may be faster: then there is another holder, who is not gone.
            match self.break_lock(key, &holder.owner.id).await {
                Ok(()) | Err(StoreError::OtherLock { .. }) => {}
                Err(error) => return Err(error),
            }
            sent = (self.lease.clock)();
            asked = self.ask_for_lease(key, &owner).await?;
        }
        match asked {
            Ok(()) => Ok(Box::new(StrataLock::start(self.clone(), key, owner, sent, late_request_window))),
            Err(holder) => Err(StoreError::Locked { key: key.to_owned(), holder: Box::new(holder) }),
        }
    }

    async fn holder(&self, key: &str) -> Result<Option<Holder>, StoreError> {
        match self.get(Call::new(Method::GET, self.at("leases", key))).await? {
            Some(answer) => Ok(Some(self.parse::<Lock>(&answer)?.holder())),
            None => Ok(None),
        }
    }

    async fn break_lock(&self, key: &str, id: &str) -> Result<(), StoreError> {
        let call = Call::new(Method::DELETE, self.at("leases", key)).query(format!("id={}", segments(id)));
        let answer = self.wire.send(&call).await?;
        match answer.status {
            200 => Ok(()),
            409 => Err(StoreError::OtherLock { key: key.to_owned(), id: id.to_owned() }),
            _ => Err(self.wire.unexpected(&call, &answer)),
        }
    }

    async fn history(&self, key: &str) -> Result<Vec<Version>, StoreError> {
        #[derive(Deserialize)]
        struct Kept {
            serial: u64,
            size: u64,
            written: String,
        }
        let call = Call::new(Method::GET, self.at("versions", key));
        let Some(answer) = self.get(call).await? else { return Ok(Vec::new()) };
        let kept: Vec<Kept> = self.parse(&answer)?;
        let version = |kept: Kept| Version { serial: kept.serial, written: kept.written, bytes: kept.size };
        Ok(kept.into_iter().map(version).collect())
    }

    async fn read_version(&self, key: &str, serial: u64) -> Result<StateDocument, StoreError> {
        match self.bytes_of(key, serial).await? {
            Some(answer) => self.codec.decode(key, &answer.body),
            None => Err(StoreError::NoVersion { key: key.to_owned(), serial }),
        }
    }
}
