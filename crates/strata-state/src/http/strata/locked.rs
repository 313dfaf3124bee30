//! A state under a lease of `strata serve`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use strata_net::Response;

use super::{Refusal, StrataServer};
use crate::http::addresses::segments;
use crate::http::wire::Call;
use crate::lease::{Heartbeat, Held, Renewal};
use crate::store::Replaces;
use crate::{JournalRecord, LockOwner, LockedState, StateDocument, StoreError};

pub(super) struct StrataLock {
    server: StrataServer,
    key: String,
    owner: LockOwner,
    held: Arc<Held>,
    heart: Heartbeat,
    late_request_window: Duration,
}

impl StrataLock {
    pub(super) fn start(
        server: StrataServer,
        key: &str,
        owner: LockOwner,
        sent: Duration,
        late_request_window: Duration,
    ) -> Self {
        let held = Held::since(key, &server.lease, sent);
        let (asked, place) = (server.clone(), server.at("leases", key));
        let query = format!("id={}", segments(&owner.id));
        let heart = Heartbeat::start(held.clone(), move || {
            let (server, call) = (asked.clone(), Call::new(Method::PUT, place.clone()).query(query.clone()));
            async move {
                match server.wire.send(&call).await.map(|answer| answer.status) {
                    Ok(200) => Renewal::Renewed,
                    Ok(404 | 409 | 423) => Renewal::Lost,
                    _ => Renewal::Unknown,
                }
            }
        });
        Self { server, key: key.to_owned(), owner, held, heart, late_request_window }
    }

    /// Sends a request that the server takes only from the holder of the lock.
    async fn send(&self, call: Call) -> Result<Response, StoreError> {
        self.held.check()?;
        let call = call.header("strata-lock", self.owner.id.clone());
        let answer = self.server.wire.send(&call).await?;
        match answer.status {
            200 | 412 => Ok(answer),
            409 | 423 => Err(self.held.lose()),
            _ => Err(self.server.wire.unexpected(&call, &answer)),
        }
    }

    async fn put(&self, document: &StateDocument, replaces: Replaces) -> Result<(), StoreError> {
        let bytes = self.server.codec.encode(document)?;
        let former = match replaces {
            Replaces::Former => document.serial.saturating_sub(1),
            Replaces::Nothing => 0,
        };
        let call = Call::new(Method::PUT, self.server.at("states", &self.key))
            .header("if-serial", former.to_string())
            .header("content-md5", md5_of(&bytes))
            .json(bytes.clone());
        let answer = self.send(call).await?;
        if answer.status == 200 {
            return Ok(());
        }
        let found = Refusal::of(&answer).serial;
        // The answer to an earlier attempt may have been lost: then what is there is what we sent.
        if found == Some(document.serial) {
            let there = self.server.get(Call::new(Method::GET, self.server.at("states", &self.key))).await?;
            if there.is_some_and(|there| there.body == bytes) {
                return Ok(());
            }
        }
        replaces.check(&self.key, document, found.filter(|serial| *serial > 0))?;
        Err(StoreError::Moved { key: self.key.clone(), expected: former, found: found.unwrap_or(0) })
    }
}

fn md5_of(bytes: &[u8]) -> String {
    use base64::Engine as _;
    use md5::Digest as _;
    base64::engine::general_purpose::STANDARD.encode(md5::Md5::digest(bytes))
}

#[async_trait]
impl LockedState for StrataLock {
    fn owner(&self) -> &LockOwner {
        &self.owner
    }

    fn still_held(&self) -> Result<(), StoreError> {
        self.held.check()
    }

    fn late_request_window(&self) -> Duration {
        self.late_request_window
    }

    fn write_timeout(&self) -> Option<Duration> {
        Some(self.held.write_timeout())
    }

    async fn write(&self, document: &StateDocument) -> Result<(), StoreError> {
        self.put(document, Replaces::Former).await
    }

    async fn adopt(&self, document: &StateDocument) -> Result<(), StoreError> {
        self.put(document, Replaces::Nothing).await
    }

    async fn adopt_version(&self, document: &StateDocument) -> Result<(), StoreError> {
        let bytes = self.server.codec.encode(document)?;
        let call = Call::new(Method::PUT, self.server.at("versions", &self.key))
            .header("content-md5", md5_of(&bytes))
            .json(bytes.clone())
            .once();
        let answer = match self.send(call).await {
            // Sent twice it would be there twice: if the answer was lost, what is there says what became of it.
            Err(error @ StoreError::Remote { .. }) => {
                let there = self.server.bytes_of(&self.key, document.serial).await?;
                return if there.is_some_and(|there| there.body == bytes) { Ok(()) } else { Err(error) };
            }
            answer => answer?,
        };
        match Refusal::of(&answer).serial.filter(|_| answer.status != 200) {
            Some(serial) => Err(StoreError::Exists { key: self.key.clone(), serial }),
            None => Ok(()),
        }
    }

    async fn append_journal(&self, records: &[JournalRecord]) -> Result<(), StoreError> {
        let lines = self.server.codec.encode_journal(&self.key, records)?;
        // Sent twice, a record says the same twice: the journal means the same.
        let call = Call::new(Method::POST, self.server.at("journal", &self.key)).bytes(lines);
        self.send(call).await.map(|_| ())
    }

    async fn clear_journal(&self) -> Result<(), StoreError> {
        self.send(Call::new(Method::DELETE, self.server.at("journal", &self.key))).await.map(|_| ())
    }

    async fn release(&self) -> Result<(), StoreError> {
        self.heart.stop();
        self.held.lose();
        let query = format!("id={}", segments(&self.owner.id));
        let call = Call::new(Method::DELETE, self.server.at("leases", &self.key)).query(query);
        let answer = self.server.wire.send(&call).await?;
        match answer.status {
            // One that was taken away is another's by now, and stays.
            200 | 404 | 409 => Ok(()),
            _ => Err(self.server.wire.unexpected(&call, &answer)),
        }
    }
}
