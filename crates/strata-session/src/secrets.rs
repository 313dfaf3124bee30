//! The encrypted files of a repository, and who reads them.

use std::collections::BTreeMap;
use std::path::Path;

use strata_diagnostics::{LARGEST_FILE, read_file};
use strata_secret::{RandomSource, SecretBytes};
use strata_secrets::{Environment, Recipient, Source, sops};
use strata_source::settings::Settings;

use crate::error::SessionError;

/// The age key that lies in the repository itself, ignored by git.
pub const OWN_KEY: &str = "age.key";

/// The encrypted files that `strata.yaml` lists.
pub fn sources(settings: &Settings) -> Vec<Source> {
    settings
        .secrets
        .iter()
        .map(|source| match (&source.sops, &source.vault) {
            (Some(path), _) => Source::Sops(path.value.clone().into()),
            (None, path) => {
                Source::Vault(path.as_ref().map(|path| path.value.clone()).unwrap_or_default().into())
            }
        })
        .collect()
}

/// Everyone who can read the repository's SOPS files.
pub fn recipients(root: &Path, settings: &Settings) -> Vec<Recipient> {
    let mut found: Vec<String> = Vec::new();
    for source in sources(settings) {
        let path = root.join(source.path());
        let Ok(content) = read_file(&path, LARGEST_FILE) else { continue };
        let Ok(file) = sops::SopsFile::parse(&content, sops::Format::of(&path)) else { continue };
        found.extend(file.recipients().into_iter().flatten().map(str::to_owned));
    }
    found.sort();
    found.dedup();
    found.iter().filter_map(|recipient| Recipient::parse(recipient).ok()).collect()
}

/// The user's variables for the files of a repository, with its own key where they name no other.
pub fn environment(variables: &BTreeMap<String, String>, root: &Path) -> Environment {
    let mut variables = variables.clone();
    let own = root.join(OWN_KEY);
    let given = variables.keys().any(|name| name.starts_with("SOPS_AGE_"));
    if !given && own.is_file() {
        variables.insert("SOPS_AGE_KEY_FILE".to_owned(), own.to_string_lossy().into_owned());
    }
    Environment::new(variables).in_directory(root)
}

/// YAML, encrypted for one recipient as `sops` does it.
pub fn encrypt_yaml(
    plain: &str,
    recipient: &str,
    now: jiff::Timestamp,
    random: &mut dyn RandomSource,
) -> Result<String, SessionError> {
    let settings = sops::Settings { groups: vec![vec![recipient.to_owned()]], ..sops::Settings::default() };
    let plain = SecretBytes::new(plain.as_bytes().to_vec());
    let sealed = sops::encrypt(&plain, sops::Format::Yaml, &settings, now, random)
        .map_err(|error| SessionError::failed(format!("cannot encrypt the secrets: {error}")))?;
    String::from_utf8(sealed).map_err(|error| SessionError::failed(error.to_string()))
}
