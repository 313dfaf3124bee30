//! Accepts connections on the loopback, with TLS for the API and without for the control interface.

use std::net::Ipv4Addr;
use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::service;
use crate::control;
use crate::shared::Shared;

/// A listener on the loopback; port 0 takes a free one.
pub(crate) async fn listen(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

/// Serves both listeners until told to stop.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    api: TcpListener,
    control: TcpListener,
    mut stop: watch::Receiver<bool>,
) {
    let tls = TlsAcceptor::from(crate::cert::server_config());
    loop {
        tokio::select! {
            accepted = api.accept() => if let Ok((stream, _)) = accepted {
                tokio::spawn(api_connection(Arc::clone(&shared), tls.clone(), stream, stop.clone()));
            },
            accepted = control.accept() => if let Ok((stream, _)) = accepted {
                tokio::spawn(control_connection(Arc::clone(&shared), stream, stop.clone()));
            },
            _ = stop.changed() => return,
        }
    }
}

async fn api_connection(
    shared: Arc<Shared>,
    tls: TlsAcceptor,
    stream: TcpStream,
    mut stop: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let Ok(stream) = tls.accept(stream).await else { return };
    let answer = service_fn(move |request| service::answer(Arc::clone(&shared), request));
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
    // A connection that a fault cut ends with an error, which is the point.
    tokio::select! {
        _ = connection => {}
        _ = stop.changed() => {}
    }
}

async fn control_connection(shared: Arc<Shared>, stream: TcpStream, mut stop: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let answer = service_fn(move |request| control::answer(Arc::clone(&shared), request));
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
    tokio::select! {
        _ = connection => {}
        _ = stop.changed() => {}
    }
}
