//! The thin client: sends what `api` built, reads what came back. Reads are tried again; writes never are, here.

mod auth;
mod error;
mod task;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::de::{DeserializeOwned, IgnoredAny};
use strata_engine::{Look, ProviderError};
use strata_net::{
    Body, Clock, DialMap, HttpClient, HttpOptions, Multipart, NetError, Permission, Random, Request,
    Response, RetryPolicy, Verdict, retry,
};
use strata_secret::{Redactor, SecretString};
use tokio::sync::Semaphore;

use self::auth::Auth;
pub(crate) use self::error::Trouble;
pub use self::error::{CallError, ConnectError};
pub(crate) use self::task::TaskEnd;
use crate::ProxmoxOptions;
use crate::api::{ApiError, Envelope, Params, StagedEnvelope, Version};
use crate::kinds::TokenKeeper;

const BASE: &str = "/api2/json";
const FORM: &str = "application/x-www-form-urlencoded";
/// Proxmox keeps an idle connection for five seconds.
const IDLE: Duration = Duration::from_secs(4);

/// Whose rights a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    Usual,
    /// root@pam with a ticket, where there is a login; a token is never root.
    Root,
}

/// That this run may write now. Nothing is written without one, so that no write goes uncounted.
pub(crate) struct Permit<'a> {
    /// Asked again when the request is about to be sent: until then it may have waited.
    still: Option<Question<'a>>,
}

/// Whether this run may go on.
type Question<'a> = &'a (dyn Fn() -> Result<(), ProviderError> + Sync);

impl<'a> Permit<'a> {
    pub(crate) fn ask(before_write: Question<'_>) -> Result<Self, ProviderError> {
        before_write().map(|()| Self { still: None })
    }

    /// The same for a write that must not be late; `still` counts nothing.
    #[must_use]
    pub(crate) fn while_it_holds(self, still: Question<'a>) -> Self {
        Self { still: Some(still) }
    }

    fn holds(&self) -> Result<(), String> {
        self.still.map_or(Ok(()), |still| still().map_err(|error| error.message))
    }
}

/// A connection to one Proxmox cluster.
pub struct Client {
    http: HttpClient,
    auth: Auth,
    redactor: Redactor,
    clock: Arc<dyn Clock>,
    random: Random,
    policy: RetryPolicy,
    write_timeout: Option<Duration>,
    permits: Semaphore,
    parallelism: usize,
    keeper: Option<Arc<dyn TokenKeeper>>,
    endpoint: String,
    dial: DialMap,
}

impl Client {
    pub(crate) fn new(options: ProxmoxOptions) -> Result<Self, ConnectError> {
        let (endpoint, dial) = (options.endpoint.clone(), options.dial.clone());
        let auth = Auth::new(options.token, options.login, &options.redactor)?;
        let http = HttpClient::new(HttpOptions {
            tls: options.tls,
            dial: options.dial,
            connect_timeout: options.connect_timeout,
            first_connect_timeout: options.first_connect_timeout,
            request_timeout: options.request_timeout,
            idle_timeout: IDLE,
            idle_connections: options.parallelism,
            trace: options.trace,
            clock: options.clock.clone(),
            ..HttpOptions::new(options.endpoint)
        })?;
        let parallelism = options.parallelism.max(1);
        Ok(Self {
            http,
            auth,
            redactor: options.redactor,
            clock: options.clock,
            random: options.random,
            policy: options.retry,
            write_timeout: options.write_timeout,
            permits: Semaphore::new(parallelism),
            parallelism,
            keeper: options.keeper,
            endpoint,
            dial,
        })
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    pub(crate) fn random(&self) -> &Random {
        &self.random
    }

    pub(crate) fn policy(&self) -> RetryPolicy {
        self.policy
    }

    pub(crate) fn parallelism(&self) -> usize {
        self.parallelism
    }

    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// `user@realm!token`, or the user of the ticket: who started our tasks.
    pub(crate) fn identity(&self) -> &str {
        self.auth.identity()
    }

    pub(crate) fn can_be_root(&self) -> bool {
        self.auth.has_root_login()
    }

    /// Whether there is a user with a password, whoever it is.
    pub(crate) fn has_login(&self) -> bool {
        self.auth.login_user().is_some()
    }

    /// The password that a user other than root has to repeat to change somebody else's.
    pub(crate) fn confirmation(&self) -> Option<&SecretString> {
        self.auth.login_password().filter(|_| !self.auth.has_root_login())
    }

    /// Where it is, as the source says.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The way to other places than the endpoint.
    pub(crate) fn dial(&self) -> &DialMap {
        &self.dial
    }

    /// The addresses of the endpoint: the one in it, or those that its name stands for.
    pub(crate) async fn endpoint_ips(&self) -> Vec<String> {
        const PATIENCE: Duration = Duration::from_secs(5);
        let host =
            self.endpoint.split("://").last().and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let bare = host.strip_prefix('[').and_then(|rest| rest.split(']').next());
        let bare = bare.unwrap_or_else(|| host.split(':').next().unwrap_or_default());
        if let Ok(ip) = bare.parse::<std::net::IpAddr>() {
            return vec![ip.to_string()];
        }
        match tokio::time::timeout(PATIENCE, tokio::net::lookup_host((bare, 8006))).await {
            Ok(Ok(found)) => found.map(|address| address.ip().to_string()).collect(),
            _ => Vec::new(),
        }
    }

    /// The address that this machine sends from to the endpoint; none where it is the endpoint itself, or the end of a tunnel.
    pub(crate) async fn own_address(&self) -> Option<std::net::IpAddr> {
        for ip in self.endpoint_ips().await {
            let Ok(ip) = ip.parse::<std::net::IpAddr>() else { continue };
            let any = if ip.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let Ok(socket) = tokio::net::UdpSocket::bind(any).await else { continue };
            // Nothing is sent: the system only chooses the way.
            if socket.connect((ip, 8006)).await.is_ok()
                && let Ok(own) = socket.local_addr()
            {
                return Some(own.ip()).filter(|own| !own.is_loopback() && *own != ip);
            }
        }
        None
    }

    /// Where values of new tokens go.
    pub(crate) fn keeper(&self) -> Option<&dyn TokenKeeper> {
        self.keeper.as_deref()
    }

    pub(crate) fn uses_token(&self) -> bool {
        self.auth.has_token()
    }

    pub async fn version(&self) -> Result<Version, CallError> {
        self.get("/version", Params::new()).await
    }

    /// Reads, and tries again while that can help.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, query: Params) -> Result<T, CallError> {
        let attempt = || async {
            let answer =
                self.send(Method::GET, path, query.encode(), Body::Empty, Rights::Usual, How::Reads).await?;
            serde_json::from_slice::<Envelope<T>>(&answer)
                .map(|envelope| envelope.data)
                .map_err(|error| CallError::unreadable("GET", path, &error))
        };
        // An endpoint that never answered is likely another one, or off: whoever wrote it wants to know now.
        let verdict = |error: &CallError| match error {
            CallError::Net(net) if net.is_no_connection() && !self.http.was_reached() => Verdict::Final,
            error => error.verdict_on_read(),
        };
        retry(self.policy, self.clock(), &self.random, attempt, verdict).await
    }

    /// Reads what only root@pam may, where the target has a login.
    pub(crate) async fn get_as_root<T: DeserializeOwned>(&self, path: &str) -> Result<T, CallError> {
        let attempt = || async {
            let answer =
                self.send(Method::GET, path, String::new(), Body::Empty, Rights::Root, How::Reads).await?;
            serde_json::from_slice::<Envelope<T>>(&answer)
                .map(|envelope| envelope.data)
                .map_err(|error| CallError::unreadable("GET", path, &error))
        };
        retry(self.policy, self.clock(), &self.random, attempt, CallError::verdict_on_read).await
    }

    /// Reads once. What is asked may not be there yet, and whoever asks knows when to ask again.
    pub(crate) async fn get_once<T: DeserializeOwned>(&self, path: &str) -> Result<T, CallError> {
        let answer =
            self.send(Method::GET, path, String::new(), Body::Empty, Rights::Usual, How::Reads).await?;
        serde_json::from_slice::<Envelope<T>>(&answer)
            .map(|envelope| envelope.data)
            .map_err(|error| CallError::unreadable("GET", path, &error))
    }

    /// Reads a listing as a part of a look: however many stacks need it, it is asked for once, and made into what they need once.
    pub(crate) async fn listing<R: DeserializeOwned, T: Send + Sync + 'static>(
        &self,
        look: &Look,
        path: &str,
        query: Params,
        made: impl FnOnce(Vec<R>) -> T,
    ) -> Arc<Result<T, CallError>> {
        let question = format!("{} {path}?{}", self.endpoint, query.encode());
        look.once(question, || async { self.get(path, query).await.map(made) }).await
    }

    /// Reads a listing that says beside it what is staged and not in effect yet.
    pub(crate) async fn get_staged<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<(T, Option<String>), CallError> {
        let attempt = || async {
            let answer =
                self.send(Method::GET, path, String::new(), Body::Empty, Rights::Usual, How::Reads).await?;
            serde_json::from_slice::<StagedEnvelope<T>>(&answer)
                .map(|envelope| (envelope.data, envelope.changes))
                .map_err(|error| CallError::unreadable("GET", path, &error))
        };
        retry(self.policy, self.clock(), &self.random, attempt, CallError::verdict_on_read).await
    }

    /// Writes once, if that is still permitted when the request is about to be sent. The answer is the id of a task, another text, or
    /// nothing.
    pub(crate) async fn write(
        &self,
        permit: Permit<'_>,
        method: Method,
        path: &str,
        params: &Params,
        rights: Rights,
    ) -> Result<Option<String>, CallError> {
        params.secrets().for_each(|secret| self.redactor.add_text(secret));
        let encoded = params.encode();
        // A DELETE with a body is refused; its parameters go into the query.
        let (query, body) = if method == Method::DELETE {
            (encoded, Body::Empty)
        } else {
            (String::new(), Body::Bytes { content_type: FORM.to_owned(), bytes: Bytes::from(encoded) })
        };
        let permission = || permit.holds();
        let how = How::writes(params, &permission);
        let answer = self.send(method.clone(), path, query, body, rights, how).await?;
        task_or_nothing(&answer).map_err(|error| CallError::unreadable(method.as_str(), path, &error))
    }

    /// Writes once, where the answer says something that is said nowhere else.
    pub(crate) async fn write_for<T: DeserializeOwned>(
        &self,
        permit: Permit<'_>,
        method: Method,
        path: &str,
        params: &Params,
    ) -> Result<T, CallError> {
        params.secrets().for_each(|secret| self.redactor.add_text(secret));
        let body = Body::Bytes { content_type: FORM.to_owned(), bytes: Bytes::from(params.encode()) };
        let permission = || permit.holds();
        let how = How::writes(params, &permission);
        let answer = self.send(method.clone(), path, String::new(), body, Rights::Usual, how).await?;
        serde_json::from_slice::<Envelope<T>>(&answer)
            .map(|envelope| envelope.data)
            .map_err(|error| CallError::unreadable(method.as_str(), path, &error))
    }

    /// Uploads a file. It is held in memory and can take longer than other requests.
    pub(crate) async fn upload(
        &self,
        _: Permit<'_>,
        path: &str,
        fields: &Params,
        filename: &str,
        content: Vec<u8>,
    ) -> Result<Option<String>, CallError> {
        // A slow link still moves a megabyte in ten seconds.
        let patience = Duration::from_secs(60 + (content.len() as u64 >> 20) * 10);
        let form = fields.pairs().fold(Multipart::new(), |form, (key, value)| form.field(key, value));
        let body = form.file("filename", filename, content).into_body();
        let answer =
            self.send(Method::POST, path, String::new(), body, Rights::Usual, How::Uploads(patience)).await?;
        task_or_nothing(&answer).map_err(|error| CallError::unreadable("POST", path, &error))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        query: String,
        body: Body,
        rights: Rights,
        how: How<'_>,
    ) -> Result<Bytes, CallError> {
        let _permit = self.permits.acquire().await.expect("the semaphore is never closed");
        let mut request = Request::new(method.clone(), format!("{BASE}{path}"));
        (request.query, request.body) = (query, body);
        if let How::Uploads(patience) = how {
            request.timeout = Some(patience);
        }
        let headers = self.auth.headers(&self.http, &method, rights, self.clock()).await?;
        request.headers = headers;
        let mut response = self.send_once(&request, how).await?;
        if response.status == 401 && self.auth.forget_ticket(rights).await {
            // The ticket has run out; a request that was not let in has done nothing.
            request.headers = self.auth.headers(&self.http, &method, rights, self.clock()).await?;
            response = self.send_once(&request, how).await?;
        }
        if (200..300).contains(&response.status) {
            return Ok(response.body);
        }
        let error = ApiError::redacted(&self.redactor, method.as_str(), path, &response);
        Err(CallError::Api(Box::new(error)))
    }
}

impl Client {
    async fn send_once(&self, request: &Request, how: How<'_>) -> Result<Response, NetError> {
        match (how, self.write_timeout) {
            (How::Writes { permission, bound: false }, Some(patience)) => {
                self.http.send_permitted(request, permission, patience).await
            }
            (How::Writes { permission, .. }, _) => {
                permission().map_err(NetError::Withheld)?;
                self.http.send(request).await
            }
            (How::Reads | How::Uploads(_), _) => self.http.send(request).await,
        }
    }
}

/// What a request does.
#[derive(Clone, Copy)]
enum How<'a> {
    Reads,
    /// `bound`: it names the digest of what it changes, so one that comes late is refused by the server.
    Writes {
        permission: Permission<'a>,
        bound: bool,
    },
    /// A file under a name that nothing else has; it takes as long as this.
    Uploads(Duration),
}

impl<'a> How<'a> {
    fn writes(params: &Params, permission: Permission<'a>) -> Self {
        let bound = params.pairs().any(|(key, _)| key == "digest");
        Self::Writes { permission, bound }
    }
}

fn task_or_nothing(answer: &[u8]) -> Result<Option<String>, serde_json::Error> {
    if let Ok(envelope) = serde_json::from_slice::<Envelope<Option<String>>>(answer) {
        return Ok(envelope.data);
    }
    // Some writes answer with an object that nothing here needs.
    serde_json::from_slice::<Envelope<IgnoredAny>>(answer).map(|_| None)
}

impl CallError {
    pub(crate) fn verdict_on_read(&self) -> Verdict {
        match self.trouble() {
            // A node that is down stays down for longer than anybody wants to wait for one look.
            Trouble::NotDelivered if self.is_unreachable_node() => Verdict::AtMost(3),
            Trouble::NotDelivered | Trouble::AnswerLost => Verdict::Again,
            // A server error without a known meaning may pass; a known one will not.
            Trouble::Unexplained => Verdict::AtMost(3),
            Trouble::Refused => Verdict::Final,
        }
    }
}
