//! TLS with a node: mutual by the cluster's authority, or one-sided with a node that has no configuration yet.

use std::io;
use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{AlertDescription, CertificateError, ClientConfig, OtherError, RootCertStore};
use strata_net::{Judge, Shown, judged_by, refusal};

use crate::credentials::Credentials;
use crate::error::TlsProblem;
use crate::pin::SpkiPin;

/// Mutual TLS.
pub(crate) fn mutual(credentials: &Credentials) -> Result<ClientConfig, String> {
    let said = |error: strata_talos::PkiError| format!("the credentials cannot be used: {error}");
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(credentials.authority().map_err(said)?).map_err(|error| error.to_string())?;
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| error.to_string())?;
    let chain = vec![credentials.certificate().map_err(said)?];
    let config = builder(provider)
        .with_webpki_verifier(verifier)
        .with_client_auth_cert(chain, credentials.key().map_err(said)?)
        .map_err(|error| format!("the credentials cannot be used: {error}"))?;
    Ok(finish(config))
}

/// A node in maintenance mode has made its certificate itself and knows nothing of us: without a pin it is taken at its word,
/// as there is nothing yet that could vouch for it. Whoever can answer at the node's address then gets the configuration.
pub(crate) fn maintenance(pin: Option<SpkiPin>) -> ClientConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = judged_by(Pinned(pin), provider.clone());
    finish(builder(provider).dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn builder(provider: Arc<CryptoProvider>) -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("aws-lc-rs has the cipher suites of both TLS versions")
}

fn finish(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"h2".to_vec()];
    // A resumed session checks no certificate, and a node may come back as another one.
    config.resumption = Resumption::disabled();
    config
}

/// Accepts one key, or any.
#[derive(Debug)]
struct Pinned(Option<SpkiPin>);

/// Travels inside of a rustls error.
#[derive(Debug, thiserror::Error)]
#[error("the pinned key is another one")]
struct Mismatch {
    presented: SpkiPin,
    pinned: SpkiPin,
}

impl Judge for Pinned {
    fn judge(&self, shown: &Shown<'_>) -> Result<(), rustls::Error> {
        let presented = SpkiPin::of(shown.certificate).ok_or(CertificateError::BadEncoding)?;
        match self.0.filter(|pinned| *pinned != presented) {
            Some(pinned) => Err(refusal(Mismatch { presented, pinned })),
            None => Ok(()),
        }
    }
}

/// What TLS had to do with an error of a stream, if anything. In TLS 1.3 a node looks at our certificate when we think that the
/// handshake is over, so that its refusal turns up while a request is under way.
pub(crate) fn problem_in(error: &io::Error) -> Option<TlsProblem> {
    error.get_ref()?.downcast_ref::<rustls::Error>().map(problem)
}

fn problem(error: &rustls::Error) -> TlsProblem {
    use AlertDescription as Alert;
    use CertificateError as Bad;

    match error {
        rustls::Error::InvalidCertificate(bad) => match bad {
            // The name of the authority is the same in every cluster, so that a foreign one fails by its signature.
            Bad::UnknownIssuer | Bad::BadSignature => TlsProblem::WrongAuthority,
            Bad::Expired | Bad::ExpiredContext { .. } => TlsProblem::Expired,
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => TlsProblem::NotYetValid,
            Bad::NotValidForNameContext { presented, .. } => TlsProblem::WrongName(presented.join(", ")),
            // A self-signed certificate that may sign others.
            Bad::Other(OtherError(inner)) if inner.to_string().contains("CaUsedAsEndEntity") => {
                TlsProblem::WrongAuthority
            }
            bad => TlsProblem::Other(bad.to_string()),
        },
        rustls::Error::Other(OtherError(inner)) => match inner.downcast_ref::<Mismatch>() {
            Some(Mismatch { presented, pinned }) => {
                TlsProblem::PinMismatch { presented: *presented, pinned: *pinned }
            }
            None => TlsProblem::Other(inner.to_string()),
        },
        rustls::Error::AlertReceived(alert) => match alert {
            Alert::CertificateRequired => TlsProblem::CertificateRequired,
            Alert::CertificateExpired => TlsProblem::ClientExpired,
            // A foreign authority has the same name as ours, so that some servers only see a wrong signature.
            Alert::UnknownCA | Alert::BadCertificate | Alert::DecryptError => TlsProblem::ClientUnknown,
            alert => TlsProblem::Other(format!("the node ended the handshake with the alert {alert:?}")),
        },
        error => TlsProblem::Other(error.to_string()),
    }
}
