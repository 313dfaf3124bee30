//! A running server: connections, TLS, and what is done from time to time.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use strata_net::Clock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::access::AccessKeeper;
use crate::audit::Audit;
use crate::denials::Denials;
use crate::http::{self, Shared};
use crate::metrics::Metrics;
use crate::service::StateService;
use crate::tls::{Tls, TlsError, TlsFiles};
use strata_storage::{Storage, StorageError, embedded::CommitStats};

const MAX_CONNECTIONS: usize = 4096;
/// How long a client may take for its handshake, and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// The head of a request.
const MAX_HEAD: usize = 32 * 1024;
const SWEEP_EVERY: Duration = Duration::from_secs(5);
const TALLY_EVERY: Duration = Duration::from_secs(60);
const RELOAD_EVERY: Duration = Duration::from_secs(2);
/// Sweeps between two looks at the age of versions.
const SWEEPS_PER_AGE: u32 = 120;
/// How long requests under way may take when the server stops.
const GRACE: Duration = Duration::from_secs(10);

pub struct ServerOptions {
    pub listen: SocketAddr,
    pub tls: Option<TlsFiles>,
    /// Without TLS also where others can listen in; for a server behind a proxy that has it.
    pub allow_plain: bool,
    pub storage: Arc<dyn Storage>,
    pub commits: Option<Arc<CommitStats>>,
    pub access: AccessKeeper,
    /// The audit log; requests of nobody are counted in `denied.log` beside it.
    pub audit: Option<PathBuf>,
    /// The largest state, in bytes.
    pub max_state: u64,
    /// `/metrics` for everybody.
    pub open_metrics: bool,
    pub clock: Arc<dyn Clock>,
    /// What an administrator should know while it runs.
    pub notes: Arc<dyn Fn(String) + Send + Sync>,
}

#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("it would listen on {0} without TLS, where states could be read on their way")]
    Plain(SocketAddr),
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("nobody may use this server yet")]
    Nobody,
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("cannot write the audit log: {0}")]
    Audit(io::Error),
}

pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    chores: JoinHandle<()>,
    audit: Audit,
}

impl Server {
    /// Starts; it answers when this returns.
    pub async fn start(options: ServerOptions) -> Result<Self, ServerError> {
        if options.tls.is_none() && !options.allow_plain && !options.listen.ip().is_loopback() {
            return Err(ServerError::Plain(options.listen));
        }
        if options.access.is_empty() {
            return Err(ServerError::Nobody);
        }
        let tls = options.tls.map(Tls::load).transpose()?.map(Arc::new);
        let audit = match &options.audit {
            Some(path) => Audit::to_file(path).map_err(ServerError::Audit)?,
            None => Audit::none(),
        };
        let failed = |source| ServerError::Listen { address: options.listen, source };
        let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let written = audit.clone();
        let shared = Arc::new(Shared {
            service: StateService::start(options.storage, options.clock).await?,
            access: options.access,
            audit,
            denials: options
                .audit
                .map(|path| Denials::to_file(path.with_file_name("denied.log")))
                .unwrap_or_default(),
            metrics: Metrics::default(),
            commits: options.commits,
            max_state: options.max_state,
            open_metrics: options.open_metrics,
            comparing: Semaphore::new(1),
        });
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(serve(listener, tls.clone(), Arc::clone(&shared), stopped.clone()));
        let chores = tokio::spawn(chores(shared, tls, options.notes, stopped));
        Ok(Self { address, stop, serving, chores, audit: written })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts nothing more, lets the requests under way finish, and returns when the audit log has all of them.
    pub async fn shutdown(self) {
        let _ = self.stop.send(true);
        let _ = self.serving.await;
        let _ = self.chores.await;
        self.audit.flush().await;
    }
}

async fn serve(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<bool>,
) {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&free).acquire_owned().await else { break };
        let (stream, from) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(_) => {
                    // No file descriptors, most likely: some will be free in a moment.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            _ = stopped.changed() => break,
        };
        shared.metrics.connections.fetch_add(1, Ordering::Relaxed);
        let (shared, tls, stopped) = (Arc::clone(&shared), tls.clone(), stopped.clone());
        connections.spawn(async move {
            accept(stream, from, tls, shared, stopped).await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, all).await;
}

async fn accept(
    stream: TcpStream,
    from: SocketAddr,
    tls: Option<Arc<Tls>>,
    shared: Arc<Shared>,
    stopped: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return connection(stream, from, shared, stopped).await };
    let handshake = TlsAcceptor::from(tls.config()).accept(stream);
    if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, handshake).await {
        connection(stream, from, shared, stopped).await;
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    from: SocketAddr,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<bool>,
) {
    let answer = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, std::convert::Infallible>(http::answer(shared, request, from.ip()).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), answer);
    tokio::pin!(connection);
    // A client that went away, or sent what is not HTTP, is answered by hyper as far as it can be.
    tokio::select! {
        _ = connection.as_mut() => {}
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

async fn chores(
    shared: Arc<Shared>,
    tls: Option<Arc<Tls>>,
    notes: Arc<dyn Fn(String) + Send + Sync>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    let mut reload = tokio::time::interval(RELOAD_EVERY);
    let mut tally = tokio::time::interval(TALLY_EVERY);
    let mut sweeps = 0;
    let write_tally = || {
        if let Err(error) = shared.denials.flush() {
            notes(format!("cannot write down who was denied: {error}"));
        }
    };
    loop {
        tokio::select! {
            _ = sweep.tick() => {
                let aged = (sweeps % SWEEPS_PER_AGE == 0).then(|| shared.service.unix());
                sweeps += 1;
                if let Err(error) = shared.service.storage.sweep(aged).await {
                    notes(format!("cannot tidy up: {error}"));
                }
            }
            _ = reload.tick() => {
                match shared.access.reload() {
                    Ok(true) => notes("read the users again".to_owned()),
                    Ok(false) => {}
                    Err(error) => notes(format!("the users stay as they were: {error}")),
                }
                match tls.as_ref().map(|tls| tls.reload()) {
                    Some(Ok(true)) => notes("read the certificate again".to_owned()),
                    Some(Err(error)) => notes(format!("the certificate stays as it was: {error}")),
                    _ => {}
                }
            }
            _ = tally.tick() => write_tally(),
            _ = stopped.changed() => {
                write_tally();
                return;
            }
        }
    }
}
