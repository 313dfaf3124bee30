//! Accepts connections to the API on the loopback, with TLS.

use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use strata_sim_core::server_config;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::service;
use crate::datacenter::Datacenter;

/// Serves the API of every node until told to stop.
pub async fn serve(datacenter: Arc<Datacenter>, api: TcpListener, mut stop: watch::Receiver<bool>) {
    let tls = TlsAcceptor::from(server_config());
    loop {
        tokio::select! {
            accepted = api.accept() => if let Ok((stream, _)) = accepted {
                tokio::spawn(connection(Arc::clone(&datacenter), tls.clone(), stream, stop.clone()));
            },
            _ = stop.changed() => return,
        }
    }
}

async fn connection(
    datacenter: Arc<Datacenter>,
    tls: TlsAcceptor,
    stream: TcpStream,
    mut stop: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let Ok(stream) = tls.accept(stream).await else { return };
    let answer = service_fn(move |request| service::answer(Arc::clone(&datacenter), request));
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
    // A connection that a fault cut ends with an error, which is the point.
    tokio::select! {
        _ = connection => {}
        _ = stop.changed() => {}
    }
}
