//! One connection: dialled, perhaps elsewhere than its name says, and wrapped in TLS for the name that stays.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::trust::{CertificateProblem, RefusedCertificate};
use crate::{CertificateFlaw, DialMap, NetError};

/// Makes connections to one endpoint.
#[derive(Clone)]
pub(crate) struct Connector {
    inner: Arc<Inner>,
}

struct Inner {
    /// `host:port`, for messages and for the dial map.
    endpoint: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    dial: DialMap,
    timeout: Duration,
    /// The same until the first connection stands.
    first_timeout: Duration,
    reached: AtomicBool,
}

impl Connector {
    pub(crate) fn new(
        endpoint: String,
        tls: Option<(ClientConfig, ServerName<'static>)>,
        dial: DialMap,
        timeout: Duration,
        first_timeout: Duration,
    ) -> Self {
        let tls = tls.map(|(config, name)| (TlsConnector::from(Arc::new(config)), name));
        let reached = AtomicBool::new(false);
        Self { inner: Arc::new(Inner { endpoint, tls, dial, timeout, first_timeout, reached }) }
    }

    /// Whether a connection has stood.
    pub(crate) fn was_reached(&self) -> bool {
        self.inner.reached.load(Ordering::Relaxed)
    }

    /// A connection that nobody else uses.
    pub(crate) async fn open(&self) -> Result<Stream, NetError> {
        self.inner.in_time().await
    }

    /// A connection for another protocol than HTTP.
    pub(crate) async fn open_tls(&self) -> Result<TlsStream<TcpStream>, NetError> {
        match self.inner.in_time().await? {
            Stream::Tls(stream) => Ok(stream.into_inner()),
            Stream::Plain(_) => {
                let endpoint = self.inner.endpoint.clone();
                Err(NetError::Tls { endpoint, source: Arc::new(io::Error::other("the endpoint has no TLS")) })
            }
        }
    }
}

impl tower::Service<Uri> for Connector {
    type Response = Stream;
    type Error = NetError;
    type Future = BoxFuture<'static, Result<Stream, NetError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NetError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let inner = self.inner.clone();
        Box::pin(async move { inner.in_time().await })
    }
}

impl Inner {
    async fn in_time(&self) -> Result<Stream, NetError> {
        let reached = self.reached.load(Ordering::Relaxed);
        let limit = if reached { self.timeout } else { self.first_timeout };
        let timed_out =
            |_| NetError::ConnectTimeout { endpoint: self.endpoint.clone(), seconds: limit.as_secs() };
        let stream = tokio::time::timeout(limit, self.connect()).await.map_err(timed_out)??;
        self.reached.store(true, Ordering::Relaxed);
        Ok(stream)
    }

    async fn connect(&self) -> Result<Stream, NetError> {
        let failed =
            |error: io::Error| NetError::Connect { endpoint: self.endpoint.clone(), source: Arc::new(error) };
        let tcp = self.dial.connect(&self.endpoint).await.map_err(failed)?;
        let Some((connector, name)) = &self.tls else { return Ok(Stream::Plain(TokioIo::new(tcp))) };
        let tls = connector.connect(name.clone(), tcp).await.map_err(|error| self.tls_error(error))?;
        Ok(Stream::Tls(Box::new(TokioIo::new(tls))))
    }

    fn tls_error(&self, error: io::Error) -> NetError {
        let endpoint = self.endpoint.clone();
        match RefusedCertificate::find(&error) {
            Some(RefusedCertificate { presented, problem: CertificateProblem::NotPinned(pinned) }) => {
                NetError::PinMismatch { endpoint, presented, pinned }
            }
            Some(RefusedCertificate { presented, problem: CertificateProblem::Invalid(error) }) => {
                let flaw = CertificateFlaw::of(&error);
                NetError::Untrusted { endpoint, flaw, presented, source: Arc::new(error) }
            }
            // Cut off in the middle of a handshake: as if the connection had not been accepted.
            None if error.kind() != io::ErrorKind::InvalidData => {
                NetError::Connect { endpoint, source: Arc::new(error) }
            }
            None => NetError::Tls { endpoint, source: Arc::new(error) },
        }
    }
}

impl Stream {
    /// See [`crate::give_up_after`].
    pub(crate) fn give_up_after(&self, patience: Duration) {
        let tcp = match self {
            Self::Plain(stream) => stream.inner(),
            Self::Tls(stream) => stream.inner().get_ref().0,
        };
        crate::give_up_after(tcp, patience);
    }
}

/// A connection, with TLS or without.
pub(crate) enum Stream {
    Plain(TokioIo<TcpStream>),
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
        }
    }
}

impl Write for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
        }
    }
}
