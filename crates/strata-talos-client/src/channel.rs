//! One HTTP/2 connection to a node, made when it is needed and opened again when it is gone.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use strata_net::{DialMap, WritePermit};
use tokio::sync::{Mutex, watch};
use tokio_rustls::TlsConnector;

use crate::error::TalosReason;
use crate::tls;
use crate::witness::Witness;

/// The port of the Talos API.
const PORT: u16 = 50000;
/// How long a broken connection may take to say why it broke.
const LAST_WORDS: Duration = Duration::from_secs(1);

pub(crate) type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// The way to one node.
pub(crate) struct Channel {
    /// `host:port`, as the model names it.
    pub(crate) node: String,
    dial: DialMap,
    tls: TlsConnector,
    name: ServerName<'static>,
    connection: Mutex<Option<Arc<Connection>>>,
}

/// A connection, and how it ended.
pub(crate) struct Connection {
    sender: SendRequest<Body>,
    ended: watch::Receiver<Option<TalosReason>>,
}

impl Channel {
    /// `None` if the address is neither an IP address nor a name, with a port or without.
    pub(crate) fn new(address: &str, dial: &DialMap, tls: ClientConfig) -> Option<Self> {
        let (host, port) = split(address)?;
        let name = ServerName::try_from(host.clone()).ok()?;
        let node = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let tls = TlsConnector::from(Arc::new(tls));
        Some(Self { node, dial: dial.clone(), tls, name, connection: Mutex::default() })
    }

    /// Sends a request and waits for the head of the answer. A request that provably never left is sent once more, on a new
    /// connection: a kept one may have gone with a reboot. How long all of it may take is for the caller to say.
    ///
    /// A write that must not be late goes over a connection of its own, which gives up in time. Whether it may be sent is looked at when the
    /// connection stands.
    pub(crate) async fn send(
        &self,
        mut request: Request<Body>,
        connect: Duration,
        permit: Option<&WritePermit<'_>>,
    ) -> Result<(Response<Incoming>, Arc<Connection>), TalosReason> {
        loop {
            let (connection, kept) = match permit.and_then(WritePermit::within) {
                Some(within) => (self.open(connect, Some(within)).await?, false),
                None => self.connection(connect).await?,
            };
            permit.map_or(Ok(()), WritePermit::check).map_err(TalosReason::Withheld)?;
            let mut error = match connection.sender.clone().try_send_request(request).await {
                Ok(response) => return Ok((response, connection)),
                Err(error) => error,
            };
            self.forget(&connection).await;
            let unsent = error.take_message();
            let reason = connection.why(&error.into_error()).await;
            match unsent {
                Some(unsent) if kept => request = unsent,
                Some(_) if !matches!(reason, TalosReason::Tls(_)) => {
                    return Err(TalosReason::Unreachable(reason.to_string()));
                }
                _ => return Err(reason),
            }
        }
    }

    /// Ends the connection: the next call makes a new one.
    pub(crate) async fn reset(&self) {
        *self.connection.lock().await = None;
    }

    async fn forget(&self, broken: &Arc<Connection>) {
        let mut kept = self.connection.lock().await;
        if kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, broken)) {
            *kept = None;
        }
    }

    /// The connection, and whether it was there before.
    async fn connection(&self, within: Duration) -> Result<(Arc<Connection>, bool), TalosReason> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = kept.as_ref().filter(|connection| !connection.sender.is_closed()) {
            return Ok((connection.clone(), true));
        }
        let connection = self.open(within, None).await?;
        *kept = Some(connection.clone());
        Ok((connection, false))
    }

    /// A new connection, which gives up on what is not acknowledged in time.
    async fn open(
        &self,
        within: Duration,
        gives_up_after: Option<Duration>,
    ) -> Result<Arc<Connection>, TalosReason> {
        let late = |_| {
            TalosReason::Unreachable(format!("it did not accept a connection within {} s", within.as_secs()))
        };
        let connection = tokio::time::timeout(within, self.dial(gives_up_after)).await.map_err(late)??;
        Ok(Arc::new(connection))
    }

    async fn dial(&self, gives_up_after: Option<Duration>) -> Result<Connection, TalosReason> {
        let unreachable = |error: &dyn std::error::Error| TalosReason::Unreachable(error.to_string());
        let tcp = self.dial.connect(&self.node).await.map_err(|error| unreachable(&error))?;
        if let Some(patience) = gives_up_after {
            strata_net::give_up_after(&tcp, patience);
        }
        let tls = self.tls.connect(self.name.clone(), tcp).await;
        let tls = tls.map_err(|error| match tls::problem_in(&error) {
            Some(problem) => TalosReason::Tls(problem),
            // Cut off in the middle of the handshake, as by a machine that is going down.
            None => unreachable(&error),
        })?;
        let (stream, tls) = Witness::new(tls);
        let reason = move |error: &hyper::Error| match tls.get() {
            Some(problem) => TalosReason::Tls(problem.clone()),
            None => broken(error),
        };
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, driver) = handshake.map_err(|error| reason(&error))?;
        let (end, ended) = watch::channel(None);
        tokio::spawn(async move {
            let reason = match driver.await {
                Ok(()) => TalosReason::Broken("the node closed it".to_owned()),
                Err(error) => reason(&error),
            };
            end.send_replace(Some(reason));
        });
        Ok(Connection { sender, ended })
    }
}

impl Connection {
    /// Why a request failed: the connection as a whole often knows more than the request.
    pub(crate) async fn why(&self, error: &hyper::Error) -> TalosReason {
        let mut ended = self.ended.clone();
        let last_words = tokio::time::timeout(LAST_WORDS, ended.wait_for(Option::is_some)).await;
        match last_words {
            Ok(Ok(end)) => end.clone().unwrap_or_else(|| broken(error)),
            _ => broken(error),
        }
    }
}

fn broken(error: &hyper::Error) -> TalosReason {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    TalosReason::Broken(text)
}

/// Host and port of `host`, `host:port`, `::1` or `[::1]:port`.
fn split(address: &str) -> Option<(String, u16)> {
    if let Ok(ip) = address.parse::<std::net::IpAddr>() {
        return Some((ip.to_string(), PORT));
    }
    if let Ok(socket) = address.parse::<std::net::SocketAddr>() {
        return Some((socket.ip().to_string(), socket.port()));
    }
    match address.rsplit_once(':') {
        Some((host, port)) if !host.contains([':', '[', ']']) => Some((host.to_owned(), port.parse().ok()?)),
        Some(_) => None,
        None => Some((address.to_owned(), PORT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses_with_a_port_and_without() {
        let split = |text| split(text).map(|(host, port)| format!("{host} {port}"));
        assert_eq!(split("192.0.2.1").as_deref(), Some("192.0.2.1 50000"));
        assert_eq!(split("192.0.2.1:50001").as_deref(), Some("192.0.2.1 50001"));
        assert_eq!(split("::1").as_deref(), Some("::1 50000"));
        assert_eq!(split("[::1]:7").as_deref(), Some("::1 7"));
        assert_eq!(split("cp-1.example.org").as_deref(), Some("cp-1.example.org 50000"));
        assert_eq!(split("cp-1.example.org:7").as_deref(), Some("cp-1.example.org 7"));
        for bad in ["[::1", "a:b", "::1]:7", "a:70000"] {
            assert_eq!(split(bad), None, "{bad}");
        }
    }
}
