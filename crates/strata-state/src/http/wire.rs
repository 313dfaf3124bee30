//! Requests to the server: who we are, another try where that does no harm, and what its answers mean.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use strata_net::{Body, HttpClient, HttpOptions, Request, Response};
use strata_secret::SecretString;

use crate::StoreError;

/// How often a request is sent whose answer does not come.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Clone)]
pub(super) struct Wire {
    client: HttpClient,
    headers: Vec<(HeaderName, HeaderValue)>,
    timeout: Duration,
}

/// A request to be made; everything that is sent here may be sent twice.
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Option<(&'static str, Bytes)>,
    /// Sent once, whatever becomes of it.
    pub(super) once: bool,
}

impl Call {
    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), query: String::new(), headers: Vec::new(), body: None, once: false }
    }

    pub(super) fn query(mut self, query: impl Into<String>) -> Self {
        self.query = query.into();
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn json(mut self, bytes: impl Into<Bytes>) -> Self {
        self.body = Some(("application/json", bytes.into()));
        self
    }

    pub(super) fn bytes(mut self, bytes: impl Into<Bytes>) -> Self {
        self.body = Some(("application/octet-stream", bytes.into()));
        self
    }

    pub(super) fn once(mut self) -> Self {
        self.once = true;
        self
    }
}

impl Wire {
    pub(super) fn new(
        options: HttpOptions,
        headers: &[(String, SecretString)],
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        const UNUSABLE: &str = "the state's server cannot be used";
        let failed = |reason: String| StoreError::remote(UNUSABLE, reason);
        let mut own = Vec::new();
        for (name, value) in headers {
            let header = HeaderName::try_from(name.as_str())
                .map_err(|_| failed(format!("`{name}` is not the name of a header")))?;
            let mut value = HeaderValue::try_from(value.expose())
                .map_err(|_| failed(format!("the header `{name}` has a character that cannot be sent")))?;
            value.set_sensitive(true);
            own.push((header, value));
        }
        let client = HttpClient::new(options).map_err(|error| StoreError::remote_error(UNUSABLE, error))?;
        Ok(Self { client, headers: own, timeout })
    }

    /// The answer, whatever its status; an error only if there is none.
    pub(super) async fn send(&self, call: &Call) -> Result<Response, StoreError> {
        let mut request = Request::new(call.method.clone(), call.path.clone());
        request.query.clone_from(&call.query);
        request.headers.clone_from(&self.headers);
        for (name, value) in &call.headers {
            if let Ok(value) = HeaderValue::try_from(value.as_str()) {
                request.headers.push((HeaderName::from_static(name), value));
            }
        }
        if let Some((content_type, bytes)) = &call.body {
            request.body = Body::Bytes { content_type: (*content_type).to_owned(), bytes: bytes.clone() };
        }
        // Whole states may be large; whether the lock is still held is asked after the answer.
        request.timeout = Some(self.timeout);
        let mut attempt = 1;
        loop {
            let answer = self.client.send(&request).await;
            let again = !call.once
                && attempt < ATTEMPTS
                && match &answer {
                    Ok(response) => matches!(response.status, 429 | 502 | 503 | 504),
                    Err(error) => error.is_transient(),
                };
            if !again {
                return answer.map_err(|error| {
                    let hint = error.hint();
                    StoreError::remote_error("the state's server does not answer", error).with_hint(hint)
                });
            }
            self.client.clock().sleep(PAUSE * 2_u32.pow(attempt)).await;
            attempt += 1;
        }
    }

    /// What an answer that was not expected says.
    pub(super) fn unexpected(&self, call: &Call, answer: &Response) -> StoreError {
        /// As `strata serve` says it, or GitLab.
        #[derive(serde::Deserialize)]
        struct ErrorBody {
            #[serde(alias = "message")]
            error: String,
            hint: Option<String>,
        }
        let told: Option<ErrorBody> = serde_json::from_slice(&answer.body).ok();
        let hint = match answer.status {
            401 => Some("check `username` and `password`, or `token`, of `state` in strata.yaml".to_owned()),
            403 => Some("this user may not do that on the server".to_owned()),
            404 => Some(
                "check `url` of `state` in strata.yaml, and whether this user may see what is there"
                    .to_owned(),
            ),
            _ => None,
        };
        let mut reason = format!("it answered {} {}", answer.status, answer.reason);
        if let Some(told) = &told {
            reason = format!("{reason}: {}", told.error);
        }
        StoreError::remote(format!("the state's server refused {} {}", call.method, call.path), reason)
            .with_hint(told.and_then(|told| told.hint).or(hint))
    }
}
