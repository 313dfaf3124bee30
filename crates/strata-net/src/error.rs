//! Why a request got no answer, and what that says about whether the server acted on it.

use std::error::Error;
use std::sync::Arc;

use crate::Fingerprint;

/// The error behind another one. Shared, since errors of the network are told more than once.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// Whether a request that failed may have had an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It never left: sending it again cannot do anything twice.
    NotSent,
    /// It may have arrived, and the answer was lost.
    Unknown,
}

/// What is wrong with a certificate: what helps depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateFlaw {
    /// It is not valid any more, or not yet: perhaps a clock is wrong.
    Dates,
    /// It is for another name than the one that was dialled.
    Name,
    /// Nobody who is trusted vouches for it, or it cannot be read.
    Authority,
}

impl CertificateFlaw {
    pub(crate) fn of(error: &rustls::Error) -> Self {
        use rustls::CertificateError as Bad;
        match error {
            rustls::Error::InvalidCertificate(
                Bad::Expired | Bad::ExpiredContext { .. } | Bad::NotValidYet | Bad::NotValidYetContext { .. },
            ) => Self::Dates,
            rustls::Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
                Self::Name
            }
            _ => Self::Authority,
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum NetError {
    /// No connection came about.
    #[error("cannot connect to `{endpoint}`: {source}")]
    Connect { endpoint: String, source: Cause },
    /// The same, for want of time.
    #[error("`{endpoint}` did not accept a connection within {seconds} s")]
    ConnectTimeout { endpoint: String, seconds: u64 },
    /// Another certificate than the one that is pinned.
    #[error(
        "the certificate of `{endpoint}` is not the pinned one: it has the fingerprint {presented}, pinned is {pinned}"
    )]
    PinMismatch { endpoint: String, presented: Fingerprint, pinned: Fingerprint },
    /// A certificate that nothing vouches for.
    #[error("the certificate of `{endpoint}` cannot be verified: {source}; its fingerprint is {presented}")]
    Untrusted { endpoint: String, flaw: CertificateFlaw, presented: Fingerprint, source: Cause },
    /// The handshake failed for another reason.
    #[error("TLS with `{endpoint}` failed: {source}")]
    Tls { endpoint: String, source: Cause },
    /// The request was sent, and no whole answer came in time.
    #[error("`{endpoint}` did not answer {method} {path} within {seconds} s")]
    Timeout { endpoint: String, method: String, path: String, seconds: u64 },
    /// The connection ended while a request was under way.
    #[error("the connection to `{endpoint}` broke during {method} {path}: {}", innermost(source.as_ref()))]
    Broken { endpoint: String, method: String, path: String, source: Cause },
    /// The answer is longer than the options allow.
    #[error("the answer of `{endpoint}` to {method} {path} is larger than {limit} bytes")]
    TooLarge { endpoint: String, method: String, path: String, limit: usize },
    /// The request itself is not valid.
    #[error("not a valid request: {0}")]
    BadRequest(String),
    /// What had to hold for it did not hold any more when it was about to be sent.
    #[error("{0}")]
    Withheld(String),
}

impl NetError {
    /// Whether the request may have arrived.
    pub fn delivery(&self) -> Delivery {
        match self {
            Self::Timeout { .. } | Self::Broken { .. } | Self::TooLarge { .. } => Delivery::Unknown,
            _ => Delivery::NotSent,
        }
    }

    /// Whether no connection came about.
    pub fn is_no_connection(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::ConnectTimeout { .. })
    }

    /// Whether the same request could succeed a moment later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Connect { .. } | Self::ConnectTimeout { .. } | Self::Timeout { .. } | Self::Broken { .. }
        )
    }

    /// What a person can do about it, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::PinMismatch { presented, .. } => Some(format!(
                "if the certificate was renewed, check the new one on the server and set `tls.fingerprint: \"{presented}\"`"
            )),
            Self::Untrusted { presented, .. } => Some(format!(
                "compare the fingerprint with the one that the server shows, then set `tls.fingerprint: \"{presented}\"`, or name its CA with `tls.ca`"
            )),
            Self::Connect { .. } | Self::ConnectTimeout { .. } => {
                Some("check the endpoint's address and port, and that the machine is up".to_owned())
            }
            _ => None,
        }
    }
}

/// The cause at the bottom: the layers above only say that sending failed.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// Why the TLS settings of an endpoint cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TlsSetupError {
    /// The endpoint is no URL.
    #[error("`{0}` is not a URL of the form `https://host:port`")]
    Endpoint(String),
    /// The CA file cannot be used.
    #[error("the CA file holds no certificate that can be used: {0}")]
    Ca(String),
    /// The client certificate or its key cannot be used.
    #[error("the client certificate cannot be used: {0}")]
    Identity(String),
    /// The trusted certificates of this machine cannot be read.
    #[error("the certificates of this machine cannot be used: {0}")]
    SystemRoots(String),
}
