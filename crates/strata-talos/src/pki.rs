//! Keys and certificates in the forms that Talos reads and writes.

mod authority;
mod der;
mod key;
mod pem;

pub use authority::{Authority, CertificateRequest, Issued, PkiError};
pub(crate) use authority::{certificate_der, self_signed};
pub(crate) use key::{KeyKind, PrivateKey};
