//! Who we are to a cluster: its authority, and a certificate that it issued for a short time.

use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use strata_secret::RandomSource;
use strata_talos::{Issued, PkiError, SecretsBundle, TalosRole, certificate_der};

/// Long enough for a long apply, too short to be worth stealing.
const VALIDITY: Duration = Duration::from_secs(24 * 3600);
/// A node whose clock is a little behind must not think that the certificate is from the future.
const BACKDATED: Duration = Duration::from_secs(3600);

/// The trust between us and the nodes of one cluster.
#[derive(Clone)]
pub struct Credentials {
    /// The authority that nodes' certificates are checked against, in PEM.
    authority: Vec<u8>,
    client: Issued,
}

impl Credentials {
    /// From a certificate that somebody made, such as that of a talosconfig; all in PEM.
    pub fn new(authority: Vec<u8>, client: Issued) -> Self {
        Self { authority, client }
    }

    /// An administrator's, made from the cluster's secrets, for a day.
    pub fn issue(
        bundle: &SecretsBundle,
        now: Timestamp,
        random: &mut dyn RandomSource,
    ) -> Result<Self, PkiError> {
        let from = now.checked_sub(BACKDATED).map_err(|_| PkiError::Time)?;
        let client = bundle.talos_client(TalosRole::Admin, from, BACKDATED + VALIDITY, random)?;
        Ok(Self { authority: bundle.os.certificate.clone(), client })
    }

    pub(crate) fn authority(&self) -> Result<CertificateDer<'static>, PkiError> {
        certificate_der(&self.authority).map(CertificateDer::from)
    }

    pub(crate) fn certificate(&self) -> Result<CertificateDer<'static>, PkiError> {
        certificate_der(&self.client.certificate).map(CertificateDer::from)
    }

    /// The key as rustls reads it, whatever its label.
    pub(crate) fn key(&self) -> Result<PrivateKeyDer<'static>, PkiError> {
        let key = self.client.key_in_pkcs8()?;
        Ok(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.expose().to_vec())))
    }
}
