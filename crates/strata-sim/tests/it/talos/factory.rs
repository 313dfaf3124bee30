//! The image factory through the gateway.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use strata_sim::Sim;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

use super::api::tunnel;
use super::{SCHEMATIC, simulator};
use crate::client::http;

/// One request and everything that comes back; nothing if the connection was cut.
async fn ask(sim: &Sim, method: &str, path: &str, body: &str) -> (String, Vec<u8>) {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(sim.network_ca_pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = tunnel(sim, "factory.talos.dev:443").await.unwrap();
    let name = ServerName::try_from("factory.talos.dev").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: factory.talos.dev\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return (String::new(), Vec::new());
    };
    (String::from_utf8_lossy(&answer[..end]).into_owned(), answer[end + 4..].to_vec())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schematics_get_their_identity_and_images_their_content() {
    let sim = simulator().await;
    let (head, body) = ask(&sim, "POST", "/schematics", "customization: {}\n").await;
    assert!(head.starts_with("HTTP/1.1 201"), "{head}");
    assert_eq!(String::from_utf8(body).unwrap(), format!("{{\"id\":\"{SCHEMATIC}\"}}"));
    assert!(sim.talos()["schematics"][SCHEMATIC].is_string());
    let (head, _) = ask(&sim, "POST", "/schematics", "customisation: {}\n").await;
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
    let path = format!("/image/{SCHEMATIC}/v1.13.0/nocloud-amd64.iso");
    let (head, iso) = ask(&sim, "GET", &path, "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let url = format!("https://factory.talos.dev{path}");
    use sha2::Digest as _;
    let sum = hex::encode(sha2::Sha256::digest(&iso));
    assert_eq!(Some(sum), strata_sim::synthetic_checksum(&url, "sha256"));
    let (head, none) = ask(&sim, "HEAD", &path, "").await;
    assert!(none.is_empty() && head.contains(&format!("content-length: {}", iso.len())), "{head}");
    let (head, _) = ask(&sim, "GET", "/image/x/latest/nocloud-amd64.iso", "").await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_strike_the_factory() {
    let sim = simulator().await;
    let order = async |fault: serde_json::Value| {
        let answer = http().post(format!("{}/_sim/faults", sim.control())).json(&fault).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    };
    let path = "/factory/schematics";
    order(json!({ "kind": "refuse", "path": path, "status": 503, "text": "later" })).await;
    let (head, body) = ask(&sim, "POST", "/schematics", "customization: {}\n").await;
    assert!(head.starts_with("HTTP/1.1 503") && body == b"later\n", "{head}");
    for (kind, carried_out) in [("cut", false), ("lost", true)] {
        order(json!({ "kind": kind, "method": "POST", "path": path })).await;
        assert_eq!(ask(&sim, "POST", "/schematics", "customization: {}\n").await.0, "");
        let faults = http().get(format!("{}/_sim/faults", sim.control())).send().await.unwrap();
        let faults: serde_json::Value = faults.json().await.unwrap();
        let last = faults.as_array().unwrap().last().unwrap().clone();
        assert_eq!((&last["hit"], &last["carried-out"]), (&json!(1), &json!(carried_out)), "{kind}");
    }
}
