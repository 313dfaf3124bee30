//! Certificates for names and addresses of the simulated network that no machine's own authority covers.
//!
//! The authority is always the same, so that it can be given to clients beforehand. Its key is public knowledge; it protects nothing.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use sha2::{Digest, Sha256};

/// The bytes before the secret in an Ed25519 key in PKCS#8.
const HEAD: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

static AUTHORITY: LazyLock<String> = LazyLock::new(|| {
    let certificate = authority_params().self_signed(&key("authority"));
    certificate.expect("the parameters are constants of this crate").pem()
});
static ISSUED: LazyLock<Mutex<HashMap<String, Arc<ServerConfig>>>> = LazyLock::new(Mutex::default);

fn private(of: &str) -> PrivatePkcs8KeyDer<'static> {
    let secret = Sha256::digest(format!("strata-sim {of}"));
    PrivatePkcs8KeyDer::from([&HEAD[..], &secret[..]].concat())
}

fn key(of: &str) -> KeyPair {
    KeyPair::try_from(&private(of)).expect("32 bytes are a key")
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2120, 1, 1);
    params.serial_number = Some(SerialNumber::from(Sha256::digest(name)[..8].to_vec()));
    params
}

fn authority_params() -> CertificateParams {
    let mut params = params("Strata simulator network CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

/// The authority in PEM.
pub fn authority_pem() -> &'static str {
    &AUTHORITY
}

/// How to serve HTTPS at a host of the simulated network.
pub fn server_config(host: &str) -> Arc<ServerConfig> {
    let mut issued = ISSUED.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(issued.entry(host.to_owned()).or_insert_with(|| Arc::new(issue(host))))
}

fn issue(host: &str) -> ServerConfig {
    let mut params = params(host);
    params.subject_alt_names = match host.parse::<IpAddr>() {
        Ok(address) => vec![SanType::IpAddress(address)],
        Err(_) => host.to_owned().try_into().map(SanType::DnsName).into_iter().collect(),
    };
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let issuer = Issuer::new(authority_params(), key("authority"));
    let certificate =
        params.signed_by(&key(host), &issuer).expect("key and authority are constants of this crate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private(host).into())
        .expect("certificate and key belong together");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}
