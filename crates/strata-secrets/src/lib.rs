//! SOPS with age, and Ansible Vault.

mod access;
mod age_keys;
mod check;
mod command;
mod digest_key;
mod environment;
mod prompt;
mod random;
pub mod sops;
mod store;
pub mod tfvars;
mod time;
mod value;
pub mod vault;
mod yaml;

pub use access::Access;
pub use age_keys::{AgeError, Identities, Recipient};
pub use check::{Finding, Shape as SecretShape, check_file};
pub use digest_key::{encrypt_for, unwrap_digest_key, wrap_digest_key};
pub use environment::Environment;
pub use prompt::{NoPrompt, Prompt};
pub use random::OsRandom;
pub use store::{SecretError, SecretName, SecretStore, Source};
pub use yaml::YamlError;
