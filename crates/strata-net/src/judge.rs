//! Certificates judged by rules of our own. That the server holds the certificate's key is proved in every case.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, OtherError, SignatureScheme};

/// What a server shows of itself.
pub struct Shown<'a> {
    /// The server's own.
    pub certificate: &'a CertificateDer<'a>,
    /// What it sent along.
    pub intermediates: &'a [CertificateDer<'a>],
    /// The name that it is asked by.
    pub name: &'a ServerName<'a>,
    /// What it says of revocation; empty if nothing.
    pub ocsp_response: &'a [u8],
    /// When it was shown.
    pub now: UnixTime,
}

/// Decides whether a certificate is good enough.
pub trait Judge: fmt::Debug + Send + Sync + 'static {
    /// Whether the handshake goes on.
    fn judge(&self, shown: &Shown<'_>) -> Result<(), rustls::Error>;
}

/// A refusal with its reason, which can be found again in what a failed handshake leaves behind.
pub fn refusal(reason: impl std::error::Error + Send + Sync + 'static) -> rustls::Error {
    rustls::Error::Other(OtherError(Arc::new(reason)))
}

/// For rustls' `with_custom_certificate_verifier`.
pub fn judged_by(judge: impl Judge, provider: Arc<CryptoProvider>) -> Arc<dyn ServerCertVerifier> {
    Arc::new(Judged { judge, provider })
}

#[derive(Debug)]
struct Judged<J> {
    judge: J,
    provider: Arc<CryptoProvider>,
}

impl<J: Judge> ServerCertVerifier for Judged<J> {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.judge.judge(&Shown { certificate, intermediates, name, ocsp_response, now })?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
