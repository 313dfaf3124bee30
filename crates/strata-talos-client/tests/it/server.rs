//! A gRPC server over HTTP/2 and TLS, just large enough.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair, PKCS_ED25519};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use strata_talos::SecretsBundle;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

use super::NODE;

/// What the server says to one call.
#[derive(Clone)]
pub(crate) struct Reply {
    pub(crate) messages: Vec<Vec<u8>>,
    pub(crate) end: End,
}

#[derive(Clone)]
pub(crate) enum End {
    Status(u16, String),
    /// Says no more and keeps the connection.
    Silence,
    /// Ends without a status.
    Cut,
}

impl Reply {
    pub(crate) fn ok(messages: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self { messages: messages.into_iter().collect(), end: End::Status(0, String::new()) }
    }

    pub(crate) fn status(code: u16, message: &str) -> Self {
        Self { messages: Vec::new(), end: End::Status(code, message.to_owned()) }
    }

    pub(crate) fn silence() -> Self {
        Self { messages: Vec::new(), end: End::Silence }
    }

    pub(crate) fn then(mut self, end: End) -> Self {
        self.end = end;
        self
    }
}

/// A call: its path, its messages and its headers.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) path: String,
    pub(crate) messages: Vec<Vec<u8>>,
    pub(crate) headers: HeaderMap,
}

pub(crate) trait Handler: Fn(&Call) -> Reply + Send + Sync + 'static {}

impl<F: Fn(&Call) -> Reply + Send + Sync + 'static> Handler for F {}

pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) calls: Arc<Mutex<Vec<Call>>>,
    /// The organizations of the client certificates that were shown.
    pub(crate) clients: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<Vec<AbortHandle>>>,
    listener: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listener.abort();
        self.hang_up();
    }
}

/// The server's side of the trust.
pub(crate) struct Tls {
    pub(crate) config: ServerConfig,
    /// Its own certificate, in DER.
    pub(crate) certificate: Vec<u8>,
}

impl Tls {
    /// A configured node.
    pub(crate) fn mutual(bundle: &SecretsBundle) -> Self {
        Self::issued(bundle, NODE, -3600, 3600)
    }

    /// A configured node whose certificate is for this address, and valid between these moments, in seconds from now.
    pub(crate) fn issued(bundle: &SecretsBundle, address: &str, from: i64, until: i64) -> Self {
        let key = std::str::from_utf8(bundle.os.key.expose()).expect("PEM").replace("ED25519 ", "");
        let authority = std::str::from_utf8(&bundle.os.certificate).expect("PEM");
        let issuer =
            Issuer::from_ca_cert_pem(authority, KeyPair::from_pem(&key).expect("a key")).expect("an issuer");
        let own = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
        let params = params(address, from, until);
        let certificate = params.signed_by(&own, &issuer).expect("a certificate").der().to_vec();
        let mut roots = RootCertStore::empty();
        let authority = x509_parser::pem::parse_x509_pem(&bundle.os.certificate).expect("PEM").1.contents;
        roots.add(CertificateDer::from(authority)).expect("a root");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .expect("a verifier");
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![CertificateDer::from(certificate.clone())], der(&own))
            .expect("a configuration");
        Self { config, certificate }
    }

    /// A node in maintenance mode.
    pub(crate) fn maintenance() -> Self {
        let own = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
        let params = params("127.0.0.1", -3600, 3600);
        let certificate = params.self_signed(&own).expect("a certificate").der().to_vec();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(certificate.clone())], der(&own))
            .expect("a configuration");
        Self { config, certificate }
    }
}

fn der(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()))
}

fn params(address: &str, from: i64, until: i64) -> CertificateParams {
    let mut params = CertificateParams::new([address.to_owned()]).expect("an address");
    let now = time::OffsetDateTime::from_unix_timestamp(super::today().as_second()).expect("a time");
    params.not_before = now + time::Duration::seconds(from);
    params.not_after = now + time::Duration::seconds(until);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

impl Server {
    pub(crate) async fn start(tls: Tls, handler: impl Handler) -> Self {
        Self::start_at("127.0.0.1:0", tls, handler).await
    }

    pub(crate) async fn start_at(place: &str, tls: Tls, handler: impl Handler) -> Self {
        let listener = TcpListener::bind(place).await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let mut config = tls.config;
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let calls = Arc::new(Mutex::new(Vec::new()));
        let clients = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(Vec::new()));
        let handler: Arc<dyn Handler> = Arc::new(handler);
        let shared = (calls.clone(), clients.clone(), connections.clone());
        let accepting = tokio::spawn(async move {
            let (calls, clients, connections) = shared;
            while let Ok((tcp, _)) = listener.accept().await {
                let (acceptor, handler) = (acceptor.clone(), handler.clone());
                let (calls, clients) = (calls.clone(), clients.clone());
                let connection = tokio::spawn(async move {
                    let Ok(tls) = acceptor.accept(tcp).await else { return };
                    clients.lock().expect("a lock").extend(organization(&tls));
                    let service = service_fn(move |request| answer(request, handler.clone(), calls.clone()));
                    let connection = http2::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(tls), service);
                    drop(connection.await);
                });
                connections.lock().expect("a lock").push(connection.abort_handle());
            }
        });
        Self { address, calls, clients, connections, listener: accepting.abort_handle() }
    }

    /// Ends every connection, as a reboot does.
    pub(crate) fn hang_up(&self) {
        for connection in self.connections.lock().expect("a lock").drain(..) {
            connection.abort();
        }
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.calls.lock().expect("a lock").iter().map(|call| call.path.clone()).collect()
    }

    pub(crate) fn last_call(&self) -> Call {
        self.calls.lock().expect("a lock").last().expect("a call").clone()
    }
}

fn organization(tls: &tokio_rustls::server::TlsStream<tokio::net::TcpStream>) -> Option<String> {
    let certificate = tls.get_ref().1.peer_certificates()?.first()?;
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let name = certificate.subject().iter_organization().next()?.as_str().ok()?.to_owned();
    Some(name)
}

type Answer = Response<StreamBody<futures::stream::BoxStream<'static, Result<Frame<Bytes>, std::io::Error>>>>;

async fn answer(
    request: Request<Incoming>,
    handler: Arc<dyn Handler>,
    calls: Arc<Mutex<Vec<Call>>>,
) -> Result<Answer, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let call = Call { path: head.uri.path().to_owned(), messages: split(&body), headers: head.headers };
    calls.lock().expect("a lock").push(call.clone());
    let Reply { messages, end } = handler(&call);
    let mut response = Response::builder().header("content-type", "application/grpc");
    let mut frames: Vec<Result<Frame<Bytes>, std::io::Error>> = Vec::new();
    for message in &messages {
        let mut bytes = BytesMut::new();
        bytes.extend_from_slice(&[0]);
        bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
        bytes.extend_from_slice(message);
        let bytes = bytes.freeze();
        // In two pieces, so that nobody relies on a message being one frame.
        let half = bytes.len() / 2;
        frames.extend([Ok(Frame::data(bytes.slice(..half))), Ok(Frame::data(bytes.slice(half..)))]);
    }
    let mut silent = false;
    match end {
        End::Status(code, message) => {
            let message = percent_encoding::utf8_percent_encode(&message, percent_encoding::CONTROLS);
            let message = HeaderValue::from_str(&message.to_string()).expect("a header");
            let code = HeaderValue::from(code);
            if messages.is_empty() {
                response = response.header("grpc-status", code).header("grpc-message", message);
            } else {
                let trailers = [("grpc-status", code), ("grpc-message", message)];
                let trailers =
                    trailers.into_iter().map(|(name, value)| (name.parse().expect("a name"), value));
                frames.push(Ok(Frame::trailers(trailers.collect())));
            }
        }
        End::Silence => silent = true,
        End::Cut => frames.push(Err(std::io::Error::other("cut"))),
    }
    let frames = futures::stream::iter(frames);
    let body = if silent { frames.chain(futures::stream::pending()).boxed() } else { frames.boxed() };
    Ok(response.body(StreamBody::new(body)).expect("a response"))
}

fn split(mut body: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while body.len() >= 5 {
        let length = u32::from_be_bytes([body[1], body[2], body[3], body[4]]) as usize;
        messages.push(body[5..5 + length].to_vec());
        body = &body[5 + length..];
    }
    messages
}
