//! The sealed file of a review: the plan encrypted with age, signed by the runner that made it.
//!
//! What is approved is the digest of the content. The signature is over that digest, over the comment that was shown, and over the encrypted bytes,
//! so a file is refused before anything in it is opened.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use strata_secret::SecretBytes;
use strata_secrets::{AgeError, Identities, Recipient, encrypt_for};

use crate::reviewed::Reviewed;
use crate::signing::{PublicKey, RunnerKey};

const FORMAT: u32 = 1;

/// The file as it is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedPlan {
    pub format: u32,
    /// The version of Strata that made it.
    pub strata: String,
    /// SHA-256 of the content: what is approved.
    pub digest: String,
    /// SHA-256 of the comment that shows it.
    pub comment: String,
    /// The public key of the runner that made it.
    pub signer: String,
    /// The content, an armored age file.
    pub content: String,
    pub signature: String,
}

/// Why a sealed file is not taken.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error("it is not a sealed plan: {0}")]
    NotSealed(String),
    #[error("Strata {strata} sealed it in format {format}, and this one knows {FORMAT}")]
    Format { strata: String, format: u64 },
    #[error("Strata {0} sealed it, and this is another version")]
    Version(String),
    #[error("no runner that `review.runners` of the base names has signed it")]
    Signer,
    #[error("it was changed after it was signed")]
    Signature,
    #[error("its content is not what its digest says")]
    Content,
    #[error(transparent)]
    Age(#[from] AgeError),
}

impl SealedPlan {
    pub fn seal(
        reviewed: &Reviewed,
        comment: &str,
        recipients: &[Recipient],
        key: &RunnerKey,
    ) -> Result<Self, SealError> {
        let content = reviewed.bytes();
        let mut sealed = Self {
            format: FORMAT,
            strata: reviewed.strata.clone(),
            digest: digest(&content),
            comment: digest(comment.as_bytes()),
            signer: key.public().to_string(),
            content: encrypt_for(&SecretBytes::new(content), recipients)?,
            signature: String::new(),
        };
        sealed.signature = key.sign(&sealed.signed());
        Ok(sealed)
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, SealError> {
        let not_sealed = |error: serde_json::Error| SealError::NotSealed(error.to_string());
        let raw: serde_json::Value = serde_json::from_slice(bytes).map_err(not_sealed)?;
        if let Some(format) = raw["format"].as_u64().filter(|format| *format != u64::from(FORMAT)) {
            let strata = raw["strata"].as_str().unwrap_or("unknown").to_owned();
            return Err(SealError::Format { strata, format });
        }
        serde_json::from_value(raw).map_err(not_sealed)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Whether one of these runners signed it, as it is.
    pub fn check(&self, runners: &[PublicKey]) -> Result<(), SealError> {
        let signer =
            runners.iter().find(|runner| runner.to_string() == self.signer).ok_or(SealError::Signer)?;
        match signer.verifies(&self.signed(), &self.signature) {
            true => Ok(()),
            false => Err(SealError::Signature),
        }
    }

    /// The content. What another version of Strata made is not read: it may plan in another way.
    pub fn open(&self, identities: &Identities, version: &str) -> Result<Reviewed, SealError> {
        if self.strata != version {
            return Err(SealError::Version(self.strata.clone()));
        }
        let content = identities.decrypt(self.content.as_bytes())?;
        if digest(content.expose()) != self.digest {
            return Err(SealError::Content);
        }
        let reviewed = Reviewed::parse(content.expose()).map_err(SealError::NotSealed)?;
        if reviewed.strata == version { Ok(reviewed) } else { Err(SealError::Version(reviewed.strata)) }
    }

    /// What the signature is over. As a list in JSON no part can be taken for another.
    fn signed(&self) -> Vec<u8> {
        let content = digest(self.content.as_bytes());
        let Self { format, strata, digest, comment, signer, .. } = self;
        serde_json::to_vec(&("strata sealed plan", format, strata, digest, comment, signer, content))
            .unwrap_or_default()
    }
}

pub fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
