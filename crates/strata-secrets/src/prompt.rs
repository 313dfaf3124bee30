//! Asking a person: for a passphrase, or for the password of a vault.

use std::sync::Arc;

use strata_secret::SecretString;

/// Someone who can be asked, or nobody.
pub trait Prompt: Send + Sync {
    /// Asks for a secret; `None` if nobody answers.
    fn secret(&self, question: &str) -> Option<SecretString>;
}

/// Nobody: every question stays without an answer.
pub struct NoPrompt;

impl Prompt for NoPrompt {
    fn secret(&self, _question: &str) -> Option<SecretString> {
        None
    }
}

/// Hands questions of the age library on.
#[derive(Clone)]
pub(crate) struct AgeQuestions(pub(crate) Arc<dyn Prompt>);

impl age::Callbacks for AgeQuestions {
    fn display_message(&self, _message: &str) {}

    fn confirm(&self, _message: &str, _yes: &str, _no: Option<&str>) -> Option<bool> {
        None
    }

    fn request_public_string(&self, _description: &str) -> Option<String> {
        None
    }

    fn request_passphrase(&self, description: &str) -> Option<age::secrecy::SecretString> {
        let answer = self.0.secret(description)?;
        Some(age::secrecy::SecretString::from(answer.expose().to_owned()))
    }
}
