//! SOPS with age, and Ansible Vault.

mod age_keys;
mod command;
mod environment;
mod prompt;
mod random;
pub mod sops;
mod time;
mod value;
pub mod vault;
mod yaml;

pub use age_keys::{AgeError, Identities, Recipient};
pub use environment::Environment;
pub use prompt::{NoPrompt, Prompt};
pub use random::OsRandom;
pub use yaml::YamlError;
