//! The age key that Flux decrypts with: handed over only after it has opened a file of the repository here.

use std::path::Path;

use strata_secret::SecretString;
use strata_secrets::Identities;
use strata_secrets::sops::{Format, SopsFile, is_encrypted};

use super::FLUX_SYSTEM;
use crate::BootstrapSecret;

/// The name of the Secret that the Kustomization refers to.
pub const SOPS_AGE: &str = "sops-age";
/// Flux reads the entries whose names end in `.agekey`.
pub const AGE_KEY_ENTRY: &str = "age.agekey";

/// What the files of a repository say about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgeProof {
    /// The key opened this file.
    Opened(String),
    /// No file is encrypted with SOPS: there is nothing to open, and nothing to prove.
    NothingEncrypted,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgeKeyError {
    #[error("the age key cannot be read: {0}")]
    NotAKey(String),
    #[error(
        "the age key `{key}` opens none of the {files} encrypted files of the repository; `{first}` is encrypted for {recipients}"
    )]
    WrongKey { key: String, files: usize, first: String, recipients: String },
    #[error("`{file}` is encrypted for this age key and cannot be opened: {reason}")]
    Damaged { file: String, reason: String },
}

impl AgeKeyError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::WrongKey { .. } => Some(
                "give the key whose public half is among the recipients, or add this one to `.sops.yaml` and run `sops updatekeys`",
            ),
            Self::NotAKey(_) | Self::Damaged { .. } => None,
        }
    }
}

/// Looks whether a key opens a file of the repository: `files` are paths and contents, encrypted or not.
pub fn prove_age_key<P: AsRef<Path>, C: AsRef<[u8]>>(
    key: &SecretString,
    files: impl IntoIterator<Item = (P, C)>,
) -> Result<AgeProof, AgeKeyError> {
    let identities = Identities::parse(key).map_err(|error| AgeKeyError::NotAKey(error.to_string()))?;
    let mut closed: Option<(String, String)> = None;
    let mut count = 0;
    for (path, content) in files {
        let (path, content) = (path.as_ref(), content.as_ref());
        let format = Format::of(path);
        if !is_encrypted(content, format) {
            continue;
        }
        let name = path.display().to_string();
        let Ok(file) = SopsFile::parse(content, format) else { continue };
        let recipients: Vec<String> = file.recipients().concat().into_iter().map(str::to_owned).collect();
        let ours = recipients.iter().any(|recipient| identities.recipients().contains(recipient));
        count += 1;
        match file.open(&identities) {
            Ok(_) => return Ok(AgeProof::Opened(name)),
            Err(error) if ours => {
                return Err(AgeKeyError::Damaged { file: name, reason: error.to_string() });
            }
            Err(_) => {
                let recipients =
                    recipients.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
                closed.get_or_insert((name, recipients));
            }
        }
    }
    match closed {
        None => Ok(AgeProof::NothingEncrypted),
        Some((first, recipients)) => Err(AgeKeyError::WrongKey {
            key: identities.recipients().join(", "),
            files: count,
            first,
            recipients,
        }),
    }
}

/// The Secret `flux-system/sops-age`.
pub fn age_secret(key: &SecretString) -> BootstrapSecret {
    BootstrapSecret::new(FLUX_SYSTEM, SOPS_AGE).with(AGE_KEY_ENTRY, key.clone())
}
