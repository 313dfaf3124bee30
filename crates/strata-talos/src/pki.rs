//! Keys and certificates in the forms that Talos reads and writes.

mod authority;
mod der;
mod key;
mod pair;
mod pem;

pub(crate) use authority::self_signed;
pub use authority::{Authority, CertificateRequest, Issued, PkiError, certificate_der};
pub(crate) use key::{KeyKind, PrivateKey};
pub use pair::{PairError, certificate_fingerprint, check_certificate_key};
