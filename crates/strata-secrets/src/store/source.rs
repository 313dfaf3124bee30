//! One encrypted file of the repository, as it was read, and as far as it was opened.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use strata_diagnostics::{LARGEST_FILE, read_file};
use strata_secret::{SecretBytes, SecretString};

use super::Cause;
use crate::sops::{Format, SopsFile};
use crate::value::Value;
use crate::vault::{self, VaultError};
use crate::yaml::resolve::resolve_plain;
use crate::yaml::scan::{Scalar, Style, scan};
use crate::yaml::{NamedScalar, named_scalars};
use crate::{Access, tfvars};

/// An encrypted file that the repository's settings list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file of `sops`.
    Sops(PathBuf),
    /// A file of `ansible-vault`: encrypted as a whole, or YAML with `!vault` values.
    Vault(PathBuf),
}

impl Source {
    pub fn path(&self) -> &Path {
        match self {
            Source::Sops(path) | Source::Vault(path) => path,
        }
    }

    pub(super) fn name(&self) -> String {
        super::display(self.path())
    }
}

/// The keys that lead to a value.
type NamePath = Vec<String>;

/// All values of a file that is encrypted as a whole; `None` for null.
type WholeValues = Vec<(NamePath, Option<SecretString>)>;

/// The encrypted values of any file; `None` for null.
pub(super) type Secrets = Vec<(NamePath, Option<SecretBytes>)>;

/// What a name leads to.
pub(super) enum Lookup {
    Value(SecretBytes),
    Null,
    /// A mapping or list with these names in it.
    Below(Vec<String>),
    /// Nothing; these are the names that are there.
    Missing(Vec<String>),
}

pub(super) enum Loaded {
    Sops {
        content: Vec<u8>,
        format: Format,
        names: Vec<NamePath>,
        values: Mutex<Option<HashMap<String, SecretBytes>>>,
    },
    /// YAML with `!vault` values.
    Inline(String),
    /// A vault around a whole file.
    Whole { content: Vec<u8>, tfvars: bool, values: Mutex<Option<WholeValues>> },
}

impl Loaded {
    pub(super) fn read(source: &Source, path: &Path) -> Result<Self, Cause> {
        let content = read_file(path, LARGEST_FILE).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "the file does not exist".into(),
            _ => Cause::from(format!("cannot be read: {error}")),
        })?;
        match source {
            Source::Sops(_) => {
                let format = Format::of(path);
                let names = SopsFile::parse(&content, format)?.names();
                Ok(Loaded::Sops { content, format, names, values: Mutex::default() })
            }
            Source::Vault(_) if vault::is_vault(&content) => {
                let tfvars = path.extension().is_some_and(|extension| extension == "tfvars");
                Ok(Loaded::Whole { content, tfvars, values: Mutex::default() })
            }
            Source::Vault(_) => {
                let text = String::from_utf8(content).map_err(|_| VaultError::NotAVault)?;
                let vaulted = vault::encrypted_names(&text)?;
                if vaulted.is_empty() { Err(VaultError::NotAVault.into()) } else { Ok(Loaded::Inline(text)) }
            }
        }
    }

    /// Whether even the names are encrypted.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Loaded::Whole { .. })
    }

    pub(super) fn names_without_key(&self) -> Result<Vec<NamePath>, VaultError> {
        match self {
            Loaded::Sops { names, .. } => Ok(names.clone()),
            Loaded::Inline(text) => vault::encrypted_names(text),
            Loaded::Whole { .. } => Ok(Vec::new()),
        }
    }

    /// Decrypts everything that is encrypted.
    pub(super) fn secrets(&self, access: &Access) -> Result<Secrets, Cause> {
        match self {
            Loaded::Sops { content, format, .. } => {
                let file = SopsFile::parse(content, *format)?;
                let encrypted: HashSet<NamePath> = file.encrypted_names().into_iter().collect();
                let values = file.open(access.identities())?.values().into_iter();
                let values = values.filter(|(path, _)| encrypted.contains(path));
                Ok(values.map(|(path, value)| (path, Some(value))).collect())
            }
            Loaded::Inline(text) => {
                let scanned = scan(text)?;
                let named = named_scalars(&scanned.events)?;
                let vaulted = named.iter().filter(|named| vault::is_vaulted(named.scalar));
                let opened = vaulted.map(|named| {
                    let value = vault::open_scalar(named.scalar, access.passwords())?;
                    Ok((named.path.clone(), Some(value.into())))
                });
                Ok(opened.collect::<Result<_, VaultError>>()?)
            }
            Loaded::Whole { content, tfvars, .. } => {
                let values = open_whole(content, *tfvars, access)?.into_iter();
                Ok(values.map(|(path, value)| (path, value.map(SecretBytes::from))).collect())
            }
        }
    }

    /// Finds a name, and decrypts what is needed for it.
    pub(super) fn find(&self, name: &str, access: &Access) -> Result<Lookup, Cause> {
        match self {
            Loaded::Sops { content, format, names, values } => {
                if !names.iter().any(|path| is_named(path, name)) {
                    return Ok(beside(name, names.iter()));
                }
                let mut values = values.lock().unwrap_or_else(PoisonError::into_inner);
                if values.is_none() {
                    let open = SopsFile::parse(content, *format)?.open(access.identities())?;
                    *values = Some(
                        open.values().into_iter().map(|(path, value)| (path.join("."), value)).collect(),
                    );
                }
                let value = values.as_ref().and_then(|values| values.get(name)).cloned();
                Ok(value.map_or(Lookup::Null, Lookup::Value))
            }
            Loaded::Inline(text) => find_in_yaml(text, name, access),
            Loaded::Whole { content, tfvars, values } => {
                let mut values = values.lock().unwrap_or_else(PoisonError::into_inner);
                if values.is_none() {
                    *values = Some(open_whole(content, *tfvars, access)?);
                }
                let values = values.as_deref().unwrap_or_default();
                // In a file with a name twice, the last one counts, as Ansible has it.
                Ok(match values.iter().rev().find(|(path, _)| is_named(path, name)) {
                    Some((_, Some(value))) => Lookup::Value(value.clone().into()),
                    Some((_, None)) => Lookup::Null,
                    None => beside(name, values.iter().map(|(path, _)| path)),
                })
            }
        }
    }
}

/// Whether the keys, joined by points, are this name. A key may have points itself.
fn is_named(path: &NamePath, name: &str) -> bool {
    let mut rest = Some(name);
    for (index, key) in path.iter().enumerate() {
        rest = rest.and_then(|rest| if index == 0 { Some(rest) } else { rest.strip_prefix('.') });
        rest = rest.and_then(|rest| rest.strip_prefix(key.as_str()));
    }
    rest == Some("")
}

/// What there is instead: something below the name, or other names.
fn beside<'n>(name: &str, names: impl Iterator<Item = &'n NamePath>) -> Lookup {
    let names: Vec<String> = names.map(|path| path.join(".")).collect();
    let prefix = format!("{name}.");
    let below: Vec<String> = names.iter().filter(|known| known.starts_with(&prefix)).cloned().collect();
    if below.is_empty() { Lookup::Missing(names) } else { Lookup::Below(below) }
}

fn find_in_yaml(text: &str, name: &str, access: &Access) -> Result<Lookup, Cause> {
    let scanned = scan(text)?;
    let named = named_scalars(&scanned.events)?;
    let Some(found) = named.iter().rev().find(|named| is_named(&named.path, name)) else {
        return Ok(beside(name, named.iter().map(|named| &named.path)));
    };
    Ok(match scalar_value(found.scalar, access)? {
        Some(value) => Lookup::Value(value.into()),
        None => Lookup::Null,
    })
}

/// The text of a scalar as it is written, with a vault opened; `None` for null.
fn scalar_value(scalar: &Scalar, access: &Access) -> Result<Option<SecretString>, VaultError> {
    if vault::is_vaulted(scalar) {
        return vault::open_scalar(scalar, access.passwords()).map(Some);
    }
    let null = scalar.style == Style::Plain && resolve_plain(&scalar.text) == Ok(Value::Null);
    Ok((!null).then(|| SecretString::from(scalar.text.as_str())))
}

fn open_whole(content: &[u8], tfvars: bool, access: &Access) -> Result<WholeValues, Cause> {
    let opened = vault::open(content, access.passwords())?;
    let text =
        std::str::from_utf8(opened.plaintext().expose()).map_err(|_| "its content is not text in UTF-8")?;
    if tfvars {
        return Ok(tfvars::values(text)?.into_iter().map(|(path, value)| (path, Some(value))).collect());
    }
    let scanned = scan(text)?;
    let named = named_scalars(&scanned.events)?;
    let value = |named: &NamedScalar<'_>| Ok((named.path.clone(), scalar_value(named.scalar, access)?));
    Ok(named.iter().map(value).collect::<Result<_, VaultError>>()?)
}
