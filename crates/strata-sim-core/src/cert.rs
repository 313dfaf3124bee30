//! The simulator's certificate: always the same, for loopback only, so that examples can pin its fingerprint.
//! The key is public knowledge; it protects nothing.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};

pub const NODE_PEM: &str = include_str!("cert/node.pem");
const NODE_KEY_PEM: &str = include_str!("cert/node.key.pem");
/// The authority that signed it.
pub const CA_PEM: &str = include_str!("cert/ca.pem");

fn certificate() -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(NODE_PEM.as_bytes()).expect("the certificate is a constant of this crate")
}

/// The SHA-256 of the certificate, as `AA:BB:…`.
pub fn fingerprint() -> String {
    let digest = Sha256::digest(certificate());
    digest.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

pub fn server_config() -> Arc<ServerConfig> {
    let key =
        PrivateKeyDer::from_pem_slice(NODE_KEY_PEM.as_bytes()).expect("the key is a constant of this crate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate()], key)
        .expect("certificate and key belong together");
    // The original speaks nothing newer.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}
