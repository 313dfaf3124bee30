//! Authorities of a cluster, configurations of its machines, and clients of its API.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// What tells machines of one cluster apart.
#[derive(Clone)]
pub struct Wanted {
    pub name: String,
    pub address: String,
    pub control_plane: bool,
    pub disk: String,
    pub image: String,
    /// More lines of the `machine` section, indented by two.
    pub more: String,
    /// More documents.
    pub documents: String,
}

impl Wanted {
    pub fn new(name: &str, address: &str, control_plane: bool, version: &str) -> Self {
        Self {
            name: name.to_owned(),
            address: address.to_owned(),
            control_plane,
            disk: "/dev/sda".to_owned(),
            image: format!("factory.talos.dev/nocloud-installer/{}:{version}", super::SCHEMATIC),
            more: String::new(),
            documents: String::new(),
        }
    }
}

struct Authority {
    pem: String,
    key: KeyPair,
}

impl Authority {
    fn new(kind: &'static rcgen::SignatureAlgorithm, name: &str) -> Self {
        let key = KeyPair::generate_for(kind).unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, key }
    }

    fn packed(&self) -> (String, String) {
        (STANDARD.encode(&self.pem), STANDARD.encode(self.key.serialize_pem()))
    }
}

/// The secrets of a cluster.
pub struct Pki {
    os: Authority,
    kubernetes: Authority,
    etcd: Authority,
    pub id: String,
}

impl Pki {
    pub fn new() -> Self {
        Self {
            os: Authority::new(&PKCS_ED25519, "talos"),
            kubernetes: Authority::new(&PKCS_ECDSA_P256_SHA256, "kubernetes"),
            etcd: Authority::new(&PKCS_ECDSA_P256_SHA256, "etcd"),
            id: "test-cluster".to_owned(),
        }
    }

    /// A configuration in one document, which every version takes.
    pub fn config(&self, wanted: &Wanted) -> String {
        let ((os, os_key), (kube, kube_key), (etcd, etcd_key)) =
            (self.os.packed(), self.kubernetes.packed(), self.etcd.packed());
        let Wanted { name, address, disk, image, more, documents, .. } = wanted;
        let id = &self.id;
        let (role, os_key, kube_key, vip) = match wanted.control_plane {
            true => ("controlplane", os_key, kube_key, "        vip: {ip: 192.0.2.40}\n"),
            false => ("worker", String::new(), String::new(), ""),
        };
        let etcd = match wanted.control_plane {
            true => format!("  etcd: {{ca: {{crt: {etcd}, key: {etcd_key}}}}}\n"),
            false => String::new(),
        };
        format!(
            "version: v1alpha1\nmachine:\n  type: {role}\n  token: abcdef.0123456789abcdef\n  ca: {{crt: {os}, key: \"{os_key}\"}}\n\
             \x20 network:\n    hostname: {name}\n    interfaces:\n      - interface: eth0\n        addresses: [{address}/24]\n{vip}\
             \x20 install: {{disk: {disk}, image: \"{image}\"}}\n  kubelet: {{image: \"ghcr.io/siderolabs/kubelet:v1.34.1\"}}\n{more}\
             cluster:\n  id: {id}\n  secret: {id}-secret\n  clusterName: test\n  controlPlane: {{endpoint: \"https://192.0.2.40:6443\"}}\n\
             \x20 ca: {{crt: {kube}, key: \"{kube_key}\"}}\n{etcd}{documents}"
        )
    }

    /// Certificate and key of the authority of the Kubernetes API.
    pub fn kubernetes(&self) -> (String, String) {
        (self.kubernetes.pem.clone(), self.kubernetes.key.serialize_pem())
    }

    pub fn client(&self, role: &str) -> Client {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, role);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let now = time::OffsetDateTime::now_utc();
        params.not_before = now - time::Duration::minutes(1);
        params.not_after = now + time::Duration::hours(1);
        let issuer = Issuer::from_ca_cert_pem(&self.os.pem, &self.os.key).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap().der().clone();
        Client { ca: self.os.pem.clone(), certificate, key: key.serialize_der() }
    }
}

/// A client's certificate and the authority that it trusts.
pub struct Client {
    ca: String,
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Client {
    pub fn tls(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.ca.as_bytes()).unwrap()).unwrap();
        let key = PrivateKeyDer::Pkcs8(self.key.clone().into());
        builder()
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![self.certificate.clone()], key)
            .unwrap()
    }
}

fn builder() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap()
}

/// A client that takes any certificate, for maintenance mode.
pub fn trusting() -> ClientConfig {
    builder().dangerous().with_custom_certificate_verifier(Arc::new(Anyone)).with_no_client_auth()
}

#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519, SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
