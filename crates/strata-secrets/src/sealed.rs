//! An encrypted file of any kind: what it is, what it says, and how it looks with other content.

use std::path::Path;

use jiff::Timestamp;
use strata_secret::{RandomSource, SecretBytes, SecretString};

use crate::sops::{Format, OpenFile, SopsError, SopsFile};
use crate::vault::{self, OpenVault, VaultError};
use crate::{Access, tfvars};

/// Why a file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SealedError {
    #[error(transparent)]
    Sops(#[from] SopsError),
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error("not encrypted, neither with `sops` nor with `ansible-vault`")]
    Plain,
}

pub enum Sealed {
    Sops(Box<SopsFile>),
    /// A whole file of `ansible-vault`.
    Vault(Vec<u8>),
    /// YAML with `!vault` values.
    Inline(String),
}

impl Sealed {
    /// What the content is; `None` if nothing of it is encrypted. A file that is damaged is an error.
    pub fn detect(path: &Path, content: &[u8]) -> Result<Option<Self>, SealedError> {
        if vault::is_vault(content) {
            return Ok(Some(Self::Vault(content.to_owned())));
        }
        let usual = Format::of(path);
        match SopsFile::parse(content, usual) {
            Ok(file) => return Ok(Some(Self::Sops(Box::new(file)))),
            Err(error @ SopsError::Metadata { .. }) => return Err(error.into()),
            Err(_) => {}
        }
        // The name may say nothing of the format.
        let others = [Format::Json, Format::Yaml, Format::Dotenv, Format::Ini].into_iter();
        let mut others = others.filter(|_| usual == Format::Binary);
        if let Some(file) = others.find_map(|format| SopsFile::parse(content, format).ok()) {
            return Ok(Some(Self::Sops(Box::new(file))));
        }
        let inline = std::str::from_utf8(content)
            .ok()
            .filter(|text| vault::encrypted_names(text).is_ok_and(|names| !names.is_empty()));
        Ok(inline.map(|text| Self::Inline(text.to_owned())))
    }

    /// The same, where only an encrypted file will do.
    pub fn expect(path: &Path, content: &[u8]) -> Result<Self, SealedError> {
        Self::detect(path, content)?.ok_or(SealedError::Plain)
    }

    pub fn open(self, access: &Access) -> Result<Opened, SealedError> {
        Ok(match self {
            Self::Sops(file) => {
                let open = file.open(access.identities())?;
                Opened::Sops(Box::new(open))
            }
            Self::Vault(content) => {
                let open = vault::open(&content, access.passwords())?;
                Opened::Vault(open)
            }
            Self::Inline(text) => {
                let plain = vault::decrypt_values(&text, access.passwords())?;
                Opened::Inline { text, plain }
            }
        })
    }
}

pub enum Opened {
    Sops(Box<OpenFile>),
    Vault(OpenVault),
    Inline { text: String, plain: SecretString },
}

impl Opened {
    pub fn plaintext(&self) -> Result<SecretBytes, SopsError> {
        match self {
            Self::Sops(open) => open.plaintext(),
            Self::Vault(open) => Ok(open.plaintext().clone()),
            Self::Inline { plain, .. } => Ok(plain.clone().into()),
        }
    }

    /// The encrypted file with other content; `None` if the content is the same. Content that is not what the file's
    /// name says is refused.
    pub fn edit(
        &self,
        path: &Path,
        plain: &SecretBytes,
        access: &Access,
        now: Timestamp,
        random: &mut dyn RandomSource,
    ) -> Result<Option<Vec<u8>>, String> {
        match self {
            Self::Sops(open) => open.edit(plain, now, random).map_err(|error| error.to_string()),
            Self::Vault(open) => {
                let edited = open.edit(plain, random).map_err(|error| error.to_string())?;
                check_syntax(path, plain)?;
                Ok(edited.map(String::into_bytes))
            }
            Self::Inline { text, plain: before } => {
                if plain.expose() == before.expose().as_bytes() {
                    return Ok(None);
                }
                let edited = std::str::from_utf8(plain.expose()).map_err(|_| "not text in UTF-8")?;
                reseal(text, edited, access, random).map(|text| Some(text.into_bytes()))
            }
        }
    }
}

/// Puts the values that were vaulted back into the vault.
fn reseal(
    before: &str,
    edited: &str,
    access: &Access,
    random: &mut dyn RandomSource,
) -> Result<String, String> {
    let say = |error: VaultError| error.to_string();
    let password = access.passwords().for_encryption(inline_id(before)?).map_err(say)?;
    let mut text = edited.to_owned();
    for name in vault::encrypted_names(before).map_err(say)? {
        let path: Vec<&str> = name.iter().map(String::as_str).collect();
        match vault::encrypt_value(&text, &path, &password, random) {
            Ok(sealed) => text = sealed,
            // An alias names a value that is in the vault already.
            Err(VaultError::AlreadyAVault) => {}
            Err(VaultError::NoSuchValue(name)) => {
                // It may be in the clear under another name.
                return Err(format!(
                    "`{name}` was encrypted and is gone; `--value` of `encrypt` adds another"
                ));
            }
            Err(error) => return Err(say(error)),
        }
    }
    Ok(text)
}

/// The id that all `!vault` values of a file have.
pub fn inline_id(text: &str) -> Result<Option<&str>, String> {
    let headers = text.lines().filter_map(|line| line.trim().strip_prefix("$ANSIBLE_VAULT;"));
    let mut ids = headers.map(|header| header.splitn(3, ';').nth(2));
    let first = ids.next().flatten();
    if ids.all(|id| id == first) {
        Ok(first)
    } else {
        Err("its values are in vaults of more than one id: change them one by one".to_owned())
    }
}

/// Whether plain content is what the file's name says; a vault itself takes anything.
pub fn check_syntax(path: &Path, plain: &SecretBytes) -> Result<(), String> {
    let text = || std::str::from_utf8(plain.expose()).map_err(|_| "not text in UTF-8".to_owned());
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("yaml" | "yml") => {
            vault::encrypted_names(text()?).map(|_| ()).map_err(|error| error.to_string())
        }
        Some("json") => serde_json::from_slice::<serde::de::IgnoredAny>(plain.expose())
            .map(|_| ())
            .map_err(|error| format!("line {}: not JSON", error.line())),
        Some("tfvars") => tfvars::values(text()?).map(|_| ()).map_err(|error| error.to_string()),
        _ => Ok(()),
    }
}
