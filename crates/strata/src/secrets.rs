//! The repository's secrets, opened with the user's keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use age::secrecy::ExposeSecret;
use strata_diagnostics::{LARGEST_FILE, read_file};
use strata_secret::{Redactor, SecretBytes, SecretString};
use strata_secrets::vault::PasswordSource;
use strata_secrets::{Access, Environment, OsRandom, Recipient, SecretStore, Source, sops};
use strata_source::settings::Settings;

use crate::command_error::CommandError;
use crate::context::Context;
use crate::prompt::TerminalPrompt;

/// The age key that lies in the repository itself, ignored by git.
pub(crate) const OWN_KEY: &str = "age.key";

/// The keys of the user, for the files of a repository. A person at a terminal may be asked.
pub(crate) fn access(context: &Context, root: &Path) -> Arc<Access> {
    Arc::new(Access::new(environment(context, root), Arc::new(TerminalPrompt), vault_passwords(context)))
}

/// The secrets that `strata.yaml` lists. Nothing is decrypted before it is asked for.
pub(crate) fn store(
    root: &Path,
    settings: &Settings,
    access: Arc<Access>,
    redactor: Redactor,
) -> SecretStore {
    SecretStore::new(root, sources(settings), access).with_redactor(redactor)
}

/// The passwords of vaults that the command line names.
pub(crate) fn vault_passwords(context: &Context) -> Vec<(Option<String>, PasswordSource)> {
    let here = here(context);
    context.global.vault_password_file.iter().map(|text| PasswordSource::parse(text, &here)).collect()
}

/// What the command line names starts where the command was told to work.
pub(crate) fn here(context: &Context) -> Environment {
    Environment::new(context.environment.clone()).in_directory(absolute(context, Path::new("")))
}

/// A path from the command line.
pub(crate) fn absolute(context: &Context, given: &Path) -> PathBuf {
    let path = context.start().join(given);
    std::path::absolute(&path).unwrap_or(path)
}

/// The user's variables, with the repository's own key where they name no other.
pub(crate) fn environment(context: &Context, root: &Path) -> Environment {
    let mut variables = context.environment.clone();
    let own = root.join(OWN_KEY);
    let given = variables.keys().any(|name| name.starts_with("SOPS_AGE_"));
    if !given && own.is_file() {
        variables.insert("SOPS_AGE_KEY_FILE".to_owned(), own.to_string_lossy().into_owned());
    }
    Environment::new(variables).in_directory(root)
}

/// The encrypted files that `strata.yaml` lists.
pub(crate) fn sources(settings: &Settings) -> Vec<Source> {
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
pub(crate) fn recipients(root: &Path, settings: &Settings) -> Vec<Recipient> {
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

/// A new age key: the file's text, and the recipient to encrypt for.
pub(crate) fn generate_identity() -> (SecretString, String) {
    let identity = age::x25519::Identity::generate();
    let recipient = identity.to_public().to_string();
    let key = identity.to_string();
    (SecretString::new(format!("# public key: {recipient}\n{}\n", key.expose_secret())), recipient)
}

/// YAML, encrypted for one recipient as `sops` does it.
pub(crate) fn encrypt_yaml(plain: &str, recipient: &str) -> Result<String, CommandError> {
    let settings = sops::Settings { groups: vec![vec![recipient.to_owned()]], ..sops::Settings::default() };
    let plain = SecretBytes::new(plain.as_bytes().to_vec());
    let sealed = sops::encrypt(&plain, sops::Format::Yaml, &settings, jiff::Timestamp::now(), &mut OsRandom)
        .map_err(|error| CommandError::failed(format!("cannot encrypt the secrets: {error}")))?;
    String::from_utf8(sealed).map_err(|error| CommandError::failed(error.to_string()))
}
