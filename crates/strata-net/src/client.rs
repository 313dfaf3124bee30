//! The client of one endpoint: sends a request once, over kept-alive connections, and says precisely what went wrong.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::ServerName;
use url::Url;

use crate::connector::Connector;
use crate::trust::{ServerNames, client_config};
use crate::{
    Body, Cause, ClientIdentity, Clock, DialMap, Exchange, NetError, Request, Response, Streamed,
    SystemClock, TlsSetupError, TlsTrust, TraceSink,
};

/// How to talk to one endpoint.
#[derive(Clone)]
pub struct HttpOptions {
    /// `https://host:port`; a path in it goes before the path of each request.
    pub endpoint: String,
    /// What its server must show.
    pub tls: TlsTrust,
    /// Who this side is, where the server asks for a certificate.
    pub identity: Option<ClientIdentity>,
    /// Where it is really dialled.
    pub dial: DialMap,
    /// For the connection and its handshake.
    pub connect_timeout: Duration,
    /// The same until the first connection stands, where that is shorter: what never answered is likely not there.
    pub first_connect_timeout: Duration,
    /// From the request's first byte to the answer's last.
    pub request_timeout: Duration,
    /// How long an unused connection is kept. Shorter than the server keeps it, so that no request meets a closing one.
    pub idle_timeout: Duration,
    /// How many unused connections are kept.
    pub idle_connections: usize,
    /// An answer with more bytes than this is an error.
    pub largest_answer: usize,
    /// Who this side says it is.
    pub user_agent: String,
    /// Told of every request and its answer.
    pub trace: Option<Arc<dyn TraceSink>>,
    /// For what traces say of durations.
    pub clock: Arc<dyn Clock>,
}

impl HttpOptions {
    /// The usual limits, and the certificates that this machine trusts.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            tls: TlsTrust::System,
            identity: None,
            dial: DialMap::new(),
            connect_timeout: Duration::from_secs(10),
            first_connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(4),
            idle_connections: 16,
            largest_answer: 64 << 20,
            user_agent: "strata".to_owned(),
            trace: None,
            clock: Arc::new(SystemClock::new()),
        }
    }
}

/// Clones share connections.
#[derive(Clone)]
pub struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
    connector: Connector,
    shared: Arc<Shared>,
}

struct Shared {
    /// `https://host:port/base`, without a slash at the end.
    base: String,
    /// The path in it.
    base_path: String,
    /// `host:port`.
    endpoint: String,
    host: HeaderValue,
    user_agent: HeaderValue,
    request_timeout: Duration,
    largest_answer: usize,
    trace: Option<Arc<dyn TraceSink>>,
    clock: Arc<dyn Clock>,
}

impl HttpClient {
    /// Checks the options. Nothing is sent yet.
    pub fn new(options: HttpOptions) -> Result<Self, TlsSetupError> {
        let wrong = || TlsSetupError::Endpoint(options.endpoint.clone());
        let url = Url::parse(&options.endpoint).map_err(|_| wrong())?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        let secure = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(wrong()),
        };
        let endpoint = format!("{host}:{}", url.port_or_known_default().ok_or_else(wrong)?);
        let tls = if secure {
            let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            Some((
                client_config(&options.tls, ServerNames::Checked, options.identity.as_ref())?,
                ServerName::try_from(name).map_err(|_| wrong())?,
            ))
        } else {
            None
        };
        let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let first = options.first_connect_timeout.min(options.connect_timeout);
        let connector = Connector::new(endpoint.clone(), tls, options.dial, options.connect_timeout, first);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(options.idle_timeout)
            .pool_max_idle_per_host(options.idle_connections)
            .build(connector.clone());
        let shared = Shared {
            base: format!("{}://{authority}{}", url.scheme(), url.path().trim_end_matches('/')),
            base_path: url.path().trim_end_matches('/').to_owned(),
            endpoint,
            host: HeaderValue::try_from(authority.as_str()).map_err(|_| wrong())?,
            user_agent: HeaderValue::try_from(options.user_agent.as_str())
                .unwrap_or(HeaderValue::from_static("strata")),
            request_timeout: options.request_timeout,
            largest_answer: options.largest_answer,
            trace: options.trace,
            clock: options.clock,
        };
        Ok(Self { client, connector, shared: Arc::new(shared) })
    }

    /// `host:port` of the endpoint.
    pub fn endpoint(&self) -> &str {
        &self.shared.endpoint
    }

    /// Whether a connection to the endpoint has stood.
    pub fn was_reached(&self) -> bool {
        self.connector.was_reached()
    }

    /// The clock of the options.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// Sends the request once and reads the whole answer, whatever its status.
    pub async fn send(&self, request: &Request) -> Result<Response, NetError> {
        let begun = self.shared.clock.monotonic();
        let timeout = request.timeout.unwrap_or(self.shared.request_timeout);
        let answer = match tokio::time::timeout(timeout, self.exchange(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(self.timed_out(request, timeout)),
        };
        self.trace(request, answer.as_ref().ok().map(|response| response.status), begun);
        answer
    }

    /// Sends the request once and returns when the answer begins; its body is read piece by piece.
    ///
    /// The time limit holds until the answer begins: what follows may take as long as the server likes.
    pub async fn stream(&self, request: &Request) -> Result<Streamed, NetError> {
        let begun = self.shared.clock.monotonic();
        let timeout = request.timeout.unwrap_or(self.shared.request_timeout);
        let answer = match tokio::time::timeout(timeout, self.client.request(self.build(request)?)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(self.send_error(request, error)),
            Err(_) => Err(self.timed_out(request, timeout)),
        };
        self.trace(request, answer.as_ref().ok().map(|response| response.status().as_u16()), begun);
        let (head, body) = answer?.into_parts();
        Ok(Streamed::new(head, body, &self.shared.endpoint, request))
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    pub(crate) fn largest_answer(&self) -> usize {
        self.shared.largest_answer
    }

    pub(crate) fn timed_out(&self, request: &Request, timeout: Duration) -> NetError {
        NetError::Timeout {
            endpoint: self.shared.endpoint.clone(),
            method: request.method.to_string(),
            path: request.path.clone(),
            seconds: timeout.as_secs(),
        }
    }

    pub(crate) fn trace(&self, request: &Request, status: Option<u16>, begun: Duration) {
        if let Some(trace) = &self.shared.trace {
            trace.exchange(&Exchange {
                method: request.method.as_str(),
                path: &request.path,
                status,
                took: self.shared.clock.monotonic().saturating_sub(begun),
            });
        }
    }

    async fn exchange(&self, request: &Request) -> Result<Response, NetError> {
        let response = match self.client.request(self.build(request)?).await {
            Ok(response) => response,
            Err(error) => return Err(self.send_error(request, error)),
        };
        let (head, body) = response.into_parts();
        let body = Limited::new(body, self.shared.largest_answer).collect().await;
        let body = body.map_err(|error| self.unread(request, error))?;
        let reason = reason_of(&head);
        Ok(Response { status: head.status.as_u16(), reason, headers: head.headers, body: body.to_bytes() })
    }

    /// Why an answer could not be read to its end.
    pub(crate) fn unread(&self, request: &Request, error: Box<dyn StdError + Send + Sync>) -> NetError {
        if error.is::<LengthLimitError>() {
            return NetError::TooLarge {
                endpoint: self.shared.endpoint.clone(),
                method: request.method.to_string(),
                path: request.path.clone(),
                limit: self.shared.largest_answer,
            };
        }
        self.broken(request, error.into())
    }

    fn build(&self, request: &Request) -> Result<http::Request<Full<Bytes>>, NetError> {
        self.build_at(&self.shared.base, request)
    }

    /// As it goes over a connection that is made already: with a path and no host.
    pub(crate) fn build_for_connection(
        &self,
        request: &Request,
    ) -> Result<http::Request<Full<Bytes>>, NetError> {
        self.build_at(&self.shared.base_path, request)
    }

    fn build_at(&self, base: &str, request: &Request) -> Result<http::Request<Full<Bytes>>, NetError> {
        let mark = if request.query.is_empty() { "" } else { "?" };
        let uri = format!("{base}{}{mark}{}", request.path, request.query);
        let mut built = http::Request::builder().method(request.method.clone()).uri(uri);
        built =
            built.header(HOST, self.shared.host.clone()).header(USER_AGENT, self.shared.user_agent.clone());
        for (name, value) in &request.headers {
            built = built.header(name, value.clone());
        }
        let bytes = match &request.body {
            Body::Empty => Bytes::new(),
            Body::Bytes { content_type, bytes } => {
                built = built.header(CONTENT_TYPE, content_type);
                bytes.clone()
            }
        };
        built.body(Full::new(bytes)).map_err(|error| NetError::BadRequest(error.to_string()))
    }

    fn send_error(&self, request: &Request, error: hyper_util::client::legacy::Error) -> NetError {
        let mut source = error.source();
        while let Some(inner) = source {
            if let Some(net) = inner.downcast_ref::<NetError>() {
                return net.clone();
            }
            source = inner.source();
        }
        self.broken(request, Arc::new(error))
    }

    pub(crate) fn broken(&self, request: &Request, source: Cause) -> NetError {
        NetError::Broken {
            endpoint: self.shared.endpoint.clone(),
            method: request.method.to_string(),
            path: request.path.clone(),
            source,
        }
    }
}

/// The reason phrase as the server wrote it, else the usual one.
pub(crate) fn reason_of(head: &http::response::Parts) -> String {
    head.extensions.get::<hyper::ext::ReasonPhrase>().map_or_else(
        || head.status.canonical_reason().unwrap_or_default().to_owned(),
        |reason| String::from_utf8_lossy(reason.as_bytes()).into_owned(),
    )
}
