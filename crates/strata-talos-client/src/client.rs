//! The client of one node, and how its calls are made.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use prost::Message;
use strata_net::{DialMap, WritePermit};
use strata_secret::Redactor;

use crate::channel::{Body, Channel};
use crate::credentials::Credentials;
use crate::error::{TalosError, TalosReason};
use crate::message::{Messages, frame};
use crate::pin::SpkiPin;
use crate::tls;
use crate::wire::Answers;

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection stands, TLS included.
    pub connect: Duration,
    /// A call that only reads or only begins something.
    pub call: Duration,
    /// A call during which the node works: bootstrap, configuration, changes of etcd's members.
    pub slow: Duration,
    /// What moves images and snapshots: the time between two messages, and where there is only one, until it is there.
    pub transfer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let [connect, call, slow, transfer] = [10, 30, 180, 600].map(Duration::from_secs);
        Self { connect, call, slow, transfer }
    }
}

/// Talks to one node. Clones share the connection.
#[derive(Clone)]
pub struct TalosClient {
    pub(crate) channel: Arc<Channel>,
    pub(crate) timeouts: Timeouts,
    redactor: Redactor,
}

/// A call that succeeded so far, and whose answer has several messages.
pub(crate) struct Stream<T> {
    client: TalosClient,
    call: &'static str,
    messages: Messages<T>,
    /// How long the node may send nothing.
    idle: Duration,
}

impl TalosClient {
    /// A node of a cluster, at `host` or `host:port`. Nothing is dialled before the first call.
    pub fn connect(address: &str, dial: &DialMap, credentials: &Credentials) -> Result<Self, TalosError> {
        let config = tls::mutual(credentials).map_err(|reason| local(address, reason))?;
        Self::new(address, dial, config)
    }

    /// A node in maintenance mode: without a configuration, with a certificate of its own making. Without a pin, whoever answers
    /// at the address is trusted.
    pub fn maintenance(address: &str, dial: &DialMap, pin: Option<SpkiPin>) -> Result<Self, TalosError> {
        Self::new(address, dial, tls::maintenance(pin))
    }

    fn new(address: &str, dial: &DialMap, config: rustls::ClientConfig) -> Result<Self, TalosError> {
        let channel = Channel::new(address, dial, config)
            .ok_or_else(|| local(address, "it is no address of a node".to_owned()))?;
        Ok(Self { channel: Arc::new(channel), timeouts: Timeouts::default(), redactor: Redactor::default() })
    }

    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Scrubs known secrets from everything that the node says for people to read.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// `host:port` of the node.
    pub fn node(&self) -> &str {
        &self.channel.node
    }

    /// A call that changes nothing, with one message each way. `path` is `/service/call`.
    pub(crate) async fn unary<A: Message + Default>(
        &self,
        path: &'static str,
        request: &impl Message,
        within: Duration,
    ) -> Result<A, TalosError> {
        self.one_answer(path, one_message(request), within, None).await
    }

    /// As [`TalosClient::unary`], for the answers that are lists of one.
    pub(crate) async fn ask<A: Message + Default>(
        &self,
        path: &'static str,
        request: &impl Message,
        within: Duration,
    ) -> Result<A, TalosError> {
        let answers = self.unary(path, request, within).await?;
        self.only(path, answers)
    }

    /// A call that changes something: sent once, while the run may write, and no longer than it allows.
    pub(crate) async fn write<A: Message + Default>(
        &self,
        permit: &WritePermit<'_>,
        path: &'static str,
        request: &impl Message,
        within: Duration,
    ) -> Result<A, TalosError> {
        let body = one_message(request);
        let answers = self.one_answer(path, body, permit.limit(within), Some(permit)).await?;
        self.only(path, answers)
    }

    /// The same for a call during which the node downloads and installs: it is sent in time, and takes as long as it takes.
    pub(crate) async fn write_slowly<A: Message + Default>(
        &self,
        permit: &WritePermit<'_>,
        path: &'static str,
        request: &impl Message,
    ) -> Result<A, TalosError> {
        let answers =
            self.one_answer(path, one_message(request), self.timeouts.transfer, Some(permit)).await?;
        self.only(path, answers)
    }

    fn only<A>(&self, path: &'static str, mut answers: Answers<A>) -> Result<A, TalosError>
    where
        A: Message + Default,
    {
        if answers.messages.is_empty() {
            return Err(self.error(path, TalosReason::Malformed("it is empty".to_owned())));
        }
        Ok(answers.messages.swap_remove(0))
    }

    /// A call that sends many messages and gets one.
    pub(crate) async fn upload<A: Message + Default>(
        &self,
        permit: &WritePermit<'_>,
        path: &'static str,
        messages: BoxStream<'static, std::io::Result<Bytes>>,
        within: Duration,
    ) -> Result<A, TalosError> {
        // A stream that fails on our side only breaks the call; why it did is kept here.
        let failed = Arc::new(OnceLock::new());
        let seen = failed.clone();
        let frames = messages.map(move |item| {
            item.map(Frame::data).inspect_err(|error| {
                seen.get_or_init(|| error.to_string());
            })
        });
        let body = StreamBody::new(frames).boxed_unsync();
        let answer = self.one_answer(path, body, within, Some(permit)).await;
        match failed.get() {
            Some(reason) => Err(self.error(path, TalosReason::Local(reason.clone()))),
            None => answer,
        }
    }

    async fn one_answer<A: Message + Default>(
        &self,
        path: &'static str,
        body: Body,
        within: Duration,
        permit: Option<&WritePermit<'_>>,
    ) -> Result<A, TalosError> {
        let answer = async {
            let mut messages: Messages<A> = self.begin(path, body, Some(within), permit).await?;
            let answer = messages.next().await?;
            // The status comes after the message: only then has the call succeeded.
            while answer.is_some() && messages.next().await?.is_some() {}
            answer.ok_or_else(|| TalosReason::Malformed("it is empty".to_owned()))
        };
        let answer = self.patiently(answer, self.timeouts.connect + within).await;
        answer.map_err(|reason| self.error(path, reason))
    }

    /// A call that changes nothing and gets many messages, with no more than `idle` between them.
    pub(crate) async fn stream<A: Message + Default>(
        &self,
        path: &'static str,
        request: &impl Message,
        idle: Duration,
    ) -> Result<Stream<A>, TalosError> {
        self.stream_with(path, request, idle, None).await
    }

    /// The same for a call that changes something.
    pub(crate) async fn write_stream<A: Message + Default>(
        &self,
        permit: &WritePermit<'_>,
        path: &'static str,
        request: &impl Message,
        idle: Duration,
    ) -> Result<Stream<A>, TalosError> {
        self.stream_with(path, request, idle, Some(permit)).await
    }

    async fn stream_with<A: Message + Default>(
        &self,
        path: &'static str,
        request: &impl Message,
        idle: Duration,
        permit: Option<&WritePermit<'_>>,
    ) -> Result<Stream<A>, TalosError> {
        let begun = self.begin(path, one_message(request), None, permit);
        let messages = self.patiently(begun, self.timeouts.connect + idle).await;
        let messages = messages.map_err(|reason| self.error(path, reason))?;
        Ok(Stream { client: self.clone(), call: path, messages, idle })
    }

    async fn begin<A: Message + Default>(
        &self,
        path: &'static str,
        body: Body,
        within: Option<Duration>,
        permit: Option<&WritePermit<'_>>,
    ) -> Result<Messages<A>, TalosReason> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("https://{}{path}", self.node()))
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers")
            .header(header::USER_AGENT, "strata");
        if let Some(within) = within {
            // So that the node gives up when we do.
            request = request.header("grpc-timeout", format!("{}m", within.as_millis().min(99_999_999)));
        }
        let request = request.body(body).map_err(|error| TalosReason::Local(error.to_string()))?;
        let (response, connection) = self.channel.send(request, self.timeouts.connect, permit).await?;
        Messages::new(response, connection)
    }

    /// Waits no longer than that. The connection on which an answer is overdue is not used again: the node may have gone without
    /// a word.
    async fn patiently<T>(
        &self,
        answer: impl Future<Output = Result<T, TalosReason>>,
        within: Duration,
    ) -> Result<T, TalosReason> {
        match tokio::time::timeout(within, answer).await {
            Ok(answer) => answer,
            Err(_) => {
                self.channel.reset().await;
                Err(TalosReason::Timeout(within))
            }
        }
    }

    pub(crate) fn error(&self, path: &'static str, reason: TalosReason) -> TalosError {
        let call = path.rsplit_once('/').map_or(path, |(_, call)| call);
        TalosError { node: self.node().to_owned(), call, reason: reason.map(|text| self.scrub(text)) }
    }

    /// What the node said, for people to read.
    pub(crate) fn scrub(&self, text: String) -> String {
        self.redactor.redact(&text).into_owned()
    }
}

impl<T: Message + Default> Stream<T> {
    /// The next message; none after the last, if the call succeeded.
    pub(crate) async fn next(&mut self) -> Result<Option<T>, TalosError> {
        let next = self.client.patiently(self.messages.next(), self.idle).await;
        next.map_err(|reason| self.client.error(self.call, reason))
    }
}

fn one_message(request: &impl Message) -> Body {
    Full::new(frame(request)).map_err(|never| match never {}).boxed_unsync()
}

fn local(address: &str, reason: String) -> TalosError {
    TalosError { node: address.to_owned(), call: "connect", reason: TalosReason::Local(reason) }
}
