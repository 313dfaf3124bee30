//! Which server certificates are accepted, and the rustls configuration that follows.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, OtherError, RootCertStore};

use crate::judge::{Judge, Shown, judged_by, refusal};
use crate::{ClientIdentity, Fingerprint, TlsSetupError};

/// What a server must show to be talked to.
#[derive(Debug, Clone, Default)]
pub enum TlsTrust {
    /// A certificate that this machine trusts.
    #[default]
    System,
    /// A certificate issued by one of these (PEM).
    Ca(Vec<u8>),
    /// Exactly the certificate with this fingerprint, whatever its name, issuer and dates.
    Fingerprint(Fingerprint),
    /// Anything. Only ever because somebody wrote `insecure: true`.
    Insecure,
}

/// Why a certificate was not accepted; travels inside of a rustls error.
#[derive(Debug, Clone)]
pub(crate) struct RefusedCertificate {
    pub(crate) presented: Fingerprint,
    pub(crate) problem: CertificateProblem,
}

/// What is wrong with it.
#[derive(Debug, Clone)]
pub(crate) enum CertificateProblem {
    NotPinned(Fingerprint),
    Invalid(rustls::Error),
}

impl fmt::Display for RefusedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            CertificateProblem::NotPinned(_) => f.write_str("it is not the pinned one"),
            CertificateProblem::Invalid(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RefusedCertificate {}

impl RefusedCertificate {
    /// Finds it in what a failed handshake left behind.
    pub(crate) fn find(error: &std::io::Error) -> Option<Self> {
        match error.get_ref()?.downcast_ref::<rustls::Error>()? {
            rustls::Error::Other(OtherError(inner)) => inner.downcast_ref::<Self>().cloned(),
            _ => None,
        }
    }
}

/// Whether the name in a certificate must be the one that was dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerNames {
    /// The certificate must be for the name that is asked for.
    Checked,
    /// Whoever the authority vouches for will do, as with PostgreSQL's `verify-ca`.
    Any,
}

/// How rustls is to be set up for such a server; for clients of other protocols than HTTP.
pub fn client_config(
    trust: &TlsTrust,
    names: ServerNames,
    identity: Option<&ClientIdentity>,
) -> Result<ClientConfig, TlsSetupError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let rule = match trust {
        TlsTrust::System => {
            let verifier = rustls_platform_verifier::Verifier::new(provider.clone())
                .map_err(|error| TlsSetupError::SystemRoots(error.to_string()))?;
            Rule::Chain(Arc::new(verifier), names)
        }
        TlsTrust::Ca(pem) => {
            let roots = Arc::new(roots_of(pem)?);
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
            Rule::Chain(verifier.map_err(|error| TlsSetupError::Ca(error.to_string()))?, names)
        }
        TlsTrust::Fingerprint(pinned) => Rule::Pin(*pinned),
        TlsTrust::Insecure => Rule::Anything,
    };
    let verifier = judged_by(rule, provider.clone());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("aws-lc-rs has the cipher suites of both TLS versions")
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    match identity {
        None => Ok(config.with_no_client_auth()),
        Some(identity) => identity.present(config),
    }
}

fn roots_of(pem: &[u8]) -> Result<RootCertStore, TlsSetupError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| TlsSetupError::Ca(error.to_string()))?;
        roots.add(certificate).map_err(|error| TlsSetupError::Ca(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(TlsSetupError::Ca("it has no PEM certificate".to_owned()));
    }
    Ok(roots)
}

/// What decides on a certificate.
#[derive(Debug)]
enum Rule {
    Chain(Arc<dyn ServerCertVerifier>, ServerNames),
    Pin(Fingerprint),
    Anything,
}

impl Judge for Rule {
    fn judge(&self, shown: &Shown<'_>) -> Result<(), rustls::Error> {
        let presented = Fingerprint::of(shown.certificate);
        let refuse = |problem| Err(refusal(RefusedCertificate { presented, problem }));
        match self {
            Self::Anything => Ok(()),
            Self::Pin(pinned) if *pinned == presented => Ok(()),
            Self::Pin(pinned) => refuse(CertificateProblem::NotPinned(*pinned)),
            Self::Chain(chain, names) => {
                let Shown { certificate, intermediates, name, ocsp_response, now } = *shown;
                match chain.verify_server_cert(certificate, intermediates, name, ocsp_response, now) {
                    Ok(_) => Ok(()),
                    // The name is looked at last: all else was right.
                    Err(rustls::Error::InvalidCertificate(
                        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                    )) if *names == ServerNames::Any => Ok(()),
                    Err(error) => refuse(CertificateProblem::Invalid(error)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ca_file_without_certificates_is_refused() {
        for pem in ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let error = client_config(&TlsTrust::Ca(pem.as_bytes().to_vec()), ServerNames::Checked, None)
                .unwrap_err();
            assert!(error.to_string().starts_with("the CA file holds no certificate"), "{error}");
        }
    }
}
