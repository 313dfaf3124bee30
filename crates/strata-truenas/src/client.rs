//! The client: keeps one connection, opens it when it is needed, and tries again what can be sent twice.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use strata_net::{
    Clock, DialMap, Exchange, Random, RetryPolicy, SystemClock, TlsDialer, TlsTrust, TraceSink, Verdict,
    WritePermit, retry,
};
use strata_secret::{Redactor, SecretString};
use tokio::sync::Mutex;

use crate::connection::{Answer, Connection, Lost};
use crate::{Trouble, TrueNasError};

/// How to reach one TrueNAS.
#[derive(Clone)]
pub struct TrueNasOptions {
    /// `https://host`, with a port if it is not 443.
    pub endpoint: String,
    pub api_key: SecretString,
    /// Whose key it is. Needed from TrueNAS 27 on.
    pub username: Option<String>,
    pub tls: TlsTrust,
    pub dial: DialMap,
    pub redactor: Redactor,
    pub retry: RetryPolicy,
    pub connect_timeout: Duration,
    pub request_timeout: Duration,
    pub trace: Option<Arc<dyn TraceSink>>,
    pub clock: Arc<dyn Clock>,
    /// For jitter between attempts.
    pub random: Random,
}

impl TrueNasOptions {
    pub fn new(endpoint: impl Into<String>, api_key: SecretString) -> Self {
        Self {
            endpoint: endpoint.into(),
            api_key,
            username: None,
            tls: TlsTrust::System,
            dial: DialMap::new(),
            redactor: Redactor::new(),
            retry: RetryPolicy::default(),
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(60),
            trace: None,
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(|| 0),
        }
    }
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    Read,
    Write(&'a WritePermit<'a>),
}

/// A connection to one TrueNAS. Calls go one after another.
pub struct TrueNasClient {
    options: TrueNasOptions,
    dialer: TlsDialer,
    connection: Mutex<Option<Connection>>,
}

impl TrueNasClient {
    pub fn new(options: TrueNasOptions) -> Result<Self, TrueNasError> {
        options.redactor.add(&options.api_key);
        let dialer = TlsDialer::new(
            &options.endpoint,
            &options.tls,
            None,
            options.dial.clone(),
            options.connect_timeout,
        );
        let dialer = dialer.map_err(|error| TrueNasError::setup(&error, &options.endpoint))?;
        Ok(Self { options, dialer, connection: Mutex::new(None) })
    }

    /// `host:port`.
    pub fn endpoint(&self) -> &str {
        self.dialer.endpoint()
    }

    /// `TrueNAS-25.10.2`
    pub async fn version(&self) -> Result<String, TrueNasError> {
        let action = "read the version";
        let version = self.read(action, "system.version", Value::Array(Vec::new())).await?;
        version.as_str().map(str::to_owned).ok_or_else(|| self.unreadable(action))
    }

    /// Calls what changes nothing, and tries again while that can help.
    pub(crate) async fn read(
        &self,
        action: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, TrueNasError> {
        self.repeat(action, method, params, Kind::Read).await
    }

    /// Calls what changes something. It is sent again only if it never left.
    pub(crate) async fn write(
        &self,
        permit: &WritePermit<'_>,
        action: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, TrueNasError> {
        self.repeat(action, method, params, Kind::Write(permit)).await
    }

    async fn repeat(
        &self,
        action: &str,
        method: &str,
        params: Value,
        kind: Kind<'_>,
    ) -> Result<Value, TrueNasError> {
        let options = &self.options;
        let attempt = || self.once(action, method, params.clone(), kind);
        let verdict: fn(&TrueNasError) -> Verdict = match kind {
            Kind::Read => TrueNasError::verdict,
            Kind::Write(_) => TrueNasError::verdict_on_write,
        };
        retry(options.retry, options.clock.as_ref(), &options.random, attempt, verdict).await
    }

    async fn once(
        &self,
        action: &str,
        method: &str,
        params: Value,
        kind: Kind<'_>,
    ) -> Result<Value, TrueNasError> {
        let begun = self.options.clock.monotonic();
        let answer = self.exchange(action, method, params, kind).await;
        if let Some(trace) = &self.options.trace {
            trace.exchange(&Exchange {
                method: "RPC",
                path: method,
                status: None,
                took: self.options.clock.monotonic().saturating_sub(begun),
            });
        }
        match answer? {
            Answer::Result(result) => Ok(result),
            Answer::Error(error) => {
                let shown = self.options.redactor.redact(&error.to_string()).into_owned();
                let error = serde_json::from_str(&shown).unwrap_or_default();
                Err(TrueNasError::rpc(action, self.endpoint(), &error))
            }
        }
    }

    async fn exchange(
        &self,
        action: &str,
        method: &str,
        params: Value,
        kind: Kind<'_>,
    ) -> Result<Answer, TrueNasError> {
        let options = &self.options;
        let mut slot = self.connection.lock().await;
        // Taken from its place, so that a call which is given up in the middle leaves no half-read connection behind.
        let (permit, within) = match kind {
            Kind::Read => (None, None),
            Kind::Write(permit) => (Some(permit), permit.within()),
        };
        let kept = match (slot.take(), permit) {
            // What must not be late has a connection of its own, which gives up in time.
            _ if within.is_some() => None,
            // A write on a connection that has died meanwhile would leave in doubt whether it arrived.
            (Some(mut connection), Some(_)) => {
                connection.is_alive(options.request_timeout).await.then_some(connection)
            }
            (kept, _) => kept,
        };
        let mut connection = match kept {
            Some(connection) => connection,
            None => {
                let username = options.username.as_deref();
                Connection::open(&self.dialer, &options.api_key, username, options.request_timeout, within)
                    .await?
            }
        };
        // Nothing that takes time lies between this and the sending.
        if let Some(Err(reason)) = permit.map(WritePermit::check) {
            *slot = Some(connection);
            return Err(TrueNasError::new(Trouble::Withheld, action, self.endpoint(), reason));
        }
        let patience = permit.map_or(options.request_timeout, |permit| permit.limit(options.request_timeout));
        match connection.call(method, params, patience).await {
            Ok(answer) => {
                *slot = Some(connection);
                Ok(answer)
            }
            Err(lost) => {
                let trouble = match &lost {
                    Lost::NotSent(_) => Trouble::Unreachable,
                    Lost::Unknown(_) => Trouble::AnswerLost,
                };
                Err(TrueNasError::new(
                    trouble,
                    action,
                    self.endpoint(),
                    options.redactor.redact(&lost.reason()),
                ))
            }
        }
    }

    pub(crate) fn unreadable(&self, action: &str) -> TrueNasError {
        let reason = "the answer is not what this call gives";
        TrueNasError::new(Trouble::Unreadable, action, self.endpoint(), reason)
    }

    /// Whether the server knows a method that it may not have: `None` if not.
    pub(crate) async fn read_if_known(
        &self,
        action: &str,
        method: &str,
        params: Value,
    ) -> Result<Option<Value>, TrueNasError> {
        match self.read(action, method, params).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_unknown() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
