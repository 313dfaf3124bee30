//! TLS: states travel encrypted, and a new certificate counts without a restart.

use std::path::Path;
use std::time::Duration;

use http::Method;
use strata_net::{HttpClient, HttpOptions, Request, TlsTrust};
use strata_server::TlsFiles;

use crate::world::World;

/// Writes a certificate for the loopback and gives it.
fn certificate(files: &TlsFiles) -> Vec<u8> {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    // The key first: between the two they do not fit, and the old ones stay.
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    made.cert.pem().into_bytes()
}

fn answers(world: &World, trusted: &[u8]) -> bool {
    let mut options = HttpOptions::new(format!("https://{}", world.address()));
    options.tls = TlsTrust::Ca(trusted.to_vec());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = HttpClient::new(options).unwrap();
        client.send(&Request::new(Method::GET, "/healthz")).await.is_ok_and(|answer| answer.status == 200)
    })
}

#[test]
fn certificates_are_read_again() {
    let mut world = World::new();
    let place = |name: &str| Path::new(world.data.path()).join(name);
    let files = TlsFiles { certificate: place("certificate.pem"), key: place("key.pem") };
    let old = certificate(&files);
    world.tls = Some(files.clone());
    world.start();
    assert!(answers(&world, &old));
    let mut plain = crate::client::Client::new(world.address(), None);
    assert!(plain.try_send("GET", "/healthz", &[], b"").is_err(), "it answered without TLS");
    let new = certificate(&files);
    let changed = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        answers(&world, &new)
    });
    assert!(changed, "the new certificate does not count");
    assert!(!answers(&world, &old));
    // What cannot be read changes nothing.
    std::fs::write(&files.certificate, "nonsense").unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert!(answers(&world, &new));
}
