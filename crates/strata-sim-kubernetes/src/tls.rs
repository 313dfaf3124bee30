//! Certificates: what an API server shows, and who a client is by what it shows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme};
use tokio_rustls::TlsAcceptor;

use super::request::User;
use crate::facts::KubernetesCluster;

/// More server certificates than this are not kept.
const MOST_KEPT: usize = 64;

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider())))
}

/// What an API server of the cluster is reached with at this address.
pub fn acceptor(facts: &KubernetesCluster, host: &str) -> Result<TlsAcceptor, String> {
    type Kept = Mutex<BTreeMap<String, Arc<ServerConfig>>>;
    static KEPT: OnceLock<Kept> = OnceLock::new();
    let names = names(facts, host);
    let key = format!("{}\n{}\n{}", facts.ca_pem, facts.ca_key_pem, names.join(","));
    let kept = KEPT.get_or_init(Kept::default);
    if let Some(config) = kept.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Ok(TlsAcceptor::from(Arc::clone(config)));
    }
    let config = Arc::new(server_config(facts, names)?);
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() >= MOST_KEPT {
        kept.clear();
    }
    kept.insert(key, Arc::clone(&config));
    Ok(TlsAcceptor::from(config))
}

/// The names of the server at this address: its own, those of the service, and those of the configuration.
fn names(facts: &KubernetesCluster, host: &str) -> Vec<String> {
    let domain = if facts.dns_domain.is_empty() { "cluster.local" } else { &facts.dns_domain };
    let mut names: Vec<String> = vec![
        "kubernetes".to_owned(),
        "kubernetes.default".to_owned(),
        "kubernetes.default.svc".to_owned(),
        format!("kubernetes.default.svc.{domain}"),
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
    ];
    let endpoint = facts.endpoint.split("://").nth(1).unwrap_or_default();
    let endpoint = endpoint.split('/').next().unwrap_or_default();
    names.push(
        endpoint.rsplit_once(':').map_or(endpoint, |(name, _)| name).trim_matches(['[', ']']).to_owned(),
    );
    // Behind the shared address is one of the servers; each has its own addresses in its certificate.
    let at = |n: &&crate::facts::KubeNode| n.addresses.iter().any(|a| a == host);
    let server = facts.nodes.iter().find(at).or_else(|| facts.nodes.iter().find(|n| n.api_up));
    if let Some(node) = server {
        names.push(node.name.clone());
        names.extend(node.addresses.iter().cloned());
    }
    names.extend(facts.cert_sans.iter().cloned());
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    names
}

fn server_config(facts: &KubernetesCluster, names: Vec<String>) -> Result<ServerConfig, String> {
    let text = |error: rcgen::Error| error.to_string();
    let authority = KeyPair::from_pem(&facts.ca_key_pem).map_err(text)?;
    let issuer = Issuer::from_ca_cert_pem(&facts.ca_pem, authority).map_err(text)?;
    let key = KeyPair::generate().map_err(text)?;
    let mut params = CertificateParams::new(names).map_err(text)?;
    params.distinguished_name.push(DnType::OrganizationName, "kube-master");
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.not_before = date_time_ymd(2024, 1, 1);
    params.not_after = date_time_ymd(2060, 1, 1);
    let certificate = params.signed_by(&key, &issuer).map_err(text)?;
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(Arc::new(AnyCertificate))
        .with_single_cert(vec![certificate.der().clone()], private)
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Takes any certificate that the client has the key of: what it is worth is judged with each request, which gets a 401
/// where it is worth nothing.
#[derive(Debug)]
struct AnyCertificate;

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

/// Who a client is: common name and organizations of a certificate that the cluster's authority signed for clients.
pub fn user(certificates: &[CertificateDer<'_>], ca_pem: &str, now: UnixTime) -> Option<User> {
    let (own, others) = certificates.split_first()?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).ok()?).ok()?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build().ok()?;
    verifier.verify_client_cert(own, others, now).ok()?;
    let (_, parsed) = x509_parser::parse_x509_certificate(own).ok()?;
    let texts = |attributes: Vec<&x509_parser::x509::AttributeTypeAndValue<'_>>| -> Vec<String> {
        attributes.iter().filter_map(|a| a.as_str().ok()).map(str::to_owned).collect()
    };
    let name = texts(parsed.subject().iter_common_name().collect()).into_iter().next()?;
    let mut groups = texts(parsed.subject().iter_organization().collect());
    groups.push("system:authenticated".to_owned());
    Some(User { name, groups })
}
