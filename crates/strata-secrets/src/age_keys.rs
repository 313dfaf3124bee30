//! Keys of age: who can read (recipients), and with what (identities). Files of age itself are made by the age crate.

mod generate;
mod identity;
mod locate;
mod recipient;

pub use generate::generate_identity;
pub use identity::Identities;
pub use recipient::Recipient;
pub(crate) use recipient::check as check_recipient;
pub(crate) use recipient::wrap;

/// What can go wrong with a key of age.
#[derive(Debug, thiserror::Error)]
pub enum AgeError {
    #[error("`{0}` is not a recipient of age: expected `age1…` or an SSH public key")]
    NotARecipient(String),
    #[error("`{0}` is a recipient of a kind that only the age program can encrypt for")]
    UnsupportedRecipient(String),
    #[error("not an age identity: expected a line `AGE-SECRET-KEY-1…` or an SSH private key")]
    NotAnIdentity,
    #[error("no recipients are given")]
    NoRecipients,
    #[error("none of the age identities can open it{looked}")]
    NoIdentity {
        /// Where identities were looked for, and what was found; starts with a line break or is empty.
        looked: String,
    },
    #[error("the age file is damaged: {0}")]
    Damaged(String),
}
