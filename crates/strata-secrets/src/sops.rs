//! SOPS: files whose keys can be read and whose values are encrypted, compatible with the `sops` program.

mod binary;
mod cipher;
mod config;
mod crypt;
mod dotenv;
mod file;
mod flat;
mod format;
mod ini;
mod json;
mod keys;
mod lookup;
mod metadata;
mod rekey;
mod rule;
mod shamir;
mod tree;
mod yaml;

pub use config::{CONFIG_FILE, CreationRule, CreationRules, config_with_rule};
pub use file::{OpenFile, Settings, SopsFile, encrypt, is_encrypted, plain_yaml};
pub use format::Format;

pub use rekey::ForeignKeys;
pub use rule::RuleSetting;

/// The version of `sops` whose format is written.
const VERSION: &str = "3.13.3";

/// What can go wrong with a SOPS file.
#[derive(Debug, thiserror::Error)]
pub enum SopsError {
    #[error("line {line}: {reason}")]
    Syntax { line: usize, reason: String },
    #[error("nested more than {deepest} levels deep")]
    TooDeep { deepest: usize },
    #[error("the file is empty: it needs at least one document")]
    Empty,
    #[error("not a mapping of keys to values")]
    NotAMapping,
    #[error("line {line}: a key must be text")]
    KeyNotText { line: usize },
    #[error("line {line}: the key `{key}` is there twice")]
    DuplicateKey { line: usize, key: String },
    #[error("line {line}: a value that `sops` has no type for")]
    NotAValue { line: usize },
    #[error("the sops metadata cannot be used: `{field}`: {reason}")]
    Metadata { field: String, reason: String },
    #[error("the regular expression of `{setting}` cannot be read: {reason}")]
    Regex { setting: &'static str, reason: String },
    #[error("not a text file in UTF-8")]
    NotText,
    #[error("not encrypted with `sops`: it has no metadata")]
    NotEncryptedFile,
    #[error("already encrypted with `sops`")]
    AlreadyEncrypted,
    #[error("`{path}` should be encrypted and is not")]
    NotEncrypted { path: String },
    #[error("`{path}` was changed or moved since it was encrypted")]
    Tampered { path: String },
    #[error("a comment at `{path}` was changed or moved since it was encrypted")]
    TamperedComment { path: String },
    #[error("the MAC cannot be read: the file was changed since it was encrypted")]
    MacUnreadable,
    #[error("the MAC does not match: the file was changed, reordered or truncated since it was encrypted")]
    MacMismatch,
    #[error("`unencrypted_comment_regex` also matches encrypted comments")]
    ConfusingRule,
    #[error("the file is encrypted for {recipients}; {have} of {needed} keys could be opened: {reason}")]
    NoKey { have: usize, needed: usize, recipients: String, reason: String },
    #[error("the data key has a wrong length, or its shares do not belong together")]
    BadKey,
    #[error("{groups} groups of keys cannot have a threshold of {threshold}")]
    Threshold { threshold: usize, groups: usize },
    #[error("the file could not be read back as it was written; nothing was changed")]
    NotReadBack,
    #[error("keys of `{kinds}` can only be used by other programs: run `sops` for this, or leave them out")]
    ForeignKeys { kinds: String },
    #[error("`.sops.yaml`: {0}")]
    Config(String),
    #[error("a comment cannot be written into JSON")]
    CommentInJson,
    #[error(transparent)]
    Yaml(#[from] crate::YamlError),
    #[error(transparent)]
    Age(#[from] crate::AgeError),
}
