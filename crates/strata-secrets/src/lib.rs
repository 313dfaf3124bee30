//! The secrets of a repository: SOPS with age, Ansible Vault, tfvars and the environment, behind one store.
//!
//! A [`SecretStore`] finds a name in the [`Source`]s that the repository lists, with the keys and passwords of an [`Access`]. [`sops`] and
//! [`vault`] read and write the files of the programs `sops` and `ansible-vault`; what they change stays the same byte for byte elsewhere.
//!
//! Nothing here reads the process' environment or asks a terminal: [`Environment`] and [`Prompt`] are passed in. What is resolved is a
//! `SecretString`, and the store's redactor learns it before anybody gets it.
//!
//! ```
//! use strata_secret::{SecretBytes, SecretString};
//! use strata_secrets::OsRandom;
//! use strata_secrets::vault::{VaultPassword, encrypt, is_vault};
//!
//! let password = VaultPassword::new(Some("prod"), SecretString::new("of the vault"))?;
//! let plain = SecretBytes::new("api_token: 7f3c\n");
//! let sealed = encrypt(&plain, &password, &mut OsRandom)?;
//! assert!(is_vault(sealed.as_bytes()) && !sealed.contains("7f3c"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod age_keys;
mod check;
mod command;
pub mod creation;
mod digest_key;
mod environment;
mod memory_file;
mod merge;
mod prompt;
mod random;
mod replace_file;
mod sealed;
pub mod sops;
mod store;
pub mod tfvars;
mod time;
mod tracked;
mod value;
pub mod vault;
mod yaml;

pub use access::Access;
pub use age_keys::{AgeError, Identities, Recipient, generate_identity};
pub use check::{Finding, Shape as SecretShape, check_file};
pub use digest_key::{encrypt_for, unwrap_digest_key, wrap_digest_key};
pub use environment::Environment;
pub use memory_file::{MemoryFile, MemoryFileError, sweep};
pub use merge::merge;
pub use prompt::{NoPrompt, Prompt};
pub use random::OsRandom;
pub use replace_file::{replace, replace_private, sweep_leftovers};
pub use sealed::{Opened, Sealed, SealedError, check_syntax, inline_id};
pub use store::{MissingKey, SecretError, SecretName, SecretStore, Source};
pub use tracked::{Tracked, Tracking, tracking};
pub use yaml::YamlError;
