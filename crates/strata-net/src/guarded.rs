//! Requests that may be sent only while something holds: a lease that others take over once it has lapsed.
//!
//! A connection of its own is made first, then the question is asked, then the request goes out. Nothing that takes time lies between the
//! answer and the sending: no name to look up, no handshake, no place in a queue.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::client::conn::http1;
use tokio::net::TcpStream;

use crate::client::reason_of;
use crate::{HttpClient, NetError, Request, Response};

/// Whether a request may be sent; the reason why not is for people.
pub type Permission<'a> = &'a (dyn Fn() -> Result<(), String> + Sync);

/// That a run may write, for one request: looked at again when that is about to be sent. A client that asks for one with each write cannot
/// send any without.
pub struct WritePermit<'a> {
    still: Box<dyn Fn() -> Result<(), String> + Send + Sync + 'a>,
    within: Option<Duration>,
}

impl<'a> WritePermit<'a> {
    /// `within` is how long the request may take from then on; none where nobody takes the lock of a run that lives.
    pub fn new(still: impl Fn() -> Result<(), String> + Send + Sync + 'a, within: Option<Duration>) -> Self {
        Self { still: Box::new(still), within }
    }

    /// For who holds no lock that could be lost.
    pub fn unbound() -> Self {
        Self::new(|| Ok(()), None)
    }

    /// Whether the run may still write; the reason why not is for people.
    pub fn check(&self) -> Result<(), String> {
        (self.still)()
    }

    /// How long the request may take once it is sent.
    pub fn within(&self) -> Option<Duration> {
        self.within
    }

    /// The shorter of both.
    pub fn limit(&self, usual: Duration) -> Duration {
        self.within.map_or(usual, |within| within.min(usual))
    }
}

/// What was written to this connection and is not acknowledged after this long is given up by the system itself, also while this process
/// stands still: it does not arrive later.
pub fn give_up_after(tcp: &TcpStream, patience: Duration) {
    #[cfg(target_os = "linux")]
    {
        let millis = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX).max(1);
        // Where it cannot be set the request is no worse off than without it.
        let _ = rustix::net::sockopt::set_tcp_user_timeout(tcp, millis);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (tcp, patience);
}

impl HttpClient {
    /// Sends the request once if it may be sent, and reads the whole answer. From the first byte to the last it takes no longer than
    /// `patience`, and what the network has not taken by then does not arrive later.
    pub async fn send_permitted(
        &self,
        request: &Request,
        permission: Permission<'_>,
        patience: Duration,
    ) -> Result<Response, NetError> {
        let begun = self.clock().monotonic();
        let answer = self.exchange_permitted(request, permission, patience).await;
        self.trace(request, answer.as_ref().ok().map(|response| response.status), begun);
        answer
    }

    async fn exchange_permitted(
        &self,
        request: &Request,
        permission: Permission<'_>,
        patience: Duration,
    ) -> Result<Response, NetError> {
        let broken = |error: hyper::Error| self.broken(request, Arc::new(error));
        let stream = self.connector().open().await?;
        stream.give_up_after(patience);
        let (mut sender, connection) = http1::handshake(stream).await.map_err(broken)?;
        // It ends with the answer, or when this is dropped: with the sender.
        tokio::spawn(connection);
        sender.ready().await.map_err(broken)?;
        let built = self.build_for_connection(request)?;
        permission().map_err(NetError::Withheld)?;
        let exchange = async {
            let (head, body) = sender.send_request(built).await.map_err(broken)?.into_parts();
            let body = Limited::new(body, self.largest_answer()).collect().await;
            let body = body.map_err(|error| self.unread(request, error))?;
            let reason = reason_of(&head);
            Ok(Response {
                status: head.status.as_u16(),
                reason,
                headers: head.headers,
                body: body.to_bytes(),
            })
        };
        match tokio::time::timeout(patience, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(self.timed_out(request, patience)),
        }
    }
}
