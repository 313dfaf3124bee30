//! The simulated network: who listens where, and the one loopback port through which clients reach it.
//!
//! A client says `CONNECT 192.0.2.41:50000` and is then connected with what listens there in the simulated network: a machine's
//! Talos API, a Kubernetes API, a web server, a storage server, Proxmox itself. Real programs get there through `HTTPS_PROXY`.

mod connect;
pub mod web;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};

use crate::shared::Shared;

pub(crate) use connect::{gone, serve};

/// Both directions of a connection.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// A connection that arrived, and the place that it was meant for.
pub struct Visit {
    pub stream: Box<dyn Io>,
    pub host: String,
}

pub type Answering = Pin<Box<dyn Future<Output = ()> + Send>>;
/// Answers a connection until it ends. TLS is the listener's own business.
pub type Listener = Arc<dyn Fn(Arc<Shared>, Visit) -> Answering + Send + Sync>;

/// Everything that listens at a place that does not move. Machines that boot and halt are found in the world instead.
#[derive(Default)]
pub struct Network {
    fixed: Mutex<BTreeMap<(String, u16), Listener>>,
    kubernetes: Mutex<Option<Listener>>,
}

impl Network {
    /// From now on this listens at that host, a name or an address.
    pub fn register(&self, host: &str, port: u16, listener: Listener) {
        let mut fixed = self.fixed.lock().unwrap_or_else(PoisonError::into_inner);
        fixed.insert((host.to_owned(), port), listener);
    }

    /// What answers at port 6443 of every control plane whose API server runs, and of the shared address in front of them.
    /// `World::kubernetes_at` says which cluster it is.
    pub fn serve_kubernetes(&self, listener: Listener) {
        *self.kubernetes.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    fn fixed(&self, host: &str, port: u16) -> Option<Listener> {
        let fixed = self.fixed.lock().unwrap_or_else(PoisonError::into_inner);
        fixed.get(&(host.to_owned(), port)).cloned()
    }

    /// Something listens there, on another port perhaps.
    fn knows(&self, host: &str) -> bool {
        let fixed = self.fixed.lock().unwrap_or_else(PoisonError::into_inner);
        fixed.keys().any(|(name, _)| name == host)
    }

    fn kubernetes(&self) -> Option<Listener> {
        self.kubernetes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Makes a listener of an async function.
pub fn listener<F, Fut>(answer: F) -> Listener
where
    F: Fn(Arc<Shared>, Visit) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    Arc::new(move |shared, visit| Box::pin(answer(shared, visit)))
}
