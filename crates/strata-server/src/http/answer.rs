//! Answers, and what they say when something is not done.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Value, json};

use crate::receive::ReceiveError;
use strata_storage::{Lock, Refusal, StorageError};

pub(crate) type Body = UnsyncBoxBody<Bytes, StorageError>;
pub(crate) type Answer = Response<Body>;

pub(crate) fn empty() -> Body {
    full(Bytes::new())
}

pub(super) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(super) fn text(text: &str) -> Answer {
    typed(StatusCode::OK, "text/plain; charset=utf-8", text.to_owned())
}

pub(super) fn json(value: &Value) -> Answer {
    typed(StatusCode::OK, "application/json", value.to_string())
}

pub(super) fn ok() -> Answer {
    Response::new(empty())
}

fn typed(status: StatusCode, kind: &'static str, body: String) -> Answer {
    let mut answer = Response::new(full(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// Why something was not done.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    body: Box<Map<String, Value>>,
    /// The holder as OpenTofu reads it, if the lock is the reason.
    lock_info: Option<Box<Value>>,
    retry_after: Option<u64>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        let mut body = Box::<Map<String, Value>>::default();
        body.insert("error".to_owned(), Value::String(error.into()));
        Self { status, body, lock_info: None, retry_after: None }
    }

    pub(super) fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    pub(super) fn unknown_method() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "this address does not know the method")
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        self.with("hint", Value::String(hint.into()))
    }

    pub(super) fn with(mut self, key: &str, value: Value) -> Self {
        self.body.insert(key.to_owned(), value);
        self
    }

    pub(super) fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait.as_secs() + 1);
        self
    }

    /// OpenTofu wants the holder of the lock and nothing else.
    pub(super) fn for_tofu(mut self) -> Self {
        if let Some(info) = self.lock_info.take()
            && let Value::Object(info) = *info
        {
            *self.body = info;
        }
        self
    }

    #[cfg(test)]
    pub(super) fn code(&self) -> u16 {
        self.status.as_u16()
    }

    pub(super) fn into_answer(self) -> Answer {
        let mut answer = typed(self.status, "application/json", Value::Object(*self.body).to_string());
        if self.status == StatusCode::UNAUTHORIZED {
            let basic = HeaderValue::from_static("Basic realm=\"strata\", charset=\"UTF-8\"");
            answer.headers_mut().insert(WWW_AUTHENTICATE, basic);
        }
        if let Some(seconds) = self.retry_after {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        answer
    }

    /// What the rules said. `describe` says who holds the lock, for Strata and for OpenTofu.
    pub(super) fn refused(refusal: Refusal, describe: impl Fn(&Lock) -> (Value, Value)) -> Self {
        let said = refusal.to_string();
        match refusal {
            Refusal::Held(lock) => {
                let (holder, info) = describe(&lock);
                let problem = Self::new(StatusCode::LOCKED, said).with("holder", holder);
                Self { lock_info: Some(Box::new(info)), ..problem }
            }
            Refusal::LockLost { holder, .. } => {
                let problem = Self::new(StatusCode::CONFLICT, said);
                match holder {
                    Some(lock) => problem.with("holder", describe(&lock).0),
                    None => problem,
                }
            }
            Refusal::NotYours(lock) => Self::new(StatusCode::FORBIDDEN, said)
                .hint("to take away a lock of another user needs the action `unlock`")
                .with("holder", describe(&lock).0),
            Refusal::Moved { found, .. } => {
                Self::new(StatusCode::PRECONDITION_FAILED, said).with("serial", json!(found))
            }
            Refusal::Older { found, .. } => Self::new(StatusCode::CONFLICT, said)
                .with("serial", json!(found))
                .hint("read the state again; `?force=true` passes over this and needs the action `admin`"),
            Refusal::Lineage => Self::new(StatusCode::CONFLICT, said)
                .hint("is the address right? `?force=true` passes over this and needs the action `admin`"),
        }
    }
}

impl From<StorageError> for Problem {
    fn from(error: StorageError) -> Self {
        let status = match &error {
            StorageError::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
            StorageError::Broken(_) | StorageError::Busy => StatusCode::SERVICE_UNAVAILABLE,
            StorageError::Failed(_) | StorageError::Damaged(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<ReceiveError> for Problem {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Storage(error) => error.into(),
            ReceiveError::TooLarge(_) => Self::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string()),
            ReceiveError::NotAState(_) => Self::bad(error.to_string()),
        }
    }
}
