//! Who this side is: a client certificate and its key, for servers that ask for one.

use rustls::client::WantsClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder};
use strata_secret::SecretString;

use crate::TlsSetupError;

/// A client certificate with its chain, and the key that belongs to it, both PEM.
#[derive(Clone)]
pub struct ClientIdentity {
    certificates: Vec<u8>,
    key: SecretString,
}

impl ClientIdentity {
    /// A chain of certificates and the key of the first one (PEM).
    pub fn new(certificates: impl Into<Vec<u8>>, key: SecretString) -> Self {
        Self { certificates: certificates.into(), key }
    }

    pub(crate) fn present(
        &self,
        config: ConfigBuilder<ClientConfig, WantsClientCert>,
    ) -> Result<ClientConfig, TlsSetupError> {
        let wrong = |reason: String| TlsSetupError::Identity(reason);
        let chain = CertificateDer::pem_slice_iter(&self.certificates)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| wrong(error.to_string()))?;
        if chain.is_empty() {
            return Err(wrong("it has no PEM certificate".to_owned()));
        }
        // Talos writes PKCS #8 under a label of its own. The parser's error could quote the key: it is not shown.
        let pem = SecretString::new(self.key.expose().replace("ED25519 PRIVATE KEY", "PRIVATE KEY"));
        let key = PrivateKeyDer::from_pem_slice(pem.expose().as_bytes())
            .map_err(|_| wrong("its key is not a private key in PEM".to_owned()))?;
        config.with_client_auth_cert(chain, key).map_err(|error| wrong(error.to_string()))
    }
}
