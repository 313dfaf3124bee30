//! Certificate authorities, and the client certificates that they sign.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyIdMethod, KeyUsagePurpose, SerialNumber, SignatureAlgorithm,
};
use rustls_pki_types::CertificateDer;
use strata_secret::{RandomSource, SecretBytes};
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::{KeyKind, PrivateKey, pem};

/// Ten years, in hours of Talos' own constant.
const AUTHORITY_VALIDITY: Duration = Duration::from_secs(87_600 * 3600);

/// A certificate authority: its certificate and its key, both in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// Not secret: every node and client has it.
    pub certificate: Vec<u8>,
    pub key: SecretBytes,
}

/// A certificate that an authority signed, and its key, both in PEM.
#[derive(Clone)]
pub struct Issued {
    pub certificate: Vec<u8>,
    pub key: SecretBytes,
}

impl Issued {
    /// The key in PKCS #8, whatever the label of its PEM says.
    pub fn key_in_pkcs8(&self) -> Result<SecretBytes, PkiError> {
        let signer = PrivateKey::from_pem(self.key.expose())?.signer()?;
        Ok(SecretBytes::new(signer.serialize_der()))
    }
}

/// What a client's certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRequest {
    pub common_name: Option<String>,
    /// The role in the Talos API, or the group in Kubernetes.
    pub organization: String,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    pub key_encipherment: bool,
}

/// What can go wrong with keys and certificates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PkiError {
    #[error("the key could not be made")]
    Generate,
    #[error("not in PEM form")]
    NotPem,
    #[error("a `{0}` is no key that Talos knows")]
    UnknownKey(String),
    #[error("the key is damaged or of an unknown kind")]
    BadKey,
    #[error("the certificate is damaged")]
    BadCertificate,
    #[error("the key does not belong to the certificate")]
    KeyMismatch,
    #[error("the certificate could not be signed")]
    Sign,
    #[error("the time is out of range")]
    Time,
}

impl Authority {
    /// Checks that both can be read and belong together.
    pub fn check(&self) -> Result<(), PkiError> {
        let der = certificate_der(&self.certificate)?;
        let (_, certificate) = X509Certificate::from_der(&der).map_err(|_| PkiError::BadCertificate)?;
        let signer = PrivateKey::from_pem(self.key.expose())?.signer()?;
        let public = rcgen::PublicKeyData::der_bytes(&signer);
        if certificate.public_key().subject_public_key.data.as_ref() != public {
            return Err(PkiError::KeyMismatch);
        }
        Ok(())
    }

    /// Until when its certificate is valid, in seconds since 1970.
    pub fn expires(&self) -> Result<i64, PkiError> {
        let der = certificate_der(&self.certificate)?;
        let (_, certificate) = X509Certificate::from_der(&der).map_err(|_| PkiError::BadCertificate)?;
        Ok(certificate.validity().not_after.timestamp())
    }

    /// Signs a new client certificate. Its key is of the authority's kind, and P-256 under an RSA authority.
    pub fn issue(
        &self,
        request: &CertificateRequest,
        random: &mut dyn RandomSource,
    ) -> Result<Issued, PkiError> {
        let der = certificate_der(&self.certificate)?;
        let signer = PrivateKey::from_pem(self.key.expose())?.signer()?;
        let kind =
            if is(signer.algorithm(), &rcgen::PKCS_ED25519) { KeyKind::Ed25519 } else { KeyKind::EcdsaP256 };
        let issuer = Issuer::from_ca_cert_der(&CertificateDer::from(der), signer)
            .map_err(|_| PkiError::BadCertificate)?;
        let key = PrivateKey::generate(kind, random)?;

        let mut params = CertificateParams::default();
        params.not_before = time(request.not_before)?;
        params.not_after = time(request.not_after)?;
        params.serial_number = Some(serial(random));
        params.distinguished_name = name(request.common_name.as_deref(), Some(&request.organization));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        if request.key_encipherment {
            params.key_usages.push(KeyUsagePurpose::KeyEncipherment);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key.signer()?, &issuer).map_err(|_| PkiError::Sign)?;
        Ok(Issued { certificate: certificate_pem(certificate.der()), key: key.to_pem() })
    }
}

/// Makes an authority for ten years, as Talos makes them.
pub(crate) fn self_signed(
    organization: Option<&str>,
    kind: KeyKind,
    now: Timestamp,
    random: &mut dyn RandomSource,
) -> Result<Authority, PkiError> {
    let key = PrivateKey::generate(kind, random)?;
    let mut subject_key_id = vec![0; 20];
    random.fill(&mut subject_key_id);

    let mut params = CertificateParams::default();
    params.not_before = time(now)?;
    params.not_after = time(now.checked_add(AUTHORITY_VALIDITY).map_err(|_| PkiError::Time)?)?;
    params.serial_number = Some(serial(random));
    params.distinguished_name = name(None, organization);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.key_identifier_method = KeyIdMethod::PreSpecified(subject_key_id);
    let certificate = params.self_signed(&key.signer()?).map_err(|_| PkiError::Sign)?;
    Ok(Authority { certificate: certificate_pem(certificate.der()), key: key.to_pem() })
}

fn is(algorithm: &SignatureAlgorithm, other: &SignatureAlgorithm) -> bool {
    algorithm == other
}

/// Printable strings, as Go writes them: names are compared byte for byte when a chain is checked.
fn name(common: Option<&str>, organization: Option<&str>) -> DistinguishedName {
    let value = |text: &str| match text.try_into() {
        Ok(printable) => DnValue::PrintableString(printable),
        Err(_) => DnValue::Utf8String(text.to_owned()),
    };
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, value(organization));
    }
    if let Some(common) = common {
        name.push(DnType::CommonName, value(common));
    }
    name
}

fn serial(random: &mut dyn RandomSource) -> SerialNumber {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    // Positive, and never zero.
    bytes[0] = bytes[0] & 0x7f | 0x01;
    SerialNumber::from_slice(&bytes)
}

/// To the second: certificates know nothing finer.
fn time(at: Timestamp) -> Result<OffsetDateTime, PkiError> {
    OffsetDateTime::from_unix_timestamp(at.as_second()).map_err(|_| PkiError::Time)
}

fn certificate_pem(der: &[u8]) -> Vec<u8> {
    pem::encode("CERTIFICATE", der).as_bytes().to_vec()
}

/// The first certificate of a PEM text.
pub fn certificate_der(text: &[u8]) -> Result<Vec<u8>, PkiError> {
    let (label, der) = pem::decode(text).ok_or(PkiError::NotPem)?;
    if label != "CERTIFICATE" {
        return Err(PkiError::BadCertificate);
    }
    Ok(der.to_vec())
}
