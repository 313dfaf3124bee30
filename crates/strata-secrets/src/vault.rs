//! Ansible Vault, versions 1.1 and 1.2: whole files, and `!vault` values in YAML.

mod cipher;
mod envelope;
mod inline;
mod password;

pub use inline::{decrypt_values, encrypt_value, encrypted_names, rekey_values};
pub(crate) use inline::{is_vaulted, open_scalar};
pub use password::{PasswordSource, Passwords, VaultPassword};
use strata_secret::{RandomSource, SecretBytes};

use self::envelope::Envelope;

/// What can go wrong with a vault.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error("not a vault: expected a first line like `$ANSIBLE_VAULT;1.1;AES256`")]
    NotAVault,
    #[error(
        "a vault of version `{version}` with cipher `{cipher}` is not supported: expected 1.1 or 1.2 with AES256"
    )]
    Unsupported { version: String, cipher: String },
    #[error("the vault is damaged: {0}")]
    Damaged(&'static str),
    #[error("already a vault")]
    AlreadyAVault,
    #[error("no password for the vault is known{}", .id.as_ref().map(|id| format!(" (its id is `{id}`)")).unwrap_or_default())]
    NoPassword { id: Option<String> },
    #[error("none of {tried} passwords opens the vault{}: a wrong password, or the vault was changed", .id.as_ref().map(|id| format!(" with the id `{id}`")).unwrap_or_default())]
    WrongPassword { tried: usize, id: Option<String> },
    #[error("the password of the vault cannot be had from {place}: {reason}")]
    Password { place: String, reason: String },
    #[error("`{0}` cannot be the id of a vault: it is empty or has a `;`, an `@` or a blank")]
    BadId(String),
    #[error("line {line}: {reason}")]
    Yaml { line: usize, reason: String },
    #[error("there is no value `{0}` to encrypt")]
    NoSuchValue(String),
    #[error("the file could not be read back as it was written; nothing was changed")]
    NotReadBack,
}

/// Whether this is a whole file in a vault.
pub fn is_vault(content: &[u8]) -> bool {
    content.starts_with(envelope::MARK.as_bytes())
}

/// A vault that was opened, and the password that did it.
pub struct OpenVault {
    plaintext: SecretBytes,
    password: VaultPassword,
}

/// Opens a vault with the first password that fits. Those with the vault's id are tried first.
pub fn open(content: &[u8], passwords: &Passwords) -> Result<OpenVault, VaultError> {
    let envelope = Envelope::parse(content)?;
    let candidates = passwords.for_id(envelope.id.as_deref())?;
    if candidates.is_empty() {
        return Err(VaultError::NoPassword { id: envelope.id });
    }
    for password in &candidates {
        if let Some(plaintext) = envelope.sealed.open(password.password.expose().as_bytes())? {
            let password = VaultPassword { id: envelope.id, password: password.password.clone() };
            return Ok(OpenVault { plaintext, password });
        }
    }
    Err(VaultError::WrongPassword { tried: candidates.len(), id: envelope.id })
}

/// Puts plain content into a vault. The password's id, if it has one, becomes the vault's.
pub fn encrypt(
    plain: &SecretBytes,
    password: &VaultPassword,
    random: &mut dyn RandomSource,
) -> Result<String, VaultError> {
    if is_vault(plain.expose()) {
        return Err(VaultError::AlreadyAVault);
    }
    let sealed = cipher::Sealed::seal(plain.expose(), password.password.expose().as_bytes(), random);
    Ok(Envelope { id: password.id.clone(), sealed }.to_string())
}

/// Puts the content of a vault under another password.
pub fn rekey(
    content: &[u8],
    passwords: &Passwords,
    new: &VaultPassword,
    random: &mut dyn RandomSource,
) -> Result<String, VaultError> {
    encrypt(open(content, passwords)?.plaintext(), new, random)
}

impl OpenVault {
    pub fn plaintext(&self) -> &SecretBytes {
        &self.plaintext
    }

    /// The vault's id.
    pub fn id(&self) -> Option<&str> {
        self.password.id.as_deref()
    }

    /// The vault with new content, under the same password and id. `None` if nothing changed.
    pub fn edit(
        &self,
        plain: &SecretBytes,
        random: &mut dyn RandomSource,
    ) -> Result<Option<String>, VaultError> {
        if *plain == self.plaintext { Ok(None) } else { encrypt(plain, &self.password, random).map(Some) }
    }
}
