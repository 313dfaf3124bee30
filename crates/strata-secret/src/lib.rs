//! The Secret type and keyed digests; used by resource, state, engine and strata-secrets.
//!
//! What lives here has no `Debug`, no `Display` and no `Serialize`, so that a value that must not leave cannot
//! be printed or written by accident: the compiler refuses it. [`KeyedDigest`] is the one thing that may be stored.

mod digest;
mod random;
mod redact;
mod secret;

pub use digest::{DigestKey, InvalidDigest, KeyedDigest};
pub use random::RandomSource;
pub use redact::{REDACTED, Redactor};
pub use secret::{SecretBytes, SecretString};
