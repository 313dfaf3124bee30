//! Certificates of the Talos API: one that nobody signed in maintenance mode, and one of the configuration's authority after.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData as _, SanType,
};
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer, UnixTime,
};
use rustls::server::WebPkiClientVerifier;
use rustls::time_provider::TimeProvider;
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

use super::machine::Stage;
use super::place::Presence;
use crate::world::World;

/// How long a server's certificate is good.
const GOOD_FOR: Duration = Duration::from_secs(24 * 3600);
/// The bytes before the secret in an Ed25519 key in PKCS#8.
const ED25519_HEAD: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// A private key in PEM under any of the labels that Talos uses.
pub fn key_from_pem(pem: &str) -> Option<KeyPair> {
    let (_, rest) = pem.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once("-----END")?;
    let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    let der = STANDARD.decode(body).ok()?;
    let key = match label {
        "EC PRIVATE KEY" => PrivateKeyDer::Sec1(PrivateSec1KeyDer::from(der)),
        "RSA PRIVATE KEY" => PrivateKeyDer::Pkcs1(PrivatePkcs1KeyDer::from(der)),
        // Talos labels an Ed25519 key by its kind; inside it is PKCS#8.
        _ => PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(der)),
    };
    KeyPair::try_from(&key).ok()
}

/// What a certificate is to say.
pub struct Subject<'a> {
    pub organization: Option<&'a str>,
    pub common_name: &'a str,
    /// Names and addresses.
    pub names: &'a [String],
    pub usage: ExtendedKeyUsagePurpose,
    pub not_before: OffsetDateTime,
    pub not_after: OffsetDateTime,
}

impl Subject<'_> {
    fn params(&self) -> CertificateParams {
        let mut params = CertificateParams::default();
        let mut name = DistinguishedName::new();
        if let Some(organization) = self.organization {
            name.push(DnType::OrganizationName, organization);
        }
        name.push(DnType::CommonName, self.common_name);
        params.distinguished_name = name;
        params.not_before = self.not_before;
        params.not_after = self.not_after;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![self.usage.clone()];
        params.subject_alt_names = self
            .names
            .iter()
            .filter_map(|name| match name.parse::<IpAddr>() {
                Ok(address) => Some(SanType::IpAddress(address)),
                Err(_) => name.clone().try_into().ok().map(SanType::DnsName),
            })
            .collect();
        params
    }

    /// A certificate for this key, signed by an authority.
    pub fn sign(&self, key: &KeyPair, ca_pem: &str, ca_key_pem: &str) -> Option<CertificateDer<'static>> {
        let issuer = Issuer::from_ca_cert_pem(ca_pem, key_from_pem(ca_key_pem)?).ok()?;
        let mut params = self.params();
        params.use_authority_key_identifier_extension = true;
        params.signed_by(key, &issuer).ok().map(|certificate| certificate.der().clone())
    }
}

/// The clock of a machine that may be wrong.
#[derive(Debug)]
struct Skewed(i64);

impl TimeProvider for Skewed {
    fn current_time(&self) -> Option<UnixTime> {
        let now = UnixTime::now().as_secs();
        Some(UnixTime::since_unix_epoch(Duration::from_secs(now.saturating_add_signed(self.0))))
    }
}

/// What the API of a machine is served with at one time.
struct Facts {
    id: String,
    names: Vec<String>,
    authority: Option<(String, String)>,
    accepted: Vec<String>,
    skew: i64,
    expired: bool,
    secret: [u8; 32],
}

/// Ready configurations by what they were made of, so that a certificate stays the same as long as nothing changes.
#[derive(Default)]
pub struct Certificates(Mutex<HashMap<String, Arc<ServerConfig>>>);

impl Certificates {
    /// How to serve the machine's API. The world is only looked at briefly.
    pub fn of(&self, world: &World, presence: &Presence) -> Option<Arc<ServerConfig>> {
        let facts = facts(world, presence)?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = known.get(&facts.id) {
            return Some(Arc::clone(config));
        }
        let config = Arc::new(facts.server_config()?);
        known.insert(facts.id, Arc::clone(&config));
        Some(config)
    }
}

fn facts(world: &World, presence: &Presence) -> Option<Facts> {
    let machine = world.talos.machines.get(&presence.machine)?;
    let boot = machine.boot.as_ref()?;
    let mut names = boot.addresses();
    names.push(world.talos_hostname(&presence.machine));
    names.extend(["localhost".to_owned(), "127.0.0.1".to_owned()]);
    let (authority, accepted) = match presence.maintenance {
        true => (None, Vec::new()),
        false => {
            let config = boot.config.as_ref()?;
            names.extend(config.cert_sans());
            (Some(world.signing_authority(&presence.machine)?), config.accepted_authorities())
        }
    };
    let id = format!(
        "{} {} {:?} {names:?} {authority:?} {accepted:?} {} {}",
        presence.boot, presence.machine, presence.maintenance, machine.skew, machine.expired
    );
    let secret = world.derive(&["talos-key", &presence.machine, &boot.id]);
    Some(Facts { id, names, authority, accepted, skew: machine.skew, expired: machine.expired, secret })
}

/// What the console of a machine in maintenance mode shows: the SHA-256 of its public key, in base64.
pub fn console_fingerprint(world: &World, machine: &str) -> Option<String> {
    let boot =
        world.talos.machines.get(machine)?.boot.as_ref().filter(|boot| boot.stage == Stage::Maintenance)?;
    let key = KeyPair::try_from(&private_key(&world.derive(&["talos-key", machine, &boot.id]))).ok()?;
    Some(STANDARD.encode(Sha256::digest(key.subject_public_key_info())))
}

fn private_key(secret: &[u8; 32]) -> PrivatePkcs8KeyDer<'static> {
    PrivatePkcs8KeyDer::from([&ED25519_HEAD[..], &secret[..]].concat())
}

impl Facts {
    fn server_config(&self) -> Option<ServerConfig> {
        let private = private_key(&self.secret);
        let key = KeyPair::try_from(&private).ok()?;
        let now = OffsetDateTime::now_utc() + time::Duration::seconds(self.skew);
        let (not_before, not_after) = match (self.expired, &self.authority) {
            (true, _) => (now - GOOD_FOR - GOOD_FOR, now - GOOD_FOR),
            (false, Some(_)) => (now - Duration::from_secs(10), now + GOOD_FOR),
            // Nobody checks the dates of one that nobody signed, so that its fingerprint can be foreseen.
            (false, None) => (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2120, 1, 1)),
        };
        let subject = Subject {
            organization: None,
            common_name: self.names.first().map_or("talos", String::as_str),
            names: &self.names,
            usage: ExtendedKeyUsagePurpose::ServerAuth,
            not_before,
            not_after,
        };
        let certificate = match &self.authority {
            Some((certificate, private)) => subject.sign(&key, certificate, private)?,
            None => {
                let mut params = subject.params();
                params.serial_number = Some(rcgen::SerialNumber::from(self.secret[..8].to_vec()));
                params.self_signed(&key).ok()?.der().clone()
            }
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_details(Arc::clone(&provider), Arc::new(Skewed(self.skew)))
            .with_safe_default_protocol_versions()
            .ok()?;
        let builder = match self.authority {
            None => builder.with_no_client_auth(),
            Some(_) => {
                let mut roots = RootCertStore::empty();
                for pem in &self.accepted {
                    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                        roots.add(certificate.ok()?).ok()?;
                    }
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().ok()?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_single_cert(vec![certificate], private.into()).ok()?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Some(config)
    }
}

/// The organisations that a client's certificate names: its roles.
pub fn organizations(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, parsed)) = x509_parser::parse_x509_certificate(certificate) else { return Vec::new() };
    parsed.subject().iter_organization().filter_map(|name| name.as_str().ok().map(str::to_owned)).collect()
}
