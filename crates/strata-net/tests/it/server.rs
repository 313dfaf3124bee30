//! A TLS server with a certificate of its own that answers every request in the same way and remembers it.

use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use strata_net::Fingerprint;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

#[derive(Clone, Copy)]
pub(crate) enum Behaviour {
    Answer(&'static str),
    /// Reads the request and closes.
    Cut,
    /// Reads the request and says nothing.
    Silence,
}

impl Behaviour {
    pub(crate) fn ok() -> Self {
        Self::Answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    }
}

pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) pem: String,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    connections: usize,
    requests: Vec<String>,
}

impl Server {
    pub(crate) async fn start(behaviour: Behaviour) -> Self {
        Self::asking(behaviour, None).await
    }

    /// Asks for a client certificate of this CA, if there is one.
    pub(crate) async fn asking(behaviour: Behaviour, ca: Option<CertificateDer<'static>>) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = match ca {
            None => config.with_no_client_auth(),
            Some(ca) => {
                let mut roots = rustls::RootCertStore::empty();
                roots.add(ca).unwrap();
                let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                config.with_client_cert_verifier(clients.build().unwrap())
            }
        };
        let config = config.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            fingerprint: Fingerprint::of(made.cert.der()),
            pem: made.cert.pem(),
            seen: Arc::default(),
        };
        let (acceptor, seen) = (TlsAcceptor::from(Arc::new(config)), server.seen.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(acceptor.clone(), stream, seen.clone(), behaviour));
            }
        });
        server
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream, seen: Arc<Mutex<Seen>>, behaviour: Behaviour) {
    let Ok(mut stream) = acceptor.accept(stream).await else { return };
    seen.lock().unwrap().connections += 1;
    let mut buffer = vec![0; 65536];
    let mut request = String::new();
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        request.push_str(&String::from_utf8_lossy(&buffer[..read]));
        if !is_complete(&request) {
            continue;
        }
        seen.lock().unwrap().requests.push(std::mem::take(&mut request));
        match behaviour {
            Behaviour::Answer(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
            Behaviour::Cut => return,
            Behaviour::Silence => std::future::pending().await,
        }
    }
}

fn is_complete(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}
