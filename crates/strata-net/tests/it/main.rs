//! The client against a real TLS server on loopback.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod server;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use server::{Behaviour, Server};
use strata_net::{
    Body, ClientIdentity, Delivery, Exchange, Fingerprint, HttpClient, HttpOptions, NetError, Request,
    TlsTrust, TraceSink,
};
use strata_secret::SecretString;

fn options(server: &Server, tls: TlsTrust) -> HttpOptions {
    HttpOptions { tls, ..HttpOptions::new(format!("https://localhost:{}", server.port)) }
}

fn pinned(server: &Server) -> HttpClient {
    HttpClient::new(options(server, TlsTrust::Fingerprint(server.fingerprint))).unwrap()
}

fn get(path: &str) -> Request {
    Request::new(Method::GET, path)
}

#[tokio::test]
async fn the_pinned_certificate_is_accepted_and_connections_are_kept() {
    let server =
        Server::start(Behaviour::Answer("HTTP/1.1 500 no such thing\r\nContent-Length: 2\r\n\r\nhi")).await;
    let client = pinned(&server);
    for _ in 0..3 {
        let response = client.send(&get("/a")).await.unwrap();
        assert_eq!(
            (response.status, response.reason.as_str(), &response.body[..]),
            (500, "no such thing", &b"hi"[..])
        );
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn another_certificate_is_refused_and_shown() {
    let server = Server::start(Behaviour::ok()).await;
    let other = Fingerprint::of(b"another");
    let client = HttpClient::new(options(&server, TlsTrust::Fingerprint(other))).unwrap();
    let error = client.send(&get("/")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the certificate of `localhost:{}` is not the pinned one: it has the fingerprint {}, pinned is {other}",
            server.port, server.fingerprint
        )
    );
    assert!(error.hint().unwrap().contains(&server.fingerprint.to_string()));
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_ca_decides_on_chain_and_name() {
    let server = Server::start(Behaviour::ok()).await;
    let trust = TlsTrust::Ca(server.pem.clone().into_bytes());
    let client = HttpClient::new(options(&server, trust.clone())).unwrap();
    assert_eq!(client.send(&get("/")).await.unwrap().status, 200);

    let mut elsewhere = HttpOptions { tls: trust, ..HttpOptions::new("https://other.example:8006") };
    elsewhere.dial.insert("other.example:8006", format!("127.0.0.1:{}", server.port));
    let error = HttpClient::new(elsewhere).unwrap().send(&get("/")).await.unwrap_err();
    assert!(matches!(error, NetError::Untrusted { .. }), "{error}");

    let stranger = Server::start(Behaviour::ok()).await;
    let trust = TlsTrust::Ca(server.pem.clone().into_bytes());
    let error = HttpClient::new(options(&stranger, trust)).unwrap().send(&get("/")).await.unwrap_err();
    assert!(error.to_string().contains(&stranger.fingerprint.to_string()), "{error}");
}

#[tokio::test]
async fn a_self_signed_certificate_is_not_trusted_by_default() {
    let server = Server::start(Behaviour::ok()).await;
    let error =
        HttpClient::new(options(&server, TlsTrust::System)).unwrap().send(&get("/")).await.unwrap_err();
    assert!(matches!(error, NetError::Untrusted { .. }), "{error}");
    let client = HttpClient::new(options(&server, TlsTrust::Insecure)).unwrap();
    assert_eq!(client.send(&get("/")).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_dialled_endpoint_keeps_its_name() {
    let server = Server::start(Behaviour::ok()).await;
    let mut options = HttpOptions {
        tls: TlsTrust::Fingerprint(server.fingerprint),
        ..HttpOptions::new("https://192.0.2.10:8006/api2")
    };
    options.dial.insert("192.0.2.10:8006", format!("127.0.0.1:{}", server.port));
    let client = HttpClient::new(options).unwrap();
    let request = Request {
        query: "a=1".to_owned(),
        body: Body::Bytes { content_type: "text/plain".to_owned(), bytes: "body".into() },
        ..Request::new(Method::POST, "/x")
    };
    client.send(&request).await.unwrap();
    let seen = server.requests().remove(0);
    assert!(seen.starts_with("POST /api2/x?a=1 HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("host: 192.0.2.10:8006\r\n"), "{seen}");
    assert!(seen.ends_with("\r\n\r\nbody"), "{seen}");
}

#[tokio::test]
async fn a_lost_answer_is_told_from_a_request_that_never_left() {
    let server = Server::start(Behaviour::Cut).await;
    let error = pinned(&server).send(&Request::new(Method::POST, "/x")).await.unwrap_err();
    assert_eq!(error.delivery(), Delivery::Unknown, "{error}");
    assert_eq!(server.requests().len(), 1);

    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let client = HttpClient::new(HttpOptions::new(format!("https://127.0.0.1:{port}"))).unwrap();
    let error = client.send(&get("/")).await.unwrap_err();
    assert_eq!(error.delivery(), Delivery::NotSent, "{error}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn silence_and_endless_answers_end() {
    let server = Server::start(Behaviour::Silence).await;
    let mut quick = options(&server, TlsTrust::Fingerprint(server.fingerprint));
    quick.request_timeout = Duration::from_millis(50);
    let error = HttpClient::new(quick).unwrap().send(&get("/slow")).await.unwrap_err();
    assert!(matches!(error, NetError::Timeout { .. }), "{error}");

    let server = Server::start(Behaviour::Answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")).await;
    let mut small = options(&server, TlsTrust::Fingerprint(server.fingerprint));
    small.largest_answer = 1;
    let error = HttpClient::new(small).unwrap().send(&get("/")).await.unwrap_err();
    assert!(matches!(error, NetError::TooLarge { limit: 1, .. }), "{error}");
}

#[tokio::test]
async fn the_trace_has_neither_query_nor_body() {
    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);
    impl TraceSink for Lines {
        fn exchange(&self, exchange: &Exchange<'_>) {
            let line = format!("{} {} {:?}", exchange.method, exchange.path, exchange.status);
            self.0.lock().unwrap().push(line);
        }
    }
    let server = Server::start(Behaviour::ok()).await;
    let lines = Arc::new(Lines::default());
    let mut options = options(&server, TlsTrust::Fingerprint(server.fingerprint));
    options.trace = Some(lines.clone());
    let client = HttpClient::new(options).unwrap();
    client.send(&Request { query: "password=x".to_owned(), ..get("/p") }).await.unwrap();
    assert_eq!(*lines.0.lock().unwrap(), ["GET /p Some(200)"]);
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_gets_it() {
    let ca_key = rcgen::KeyPair::generate().unwrap();
    let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca_certificate = ca.self_signed(&ca_key).unwrap().der().clone();
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let mut leaf = rcgen::CertificateParams::new(Vec::new()).unwrap();
    leaf.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let leaf = leaf.signed_by(&key, &rcgen::Issuer::new(ca, &ca_key)).unwrap().pem();

    let server = Server::asking(Behaviour::ok(), Some(ca_certificate)).await;
    let trust = TlsTrust::Ca(server.pem.clone().into_bytes());
    // The label that Talos gives such keys.
    for label in ["PRIVATE KEY", "ED25519 PRIVATE KEY"] {
        let key = key.serialize_pem().replace("PRIVATE KEY", label);
        let identity = Some(ClientIdentity::new(leaf.clone(), SecretString::new(key)));
        let known = HttpOptions { identity, ..options(&server, trust.clone()) };
        assert_eq!(HttpClient::new(known).unwrap().send(&get("/")).await.unwrap().status, 200);
    }
    assert!(HttpClient::new(options(&server, trust.clone())).unwrap().send(&get("/")).await.is_err());

    let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
    for (certificate, key) in [(leaf.as_str(), other.as_str()), (leaf.as_str(), "secret-words"), ("", &other)]
    {
        let identity = Some(ClientIdentity::new(certificate, SecretString::new(key)));
        let wrong = HttpClient::new(HttpOptions { identity, ..options(&server, trust.clone()) });
        let error = wrong.err().unwrap().to_string();
        assert!(error.starts_with("the client certificate cannot be used: "), "{error}");
        assert!(!error.contains("secret-words"));
    }
}

#[tokio::test]
async fn an_answer_can_be_read_while_it_is_written() {
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n";
    let server = Server::start(Behaviour::Answer(answer)).await;
    let mut streamed = pinned(&server).stream(&get("/watch")).await.unwrap();
    assert_eq!(streamed.status, 200);
    let mut text = String::new();
    while let Some(chunk) = streamed.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    assert_eq!(text, "onetwo");
    let server = Server::start(Behaviour::Answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi")).await;
    let mut streamed = pinned(&server).stream(&get("/watch")).await.unwrap();
    assert_eq!(streamed.chunk().await.unwrap().unwrap(), "hi");
}

#[test]
fn endpoints_that_are_none_are_refused() {
    for endpoint in ["", "pve:8006", "ftp://a", "https://"] {
        assert!(HttpClient::new(HttpOptions::new(endpoint)).is_err(), "{endpoint}");
    }
}
