//! Reading, writing and deleting states, for everybody.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Body as _, Frame};
use serde_json::{Value, json};

use super::answer::{self, Answer, Problem};
use super::body;
use super::call::Call;
use crate::access::Action;
use crate::receive::{Received, Receiving};
use strata_storage::{
    CHUNK, Command, ContentStream, Lock, Outcome, Refusal, Replaces, StateName, Version, Which, Write,
};

const CONTENT_MD5: &str = "content-md5";

impl Call<'_> {
    pub(super) async fn read(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Read, name)?;
        self.content(name, Which::Current).await
    }

    /// The bytes of a version, as they were written.
    pub(super) async fn content(&mut self, name: &StateName, which: Which) -> Result<Answer, Problem> {
        let Some((version, stream)) = self.shared.service.storage.read(name, which).await? else {
            return Err(Problem::new(StatusCode::NOT_FOUND, format!("there is no state `{name}`")));
        };
        (self.audit.version, self.audit.serial) = (Some(version.version), version.serial);
        self.shared.metrics.sent.fetch_add(version.size, Ordering::Relaxed);
        content_answer(&version, stream).await
    }

    pub(super) async fn delete(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Write, name)?;
        let force = self.force(name)?;
        let lock = self.query("ID").map(str::to_owned).or_else(|| self.lock_header());
        self.audit.forced = force;
        let user = self.user.name.clone();
        match self.shared.service.execute(name, Command::Delete { lock, user, force }).await? {
            Ok(_) => Ok(answer::ok()),
            Err(refusal) => Err(self.refused(name, refusal)),
        }
    }

    /// Takes the state that the request carries.
    pub(super) async fn receive(&mut self, name: &StateName) -> Result<Received, Problem> {
        let limit = self.shared.max_state;
        let too_large =
            || Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the state is larger than {limit} bytes"));
        if self.body.size_hint().lower() > limit {
            return Err(too_large());
        }
        let sent = match self.header(CONTENT_MD5) {
            Some(text) => {
                let bad = || Problem::bad("`Content-MD5` is sixteen bytes in Base64");
                let bytes = STANDARD.decode(text.trim()).map_err(|_| bad())?;
                Some(<[u8; 16]>::try_from(bytes).map_err(|_| bad())?)
            }
            None if self.headers.contains_key(CONTENT_MD5) => {
                return Err(Problem::bad("`Content-MD5` is sixteen bytes in Base64"));
            }
            None => None,
        };
        let mut receiving = Receiving::new(&*self.shared.service.storage, name, limit);
        while let Some(piece) = body::next(self.body).await? {
            receiving.push(&piece).await?;
        }
        let received = receiving.finish().await?;
        self.shared.metrics.received.fetch_add(received.size, Ordering::Relaxed);
        if sent.is_some_and(|sent| sent != received.md5) {
            return Err(Problem::bad("the state is not what `Content-MD5` says: it was changed on its way"));
        }
        Ok(received)
    }

    /// Writes what was received.
    pub(super) async fn store(
        &mut self,
        name: &StateName,
        received: Received,
        lock: Option<String>,
        replaces: Replaces,
    ) -> Result<Version, Problem> {
        let write = Write {
            content: received.content,
            serial: received.outline.serial,
            lineage: received.outline.lineage,
            size: received.size,
            md5: hex::encode(received.md5),
            lock: lock.clone(),
            replaces,
            force: self.force(name)?,
            by: self.user.name.clone(),
            written: self.shared.service.unix(),
        };
        (self.audit.serial, self.audit.lock) = (write.serial, lock);
        let outcome = self.shared.service.execute(name, Command::Write(write)).await?;
        drop(received.staging);
        match outcome {
            Ok(Outcome::Written(version)) => {
                (self.audit.version, self.audit.forced) = (Some(version.version), version.forced);
                Ok(version)
            }
            Ok(Outcome::Unchanged(version)) => Ok(version),
            Ok(_) => Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the write had no outcome")),
            Err(refusal) => Err(self.refused(name, refusal)),
        }
    }

    pub(super) async fn write_native(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Write, name)?;
        let replaces = match self.header("if-serial") {
            Some(text) => {
                Replaces::Serial(text.parse().map_err(|_| Problem::bad("`If-Serial` is a number"))?)
            }
            None => Replaces::Whatever,
        };
        let lock = self.lock_header();
        let received = self.receive(name).await?;
        let version = self.store(name, received, lock, replaces).await?;
        Ok(answer::json(&json!({"version": version.version, "serial": version.serial})))
    }

    pub(super) fn refused(&self, name: &StateName, refusal: Refusal) -> Problem {
        Problem::refused(refusal, |lock| (self.describe(name, lock), self.visible(name, lock).lock_info()))
    }

    pub(super) fn describe(&self, name: &StateName, lock: &Lock) -> Value {
        let lapsed = self.shared.service.lapsed_for(name, lock);
        let mut told = self.visible(name, lock).describe(lapsed.is_some());
        if let Some(lapsed) = lapsed {
            told["lapsedFor"] = json!(lapsed.as_secs_f64());
        }
        told
    }

    /// The id of a lock is for its holder, and for those who may take it away: `force-unlock` wants to be told it.
    pub(super) fn visible<'l>(&self, name: &StateName, lock: &'l Lock) -> Cow<'l, Lock> {
        if lock.user == self.user.name || self.user.may(Action::Unlock, name) {
            return Cow::Borrowed(lock);
        }
        Cow::Owned(lock.without_id())
    }
}

/// Small contents go out in one write, large ones as they are read.
async fn content_answer(version: &Version, mut stream: ContentStream) -> Result<Answer, Problem> {
    let body = if version.size <= CHUNK as u64 {
        let first = stream.next().await.transpose()?.unwrap_or_default();
        answer::full(first)
    } else {
        // What cannot be read is found before the answer has begun, as far as that is possible.
        let first = stream.next().await.transpose()?.unwrap_or_default();
        let all = futures::stream::once(async { Ok::<Bytes, _>(first) }).chain(stream);
        StreamBody::new(all.map_ok(Frame::data)).boxed_unsync()
    };
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(version.size));
    headers.insert(HeaderName::from_static("strata-version"), HeaderValue::from(version.version));
    if let Some(serial) = version.serial {
        headers.insert(HeaderName::from_static("strata-serial"), HeaderValue::from(serial));
    }
    let md5 = hex::decode(&version.md5).map(|md5| STANDARD.encode(md5)).unwrap_or_default();
    if let Ok(md5) = HeaderValue::from_str(&md5) {
        headers.insert(HeaderName::from_static(CONTENT_MD5), md5);
    }
    Ok(answer)
}
