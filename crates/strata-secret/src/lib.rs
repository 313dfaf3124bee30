//! Secrets that cannot be printed, digests of them that may be stored, and the redactor that keeps them out of every text.
//!
//! [`SecretString`] and [`SecretBytes`] hold a value, [`DigestKey`] and [`KeyedDigest`] tell whether two values are the same without
//! keeping either, [`Redactor`] scrubs what others say.
//!
//! What holds a value has no `Debug`, no `Display` and no `Serialize`, so that it cannot be printed or written by accident: the compiler
//! refuses it. [`KeyedDigest`] is the one thing that may be stored.
//!
//! ```
//! use strata_secret::{DigestKey, Redactor, SecretString};
//!
//! let password = SecretString::new("correct horse battery staple");
//! let key = DigestKey::generate(&mut |bytes: &mut [u8]| bytes.fill(7));
//! let stored = key.digest("web/vm/app", "cloudinit.password", password.expose().as_bytes());
//! assert_eq!(stored, key.digest("web/vm/app", "cloudinit.password", b"correct horse battery staple"));
//! let redactor = Redactor::new();
//! redactor.add(&password);
//! let said = redactor.redact("400: cipassword=correct horse battery staple");
//! assert!(!said.contains("horse"));
//! ```
//!
//! ```compile_fail
//! println!("{:?}", strata_secret::SecretString::new("it is not for printing"));
//! ```

#![warn(missing_docs)]

mod digest;
mod random;
mod redact;
mod secret;

pub use digest::{DigestKey, InvalidDigest, KeyedDigest};
pub use random::RandomSource;
pub use redact::{REDACTED, Redactor};
pub use secret::{SecretBytes, SecretString};
