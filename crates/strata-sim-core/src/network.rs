//! The simulated network: who listens where, and the one loopback port through which clients reach it.
//!
//! A client says `CONNECT 192.0.2.41:50000` and is then connected with what listens there in the simulated network: a machine's
//! Talos API, a Kubernetes API, a web server, a storage server, Proxmox itself. Real programs get there through `HTTPS_PROXY`.

mod connect;
pub mod web;

use std::collections::BTreeMap;
use std::future::Future;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

pub use connect::serve;

/// Both directions of a connection.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// A connection that arrived, and the place that it was meant for.
pub struct Visit {
    /// The bytes of the client.
    pub stream: Box<dyn Io>,
    /// The name or address that the client asked for.
    pub host: String,
}

/// A connection, or a wait, until it ends.
pub type Ending = Pin<Box<dyn Future<Output = ()> + Send>>;
/// Answers a connection until it ends. TLS is the listener's own business.
pub type Listener = Arc<dyn Fn(Visit) -> Ending + Send + Sync>;

/// Who was found at a place.
pub struct ReachedListener {
    /// Answers there.
    pub listener: Listener,
    /// Ends when whoever answers is gone; connections go with it.
    pub gone: Option<Ending>,
}

/// Why nobody was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nobody {
    /// There is nothing at that address.
    Unreachable,
    /// There is something, and nothing listens on that port.
    Refused,
}

type Finder = Arc<dyn Fn(&str, u16) -> Result<ReachedListener, Nobody> + Send + Sync>;

/// Everything that listens: at places that do not move, and where a part finds someone.
#[derive(Default)]
pub struct Network {
    fixed: Mutex<BTreeMap<(String, u16), Listener>>,
    finders: Mutex<Vec<Finder>>,
}

impl Network {
    /// From now on this listens at that host, a name or an address.
    pub fn register(&self, host: &str, port: u16, listener: Listener) {
        self.fixed().insert((host.to_owned(), port), listener);
    }

    /// Asks a part who is at a host and a port, for those that come and go. Parts are asked in the order in which they came here.
    pub fn ask(&self, finder: impl Fn(&str, u16) -> Result<ReachedListener, Nobody> + Send + Sync + 'static) {
        self.finders.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(finder));
    }

    fn fixed(&self) -> MutexGuard<'_, BTreeMap<(String, u16), Listener>> {
        self.fixed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is there.
    fn find(&self, host: &str, port: u16) -> Result<ReachedListener, Nobody> {
        if let Some(listener) = self.fixed().get(&(host.to_owned(), port)).cloned() {
            return Ok(ReachedListener { listener, gone: None });
        }
        let finders = self.finders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for finder in finders {
            match finder(host, port) {
                Err(Nobody::Unreachable) => {}
                found => return found,
            }
        }
        // Something listens there on another port.
        let known = self.fixed().keys().any(|(name, _)| name == host);
        Err(if known { Nobody::Refused } else { Nobody::Unreachable })
    }
}

/// Makes a listener of an async function of a part. It does not keep the part alive: nobody answers once that is gone.
pub fn listener<P, F, Fut>(part: &Arc<P>, answer: F) -> Listener
where
    P: Send + Sync + 'static,
    F: Fn(Arc<P>, Visit) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let part = Arc::downgrade(part);
    Arc::new(move |visit| match part.upgrade() {
        Some(part) => Box::pin(answer(part, visit)),
        None => Box::pin(async {}),
    })
}

/// A listener on the loopback; port 0 takes a free one.
pub async fn listen(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}
