//! The thin client: finds out where a kind lives, sends, reads what came back, and tries again what can be sent twice.

mod discovery;
mod list;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, HeaderValue};
use serde_json::{Value, json};
use strata_net::{
    Body, ClientIdentity, Clock, Delivery, DialMap, HttpClient, HttpOptions, NetError, Random, Request,
    Response, RetryPolicy, Streamed, SystemClock, TlsTrust, TraceSink, WritePermit, retry,
};
use strata_secret::{Redactor, SecretString};

use self::discovery::Discovery;
pub(crate) use self::discovery::encoded;
pub use self::list::Selector;
use crate::{KubeError, Object, ObjectRef, Trouble};

pub(crate) const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// How to reach the API of one cluster.
#[derive(Clone)]
pub struct KubeOptions {
    /// `https://host:port` of the same API: the virtual address, nodes. The first that accepts a connection is used.
    pub endpoints: Vec<String>,
    pub tls: TlsTrust,
    pub identity: Option<ClientIdentity>,
    pub dial: DialMap,
    /// What the server says is scrubbed of these; secrets that are sent are added.
    pub redactor: Redactor,
    pub retry: RetryPolicy,
    pub connect_timeout: Duration,
    pub request_timeout: Duration,
    pub trace: Option<Arc<dyn TraceSink>>,
    pub clock: Arc<dyn Clock>,
    /// For jitter between attempts.
    pub random: Random,
}

impl KubeOptions {
    /// One endpoint, the CA of the cluster, and a client certificate with its key (all PEM).
    pub fn new(
        endpoint: impl Into<String>,
        ca: impl Into<Vec<u8>>,
        certificate: impl Into<Vec<u8>>,
        key: SecretString,
    ) -> Self {
        Self {
            endpoints: vec![endpoint.into()],
            tls: TlsTrust::Ca(ca.into()),
            identity: Some(ClientIdentity::new(certificate, key)),
            dial: DialMap::new(),
            redactor: Redactor::new(),
            retry: RetryPolicy::default(),
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(60),
            trace: None,
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(|| 0),
        }
    }
}

/// A connection to one cluster.
pub struct KubeClient {
    endpoints: Vec<HttpClient>,
    /// The endpoint that answered last.
    current: AtomicUsize,
    discovery: Discovery,
    redactor: Redactor,
    policy: RetryPolicy,
    clock: Arc<dyn Clock>,
    random: Random,
}

/// What became of a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// It was not there.
    AlreadyGone,
    /// The server deletes it; finalizers can take their time.
    Begun,
}

impl KubeClient {
    pub fn new(options: KubeOptions) -> Result<Self, KubeError> {
        let mut endpoints = Vec::with_capacity(options.endpoints.len());
        for endpoint in &options.endpoints {
            let http = HttpClient::new(HttpOptions {
                tls: options.tls.clone(),
                identity: options.identity.clone(),
                dial: options.dial.clone(),
                connect_timeout: options.connect_timeout,
                request_timeout: options.request_timeout,
                trace: options.trace.clone(),
                clock: options.clock.clone(),
                ..HttpOptions::new(endpoint.clone())
            });
            endpoints.push(http.map_err(|error| KubeError::setup(&error, endpoint))?);
        }
        if endpoints.is_empty() {
            return Err(KubeError::new(Trouble::Unreachable, "connect", "", "no endpoint is given"));
        }
        Ok(Self {
            endpoints,
            current: AtomicUsize::new(0),
            discovery: Discovery::default(),
            redactor: options.redactor,
            policy: options.retry,
            clock: options.clock,
            random: options.random,
        })
    }

    /// `host:port` of the endpoint that answered last.
    pub fn endpoint(&self) -> &str {
        self.endpoints[self.current.load(Ordering::Relaxed)].endpoint()
    }

    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// The object as it is now, or nothing: also if there is no such kind (yet).
    pub async fn get(&self, what: &ObjectRef) -> Result<Option<Object>, KubeError> {
        let action = format!("read {what}");
        let read = async {
            let path = self.path_of(what).await?;
            self.read(&action, Request::new(Method::GET, path)).await
        };
        match read.await {
            Ok(value) => self.object(&action, value).map(Some),
            Err(error) if error.trouble() == Trouble::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes one object; with a `uid`, only if it is still that one.
    pub async fn delete(
        &self,
        permit: &WritePermit<'_>,
        what: &ObjectRef,
        uid: Option<&str>,
    ) -> Result<Deletion, KubeError> {
        let mut options =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
        if let Some(uid) = uid {
            options["preconditions"] = json!({"uid": uid});
        }
        let path = match self.path_of(what).await {
            Err(error) if error.trouble() == Trouble::NotFound => return Ok(Deletion::AlreadyGone),
            path => path?,
        };
        let request = Request { body: json_body(JSON, &options), ..Request::new(Method::DELETE, path) };
        match self.write(permit, &format!("delete {what}"), &request).await {
            Ok(_) => Ok(Deletion::Begun),
            Err(error) if error.trouble() == Trouble::NotFound => Ok(Deletion::AlreadyGone),
            Err(error) => Err(error),
        }
    }

    /// Changes the fields of a JSON merge patch; `null` removes one.
    pub async fn patch(
        &self,
        permit: &WritePermit<'_>,
        what: &ObjectRef,
        patch: &Value,
    ) -> Result<Object, KubeError> {
        let action = format!("change {what}");
        let path = self.path_of(what).await?;
        let request = Request {
            query: format!("fieldManager={}", crate::FIELD_MANAGER),
            body: json_body(MERGE_PATCH, patch),
            ..Request::new(Method::PATCH, path)
        };
        let answer = self.write(permit, &action, &request).await?;
        let value = self.parse(&action, &answer)?;
        self.object(&action, value)
    }

    /// Reads JSON, and tries again while that can help.
    pub(crate) async fn read(&self, action: &str, mut request: Request) -> Result<Value, KubeError> {
        request.headers.push((ACCEPT, HeaderValue::from_static(JSON)));
        let attempt = || self.read_once(action, &request);
        let answer = retry(self.policy, self.clock(), &self.random, attempt, KubeError::verdict).await?;
        self.parse(action, &answer)
    }

    /// Reads once.
    pub(crate) async fn read_once(&self, action: &str, request: &Request) -> Result<Response, KubeError> {
        self.once(action, request, None).await
    }

    /// Writes what can be sent twice, and tries again while that can help. Each attempt needs that the run may still write.
    pub(crate) async fn write(
        &self,
        permit: &WritePermit<'_>,
        action: &str,
        request: &Request,
    ) -> Result<Response, KubeError> {
        let attempt = || self.write_once(permit, action, request);
        retry(self.policy, self.clock(), &self.random, attempt, KubeError::verdict).await
    }

    /// Writes once.
    pub(crate) async fn write_once(
        &self,
        permit: &WritePermit<'_>,
        action: &str,
        request: &Request,
    ) -> Result<Response, KubeError> {
        self.once(action, request, Some(permit)).await
    }

    /// Sends once to the first endpoint that accepts a connection. Any answer but a success is an error.
    async fn once(
        &self,
        action: &str,
        request: &Request,
        permit: Option<&WritePermit<'_>>,
    ) -> Result<Response, KubeError> {
        let mut unreachable = None;
        for index in self.order() {
            let http = &self.endpoints[index];
            match send(http, request, permit).await {
                Ok(response) => {
                    self.current.store(index, Ordering::Relaxed);
                    return self.success(action, response);
                }
                Err(error) => {
                    let moves_on = error.delivery() == Delivery::NotSent && error.is_transient();
                    let error = KubeError::net(action, http.endpoint(), &error);
                    if !moves_on {
                        return Err(error);
                    }
                    unreachable.get_or_insert(error);
                }
            }
        }
        Err(unreachable.expect("there is at least one endpoint"))
    }

    /// As [`Self::once`], for an answer without an end.
    pub(crate) async fn stream(&self, action: &str, request: &Request) -> Result<Streamed, KubeError> {
        let http = &self.endpoints[self.current.load(Ordering::Relaxed)];
        let mut streamed =
            http.stream(request).await.map_err(|error| KubeError::net(action, http.endpoint(), &error))?;
        if (200..300).contains(&streamed.status) {
            return Ok(streamed);
        }
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = streamed.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() > 1 << 20 {
                break;
            }
        }
        Err(self.refused(action, streamed.status, &streamed.reason, &body))
    }

    /// All endpoints, the one that answered last first.
    fn order(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.current.load(Ordering::Relaxed), self.endpoints.len());
        (0..count).map(move |offset| (first + offset) % count)
    }

    fn success(&self, action: &str, response: Response) -> Result<Response, KubeError> {
        if (200..300).contains(&response.status) {
            return Ok(response);
        }
        Err(self.refused(action, response.status, &response.reason, &response.body))
    }

    fn refused(&self, action: &str, status: u16, reason: &str, body: &[u8]) -> KubeError {
        let body = String::from_utf8_lossy(body);
        let body = self.redactor.redact(&body);
        KubeError::status(action, self.endpoint(), status, &self.redactor.redact(reason), &body)
    }

    pub(crate) fn parse(&self, action: &str, response: &Response) -> Result<Value, KubeError> {
        // The parser's message can hold a piece of the answer: only the place is told.
        serde_json::from_slice(&response.body).map_err(|error| {
            let reason = format!("the answer is not JSON (line {}, column {})", error.line(), error.column());
            KubeError::new(Trouble::Unreadable, action, self.endpoint(), reason)
        })
    }

    pub(crate) fn object(&self, action: &str, value: Value) -> Result<Object, KubeError> {
        Object::new(value).map_err(|error| {
            KubeError::new(Trouble::Unreadable, action, self.endpoint(), format!("the answer is {error}"))
        })
    }
}

/// Nothing but a look goes out without a permit. What must not be late has a connection of its own.
async fn send(
    http: &HttpClient,
    request: &Request,
    permit: Option<&WritePermit<'_>>,
) -> Result<Response, NetError> {
    match permit.map(|permit| (permit, permit.within())) {
        Some((permit, Some(within))) => http.send_permitted(request, &|| permit.check(), within).await,
        Some((permit, None)) => {
            permit.check().map_err(NetError::Withheld)?;
            http.send(request).await
        }
        None if request.method == Method::GET => http.send(request).await,
        None => Err(NetError::Withheld("nobody said that this may be written".to_owned())),
    }
}

pub(crate) fn json_body(content_type: &str, value: &Value) -> Body {
    Body::Bytes { content_type: content_type.to_owned(), bytes: Bytes::from(value.to_string()) }
}
